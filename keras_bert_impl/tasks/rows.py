"""Texts and pairs of texts as rows of ids: `[CLS]` text `[SEP]`, or `[CLS]` text `[SEP]` second text `[SEP]`."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

LONG_TEXTS = ("truncate", "windows")


class Row(Protocol):
    """What a model reads: ids and their segments, of one length."""

    @property
    def token_ids(self) -> Sequence[int] | np.ndarray:
        """The ids."""
        ...

    @property
    def segment_ids(self) -> Sequence[int] | np.ndarray:
        """For each id 0 or 1."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class TextRow:
    """A text, or a pair of texts, as a row.

    Attributes:
        token_ids: the ids, with `[CLS]` and `[SEP]`.
        segment_ids: 0 up to the first `[SEP]`, then 1.
        truncated: whether pieces were left out.
    """

    token_ids: list[int]
    segment_ids: list[int]
    truncated: bool = False


def text_row(tokenizer: WordPieceTokenizer, max_length: int, text: str, pair: str | None = None) -> TextRow:
    """Returns the row of a text or a pair, cut at the end if it is too long.

    Of a pair the longer text is cut, piece by piece, until the pair fits, as in the original; of two equally long
    ones the second.

    Args:
        tokenizer: the model's.
        max_length: most ids in a row.
        text: the text.
        pair: the second text of a pair.

    Raises:
        InputError: if a text is no string or a row has no room for the special tokens.
    """
    pieces, second = _pieces(tokenizer, text, pair)
    room = _room(max_length, second)
    if second is None:
        return _row(tokenizer, pieces[:room], None, len(pieces) > room)
    kept, kept_second = _kept_of_pair(len(pieces), len(second), room)
    truncated = kept < len(pieces) or kept_second < len(second)
    return _row(tokenizer, pieces[:kept], second[:kept_second], truncated)


def row_windows(tokenizer: WordPieceTokenizer, max_length: int, text: str, pair: str | None = None) -> list[TextRow]:
    """Returns the rows of a text or a pair, of which a long one is taken in windows that overlap by half.

    Of a pair the longer text is taken in windows, each with the shorter one; if that alone fills more than half of a
    row, it is cut there and the rows are marked as truncated.

    Args:
        tokenizer: the model's.
        max_length: most ids in a row.
        text: the text.
        pair: the second text of a pair.

    Returns:
        One row if everything fits; else as many as it takes for every piece to be in one.

    Raises:
        InputError: if a text is no string or a row has no room for the special tokens.
    """
    pieces, second = _pieces(tokenizer, text, pair)
    room = _room(max_length, second)
    if len(pieces) + len(second or ()) <= room:
        return [_row(tokenizer, pieces, second, False)]
    if second is None:
        return [_row(tokenizer, window, None, False) for window in _windows(pieces, room)]
    shorter, longer = sorted((pieces, second), key=len)
    kept = shorter[: room // 2]
    truncated = len(kept) < len(shorter)
    windows = _windows(longer, room - len(kept))
    if longer is pieces:
        return [_row(tokenizer, window, kept, truncated) for window in windows]
    return [_row(tokenizer, kept, window, truncated) for window in windows]


def rows_of_text(
    tokenizer: WordPieceTokenizer, max_length: int, text: str, pair: str | None, long_texts: str
) -> list[TextRow]:
    """Returns the rows of a text or a pair: `text_row` for `"truncate"`, `row_windows` for `"windows"`."""
    if long_texts not in LONG_TEXTS:
        raise InputError(f"`long_texts` must be 'truncate' or 'windows'. Received: long_texts={long_texts!r}")
    if long_texts == "windows":
        return row_windows(tokenizer, max_length, text, pair)
    return [text_row(tokenizer, max_length, text, pair)]


def list_of_texts(name: str, texts: Any, *, none: bool = False) -> list[Any]:
    """Returns the texts that a model is asked about as a list.

    Args:
        name: the argument that they came as.
        texts: what the caller gave.
        none: whether a text may be None.

    Raises:
        InputError: if that is no iterable of strings, or a string has a lone surrogate, which is no character.
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        what = repr(texts) if isinstance(texts, str) else "None" if texts is None else type(texts).__name__
        raise InputError(f"`{name}` must be a list of texts. Received: {what:.80}")
    given = list(texts)
    for place, text in enumerate(given):
        if not isinstance(text, str):
            if text is None and none:
                continue
            raise InputError(f"`{name}` must be texts. Received: {type(text).__name__} at place {place}")
        check_characters(name, text, place)
    return given


def check_characters(name: str, text: str, place: int) -> None:
    """Raises `InputError` if a text has a lone surrogate, and names its place among the texts."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"`{name}` must be texts of Unicode characters. Received: at place {place} a text whose character "
            f"{error.start} is half of a surrogate pair, {text[error.start]!r}"
        ) from error


def batch_inputs(rows: Sequence[Row], pad_token_id: int, length: int | None = None) -> dict[str, np.ndarray]:
    """Returns the model's inputs for a batch of rows.

    Args:
        rows: one or more rows.
        pad_token_id: fills the rows up.
        length: length of the batch; that of the longest row if not given.

    Returns:
        `token_ids`, `segment_ids` and `padding_mask`, int32 `(rows, length)`.
    """
    shape = len(rows), length or max(len(row.token_ids) for row in rows)
    token_ids, segment_ids = np.full(shape, pad_token_id, "int32"), np.zeros(shape, "int32")
    padding_mask = np.zeros(shape, "int32")
    for i, row in enumerate(rows):
        count = len(row.token_ids)
        token_ids[i, :count], segment_ids[i, :count], padding_mask[i, :count] = row.token_ids, row.segment_ids, 1
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}


def batches_by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Returns the indices of rows in batches of like length, the longest first; so too little memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def _pieces(tokenizer: WordPieceTokenizer, text: str, pair: str | None) -> tuple[list[int], list[int] | None]:
    return tokenizer.encode_ids(text), None if pair is None else tokenizer.encode_ids(pair)


def _room(max_length: int, second: list[int] | None) -> int:
    """Returns how many pieces a row has room for."""
    special = 2 if second is None else 3
    if max_length <= special:
        what = "a text" if second is None else "a pair of texts"
        raise InputError(f"`max_length` must be more than {special} for {what}. Received: max_length={max_length}")
    return max_length - special


def _kept_of_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """Returns how many pieces of two texts are left when the longer is cut by one until both fit."""
    excess = max(0, first + second - room)
    cut = min(excess, abs(first - second))
    first, second = (first - cut, second) if first > second else (first, second - cut)
    rest = excess - cut
    return first - rest // 2, second - (rest + 1) // 2


def _row(tokenizer: WordPieceTokenizer, pieces: list[int], second: list[int] | None, truncated: bool) -> TextRow:
    token_ids = [tokenizer.cls_token_id, *pieces, tokenizer.sep_token_id]
    segment_ids = [0] * len(token_ids)
    if second is not None:
        token_ids += [*second, tokenizer.sep_token_id]
        segment_ids += [1] * (len(second) + 1)
    return TextRow(token_ids, segment_ids, truncated)


def _windows(pieces: list[int], room: int) -> list[list[int]]:
    """Returns stretches of `room` pieces, each half of that after the one before; the last ends with the pieces."""
    stride = max(1, room // 2)
    starts = [*range(0, max(0, len(pieces) - room), stride), max(0, len(pieces) - room)]
    return [pieces[start : start + room] for start in starts]
