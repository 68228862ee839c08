"""From ids to vectors: the sum of token, segment and position embeddings."""

import keras
from keras import ops

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.dropout import Dropout
from keras_bert_impl.layers.embedding_table import EmbeddingTable
from keras_bert_impl.layers.layer_norm import LayerNorm
from keras_bert_impl.layers.seeds import seed_for


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Embeddings(keras.layers.Layer):
    """Adds token, segment and position embeddings, normalises and drops out.

    Args:
        vocab_size: int. Rows of the token table.
        hidden_size: int. Width of every vector.
        max_position_embeddings: int. Rows of the position table: the longest sequence.
        type_vocab_size: int. Rows of the segment table.
        dropout: float in [0, 1). Share of the outputs dropped in training.
        initializer_range: float. Standard deviation of the truncated normal of the tables.
        layer_norm_eps: float. Added to the variance.
        seed: int. Every table and the dropout draw from their own stream, `(seed, name)`.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        token_ids: integer tensor, `(batch, seq_len)`.
        segment_ids: integer tensor, `(batch, seq_len)`.
        position_ids: integer tensor, `(batch, seq_len)`; 0, 1, 2, … along every row when not given.
        places: integer tensor, `(real_tokens,)` from `RealTokens`: where in the flattened rows the tokens stand that
            are wanted alone.
        training: bool. Whether to drop out.

    Returns:
        A tensor `(batch, seq_len, hidden_size)` in the compute dtype; `(real_tokens, hidden_size)` with `places`.

    Raises:
        InputError: if the sequences are longer than the position table, where the length is known.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3 and figure 2.
    """

    def __init__(
        self,
        vocab_size,
        hidden_size,
        max_position_embeddings,
        type_vocab_size=2,
        dropout=0.1,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.dropout = dropout
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.seed = seed

    def build(self, token_ids_shape):
        self.token_embedding = self._table(self.vocab_size, "token_embedding")
        self.segment_embedding = self._table(self.type_vocab_size, "segment_embedding")
        self.position_embedding = self._table(self.max_position_embeddings, "position_embedding")
        self.layer_norm = LayerNorm(self.layer_norm_eps, dtype=self.dtype_policy, name="layer_norm")
        self.layer_norm.build((*token_ids_shape, self.hidden_size))
        self.output_dropout = Dropout(
            self.dropout, seed=seed_for(self.seed, "dropout"), dtype=self.dtype_policy, name="dropout"
        )
        self.built = True

    def _table(self, rows, name):
        table = EmbeddingTable(
            rows,
            self.hidden_size,
            initializer_range=self.initializer_range,
            seed=seed_for(self.seed, name),
            dtype=self.dtype_policy,
            name=name,
        )
        table.build()
        return table

    def call(self, token_ids, segment_ids, position_ids=None, places=None, training=None):
        self._check_length(token_ids.shape[1])
        if position_ids is None:
            position_ids = ops.expand_dims(ops.arange(ops.shape(token_ids)[1], dtype="int32"), 0)
        if places is not None:
            position_ids = ops.broadcast_to(position_ids, ops.shape(token_ids))
            token_ids, segment_ids, position_ids = (
                ops.take(ops.reshape(ids, (-1,)), places, axis=0) for ids in (token_ids, segment_ids, position_ids)
            )
        tokens_and_segments = self.token_embedding(token_ids) + self.segment_embedding(segment_ids)
        embedded = tokens_and_segments + self.position_embedding(position_ids)
        return self.output_dropout(self.layer_norm(embedded, training=training), training=training)

    def _check_length(self, seq_len):
        if seq_len is not None and seq_len > self.max_position_embeddings:
            raise InputError(
                "`token_ids` must be at most `max_position_embeddings` long. "
                f"Received: seq_len={seq_len}, max_position_embeddings={self.max_position_embeddings}"
            )

    def compute_output_spec(self, token_ids, segment_ids, position_ids=None, places=None, training=None):
        self._check_length(token_ids.shape[1])
        tokens = token_ids if places is None else places
        return keras.KerasTensor((*tokens.shape, self.hidden_size), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": self.type_vocab_size,
            "dropout": self.dropout,
            "initializer_range": self.initializer_range,
            "layer_norm_eps": self.layer_norm_eps,
            "seed": self.seed,
        }
