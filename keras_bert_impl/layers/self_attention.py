"""Multi-head self-attention."""

import keras
from keras import ops

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.seeds import seed_for, truncated_normal


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SelfAttention(keras.layers.Layer):
    """Lets every position gather from all positions that are not padding.

    Query, key and value are three variables. The softmax is taken in float32 whatever the dtype, so
    that rows stay finite also when all their positions are padding.

    Args:
        num_heads: int. Heads; the width of the inputs is a multiple of it.
        dropout: float in [0, 1). Share of the attention probabilities dropped in training.
        initializer_range: float. Standard deviation of the truncated normal of the kernels.
        seed: int. Every kernel and the dropout draw from their own stream, `(seed, name)`.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(batch, seq_len, hidden_size)`.
        padding_mask: bool or integer tensor, `(batch, seq_len)`; true where there is a token.
            Without it every position is one. It keeps padding from being gathered as keys; what
            padding positions themselves gather is computed, and of no use.
        attention_mask: bool or integer tensor, `(batch, seq_len, seq_len)`; true in row `i` where position
            `i` may gather. Where both masks are given, both must be true.
        return_attention: bool. Whether to return the attention probabilities too.
        training: bool. Whether to drop out.

    Returns:
        A tensor with the shape of `inputs`; with `return_attention` a pair of it and the attention
        probabilities, `(batch, num_heads, seq_len, seq_len)`: row `i` says what share position `i`
        gathers from each position, before dropout. They are 0 where a mask is false, and a row sums to 1. They
        are in the compute dtype, being the very numbers that the values are weighted with.

    Raises:
        InputError: if `hidden_size` is not a multiple of `num_heads`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.
    """

    def __init__(self, num_heads, dropout=0.1, initializer_range=0.02, seed=0, **kwargs):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise InputError(f"`num_heads` must be positive. Received: num_heads={num_heads}")
        self.num_heads = num_heads
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.seed = seed

    def build(self, inputs_shape):
        hidden_size = inputs_shape[-1]
        if hidden_size % self.num_heads:
            raise InputError(
                "`inputs` must have a last dimension that is a multiple of `num_heads`. "
                f"Received: hidden_size={hidden_size}, num_heads={self.num_heads}"
            )
        self.query = self._dense(inputs_shape, "query")
        self.key = self._dense(inputs_shape, "key")
        self.value = self._dense(inputs_shape, "value")
        self.output_projection = self._dense(inputs_shape, "output")
        self.probability_dropout = keras.layers.Dropout(
            self.dropout, seed=seed_for(self.seed, "dropout"), dtype=self.dtype_policy, name="dropout"
        )
        self.built = True

    def _dense(self, inputs_shape, name):
        dense = keras.layers.Dense(
            inputs_shape[-1],
            kernel_initializer=truncated_normal(self.initializer_range, self.seed, f"{name}/kernel"),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(inputs_shape)
        return dense

    def call(self, inputs, padding_mask=None, attention_mask=None, return_attention=False, training=None):
        head_size = inputs.shape[-1] // self.num_heads
        query = self._split_heads(self.query(inputs) * head_size**-0.5)
        key = self._split_heads(self.key(inputs))
        value = self._split_heads(self.value(inputs))

        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        probabilities = self._probabilities(scores, padding_mask, attention_mask)
        gathered = ops.matmul(self.probability_dropout(probabilities, training=training), value)
        outputs = self.output_projection(self._join_heads(gathered, inputs))
        return (outputs, probabilities) if return_attention else outputs

    def _split_heads(self, projected):
        # (batch, seq_len, hidden_size) -> (batch, heads, seq_len, head_size)
        batch, seq_len, hidden_size = ops.shape(projected)
        heads = ops.reshape(projected, (batch, seq_len, self.num_heads, hidden_size // self.num_heads))
        return ops.transpose(heads, (0, 2, 1, 3))

    def _join_heads(self, gathered, inputs):
        return ops.reshape(ops.transpose(gathered, (0, 2, 1, 3)), ops.shape(inputs))

    def _probabilities(self, scores, padding_mask, attention_mask):
        scores = ops.cast(scores, "float32")
        if padding_mask is not None:
            scores = scores + ops.expand_dims(ops.expand_dims(_bias(padding_mask), 1), 1)
        if attention_mask is not None:
            scores = scores + ops.expand_dims(_bias(attention_mask), 1)
        return ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def compute_output_spec(
        self, inputs, padding_mask=None, attention_mask=None, return_attention=False, training=None
    ):
        # A shape alone cannot tell how many outputs were asked for.
        outputs = keras.KerasTensor(inputs.shape, self.compute_dtype)
        return (outputs, attention_spec(self, inputs)) if return_attention else outputs

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }


def _bias(mask):
    # Adding has a cheaper gradient than selecting, and in float32 it cannot overflow.
    return (ops.cast(ops.cast(mask, "bool"), "float32") - 1.0) * 1e9


def attention_spec(layer, inputs):
    """Returns the symbolic attention probabilities of a layer with `num_heads`."""
    batch, seq_len, _ = inputs.shape
    return keras.KerasTensor((batch, layer.num_heads, seq_len, seq_len), layer.compute_dtype)
