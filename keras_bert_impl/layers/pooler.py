"""One vector for the whole sequence."""

import keras
from keras import ops

from keras_bert_impl.layers.gathering import vectors_at
from keras_bert_impl.layers.seeds import truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Pooler(keras.layers.Layer):
    """Projects the position that holds `[CLS]`, the first one, through a dense layer and tanh.

    Args:
        initializer_range: float. Standard deviation of the truncated normal of the kernel.
        seed: int. Seed of the kernel's stream.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(batch, seq_len, hidden_size)`; or `(real_tokens, hidden_size)`, with `positions`.
        positions: integer tensor, `(batch, pairs)`; where the `[CLS]` of each pair in a packed row stands. Into real
            tokens: of any shape, the number of each `[CLS]` among them.

    Returns:
        A tensor `(batch, hidden_size)` in the dtype of `inputs`; `(*positions.shape, hidden_size)` with `positions`.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1, task 2.
    """

    def __init__(self, initializer_range=0.02, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range
        self.seed = seed

    def build(self, inputs_shape):
        hidden_size = inputs_shape[-1]
        self.dense = keras.layers.Dense(
            hidden_size,
            activation="tanh",
            kernel_initializer=truncated_normal(self.initializer_range, self.seed, "dense/kernel"),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((None, hidden_size))
        self.built = True

    def call(self, inputs, positions=None):
        if positions is None:
            return self.dense(inputs[:, 0])
        pooled = self.dense(vectors_at(inputs, positions))
        return ops.reshape(pooled, (*ops.shape(positions), inputs.shape[-1]))

    def compute_output_spec(self, inputs, positions=None):
        rows = inputs.shape[:1] if positions is None else positions.shape
        return keras.KerasTensor((*rows, inputs.shape[-1]), self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "initializer_range": self.initializer_range, "seed": self.seed}
