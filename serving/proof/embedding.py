"""Comparison of vectors."""

from typing import Any

import keras
import numpy as np

from keras_bert_impl.tasks.rows import TextRow, text_row

from .comparison import Comparison, Outputs, difference


class EmbeddingComparison(Comparison):
    """The answers of an encoder."""

    def row(self, *texts: str) -> TextRow:
        """Returns the row of a text."""
        return text_row(self.loaded.tokenizer, self.loaded.max_length, *texts)

    def outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the encoder's outputs, and the mean vector of length 1."""
        outputs = dict(self.loaded.model(inputs, training=False))
        states = keras.ops.convert_to_numpy(keras.ops.cast(outputs["sequence_output"], "float32")).astype("float64")
        is_token = inputs["padding_mask"][..., None]
        mean = (states * is_token).sum(axis=1) / is_token.sum(axis=1)
        return {**outputs, "sentence_embedding": mean / np.linalg.norm(mean, axis=-1, keepdims=True)}

    def id_differences(self, answer: Outputs, row: TextRow, outputs: Outputs) -> dict[str, float]:
        """Compares everything that the model computes, at tokens."""
        used = {"sequence_output": len(row.token_ids)}
        return {name: difference(answer[name][: used.get(name)], outputs[name]) for name in answer}

    def text_differences(self, answer: Outputs, row: TextRow, outputs: Outputs) -> dict[str, float]:
        """Compares the vectors of whole texts."""
        names = answer.keys() - {"num_tokens", "truncated"}
        return {name: difference(answer[name], outputs[name]) for name in names}
