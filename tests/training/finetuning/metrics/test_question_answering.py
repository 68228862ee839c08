"""Exact match and F1 by SQuAD's official rules."""

import json
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import Answer, Question
from keras_bert_impl.training.finetuning.metrics.question_answering import (
    best_threshold,
    exact_match,
    f1,
    normalise_answer,
    score_answers,
)


def question(name: str, *answers: str) -> Question:
    return Question("?", "", tuple(Answer(text, 0) for text in answers), impossible=not answers, id=name)


@pytest.mark.parametrize(
    "text,normalised",
    [
        ("The  Beatles!", "beatles"),
        ("an apple, a day", "apple day"),
        ("theatre", "theatre"),
        ("A.B.", "ab"),  # punctuation goes first, so this is no article
        ("a-team", "ateam"),
        ("the", ""),
        ("l’été – 5 %", "l’été – 5"),  # ASCII punctuation alone
        ("\u00a0x\ty\n", "x y"),
    ],
)
def test_answers_are_compared_without_case_articles_punctuation_and_spaces(text, normalised):
    assert normalise_answer(text) == normalised


def test_f1_counts_common_words_as_often_as_both_have_them():
    assert f1("x x y", "the x z") == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    assert f1("cat", "dog") == 0 and f1("", "dog") == 0 and f1("cat", "") == 0
    assert exact_match("The Cat.", "cat") == 1 and f1("The Cat.", "cat") == 1


def test_a_chinese_clause_is_one_word():
    assert f1("在北京", "北京") == 0


def test_the_best_of_the_right_answers_counts():
    scores = score_answers([question("1", "red", "red car")], {"1": "a red car"})
    assert scores == {"exact_match": 100.0, "f1": 100.0, "questions": 1}


def test_version_2_scores_questions_with_and_without_answer_apart():
    questions = [question("1", "red car"), question("2"), question("3"), question("4", "blue")]
    scores = score_answers(questions, {"1": "red", "2": "", "3": "x", "4": ""})
    assert scores["exact_match"] == 25 and scores["f1"] == pytest.approx(100 * (2 / 3 + 1) / 4)
    assert scores["has_answer"] == pytest.approx({"exact_match": 0, "f1": 100 / 3, "questions": 2})
    assert scores["no_answer"] == pytest.approx({"exact_match": 50, "f1": 50, "questions": 2})


def test_answers_without_words_are_equal_but_for_the_f1_of_version_1():
    first = score_answers([question("1", "the")], {"1": "The"})
    assert (first["exact_match"], first["f1"]) == (100, 0)
    # In v2.0 a right answer without words is none.
    second = score_answers([question("1", "the"), question("2")], {"1": "", "2": ""})
    assert (second["exact_match"], second["f1"]) == (100, 100)


def test_predictions_must_be_those_of_the_questions():
    questions = [question("1", "x"), question("2", "y")]
    with pytest.raises(InputError, match=r"`predictions` must have the ids.*1 without prediction \(2\) and 1 of no qu"):
        score_answers(questions, {"1": "x", "9": "z"})
    with pytest.raises(InputError, match=r"`questions` must have one or more questions. Received: none"):
        score_answers([], {})


CASES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.integers(-4, 4), st.booleans()), min_size=1, max_size=12
)


@given(CASES)
def test_no_threshold_is_better_than_the_best(cases):
    has_answer = np.array([case[2] for case in cases])
    scores = np.array([case[0] if case[2] else 0.0 for case in cases])
    differences = [float(case[1]) for case in cases]

    def result(threshold: float) -> float:
        points = [
            score if difference <= threshold else float(not has)
            for score, difference, has in zip(scores, differences, has_answer, strict=True)
        ]
        return 100 * sum(points) / len(points)

    best, threshold = best_threshold(scores, differences, has_answer)
    assert best == pytest.approx(max(result(t) for t in np.arange(-6, 6, 0.5)))
    assert best == pytest.approx(result(threshold))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1, max_size=12))
def test_the_best_threshold_lies_where_the_official_script_has_it(cases):
    """Its sweep: from answering nothing, one question more at a time; the first of equally good results."""
    has_answer = np.array([has for _, has in cases])
    scores = np.array([score if has else 0.0 for score, has in cases])
    differences = [float(10 * number) for number in range(len(cases))]
    total = best = float(np.sum(~has_answer))
    last_answered = None
    for score, difference, has in zip(scores, differences, has_answer, strict=True):
        total += score if has else -1
        if total > best:
            best, last_answered = total, difference
    found, threshold = best_threshold(scores, differences, has_answer)
    assert found == pytest.approx(100 * best / len(cases))
    assert threshold < 0 if last_answered is None else last_answered <= threshold < last_answered + 10


def test_a_context_without_words_is_right_or_wrong_at_any_threshold():
    questions = [question("1"), question("2", "x"), question("3")]
    scores = score_answers(questions, ["", "x", "y"], [0.0, 1.0, 2.0], ["", "x", "y"])
    assert scores["best_f1"] == scores["best_exact_match"] == 100
    assert scores["best_f1_threshold"] == 1.5


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("version,model", [("v1.1", "bert-ensemble"), ("v2.0", "bert-single")])
def test_published_predictions_get_their_official_scores(shared, version, model):
    folder = shared / "data" / "squad"
    with lzma.open(folder / f"dev-{version}.json.xz") as file:
        questions = [
            Question(
                entry["question"],
                paragraph["context"],
                tuple(Answer(answer["text"], answer["answer_start"]) for answer in entry["answers"]),
                entry.get("is_impossible", False),
                entry["id"],
            )
            for article in json.load(file)["data"]
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        ]
    with lzma.open(folder / "predictions" / f"preds-{version}-{model}.json.xz") as file:
        scores = score_answers(questions, json.load(file))

    def same(found: dict, *expected: float) -> bool:
        return [found["exact_match"], found["f1"]] == pytest.approx(expected, rel=0, abs=1e-9)

    if version == "v1.1":
        assert same(scores, 86.20624408703878, 92.19557978351129) and scores["questions"] == 10570
    else:
        # The exact match of all follows from the official ones of both parts: 4,393 and 4,956 of 11,873.
        assert same(scores, 100 * (4393 + 4956) / 11873, 81.77528052374727)
        assert same(scores["has_answer"], 74.10593792172739, 80.18183293833516)
        assert same(scores["no_answer"], 83.36417157275021, 83.36417157275021)
        assert (scores["has_answer"]["questions"], scores["no_answer"]["questions"]) == (5928, 5945)
