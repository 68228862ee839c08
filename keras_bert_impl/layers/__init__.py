"""The parts of a transformer, in `keras.ops` only. A layer knows no model."""

from keras_bert_impl.layers.embedding_table import EmbeddingTable
from keras_bert_impl.layers.embeddings import Embeddings
from keras_bert_impl.layers.feed_forward import FeedForward
from keras_bert_impl.layers.layer_norm import LayerNorm
from keras_bert_impl.layers.masked_lm_head import MaskedLMHead
from keras_bert_impl.layers.pair_layout import PairLayout
from keras_bert_impl.layers.pooler import Pooler
from keras_bert_impl.layers.real_tokens import InRows, RealPredictions, RealTokens
from keras_bert_impl.layers.self_attention import SelfAttention
from keras_bert_impl.layers.transformer_block import TransformerBlock

__all__ = [
    "EmbeddingTable",
    "Embeddings",
    "FeedForward",
    "InRows",
    "LayerNorm",
    "MaskedLMHead",
    "PairLayout",
    "Pooler",
    "RealPredictions",
    "RealTokens",
    "SelfAttention",
    "TransformerBlock",
]
