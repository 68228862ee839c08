"""Vectors for texts, from those that a model gives for rows."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.rows import list_of_texts, rows_of_text

_SMALLEST_NORM = 1e-12


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TextVector:
    """The vector of a text.

    Attributes:
        vector: float32, `(hidden_size,)`.
        truncated: whether the text was too long and its end was not read.
        windows: rows that the text was read in.
    """

    vector: np.ndarray
    truncated: bool
    windows: int


class VectorAnswers(AskedModel):
    """Answers texts with vectors, by those of rows.

    Attributes:
        pooling: what the vector of a row is made of.
    """

    pooling: str

    def __call__(self, texts: Sequence[str], **options: Any) -> np.ndarray:
        """Returns the vectors of the texts, float32 `(texts, hidden_size)`; see `embed` for the options."""
        vectors = [made.vector for made in self.embed(texts, **options)]
        return np.stack(vectors) if vectors else np.zeros((0, self.model.config.hidden_size), "float32")

    def embed(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 32,
        long_texts: str = "truncate",
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TextVector]:
        """Returns the vector of each text, with how much of it was read.

        Args:
            texts: the texts.
            batch_size: rows that are worked on at once.
            long_texts: `"truncate"`: the end of a text that is longer than a row is not read; `"windows"`: it is read
                in rows that overlap by half, whose vectors are averaged.
            on_progress: takes the number of rows of each batch that is done.

        Raises:
            InputError: if `texts` is no list of strings, or `long_texts` is none of the two.
        """
        texts = list_of_texts("texts", texts)
        rows = [rows_of_text(self.tokenizer, self.max_length, text, None, long_texts) for text in texts]
        self.count_texts(texts)
        vectors = iter(self.outputs([row for of_text in rows for row in of_text], batch_size, on_progress))
        return [
            TextVector(self._averaged([next(vectors) for _ in of_text]), of_text[0].truncated, len(of_text))
            for of_text in rows
        ]

    def _averaged(self, vectors: list[np.ndarray]) -> np.ndarray:
        vector = np.mean(vectors, axis=0, dtype="float64")
        if self.pooling == "mean":
            vector = vector / max(float(np.linalg.norm(vector)), _SMALLEST_NORM)
        return vector.astype("float32")
