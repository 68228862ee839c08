"""Labels and numbers for texts and pairs of texts, from what a model gives for rows."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.rows import list_of_texts, rows_of_text
from keras_bert_impl.tasks.softmax import softmax


@dataclasses.dataclass(frozen=True, slots=True)
class TextPrediction:
    """What a model answers to a text or a pair.

    Attributes:
        label: the likeliest label; the labels that hold, in the model's order, of several that may; or a number.
        probabilities: of every label, by name; None for a number.
        truncated: whether the text was too long and its end was not read.
        windows: rows that the text was read in.
    """

    label: str | tuple[str, ...] | float
    probabilities: dict[str, float] | None
    truncated: bool
    windows: int


class TextAnswers(AskedModel):
    """Answers texts, by the logits of rows.

    Attributes:
        labels: the labels, in the model's order.
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the model's order."""
        return self.model.labels

    def __call__(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        batch_size: int = 32,
        long_texts: str = "truncate",
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TextPrediction]:
        """Answers every text.

        Args:
            texts: the texts.
            pairs: the second text of each pair; None for texts alone.
            batch_size: rows that are worked on at once.
            long_texts: `"truncate"`: the end of a text that is longer than a row is not read; `"windows"`: it is read
                in rows that overlap by half, whose probabilities (or numbers) are averaged.
            on_progress: takes the number of rows of each batch that is done.

        Returns:
            One `TextPrediction` for each text, in order.

        Raises:
            InputError: if the texts are no lists of strings of one length, a model of pairs is given none or one of
                texts alone is given some, or `long_texts` is none of the two.
        """
        texts, pairs = self._checked_texts(texts, pairs)
        rows = [
            rows_of_text(self.tokenizer, self.max_length, text, pair, long_texts)
            for text, pair in zip(texts, pairs, strict=True)
        ]
        self.count_texts(text + (pair or "") for text, pair in zip(texts, pairs, strict=True))
        scores = iter(self.outputs([row for of_text in rows for row in of_text], batch_size, on_progress))
        return [
            self._prediction(
                np.mean([self._activated(next(scores)) for _ in of_text], axis=0), of_text[0].truncated, len(of_text)
            )
            for of_text in rows
        ]

    def _checked_texts(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None
    ) -> tuple[list[str], list[str | None]]:
        texts = list_of_texts("texts", texts)
        given: list[str | None] = [None] * len(texts) if pairs is None else list_of_texts("pairs", pairs, none=True)
        if len(given) != len(texts):
            raise InputError(f"`pairs` must be as many as `texts`. Received: {len(given)} and {len(texts)}")
        if self.settings.pair and None in given:
            raise InputError(
                "`pairs` must be given, since the model was trained on pairs of texts. "
                f"Received: text {given.index(None)} has no second one"
            )
        if self.settings.pair is False and (paired := [place for place, pair in enumerate(given) if pair is not None]):
            raise InputError(
                "`pairs` must not be given, since the model was trained on texts alone. "
                f"Received: text {paired[0]} has a second one"
            )
        return texts, given

    def _activated(self, scores: np.ndarray) -> np.ndarray:
        """Turns what the model gives for a row into probabilities, or leaves a number as it is; float64."""
        scores = scores.astype("float64")
        if self.settings.task == "regression":
            return scores
        if self.settings.task == "multilabel":
            return np.exp(-np.logaddexp(0, -scores))
        return softmax(scores)

    def _prediction(self, values: np.ndarray, truncated: bool, windows: int) -> TextPrediction:
        if self.settings.task == "regression":
            return TextPrediction(float(values[0]), None, truncated, windows)
        label: Any = self.labels[int(values.argmax())]
        if self.settings.task == "multilabel":
            holds = values >= self.settings.label_threshold
            label = tuple(name for name, chosen in zip(self.labels, holds, strict=True) if chosen)
        probabilities = dict(zip(self.labels, values.tolist(), strict=True))
        return TextPrediction(label, probabilities, truncated, windows)
