"""Masks filled for raw texts, and everything that a pretrained model computes for token ids."""

import tensorflow as tf

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

from ..loaded_model import LoadedModel
from .signatures import NO_POSITION, Outputs, Signatures


class FillMaskSignatures(Signatures):
    """The signatures of a masked language model.

    Args:
        loaded: model and tokenizer.
        tokenizer: the in-graph form of the tokenizer.
        top: candidates per mask.
    """

    def __init__(self, loaded: LoadedModel, tokenizer: InGraphWordPiece, top: int) -> None:
        super().__init__(loaded, tokenizer)
        self._top = top
        # Models are often given more rows than the vocabulary has tokens.
        spare_rows = self._model.config.vocab_size - loaded.tokenizer.vocab_size
        self._tokens = [*loaded.tokenizer.vocabulary, *[""] * spare_rows]

    def answer_texts(self, text: tf.Tensor) -> Outputs:
        """Fills the masks of raw texts.

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
        rows = self.rows(text)
        token_ids = rows.inputs["token_ids"]
        encoded = self._model.encoder(self.model_inputs(token_ids, tf.zeros_like(token_ids)), training=False)
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
            **rows.facts,
        }

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Gives everything the model computes for ids.

        Returns:
            A dict:
                mask_positions: int32, `(batch, masks)`; -1 where a row has fewer masks than another.
                mlm_logits: float32, `(batch, masks, vocab_size)`; 0 where there is no mask.
                sequence_output: float32, `(batch, seq_len, hidden_size)`.
                pooled_output: float32, `(batch, hidden_size)`; absent if the model was saved without pooler.
                nsp_logits: float32, `(batch, 2)`; absent if the model was saved without that head.
        """
        encoded = self._model.encoder(self.model_inputs(token_ids, segment_ids), training=False)
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

    def _masked_lm(self, token_ids: tf.Tensor, sequence_output: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns where the masks stand, `(batch, masks)`, and the logits there."""
        columns = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
        masks = tf.ragged.boolean_mask(columns, token_ids == self._special.mask_token_id)
        positions = masks.to_tensor(NO_POSITION)
        return positions, self._model.mlm_head(sequence_output, tf.maximum(positions, 0))
