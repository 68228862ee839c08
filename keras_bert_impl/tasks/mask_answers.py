"""What could stand at the masks of texts, from the scores that a model gives for rows."""

import abc
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.rows import list_of_texts, text_row
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class MaskRow(NamedTuple):
    """A text with masks as the encoder reads it: `[CLS]`, pieces, `[SEP]`.

    Attributes:
        token_ids: the ids.
        segment_ids: 0 for each.
        mask_positions: where the mask tokens stand.
    """

    token_ids: list[int]
    segment_ids: list[int]
    mask_positions: list[int]


class MaskAnswers(abc.ABC):
    """Fills masks, by the scores of the vocabulary at them; a subclass says what runs the model.

    Opens neither Keras nor TensorFlow.

    Args:
        tokenizer: the model's.
        vocab_size: rows of the model's table.
        max_length: most ids in a row.
    """

    def __init__(self, tokenizer: WordPieceTokenizer, vocab_size: int, max_length: int) -> None:
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.max_length = max_length

    @abc.abstractmethod
    def mask_logits(self, rows: Sequence[MaskRow]) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the number of each row, in any order, and the scores at its masks: float32 `(masks, vocab_size)`."""

    def __call__(self, texts: Sequence[str], top: int = 5) -> list[list[list[dict[str, Any]]]]:
        """Returns for each text, for each of its masks, the `top` likeliest tokens, best first.

        Args:
            texts: each with one or more mask tokens.
            top: candidates per mask.

        Returns:
            Lists of lists of lists of `{"token": str, "token_id": int, "probability": float}`.

        Raises:
            InputError: if a text has no mask token or is longer than a row.
        """
        texts = list_of_texts("texts", texts)
        if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= self.vocab_size:
            raise InputError(f"`top` must be at least 1 and at most {self.vocab_size}. Received: top={top!r}")
        answers: list[Any] = [None] * len(texts)
        for number, logits in self.mask_logits([self.row(text) for text in texts]):
            answers[number] = [self._candidates(mask, top) for mask in logits]
        return answers

    def row(self, text: str) -> MaskRow:
        """Returns the row of a text; raises `InputError` if it has no mask, or more pieces than a row holds."""
        row = text_row(self.tokenizer, self.max_length, text)
        if row.truncated:
            raise InputError(
                f"`texts` must be of at most {self.max_length - 2} pieces. "
                f"Received: {len(self.tokenizer.encode_ids(text))} pieces, {_start(text)}"
            )
        masks = [i for i, token_id in enumerate(row.token_ids) if token_id == self.tokenizer.mask_token_id]
        if not masks:
            raise InputError(f"`texts` must each have a {self.tokenizer.mask_token}. Received: {_start(text)}")
        return MaskRow(row.token_ids, row.segment_ids, masks)

    def _candidates(self, logits: np.ndarray, top: int) -> list[dict[str, Any]]:
        tokenizer = self.tokenizer
        best = np.argsort(-logits, kind="stable")[:top]
        exponentials = np.exp(logits.astype("float64") - logits.max())
        probabilities = exponentials / exponentials.sum()
        return [
            {
                "token": tokenizer.id_to_token(i) if i < tokenizer.vocab_size else "",
                "token_id": int(i),
                "probability": float(probabilities[i]),
            }
            for i in best.tolist()
        ]


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
