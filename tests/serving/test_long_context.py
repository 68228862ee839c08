"""Answers are found anywhere in a long context, at the place where they stand in it."""

import math
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.long_context import answer_long_context

ROOM = 300  # characters of a context that are read


class Answerer:
    """Finds the largest number that it reads; "no answer" scores 50."""

    def __init__(self, may_have_no_answer: bool = True) -> None:
        self.null = {"null_score": 50.0} if may_have_no_answer else {}
        self.asked: list[str] = []

    def __call__(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        self.asked += [row["context"] for row in rows]
        return [self.answer(row["context"]) for row in rows]

    def answer(self, context: str) -> dict[str, Any]:
        numbers = list(re.finditer(r"\d+", context[:ROOM]))
        facts = {**self.null, "truncated": len(context) > ROOM}
        best = max(numbers, key=lambda number: int(number[0]), default=None)
        if best is None or (self.null and int(best[0]) < 50):
            return {"answer": "", "start": 0, "end": 0, "probability": 0.5, "score": 50.0, **facts}
        return {
            "answer": best[0],
            "start": best.start(),
            "end": best.end(),
            "probability": 0.5,
            "score": float(best[0]),
            **facts,
        }


def text_with(number: str, place: int, length: int) -> str:
    chosen = random.Random(f"{number} {place}")
    words = "".join(chosen.choice(["word ", "今天", "a ", "💥 ", "longer-word "]) for _ in range(length))[:length]
    return f"{words[:place]} {number} {words[place:]}"


@pytest.mark.parametrize("length", [0, 100, 299, 1000, 5000])
def test_an_answer_is_found_wherever_it_stands(length):
    for place in range(0, length + 1, max(1, length // 40)):
        context = text_with("77777", place, length)
        answerer = Answerer()
        answer = answer_long_context(answerer, "?", context, length=500, overlap=60)
        assert (answer["answer"], answer["score"]) == ("77777", 77777.0)
        assert context[answer["start"] : answer["end"]] == "77777"
        assert (answer["truncated"], answer["null_score"]) == (False, 50.0)
        assert answer["stretches"] <= len(answerer.asked)


def test_a_context_that_fits_is_asked_once():
    answerer = Answerer()
    assert answer_long_context(answerer, "?", "9 60", length=500, overlap=60) == {
        "answer": "60", "start": 2, "end": 4, "probability": 0.5, "score": 60.0, "null_score": 50.0,
        "truncated": False, "stretches": 1,
    }  # fmt: skip
    assert answerer.asked == ["9 60"]


def test_of_two_answers_the_better_is_given_and_of_equal_ones_the_first():
    context = text_with("70", 100, 2000) + text_with("71", 1500, 2000) + text_with("71", 100, 2000)
    answer = answer_long_context(Answerer(), "?", context, length=250, overlap=50)
    assert (answer["answer"], answer["start"]) == ("71", context.index("71"))


def test_no_answer_is_given_where_no_stretch_has_one_or_it_is_better():
    context = text_with("60", 900, 2000)
    assert answer_long_context(Answerer(), "?", context.replace("60", ""))["score"] == 50.0
    for threshold, given in ((0.0, "60"), (-9.0, "60"), (-11.0, "")):
        answer = answer_long_context(Answerer(), "?", context, length=250, overlap=50, null_threshold=threshold)
        assert (answer["answer"], answer["null_score"]) == (given, 50.0)


def test_where_there_must_be_an_answer_there_is_no_score_for_none():
    answer = answer_long_context(Answerer(may_have_no_answer=False), "?", text_with("3", 900, 2000))
    assert (answer["answer"], "null_score" in answer) == ("3", False)


def test_what_is_left_out_all_the_same_is_said():
    def never_whole(rows):
        return [
            {"start": 0, "end": 0, "probability": 1.0, "score": 0.0, "null_score": 0.0, "truncated": True} for _ in rows
        ]

    answer = answer_long_context(never_whole, "?", "word " * 400)
    assert answer["truncated"] is True


class Exported(Answerer):
    """Says of each stretch which would be its best answer, as an export with a threshold of 30 does."""

    def answer(self, context: str) -> dict[str, Any]:
        numbers = list(re.finditer(r"\d+", context[:ROOM]))
        best = max(numbers, key=lambda number: int(number[0]), default=None)
        facts = {"null_score": 50.0, "null_threshold": 30.0, "truncated": len(context) > ROOM}
        if best is None:
            none = {"best_start": 0, "best_end": 0, "best_score": 0.0, "best_probability": 0.0}
            return {"answer": "", "start": 0, "end": 0, "probability": 1.0, "score": 50.0, **none, **facts}
        score = float(best[0])
        share = 1 / (1 + math.exp(50 - score))
        found = {"start": best.start(), "end": best.end(), "score": score, "probability": share}
        known = {f"best_{name}": value for name, value in found.items()}
        if 50 - score > 30:
            found = {"start": 0, "end": 0, "score": 50.0, "probability": 1 - share}
        return {"answer": context[found["start"] : found["end"]], **found, **known, **facts}


def test_the_threshold_is_the_exports_own_unless_one_is_given():
    context = text_with("48", 900, 2000)
    options = {"length": 250, "overlap": 50}
    for threshold, given in ((None, "48"), (2.0, "48"), (1.9, "")):
        answer = answer_long_context(Exported(), "?", context, null_threshold=threshold, **options)
        assert answer["answer"] == given
    assert answer["score"] == 50.0
    answer = answer_long_context(Exported(), "?", context.replace("48", "15"), null_threshold=40, **options)
    # An answer that its stretch does not give is found all the same.
    assert (answer["answer"], answer["score"]) == ("15", 15.0)
    assert answer_long_context(Exported(), "?", context.replace("48", "15"), **options)["answer"] == ""


@pytest.mark.parametrize("length", [10, 2000])
def test_probabilities_are_those_of_the_stretch(length):
    context = text_with("48", 5, length)
    given = answer_long_context(Exported(), "?", context)
    none = answer_long_context(Exported(), "?", context, null_threshold=-10)
    assert given["probability"] == pytest.approx(1 / (1 + math.e**2))
    # "No answer" is as sure as where it is least: the lowest of all stretches.
    assert none["answer"] == "" and none["probability"] == pytest.approx(1 / (1 + math.e**-2))


def test_a_context_without_words_has_a_score_that_is_a_number():
    for answerer in (Answerer(), Answerer(may_have_no_answer=False), Exported()):
        answer = answer_long_context(answerer, "?", "")
        assert (answer["answer"], answer["score"]) == ("", 50.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": -1}, "`overlap` must be a whole number, at least 0. Received: overlap=-1"),
        ({"length": 200}, "`length` must be a whole number above `overlap`. Received: length=200, overlap=200"),
    ],
)
def test_each_wrong_option_has_its_sentence(options, message):
    with pytest.raises(InputError, match=message):
        answer_long_context(Answerer(), "?", "a", **options)
