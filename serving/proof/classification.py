"""Comparison of labels and numbers."""

from typing import Any

import numpy as np

from keras_bert_impl.tasks.rows import TextRow, text_row

from .comparison import Comparison, Outputs, decoded, difference, exactly, softmax
from .example_texts import PAIRS


class ClassificationComparison(Comparison):
    """The answers of a classifier of texts."""

    def example_texts(self) -> list[tuple[str, ...]]:
        """Returns texts, or pairs where the model was trained on them."""
        return list(PAIRS) if len(self.loaded.text_inputs) == 2 else super().example_texts()

    def row(self, *texts: str) -> TextRow:
        """Returns the row of a text or of a pair."""
        return text_row(self.loaded.tokenizer, self.loaded.max_length, *texts)

    def outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the logits."""
        return {"logits": self.loaded.model(inputs, training=False)}

    def id_differences(self, answer: Outputs, row: TextRow, outputs: Outputs) -> dict[str, float]:
        """Compares all outputs; either of two labels is right where their logits are closer than the bound."""
        settings: Any = self.loaded.settings
        logits = outputs["logits"]
        if settings.task == "regression":
            return {"value": difference(answer["value"], logits[0])}
        labels = decoded(answer["labels"]).tolist()
        differences = {
            "labels": exactly(labels == list(self.loaded.model.labels)),
            "logits": difference(answer["logits"], logits),
        }
        if settings.task == "classification":
            chosen = labels.index(decoded(answer["label"]).item())
            label = float(logits.max() - logits[chosen])
            return {
                **differences,
                "label": label,
                "probabilities": difference(answer["probabilities"], softmax(logits)),
            }
        probabilities = 1 / (1 + np.exp(-logits.astype("float64")))
        is_wrong = answer["holds"] != (probabilities >= settings.label_threshold)
        holds = float(np.abs(probabilities - settings.label_threshold)[is_wrong].max(initial=0))
        return {**differences, "holds": holds, "probabilities": difference(answer["probabilities"], probabilities)}

    def text_differences(self, answer: Outputs, row: TextRow, outputs: Outputs) -> dict[str, float]:
        """As for ids."""
        return self.id_differences(answer, row, outputs)

    def derived_scales(self, scales: dict[str, float], outputs: list[Outputs]) -> dict[str, float]:
        """A softmax makes a difference of logits as much larger as the logits are."""
        logit = scales["logits"]
        return {"value": logit, "label": logit, "probabilities": max(1.0, logit), "holds": max(1.0, logit)}
