"""The position-wise feed-forward sublayer of a transformer block."""

import keras

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.activations import get_activation, in_training
from keras_bert_impl.layers.seeds import truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class FeedForward(keras.layers.Layer):
    """Widens each position, applies a nonlinearity and projects back.

    Padding needs no mask: positions do not see one another here.

    Args:
        intermediate_size: int. Width of the hidden projection.
        activation: string, a value of `hidden_act`. Nonlinearity of the hidden projection.
        initializer_range: float. Standard deviation of the truncated normal of both kernels.
        seed: int. Every kernel draws from its own stream, `(seed, name)`.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(batch, seq_len, hidden_size)`.
        training: bool. Whether a gradient will be taken: then the nonlinearity has one of few passes.

    Returns:
        A tensor with the shape of `inputs`.

    Raises:
        InputError: if the size is not positive or the activation is unknown.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.3.
    """

    def __init__(self, intermediate_size, activation="gelu_new", initializer_range=0.02, seed=0, **kwargs):
        super().__init__(**kwargs)
        if intermediate_size < 1:
            raise InputError(f"`intermediate_size` must be positive. Received: intermediate_size={intermediate_size}")
        get_activation(activation)
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.initializer_range = initializer_range
        self.seed = seed

    def build(self, inputs_shape):
        self.intermediate = self._dense(self.intermediate_size, "intermediate")
        self.intermediate.build(inputs_shape)
        self.output_projection = self._dense(inputs_shape[-1], "output")
        self.output_projection.build((*inputs_shape[:-1], self.intermediate_size))
        self.built = True

    def _dense(self, units, name):
        return keras.layers.Dense(
            units,
            kernel_initializer=truncated_normal(self.initializer_range, self.seed, f"{name}/kernel"),
            dtype=self.dtype_policy,
            name=name,
        )

    def call(self, inputs, training=None):
        activation = get_activation(self.activation)
        if training:
            activation = in_training(activation)
        return self.output_projection(activation(self.intermediate(inputs)))

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }
