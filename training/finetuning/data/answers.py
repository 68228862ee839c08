"""Answers to questions, brought to the place where the context holds them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Answer

from ...corpus.wording import counted

ABSENT = -1
_SHOWN = 5


class AnswerPlacer:
    """Finds where contexts hold answers, and counts what had to be mended.

    Args:
        argument: what error messages call the source.

    Attributes:
        mended: how many answers, by what was done.
        left_out: answers beside questions that are said to have none.
        absent: questions with an answer that the context does not hold, by id or place.
        unanswered: those of which it holds no answer at all.
    """

    def __init__(self, argument: str) -> None:
        self.argument = argument
        self.mended: Counter[str] = Counter()
        self.left_out = 0
        self.absent: list[str] = []
        self.unanswered: list[str] = []

    def placed(self, context: str, answers: Sequence[tuple[str, Any]], name: str, place: str) -> tuple[Answer, ...]:
        """Returns the answers of a question; where the context does not hold one its start is -1.

        Args:
            context: the text.
            answers: text and start of each; None for a start that is not known.
            name: what to call the question.
            place: where it was read.

        Raises:
            InputError: if a start is no whole number.
        """
        result = tuple(self._place(context, text, self._whole(start, place)) for text, start in answers)
        absent = sum(answer.start == ABSENT for answer in result)
        if absent:
            self.absent.append(name)
        if absent and absent == len(result):
            self.unanswered.append(name)
        return result

    def _whole(self, start: Any, place: str) -> int | None:
        if start is None or (isinstance(start, str) and not start.strip()):
            return None
        try:
            if isinstance(start, bool) or int(start) != float(start):
                raise ValueError
            return int(start)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"`{self.argument}` must have whole numbers as starts of answers. Received: {start!r:.60} in {place}"
            ) from None

    def _place(self, context: str, text: str, start: int | None) -> Answer:
        stripped = text.strip()
        if start is not None and start >= 0 and context[start : start + len(text)] == text:
            if stripped != text:
                self.mended["with blanks around them, which were taken off"] += 1
                start += len(text) - len(text.lstrip())
            return Answer(stripped, start)
        places = list(_occurrences(context, stripped))
        if not places:
            return Answer(stripped, ABSENT)
        if start is None:
            if len(places) > 1:
                self.mended["without a start, taken at the first of several places"] += 1
            return Answer(stripped, places[0])
        if len(places) == 1:
            self.mended["with a wrong start, moved to the only place with their text"] += 1
            return Answer(stripped, places[0])
        self.mended["with a wrong start, moved to the nearest of several places with their text"] += 1
        return Answer(stripped, min(places, key=lambda place: abs(place - start)))

    def notes(self, path: str) -> Iterator[str]:
        """Yields a sentence for everything that was mended or not found."""
        for what, count in self.mended.items():
            yield f"{path}: {counted(count, 'answer')} {_for_one(what) if count == 1 else what}."
        if self.left_out:
            yield (
                f"{path}: left out {counted(self.left_out, 'answer')} of questions that `is_impossible` says have none."
            )
        if self.absent:
            yield (
                f"{path}: {counted(len(self.absent), 'question')} with an answer that the context does not hold "
                f"({_listed(self.absent)}); such an answer counts when answers are compared."
            )
        if self.unanswered:
            yield (
                f"{path}: {counted(len(self.unanswered), 'question')} of which the context holds no answer "
                f"({_listed(self.unanswered)}); nothing can be learned from them."
            )


def _for_one(what: str) -> str:
    """Returns what was done to several answers, said of one."""
    return what.replace("around them,", "around it,").replace("their text", "its text")


def _occurrences(context: str, text: str) -> Iterator[int]:
    place = context.find(text) if text else -1
    while place >= 0:
        yield place
        place = context.find(text, place + 1)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
