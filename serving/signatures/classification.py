"""Labels, several labels or a number for raw texts or pairs of texts."""

import tensorflow as tf

from .signatures import Outputs, Signatures, every_row


class ClassificationSignatures(Signatures):
    """The signatures of a classifier of texts, by what its logits mean."""

    def answer_texts(self, text: tf.Tensor, text_pair: tf.Tensor | None = None) -> Outputs:
        """Answers raw texts, or pairs of them.

        Args:
            text: string, `(batch,)`.
            text_pair: string, `(batch,)`; the second texts, where the model was trained on pairs.

        Returns:
            What `answer_ids` gives, and:
                num_tokens: int32, `(batch,)`; ids of the row, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether the end of a text was left out.
        """
        rows = self.rows(text, text_pair)
        return {**self._answers(self._unpadded(rows.inputs, training=False)), **rows.facts}

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Answers ids.

        Returns:
            A dict:
                label: string, `(batch,)`; the likeliest. Absent where several labels may hold.
                holds: bool, `(batch, labels)`; where several labels may hold.
                labels: string, `(batch, labels)`; the names, the same in every row.
                probabilities: float32, `(batch, labels)`; adding up to 1, unless several labels may hold.
                logits: float32, `(batch, labels)`.
            Of regression:
                value: float32, `(batch,)`.
        """
        return self._answers(self._unpadded(self.model_inputs(token_ids, segment_ids), training=False))

    def _answers(self, logits: tf.Tensor) -> Outputs:
        if self._settings.task == "regression":
            return {"value": logits[:, 0]}
        outputs = {"labels": every_row(self._model.labels, logits), "logits": logits}
        if self._settings.task == "multilabel":
            probabilities = tf.sigmoid(logits)
            holds = probabilities >= self._settings.label_threshold
            return {**outputs, "probabilities": probabilities, "holds": holds}
        label = tf.gather(tf.constant(list(self._model.labels)), tf.argmax(logits, axis=-1))
        return {**outputs, "probabilities": tf.nn.softmax(logits), "label": label}
