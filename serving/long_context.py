"""Answers in contexts that are longer than a row of the model."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from keras_bert_impl.errors import InputError

_Row = dict[str, Any]


# So far a stretch is made longer to end where a word does.
_PART_OF_A_WORD = 30


class _Found(NamedTuple):
    """An answer at its place in the whole context."""

    start: int
    end: int
    probability: float
    score: float


def answer_long_context(
    ask: Callable[[Sequence[_Row]], list[_Row]],
    question: str,
    context: str,
    *,
    length: int = 1000,
    overlap: int = 200,
    null_threshold: float | None = None,
) -> _Row:
    """Asks a question of stretches of a context, and returns the best of the answers.

    The stretches overlap, so that an answer of at most `overlap` characters is whole in one of them. One that is still
    too long for a row is asked again in two parts.

    Args:
        ask: answers rows of `question` and `context`, as an export for question answering does.
        question: the question.
        context: the text, of any length.
        length: characters of a stretch.
        overlap: characters that two stretches share.
        null_threshold: by how much "no answer" must be better than the best answer to be given; that of the export
            when not given.

    Returns:
        A dict:
            answer: `context[start:end]`; `""` for no answer.
            start, end: characters of the context.
            probability: that of the answer, or of "no answer", in the stretch that has it.
            score: that of the answer, or of "no answer".
            null_score: that of "no answer", the lowest of all stretches; absent where there must be an answer.
            truncated: whether something was left out all the same: the end of the question, or of a stretch of
                twice the overlap.
            stretches: how many were read.

    Raises:
        InputError: if `length` or `overlap` is out of range.
    """
    if not isinstance(overlap, int) or overlap < 0:
        raise InputError(f"`overlap` must be a whole number, at least 0. Received: overlap={overlap!r}")
    if not isinstance(length, int) or length <= overlap:
        raise InputError(f"`length` must be a whole number above `overlap`. Received: length={length!r}, {overlap=}")
    read: list[tuple[int, _Row]] = []
    waiting = _stretches(context, 0, len(context), length, overlap)
    smallest = 2 * overlap + 4 * _PART_OF_A_WORD
    while waiting:
        answers = ask([{"question": question, "context": context[begin:end]} for begin, end in waiting])
        too_long = []
        for (begin, end), answer in zip(waiting, answers, strict=True):
            if answer["truncated"] and end - begin > smallest:
                too_long += _stretches(context, begin, end, (end - begin + overlap + 1) // 2, overlap)
            else:
                read.append((begin, answer))
        waiting = too_long
    return _best(read, context, null_threshold)


def _stretches(context: str, begin: int, end: int, length: int, overlap: int) -> list[tuple[int, int]]:
    """Cuts a part of a context; a cut within a word moves outwards to its edge if that is near."""
    firsts = range(begin, max(begin + 1, end - overlap), length - overlap)
    stretches = []
    for first in firsts:
        last = min(first + length, end)
        if first > begin:
            space = context.rfind(" ", max(begin, first - _PART_OF_A_WORD), first)
            first = first if space < 0 else space + 1
        if last < end:
            space = context.find(" ", last, min(end, last + _PART_OF_A_WORD))
            last = last if space < 0 else space
        stretches.append((first, last))
    return stretches


def _best(read: Sequence[tuple[int, _Row]], context: str, null_threshold: float | None) -> _Row:
    nulls = [answer["null_score"] for _, answer in read if "null_score" in answer]
    facts: _Row = {
        **({"null_score": min(nulls)} if nulls else {}),
        "truncated": any(answer["truncated"] for _, answer in read),
        "stretches": len(read),
    }
    found = [one for begin, answer in read if (one := _found(begin, answer)).start < one.end]
    # Of equal ones the first in the text.
    best = max(found, key=lambda one: (one.score, -one.start), default=None)
    threshold = read[0][1].get("null_threshold", 0.0) if null_threshold is None else null_threshold
    if best is None or (nulls and min(nulls) - best.score > threshold):
        score, probability = min(_none(begin, answer) for begin, answer in read)
        return {"answer": "", "start": 0, "end": 0, "probability": probability, "score": score, **facts}
    return {
        "answer": context[best.start : best.end],
        "start": best.start,
        "end": best.end,
        "probability": best.probability,
        "score": best.score,
        **facts,
    }


def _none(begin: int, answer: _Row) -> tuple[float, float]:
    """Returns score and probability of "no answer" in a stretch."""
    found = _found(begin, answer)
    if found.start == found.end:
        return answer["score"], answer["probability"]
    # Of one softmax, where probabilities are to one another as the exponentials of scores.
    return answer["null_score"], found.probability * math.exp(answer["null_score"] - found.score)


def _found(begin: int, answer: _Row) -> _Found:
    """Returns the best answer of a stretch, which exports tell whether they give it or not."""
    prefix = "best_" if "best_start" in answer else ""
    start, end, probability, score = (answer[prefix + name] for name in ("start", "end", "probability", "score"))
    return _Found(begin + start, begin + end, probability, score)
