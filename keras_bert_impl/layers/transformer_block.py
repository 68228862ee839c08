"""One block of the encoder."""

import keras

from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.feed_forward import FeedForward
from keras_bert_impl.layers.gathering import only, only_shape
from keras_bert_impl.layers.layer_norm import LayerNorm
from keras_bert_impl.layers.seeds import seed_for
from keras_bert_impl.layers.self_attention import SelfAttention, attention_spec


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class TransformerBlock(keras.layers.Layer):
    """Self-attention, then feed-forward; each followed by dropout, the residual addition and normalisation.

    Args:
        num_heads: int. Attention heads.
        intermediate_size: int. Width of the feed-forward sublayer's hidden projection.
        activation: string, a value of `hidden_act`. Nonlinearity of the feed-forward sublayer.
        dropout: float in [0, 1). Share dropped before both residual additions in training.
        attention_dropout: float in [0, 1). Share of the attention probabilities dropped in training.
        initializer_range: float. Standard deviation of the truncated normal of the kernels.
        layer_norm_eps: float. Added to the variance in both normalisations.
        seed: int. Every part draws from its own stream, `(seed, name)`.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(batch, seq_len, hidden_size)`.
        padding_mask: bool or integer tensor, `(batch, seq_len)`; true where there is a token.
        attention_mask: bool or integer tensor, `(batch, seq_len, seq_len)`; as for `SelfAttention`.
        real_tokens, chosen: as for `SelfAttention`; then `inputs` are the real tokens alone, and only the chosen ones
            go through everything that comes after attention.
        return_attention: bool. Whether to return the attention probabilities too.
        training: bool. Whether to drop out.

    Returns:
        A tensor with the shape of `inputs`, or of the chosen ones; with `return_attention` a pair of it and the
        attention probabilities of `SelfAttention`, `(batch, num_heads, seq_len, seq_len)`.

    Reference:
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1.
    """

    def __init__(
        self,
        num_heads,
        intermediate_size,
        activation="gelu_new",
        dropout=0.1,
        attention_dropout=0.1,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.seed = seed

    def build(self, inputs_shape):
        self.attention = SelfAttention(
            self.num_heads,
            dropout=self.attention_dropout,
            initializer_range=self.initializer_range,
            seed=seed_for(self.seed, "attention"),
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention.build(inputs_shape)
        self.attention_output_dropout = self._dropout("attention_output_dropout")
        self.attention_norm = self._layer_norm(inputs_shape, "attention_norm")
        self.feed_forward = FeedForward(
            self.intermediate_size,
            activation=self.activation,
            initializer_range=self.initializer_range,
            seed=seed_for(self.seed, "feed_forward"),
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward.build(inputs_shape)
        self.feed_forward_output_dropout = self._dropout("feed_forward_output_dropout")
        self.feed_forward_norm = self._layer_norm(inputs_shape, "feed_forward_norm")
        self.built = True

    def _dropout(self, name):
        return Dropout(self.dropout, seed=seed_for(self.seed, name), dtype=self.dtype_policy, name=name)

    def _layer_norm(self, inputs_shape, name):
        layer_norm = LayerNorm(self.layer_norm_eps, dtype=self.dtype_policy, name=name)
        layer_norm.build(inputs_shape)
        return layer_norm

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
        attended = self.attention(
            inputs,
            padding_mask=padding_mask,
            attention_mask=attention_mask,
            real_tokens=real_tokens,
            chosen=chosen,
            return_attention=return_attention,
            training=training,
        )
        if return_attention:
            attended, probabilities = attended
        attended = self.attention_output_dropout(attended, training=training)
        attended = self.attention_norm(only(inputs, chosen) + attended, training=training)

        fed = self.feed_forward(attended, training=training)
        fed = self.feed_forward_output_dropout(fed, training=training)
        outputs = self.feed_forward_norm(attended + fed, training=training)
        return (outputs, probabilities) if return_attention else outputs

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
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
            "seed": self.seed,
        }
