"""What asks a model, whatever runs it: the settings by which texts become rows, and what is said of the texts."""

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keras_bert_impl.tasks.rows import Row
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class AskedModel(abc.ABC):
    """A model that is asked; a subclass says what runs it, another one what it is asked and answers.

    Opens neither Keras nor TensorFlow.

    Args:
        tokenizer: the model's.
        settings: how texts become rows.
        max_length: most ids in a row, in place of that of the settings.

    Attributes:
        model: what runs; it has `config` and, of labels, `labels`.
        tokenizer, settings: as given.
    """

    model: Any

    def __init__(self, tokenizer: WordPieceTokenizer, settings: TaskSettings, max_length: int | None) -> None:
        self.tokenizer = tokenizer
        self.settings = settings
        self._max_length = max_length
        self._texts = self._cased_texts = 0

    @property
    def max_length(self) -> int:
        """Most ids in a row."""
        return self._max_length or self.settings.max_length or self.model.config.max_position_embeddings

    @property
    def notes(self) -> list[str]:
        """What the caller may say about all texts so far, in sentences."""
        note = lower_case_note(self.tokenizer, self._texts, self._cased_texts)
        return [note] if note else []

    def count_texts(self, texts: Iterable[str]) -> None:
        """Counts texts, and those with upper-case letters, for `notes`."""
        for text in texts:
            self._texts += 1
            self._cased_texts += has_upper_case(text)

    @abc.abstractmethod
    def outputs(
        self, rows: Sequence[Row], batch_size: int = 32, on_progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Returns what the model gives for each row, in their order.

        Args:
            rows: what has `token_ids` and `segment_ids`.
            batch_size: rows that are worked on at once.
            on_progress: takes the number of rows of each batch that is done.

        Returns:
            For each row a float32 array, or a dict of arrays as the model has it; of values for tokens, those of the
            row's length.
        """


def has_upper_case(text: str) -> bool:
    """Whether lower-casing would change a text."""
    return text != text.lower()


def lower_case_note(tokenizer: WordPieceTokenizer, texts: int, cased_texts: int) -> str | None:
    """Returns the sentence on a tokenizer that lower-cases and what it is given; None if nothing is lost.

    Args:
        tokenizer: the model's.
        texts: how many there are.
        cased_texts: how many of them have upper-case letters.
    """
    if not tokenizer.lowercase or not cased_texts:
        return None
    share = cased_texts / texts
    said = "under 1%" if share < 0.005 else "over 99%" if 0.995 <= share < 1 else f"{share:.0%}"
    return f"The model lower-cases texts; {said} of them have upper-case letters."
