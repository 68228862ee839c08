"""Questions and their texts as rows for a model: the question whole, the text in overlapping windows."""

import dataclasses
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.unicode_tables import MARK, unicode_tables
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .examples import Answer

DEFAULT_STRIDE = 128
_SPECIAL_TOKENS = 3  # [CLS] question [SEP] text [SEP]
_NEVER = np.iinfo(np.int32).max


class AnswerWindow(NamedTuple):
    """A row `[CLS] question [SEP] pieces of the text [SEP]`.

    Attributes:
        token_ids: int32, `(length,)`.
        segment_ids: int32, `(length,)`; 1 from the text on.
        place: where the text begins in the row.
        begin: first piece of the text that is in the row.
        end: piece of the text after the last that is in the row.
        least_ends: int32, `(end - begin,)`; the first piece, counted in the whole text, at which an answer that
            starts at this one may end here. Earlier ends, or all, belong to other windows.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    place: int
    begin: int
    end: int
    least_ends: np.ndarray


class PieceSpan(NamedTuple):
    """The pieces of a text that hold an answer, first and last; `exact` if they hold nothing else."""

    first: int
    last: int
    exact: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CutQuestion:
    """A question and its text as rows.

    Attributes:
        context: the text.
        starts: int32, `(pieces,)`; the character at which each piece of the text starts.
        ends: int32, `(pieces,)`; the character after each piece, and after the accents that belong to it.
        windows: the rows; one even if the text has no pieces.
        truncated: whether the question was cut off.
    """

    context: str
    starts: np.ndarray
    ends: np.ndarray
    windows: tuple[AnswerWindow, ...]
    truncated: bool

    def text(self, first: int, last: int) -> str:
        """Returns the slice of the text that two pieces enclose."""
        return self.context[self.starts[first] : self.ends[last]]

    def span(self, answer: Answer) -> PieceSpan | None:
        """Returns the pieces of an answer; None if the text has it elsewhere or nowhere, or as white space alone."""
        if not self._holds(answer):
            return None
        stripped = answer.text.strip()
        start = answer.start + len(answer.text) - len(answer.text.lstrip())
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, start + len(stripped), side="left")) - 1
        if last < first:
            return None
        return PieceSpan(first, last, self.text(first, last) == stripped)

    def misfit(self, answer: Answer, max_answer_length: int) -> str | None:
        """Returns why an answer cannot be given word for word, as the end of a sentence; None if it can."""
        span = self.span(answer)
        if span is None:
            return "has nothing in it that the tokenizer reads" if self._holds(answer) else "is not there in the text"
        if not span.exact:
            return "begins or ends inside a piece"
        if span.last - span.first >= max_answer_length:
            return f"is longer than {max_answer_length} pieces"
        if not any(window.begin <= span.first and span.last < window.end for window in self.windows):
            return "is longer than what two windows share"
        return None

    def _holds(self, answer: Answer) -> bool:
        return answer.start >= 0 and self.context[answer.start : answer.start + len(answer.text)] == answer.text


class QuestionCutter:
    """Cuts questions and texts into rows.

    Windows of a text begin `stride` pieces after one another. A piece counts in the window where it has most text
    around it: there an answer may start with it. One that ends behind that window is looked for in the last window
    that has its start, so that each answer which some window has whole is looked for in one of them.

    Args:
        tokenizer: the model's.
        max_length: ids in a row.
        stride: pieces by which one window begins after another. None for 128, but at most half a window; where a
            window has fewer pieces than `stride`, half a window too.
        max_question_length: pieces of a question that are kept.

    Raises:
        InputError: if a question of `max_question_length` would leave no room for the text.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805); `run_squad.py` of the released code, where answers
        that end behind the window of their start are lost.
    """

    def __init__(
        self,
        tokenizer: WordPieceTokenizer,
        *,
        max_length: int,
        stride: int | None = None,
        max_question_length: int = 64,
    ) -> None:
        if max_question_length > max_length - _SPECIAL_TOKENS - 1:
            raise InputError(
                "`max_question_length` must leave room for the text: at most `max_length` - "
                f"{_SPECIAL_TOKENS + 1}. Received: max_question_length={max_question_length}, max_length={max_length}"
            )
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.stride = stride
        self.max_question_length = max_question_length
        self._pieces = lru_cache(maxsize=16)(self._cut_context)  # questions on one text come together

    def __call__(self, question: str, context: str) -> CutQuestion:
        """Returns the rows; special tokens that are written in the texts are text like any other."""
        question_ids = self.tokenizer.encode_ids(question, keep_special_tokens=False)
        kept = question_ids[: self.max_question_length]
        ids, starts, ends = self._pieces(context)
        place = len(kept) + _SPECIAL_TOKENS - 1
        head = np.asarray([self.tokenizer.cls_token_id, *kept, self.tokenizer.sep_token_id], np.int32)
        room = self.max_length - place - 1
        ranges = window_ranges(len(ids), room, self.stride)
        windows = []
        for (begin, end), least_ends in zip(ranges, _least_ends(ranges), strict=True):
            token_ids = np.concatenate([head, ids[begin:end], [self.tokenizer.sep_token_id]], dtype=np.int32)
            segment_ids = (np.arange(len(token_ids)) >= place).astype(np.int32)
            windows.append(AnswerWindow(token_ids, segment_ids, place, begin, end, least_ends))
        return CutQuestion(context, starts, ends, tuple(windows), len(kept) < len(question_ids))

    def _cut_context(self, context: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        encoding = self.tokenizer.encode(context, keep_special_tokens=False)
        offsets = np.asarray(encoding.offsets, np.int32).reshape(-1, 2)
        starts, ends = offsets[:, 0].copy(), offsets[:, 1].copy()
        if not context.isascii():
            _include_marks(context, starts, ends)
        return np.asarray(encoding.ids, np.int32), starts, ends


def window_ranges(pieces: int, room: int, stride: int | None) -> list[tuple[int, int]]:
    """Returns begin and end of each window over so many pieces, each with at most `room` of them."""
    half = max(1, room // 2)
    step = min(DEFAULT_STRIDE, half) if stride is None else (stride if stride <= room else half)
    ranges = [(0, min(room, pieces))]
    while ranges[-1][1] < pieces:
        begin = ranges[-1][0] + step
        ranges.append((begin, min(begin + room, pieces)))
    return ranges


def _least_ends(ranges: list[tuple[int, int]]) -> list[np.ndarray]:
    """Returns `AnswerWindow.least_ends` of each window."""
    pieces = ranges[-1][1]
    if len(ranges) == 1:
        return [np.arange(pieces, dtype=np.int32)]
    most = np.full(pieces, -1.0)
    home, last = np.zeros((2, pieces), np.int32)
    for index, (begin, end) in enumerate(ranges):
        inside = np.arange(begin, end)
        # As in the original: what is there on the poorer side, and a little for the length of the window.
        around = np.minimum(inside - begin, end - 1 - inside) + 0.01 * (end - begin)
        better = around > most[begin:end]
        home[begin:end][better] = index
        most[begin:end][better] = around[better]
        last[begin:end] = index
    home_ends = np.asarray([end for _, end in ranges], np.int32)[home]
    everywhere = np.arange(pieces, dtype=np.int32)
    least_ends = []
    for index, (begin, end) in enumerate(ranges):
        part = slice(begin, end)
        elsewhere = np.where(last[part] == index, home_ends[part], _NEVER).astype(np.int32)
        least_ends.append(np.where(home[part] == index, everywhere[part], elsewhere))
    return least_ends


def _include_marks(text: str, starts: np.ndarray, ends: np.ndarray) -> None:
    """Moves ends of pieces behind the marks that follow: the tokenizer strips them, the reader sees one letter."""
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_mark = np.append(unicode_tables().flags[code_points] & MARK, 0) != 0
    is_mark[starts] = False
    for index in np.flatnonzero(is_mark[ends]):
        while is_mark[ends[index]]:
            ends[index] += 1
