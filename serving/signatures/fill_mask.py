"""Masks filled for raw texts, and everything that a pretrained model computes for token ids."""

import functools
from typing import Any

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

    @functools.cached_property
    def _unpadded_encoder(self) -> Any:
        return self._model.encoder.unpadded_form()

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
        masks = self._masks(rows.inputs["token_ids"])
        slots = {"mask_positions": masks.to_tensor(0), "mask_weights": tf.ones_like(masks, tf.float32).to_tensor(0.0)}
        logits = self._unpadded({**rows.inputs, **slots}, training=False)["mlm_logits"]
        top_logits, top_ids = tf.math.top_k(logits, self._top)
        probabilities = tf.exp(top_logits - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
        return {
            "mask_positions": masks.to_tensor(NO_POSITION),
            "top_tokens": masks.with_values(tf.gather(tf.constant(self._tokens), top_ids)).to_tensor(""),
            "top_token_ids": masks.with_values(top_ids).to_tensor(NO_POSITION),
            "top_probabilities": masks.with_values(probabilities).to_tensor(0.0),
            "top_logits": masks.with_values(top_logits).to_tensor(0.0),
            **rows.facts,
        }

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Gives everything the model computes for ids.

        Returns:
            A dict:
                mask_positions: int32, `(batch, masks)`; -1 where a row has fewer masks than another.
                mlm_logits: float32, `(batch, masks, vocab_size)`; 0 where there is no mask.
                sequence_output: float32, `(batch, seq_len, hidden_size)`; 0 at padding.
                pooled_output: float32, `(batch, hidden_size)`; absent if the model was saved without pooler.
                nsp_logits: float32, `(batch, 2)`; absent if the model was saved without that head.
        """
        encoded = self._unpadded_encoder(self.model_inputs(token_ids, segment_ids), training=False)
        masks = self._masks(token_ids)
        places = tf.cast(masks.value_rowids(), tf.int32) * tf.shape(token_ids)[1] + masks.values
        vectors = tf.reshape(encoded["sequence_output"], [-1, encoded["sequence_output"].shape[-1]])
        outputs = {
            "mask_positions": masks.to_tensor(NO_POSITION),
            "mlm_logits": masks.with_values(self._model.mlm_head(vectors, places)).to_tensor(0.0),
            "sequence_output": tf.cast(encoded["sequence_output"], tf.float32),
        }
        if "pooler" not in self._fresh_parts:
            outputs["pooled_output"] = tf.cast(encoded["pooled_output"], tf.float32)
            if "nsp_head" not in self._fresh_parts:
                outputs["nsp_logits"] = tf.cast(self._model.nsp_head(encoded["pooled_output"]), tf.float32)
        return outputs

    def _masks(self, token_ids: tf.Tensor) -> tf.RaggedTensor:
        """Returns where the masks of each row stand, int32, `(batch, masks)`."""
        columns = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
        return tf.ragged.boolean_mask(columns, token_ids == self._special.mask_token_id)
