"""Vectors for raw texts, and everything that an encoder computes for token ids."""

import tensorflow as tf

from .signatures import Outputs, Signatures


class EmbeddingSignatures(Signatures):
    """The signatures of an encoder without a head."""

    def answer_texts(self, text: tf.Tensor) -> Outputs:
        """Gives the vectors of raw texts.

        Args:
            text: string, `(batch,)`.

        Returns:
            A dict:
                sentence_embedding: float32, `(batch, hidden_size)`; the mean of the tokens' vectors, `[CLS]` and
                    `[SEP]` among them, of length 1.
                pooled_output: float32, `(batch, hidden_size)`; absent if the model was saved without pooler.
                num_tokens: int32, `(batch,)`; ids of the text, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether the end of the text was left out.
        """
        rows = self.rows(text)
        outputs = self._vectors(rows.inputs)
        del outputs["sequence_output"]
        return {**outputs, **rows.facts}

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Gives everything the model computes for ids.

        Returns:
            A dict:
                sentence_embedding: float32, `(batch, hidden_size)`, as for texts.
                sequence_output: float32, `(batch, seq_len, hidden_size)`; 0 at padding.
                pooled_output: float32, `(batch, hidden_size)`; absent if the model was saved without pooler.
        """
        return self._vectors(self.model_inputs(token_ids, segment_ids))

    def _vectors(self, inputs: dict[str, tf.Tensor]) -> Outputs:
        encoded = self._unpadded(inputs, training=False)
        vectors = self.at_tokens(encoded["sequence_output"], inputs)
        # Its length is made 1, so the sum does as well as the mean.
        sums = tf.reduce_sum(vectors, axis=1)
        outputs = {"sentence_embedding": tf.math.l2_normalize(sums, axis=-1), "sequence_output": vectors}
        if self._model.pooler is not None and "pooler" not in self._fresh_parts:
            outputs["pooled_output"] = tf.cast(encoded["pooled_output"], tf.float32)
        return outputs
