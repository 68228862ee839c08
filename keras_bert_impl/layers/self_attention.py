"""Multi-head self-attention."""

import keras
from keras import ops

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.gathering import only, only_shape, take_with_inverse
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
        real_tokens: `(mask, places, numbers)` from `RealTokens`. Then `inputs` are the real tokens alone,
            `(real_tokens, hidden_size)`, and so are the outputs; the masks stay in rows.
        chosen: integer tensor, `(chosen,)`; with `real_tokens`, numbers of the tokens that are wanted. Then the
            outputs are `(chosen, hidden_size)`. Without it all of them are.
        return_attention: bool. Whether to return the attention probabilities too.
        training: bool. Whether to drop out.

    Returns:
        A tensor with the shape of `inputs`, or of the chosen ones; with `return_attention` a pair of it and the
        attention probabilities, `(batch, num_heads, seq_len, seq_len)`: row `i` says what share position `i`
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
        self.probability_dropout = Dropout(
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

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        real_tokens=None,
        chosen=None,
        return_attention=False,
        training=None,
    ):
        head_size = inputs.shape[-1] // self.num_heads
        heads = _HeadsOfRows(self.num_heads) if real_tokens is None else _HeadsOfRealTokens(self.num_heads, real_tokens)
        if training and not return_attention:
            # One product is faster than three, and scaling its weights is much less work than scaling what it gives.
            scales = (self.query, head_size**-0.5), (self.key, 1.0), (self.value, self.probability_dropout.scale)
            kernel = ops.concatenate([dense.kernel * scale for dense, scale in scales], axis=1)
            bias = ops.concatenate([dense.bias * scale for dense, scale in scales], axis=0)
            together = heads.split_together(ops.add(ops.matmul(inputs, kernel), bias))
            joined = heads.join(self._attend_in_training(together, padding_mask, attention_mask))
            return self.output_projection(only(joined, chosen))
        query = heads.split(self.query(inputs) * head_size**-0.5)
        key = heads.split(self.key(inputs))
        value = heads.split(self.value(inputs))

        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        probabilities = self._probabilities(scores, padding_mask, attention_mask)
        gathered = ops.matmul(self.probability_dropout(probabilities, training=training), value)
        outputs = self.output_projection(only(heads.join(gathered), chosen))
        return (outputs, probabilities) if return_attention else outputs

    def _attend_in_training(self, together, padding_mask, attention_mask):
        """Does the same with a gradient written out.

        `together` is query, key and value, `(3, batch, heads, seq_len, head_size)`; the value holds the scale of
        dropout already.
        """
        shape, kept = ops.shape(together), None
        if self.probability_dropout.rate:
            kept = ops.cast(self.probability_dropout.kept((*shape[1:4], shape[3])), together.dtype)

        @ops.custom_gradient
        def attend(together):
            # TensorFlow works through a batch of small products on one core: two halves go side by side.
            parts = map(_halves, (*(together[n] for n in range(3)), padding_mask, attention_mask, kept))
            halves = [self._attend_with_gradient(*half) for half in zip(*parts, strict=True)]

            def gradient(upstream):
                of_halves = [of_half(part) for (_, of_half), part in zip(halves, _halves(upstream), strict=True)]
                return ops.reshape(
                    ops.concatenate([part for parts in zip(*of_halves, strict=True) for part in parts], axis=0), shape
                )

            return ops.concatenate([gathered for gathered, _ in halves], axis=0), gradient

        return attend(together)

    def _attend_with_gradient(self, query, key, value, padding_mask, attention_mask, kept):
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        probabilities = self._probabilities(scores, padding_mask, attention_mask)
        weights = probabilities if kept is None else probabilities * kept
        gathered = ops.matmul(weights, value)

        def gradient(upstream):
            of_weights = ops.matmul(upstream, ops.transpose(value, (0, 1, 3, 2)))
            # The softmax takes away each row's mean of its gradient, and that is this shorter sum.
            means = ops.sum(upstream * gathered, axis=-1, keepdims=True)
            of_scores = weights * of_weights - probabilities * means
            return (
                ops.matmul(of_scores, key),
                ops.matmul(ops.transpose(of_scores, (0, 1, 3, 2)), query),
                ops.matmul(ops.transpose(weights, (0, 1, 3, 2)), upstream),
            )

        return gathered, gradient

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
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        real_tokens=None,
        chosen=None,
        return_attention=False,
        training=None,
    ):
        # A shape alone cannot tell how many outputs were asked for.
        outputs = keras.KerasTensor(only_shape(inputs, chosen), self.compute_dtype)
        return (outputs, attention_spec(self, inputs, real_tokens)) if return_attention else outputs

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


