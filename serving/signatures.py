"""What an export answers: fill-mask for raw texts, and everything the model computes for token ids.

Only core TensorFlow operations. The padding mask is derived from the ids, so that rows which a server has
filled up to one length give the answers that they give alone.
"""

from typing import Any

import tensorflow as tf

from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .loaded_model import LoadedModel

NO_POSITION = -1
"""Fills up `mask_positions` and `top_token_ids` of a text that has fewer masks than another of its batch."""


class Signatures:
    """The functions behind the signatures of an export.

    Args:
        loaded: model and tokenizer.
        tokenizer: the in-graph form of the tokenizer.
        top: candidates per mask.
        max_length: ids that a text may have, with `[CLS]` and `[SEP]`.
    """

    def __init__(self, loaded: LoadedModel, tokenizer: InGraphWordPiece, *, top: int, max_length: int) -> None:
        self._model: BertPretrainer = loaded.model
        self._special: WordPieceTokenizer = loaded.tokenizer
        self._fresh_parts = loaded.fresh_parts
        self._tokenizer = tokenizer
        self._top = top
        self._max_length = max_length
        # Models are often given more rows than the vocabulary has tokens.
        spare_rows = self._model.config.vocab_size - loaded.tokenizer.vocab_size
        self._tokens = [*loaded.tokenizer.vocabulary, *[""] * spare_rows]

    def endpoints(self) -> dict[str, tuple[Any, list[tf.TensorSpec]]]:
        """Returns function and inputs of each signature, by name."""
        ids = [tf.TensorSpec([None, None], tf.int32, name) for name in ("token_ids", "segment_ids")]
        return {
            "serving_default": (self.fill_mask, [tf.TensorSpec([None], tf.string, "text")]),
            "token_ids": (self.encode, ids),
        }

    def fill_mask(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers raw texts.

        Args:
            text: string, `(batch,)`.

        Returns:
            A dict:
                mask_positions: int32, `(batch, masks)`; -1 where a text has fewer masks than another.
                top_tokens: string, `(batch, masks, top)`; empty where there is no mask.
                top_token_ids: int32, `(batch, masks, top)`; -1 where there is no mask.
                top_probabilities, top_logits: float32, `(batch, masks, top)`; 0 where there is no mask.
                num_tokens: int32, `(batch,)`; ids of the text, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether the end of the text was left out.
        """
        token_ids, num_tokens, truncated = self._rows(text)
        encoded = self._encoder(token_ids, tf.zeros_like(token_ids))
        positions, logits = self._masked_lm(token_ids, encoded["sequence_output"])
        top_logits, top_ids = tf.math.top_k(logits, self._top)
        probabilities = tf.exp(top_logits - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
        is_mask = tf.expand_dims(positions != NO_POSITION, -1)
        return {
            "mask_positions": positions,
            "top_tokens": tf.where(is_mask, tf.gather(tf.constant(self._tokens), top_ids), ""),
            "top_token_ids": tf.where(is_mask, top_ids, NO_POSITION),
            "top_probabilities": tf.where(is_mask, probabilities, 0.0),
            "top_logits": tf.where(is_mask, top_logits, 0.0),
            "num_tokens": num_tokens,
            "truncated": truncated,
        }

    def encode(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers ids that were made elsewhere.

        Args:
            token_ids: int32, `(batch, seq_len)`; with `[CLS]` and `[SEP]`, filled up with the padding id.
            segment_ids: int32, `(batch, seq_len)`; 0 for the first text and padding, 1 for the second.

        Returns:
            A dict:
                mask_positions: int32, `(batch, masks)`; -1 where a row has fewer masks than another.
                mlm_logits: float32, `(batch, masks, vocab_size)`; 0 where there is no mask.
                sequence_output: float32, `(batch, seq_len, hidden_size)`.
                pooled_output: float32, `(batch, hidden_size)`; absent if the model was saved without pooler.
                nsp_logits: float32, `(batch, 2)`; absent if the model was saved without that head.
        """
        with tf.control_dependencies(self._id_checks(token_ids, segment_ids)):
            token_ids, segment_ids = tf.identity(token_ids), tf.identity(segment_ids)
        encoded = self._encoder(token_ids, segment_ids)
        positions, logits = self._masked_lm(token_ids, encoded["sequence_output"])
        is_mask = tf.expand_dims(positions != NO_POSITION, -1)
        outputs = {
            "mask_positions": positions,
            "mlm_logits": tf.where(is_mask, logits, 0.0),
            "sequence_output": tf.cast(encoded["sequence_output"], tf.float32),
        }
        if "pooler" not in self._fresh_parts:
            outputs["pooled_output"] = tf.cast(encoded["pooled_output"], tf.float32)
            if "nsp_head" not in self._fresh_parts:
                outputs["nsp_logits"] = tf.cast(self._model.nsp_head(encoded["pooled_output"]), tf.float32)
        return outputs

    def _rows(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns ids filled up to the longest row, their number, and whether the text was cut."""
        pieces = self._tokenizer(text)
        kept = pieces[:, : self._max_length - 2]
        ends = tf.ones([tf.shape(text)[0], 1], tf.int32)
        rows = tf.concat([ends * self._special.cls_token_id, kept, ends * self._special.sep_token_id], axis=1)
        num_tokens = tf.cast(rows.row_lengths(), tf.int32)
        truncated = pieces.row_lengths() > kept.row_lengths()
        return rows.to_tensor(self._special.pad_token_id), num_tokens, truncated

    def _encoder(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        padding_mask = tf.cast(token_ids != self._special.pad_token_id, tf.int32)
        inputs = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        return self._model.encoder(inputs, training=False)

    def _masked_lm(self, token_ids: tf.Tensor, sequence_output: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns where the masks stand, `(batch, masks)`, and the logits there."""
        columns = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
        masks = tf.ragged.boolean_mask(columns, token_ids == self._special.mask_token_id)
        positions = masks.to_tensor(NO_POSITION)
        return positions, self._model.mlm_head(sequence_output, tf.maximum(positions, 0))

    def _id_checks(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> list[tf.Operation]:
        """A GPU would answer ids outside the tables with zeros, and unequal shapes may broadcast."""
        config = self._model.config
        same_shape = tf.reduce_all(tf.equal(tf.shape(token_ids), tf.shape(segment_ids)))
        checks = [
            tf.debugging.Assert(same_shape, ["`token_ids` and `segment_ids` must have one shape"]),
            tf.debugging.Assert(
                tf.shape(token_ids)[1] <= config.max_position_embeddings,
                [f"`token_ids` must have at most {config.max_position_embeddings} columns"],
            ),
        ]
        for name, ids, size in (
            ("token_ids", token_ids, config.vocab_size),
            ("segment_ids", segment_ids, config.type_vocab_size),
        ):
            inside = tf.reduce_all((ids >= 0) & (ids < size))
            checks.append(tf.debugging.Assert(inside, [f"`{name}` must be at least 0 and less than {size}"]))
        return checks
