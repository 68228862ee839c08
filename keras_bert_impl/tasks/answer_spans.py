"""From scores of starts and ends to answers: slices of the text, best first."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_impl.tasks.answer_windows import AnswerWindow, CutQuestion
from keras_bert_impl.tasks.softmax import softmax

CONSIDERED = 20
"""Answers that probabilities are spread over, as in the original's `n_best_size`."""


class FoundAnswer(NamedTuple):
    """A slice of the text, `text[start:end]`, and the sum of its start's and its end's score."""

    text: str
    start: int
    end: int
    score: float


@dataclasses.dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One of the best answers; `text` is `context[start:end]`, or `""` for "no answer".

    Attributes:
        text: the answer.
        start, end: characters of the context.
        probability: softmax of the scores of the answers that were looked at, and of "no answer" where there may be
            none.
        score: sum of the scores of its start and its end.
    """

    text: str
    start: int
    end: int
    probability: float
    score: float


def found_answers(
    cut: CutQuestion, outputs: Sequence[Mapping[str, np.ndarray]], max_answer_length: int, count: int = CONSIDERED
) -> tuple[list[FoundAnswer], float]:
    """Returns the best answers to a question, of which no two have the same text, and the score of none.

    All pairs of a start and an end are looked at, not only those of the best starts and ends. Of equal scores the
    answer that begins first comes first, and of those the shorter.

    Args:
        cut: the question's rows.
        outputs: for each window `start_logits` and `end_logits`, float32 `(length,)`.
        max_answer_length: pieces that an answer may have.
        count: answers that are wanted.

    Returns:
        The answers, best first, none if the text has no pieces; and the lowest score of `[CLS]` in any window.
    """
    null_score = min(float(given["start_logits"][0]) + float(given["end_logits"][0]) for given in outputs)
    scores = [
        _pair_scores(window, given["start_logits"], given["end_logits"], max_answer_length)
        for window, given in zip(cut.windows, outputs, strict=True)
    ]
    total = sum(values.size for values in scores)
    # Answers may have the same text where it is there twice: more pairs than answers have to be looked at.
    looked_at = 2 * count
    while True:
        found = _distinct(cut, scores, looked_at, count)
        if len(found) == count or looked_at >= total:
            return found, null_score
        looked_at *= 4


def chosen_answer(
    found: Sequence[FoundAnswer], null_score: float, *, may_have_no_answer: bool, null_threshold: float
) -> tuple[ScoredAnswer, list[ScoredAnswer]]:
    """Returns the answer that is given, and all of them, best first.

    "No answer" is given if it scores better than the best answer by more than the threshold, or if there is nothing
    else to be given.
    """
    entries = list(found)
    if may_have_no_answer or not found:
        entries.append(FoundAnswer("", 0, 0, null_score))
    scores = np.asarray([entry.score for entry in entries], np.float64)
    answers = [
        ScoredAnswer(text, start, end, float(share), score)
        for (text, start, end, score), share in zip(entries, softmax(scores), strict=True)
    ]
    given = answers[0]
    if found and may_have_no_answer and null_score - given.score > null_threshold:
        given = answers[-1]
    return given, sorted(answers, key=lambda answer: -answer.score)


def _pair_scores(window: AnswerWindow, starts: np.ndarray, ends: np.ndarray, max_answer_length: int) -> np.ndarray:
    """Returns the score of each start with each end: float32 `(pieces, lengths)`, minus infinity for no answer."""
    pieces = window.end - window.begin
    most = min(max_answer_length, pieces)
    if not pieces:
        return np.zeros((0, 0), np.float32)
    text = slice(window.place, window.place + pieces)
    beyond = np.full(most - 1, -np.inf, np.float32)
    last = np.lib.stride_tricks.sliding_window_view(np.concatenate([ends[text], beyond], dtype=np.float32), most)
    scores = starts[text, None].astype(np.float32) + last
    least_lengths = window.least_ends - np.arange(window.begin, window.end)
    if least_lengths.any():
        scores[np.arange(most) < least_lengths[:, None]] = -np.inf
    return scores


def _distinct(cut: CutQuestion, scores: Sequence[np.ndarray], looked_at: int, count: int) -> list[FoundAnswer]:
    best = [_best_pairs(window, values, looked_at) for window, values in zip(cut.windows, scores, strict=True)]
    firsts, lasts, values = (np.concatenate(columns) for columns in zip(*best, strict=True))
    order = np.lexsort((lasts, firsts, -values))[:looked_at]
    found: dict[str, FoundAnswer] = {}
    for first, last, score in zip(*(column[order].tolist() for column in (firsts, lasts, values)), strict=True):
        text = cut.text(first, last)
        if text not in found:
            found[text] = FoundAnswer(text, int(cut.starts[first]), int(cut.ends[last]), score)
            if len(found) == count:
                break
    return list(found.values())


def _best_pairs(window: AnswerWindow, scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns first piece, last piece and score of the best pairs of a window."""
    flat = scores.ravel()
    if count < flat.size:
        # All that are as good as the last, so that it is not by chance which of equal ones are kept.
        edge = np.partition(flat, flat.size - count)[flat.size - count]
        indices = np.flatnonzero((flat >= edge) & np.isfinite(flat))
    else:
        indices = np.flatnonzero(np.isfinite(flat))
    first = indices // max(scores.shape[1], 1)
    last = first + indices % max(scores.shape[1], 1)
    return first + window.begin, last + window.begin, flat[indices]