def _halves(rows):
    if rows is None:
        return None, None
    middle = ops.shape(rows)[0] // 2
    return rows[:middle], rows[middle:]


class _HeadsOfRows:
    """Heads of vectors in rows: `(batch, seq_len, hidden_size)` to `(batch, heads, seq_len, head_size)` and back.

    `split_together` takes query, key and value side by side, to `(3, batch, heads, seq_len, head_size)`.
    """

    def __init__(self, num_heads):
        self.num_heads = num_heads

    def split(self, projected):
        batch, seq_len, hidden_size = ops.shape(projected)
        heads = ops.reshape(projected, (batch, seq_len, self.num_heads, hidden_size // self.num_heads))
        return ops.transpose(heads, (0, 2, 1, 3))

    def split_together(self, projected):
        batch, seq_len, width = ops.shape(projected)
        heads = ops.reshape(projected, (batch, seq_len, 3, self.num_heads, width // (3 * self.num_heads)))
        return ops.transpose(heads, (2, 0, 3, 1, 4))

    def join(self, gathered):
        batch, _, seq_len, head_size = ops.shape(gathered)
        return ops.reshape(ops.transpose(gathered, (0, 2, 1, 3)), (batch, seq_len, self.num_heads * head_size))


class _HeadsOfRealTokens:
    """Heads of real tokens: `(real_tokens, hidden_size)` to `(batch, heads, seq_len, head_size)` and back.

    `split_together` takes query, key and value side by side, to `(3, batch, heads, seq_len, head_size)`.
    Taking apart into heads and going back to rows is one look-up. At padding stands the token before it: finite, and
    with a probability of 0.
    """

    def __init__(self, num_heads, real_tokens):
        self.num_heads = num_heads
        mask, places, numbers = real_tokens
        seq_len = ops.shape(numbers)[1]
        head = ops.arange(num_heads, dtype="int32")
        # Token t has the vectors from t * heads on; a row has seq_len vectors for each of its heads.
        self.in_tokens = ops.expand_dims(numbers, 1) * num_heads + ops.expand_dims(head, 1)
        first = places + places // seq_len * (num_heads - 1) * seq_len
        self.in_rows = ops.expand_dims(first, 1) + head * seq_len
        self.here = ops.tile(ops.expand_dims(mask, 1), (1, num_heads, 1))

    def split(self, projected):
        vectors = ops.reshape(projected, (-1, projected.shape[-1] // self.num_heads))
        return take_with_inverse(vectors, self.in_tokens, ops.reshape(self.in_rows, (-1,)))

    def split_together(self, projected):
        which = ops.arange(3, dtype="int32")
        heads, rows = ops.shape(self.in_tokens)[1], ops.size(self.in_tokens)
        in_tokens = self.in_tokens + self.in_tokens // heads * (2 * heads)
        in_tokens = ops.expand_dims(in_tokens, 0) + ops.reshape(which * heads, (3, 1, 1, 1))
        in_rows = ops.expand_dims(self.in_rows, 1) + ops.reshape(which * rows, (3, 1))
        vectors = ops.reshape(projected, (-1, projected.shape[-1] // (3 * self.num_heads)))
        return take_with_inverse(vectors, in_tokens, ops.reshape(in_rows, (-1,)))

    def join(self, gathered):
        head_size = gathered.shape[-1]
        vectors = ops.reshape(gathered, (-1, head_size))
        here, inverse = ops.reshape(self.here, (-1, 1)), ops.reshape(self.in_tokens, (-1,))
        return ops.reshape(
            take_with_inverse(vectors, self.in_rows, inverse, here=here), (-1, self.num_heads * head_size)
        )


def attention_spec(layer, inputs, real_tokens=None):
    """Returns the symbolic attention probabilities of a layer with `num_heads`."""
    batch, seq_len = (inputs if real_tokens is None else real_tokens[0]).shape[:2]
    return keras.KerasTensor((batch, layer.num_heads, seq_len, seq_len), layer.compute_dtype)
