"""Which token stood at a masked position?"""

import keras
from keras import ops

from keras_bert_impl.layers.activations import get_activation
from keras_bert_impl.layers.embedding_table import EmbeddingTable
from keras_bert_impl.layers.gathering import vectors_at
from keras_bert_impl.layers.layer_norm import LayerNorm
from keras_bert_impl.layers.seeds import truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class MaskedLMHead(keras.layers.Layer):
    """Scores every token of the vocabulary at the given positions, with the token table as output kernel.

    Only the positions asked for are worked on, and they are flattened to rank 2 before the product
    with the vocabulary, which is the largest of a training step.

    Args:
        token_embedding: `EmbeddingTable`; its table is shared, not copied.
        activation: string, a value of `hidden_act`. Nonlinearity of the transform.
        initializer_range: float. Standard deviation of the truncated normal of the transform's kernel.
        layer_norm_eps: float. Added to the variance.
        seed: int. Seed of the kernel's stream.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(batch, seq_len, hidden_size)`; or `(real_tokens, hidden_size)`.
        mask_positions: integer tensor, `(batch, predictions)`, each in `[0, seq_len)`. Into real tokens: of any shape,
            numbers of tokens.
        training: bool. Whether a gradient will be taken: then it is one of fewer passes.

    Returns:
        Logits, a float32 tensor `(*mask_positions.shape, vocab_size)` whatever the compute dtype.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1, task 1.
    """

    def __init__(
        self,
        token_embedding,
        activation="gelu_new",
        initializer_range=0.02,
        layer_norm_eps=1e-12,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        get_activation(activation)
        self.token_embedding = token_embedding
        self.activation = activation
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.seed = seed

    def build(self, inputs_shape):
        hidden_size = inputs_shape[-1]
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.dense = keras.layers.Dense(
            hidden_size,
            activation=get_activation(self.activation),
            kernel_initializer=truncated_normal(self.initializer_range, self.seed, "dense/kernel"),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.dense.build((None, hidden_size))
        self.layer_norm = LayerNorm(self.layer_norm_eps, dtype=self.dtype_policy, name="layer_norm")
        self.layer_norm.build((None, hidden_size))
        self.bias = self.add_weight(
            name="bias", shape=(self.token_embedding.input_dim,), initializer="zeros", autocast=False
        )
        self.built = True

    def call(self, inputs, mask_positions, training=None):
        transformed = self.layer_norm(self.dense(vectors_at(inputs, mask_positions)), training=training)
        bias = ops.cast(self.bias, "float32")
        if training and len(mask_positions.shape) == 1:
            # Token by token, and turned around: whoever turns it back has both turns taken out of the graph.
            by_token = ops.cast(self.token_embedding.project_to_columns(transformed), "float32")
            return ops.transpose(by_token + ops.expand_dims(bias, 1))
        logits = ops.add(ops.cast(self.token_embedding.project(transformed, training=training), "float32"), bias)
        return ops.reshape(logits, (*ops.shape(mask_positions), self.token_embedding.input_dim))

    def compute_output_spec(self, inputs, mask_positions, training=None):
        return keras.KerasTensor((*mask_positions.shape, self.token_embedding.input_dim), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "token_embedding": self.token_embedding.get_config(),
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        token_embedding = EmbeddingTable.from_config(config["token_embedding"])
        return cls(**{**config, "token_embedding": token_embedding})
