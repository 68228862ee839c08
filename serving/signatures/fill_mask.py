"""Masks filled for raw texts, and everything that a pretrained model computes for token ids."""

import functools
from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.layers.gathering import only
from keras_bert_impl.models.inputs import symbolic_inputs
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

from ..loaded_model import LoadedModel
from .signatures import NO_POSITION, Outputs, Signatures

_MASKS_AT_ONCE = 256
"""Masks whose scores are in memory together where only the best are given out."""

_MOST_SCORES = 2**26
"""Scores in an answer that has all of them: 256 MiB."""


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
    def _at_masks(self) -> Any:
        """The encoder, in the form that works out the last block for the masks alone."""
        inputs = symbolic_inputs("mask_positions", "mask_weights")
        chosen, _, places = self._model.encoder.of_predictions(inputs)
        return keras.Model(inputs, only(chosen, places))

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
        top_ids, top_logits, probabilities = self._best(self._at_masks({**rows.inputs, **slots}, training=False))
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
        inputs = self.model_inputs(token_ids, segment_ids)
        encoded = self._unpadded_encoder(inputs, training=False)
        masks = self._masks(token_ids)
        places = tf.cast(masks.value_rowids(), tf.int32) * tf.shape(token_ids)[1] + masks.values
        vectors = tf.reshape(encoded["sequence_output"], [-1, encoded["sequence_output"].shape[-1]])
        with tf.control_dependencies([self._size_check(masks)]):
            logits = self._model.mlm_head(vectors, places)
        outputs = {
            "mask_positions": masks.to_tensor(NO_POSITION),
            "mlm_logits": masks.with_values(logits).to_tensor(0.0),
            "sequence_output": self.at_tokens(encoded["sequence_output"], inputs),
        }
        if "pooler" not in self._fresh_parts:
            outputs["pooled_output"] = tf.cast(encoded["pooled_output"], tf.float32)
            if "nsp_head" not in self._fresh_parts:
                outputs["nsp_logits"] = tf.cast(self._model.nsp_head(encoded["pooled_output"]), tf.float32)
        return outputs

    def _best(self, vectors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the best candidates for masks, `(masks, top)`: their ids, logits and probabilities.

        Args:
            vectors: float, `(masks, hidden_size)`.
        """
        count = tf.shape(vectors)[0]

        def best(first: tf.Tensor, *found: tf.TensorArray) -> tuple[Any, ...]:
            places = tf.range(first, tf.minimum(first + _MASKS_AT_ONCE, count))
            logits = self._model.mlm_head(vectors, places)
            top_logits, top_ids = tf.math.top_k(logits, self._top)
            probabilities = tf.exp(top_logits - tf.reduce_logsumexp(logits, axis=-1, keepdims=True))
            parts = zip(found, (top_ids, top_logits, probabilities), strict=True)
            number = first // _MASKS_AT_ONCE
            return first + _MASKS_AT_ONCE, *(array.write(number, part) for array, part in parts)

        # A text without masks has its part of nothing.
        parts = tf.maximum(1, -(-count // _MASKS_AT_ONCE))
        empty = [
            tf.TensorArray(dtype, parts, infer_shape=False, element_shape=[None, self._top])
            for dtype in (tf.int32, tf.float32, tf.float32)
        ]
        found = tf.while_loop(lambda first, *_: first < parts * _MASKS_AT_ONCE, best, (0, *empty))[1:]
        top_ids, top_logits, probabilities = (array.concat() for array in found)
        return top_ids, top_logits, probabilities

    def _size_check(self, masks: tf.RaggedTensor) -> tf.Operation:
        """What has all scores of a batch can be larger than any memory."""
        slots = masks.nrows() * masks.bounding_shape(axis=1)
        most = _MOST_SCORES // self._model.config.vocab_size
        message = f"`token_ids` must have at most {most} masks in a batch, rows times the most masks of a row"
        return tf.debugging.Assert(slots <= most, [message])

    def _masks(self, token_ids: tf.Tensor) -> tf.RaggedTensor:
        """Returns where the masks of each row stand, int32, `(batch, masks)`."""
        columns = tf.broadcast_to(tf.range(tf.shape(token_ids)[1]), tf.shape(token_ids))
        return tf.ragged.boolean_mask(columns, token_ids == self._special.mask_token_id)
