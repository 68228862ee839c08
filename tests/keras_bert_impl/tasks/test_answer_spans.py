"""From scores of starts and ends to answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_models import toy_tokenizer

from keras_bert_impl.tasks.answer_spans import FoundAnswer, chosen_answer, found_answers
from keras_bert_impl.tasks.answer_windows import QuestionCutter

TOKENIZER = toy_tokenizer()


def outputs_of(cut, starts, ends, null=(0.0, 0.0)):
    """Scores of the pieces of the text, the same in every window that has them."""
    outputs = []
    for window in cut.windows:
        scores = {}
        for name, values, of_cls in (("start_logits", starts, null[0]), ("end_logits", ends, null[1])):
            # What is not text scores best, and must not be answered.
            scores[name] = np.full(len(window.token_ids), 99, np.float32)
            scores[name][0] = of_cls
            scores[name][window.place : window.place + window.end - window.begin] = values[window.begin : window.end]
        outputs.append(scores)
    return outputs


@given(
    st.integers(1, 14),
    st.sampled_from([7, 9, 30]),
    st.integers(1, 6),
    st.integers(1, 30),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_the_best_of_all_pairs_are_found_each_text_once(pieces, max_length, most, count, seed, ties):
    rng = np.random.default_rng(seed)
    context = " ".join(rng.choice(list("abc"), pieces))  # texts come twice
    cut = QuestionCutter(TOKENIZER, max_length=max_length, max_question_length=1)("a", context)
    starts, ends = rng.normal(size=(2, pieces)).astype(np.float32)
    if ties:
        starts, ends = np.round(starts), np.round(ends)
    best: dict[str, tuple[float, int, int]] = {}
    for first in range(pieces):
        for last in range(first, min(first + most, pieces)):
            if any(window.begin <= first and last < window.end for window in cut.windows):
                text = cut.text(first, last)
                best[text] = min((-float(starts[first] + ends[last]), first, last), best.get(text, (np.inf, 0, 0)))
    expected = sorted((*value, text) for text, value in best.items())[:count]
    found, null_score = found_answers(cut, outputs_of(cut, starts, ends, (0.5, 1.5)), most, count)
    assert [(-one.score, one.text) for one in found] == [(score, text) for score, _, _, text in expected]
    assert [one.start for one in found] == [2 * first for _, first, _, _ in expected]
    assert all(context[one.start : one.end] == one.text for one in found)
    assert null_score == 2


def test_the_score_of_no_answer_is_the_lowest_of_all_windows():
    cut = QuestionCutter(TOKENIZER, max_length=8, max_question_length=1)("a", "a b c d e f g h")
    outputs = outputs_of(cut, np.zeros(8, np.float32), np.zeros(8, np.float32))
    outputs[1]["start_logits"][0], outputs[2]["end_logits"][0] = -3, 7
    assert found_answers(cut, outputs, 30)[1] == -3


def test_a_text_without_pieces_has_no_answer():
    cut = QuestionCutter(TOKENIZER, max_length=8, max_question_length=1)("a", "")
    found, null_score = found_answers(cut, outputs_of(cut, [], [], (1, 2)), 30)
    assert found == [] and null_score == 3
    for may_have_no_answer in (True, False):
        answer, answers = chosen_answer(found, null_score, may_have_no_answer=may_have_no_answer, null_threshold=9.0)
        assert (answer.text, answer.start, answer.end, answer.probability, answer.score) == ("", 0, 0, 1, 3)
        assert answers == [answer]


FOUND = [FoundAnswer("x", 0, 1, 2.0), FoundAnswer("y", 2, 3, 1.0)]


def test_no_answer_is_given_from_the_threshold_on():
    for threshold, text in ((0.4, ""), (0.5, "x"), (0.6, "x"), (-9, "")):
        given_answer, answers = chosen_answer(FOUND, 2.5, may_have_no_answer=True, null_threshold=threshold)
        assert given_answer.text == text and [answer.text for answer in answers] == ["", "x", "y"]
    given_answer, answers = chosen_answer(FOUND, 2.5, may_have_no_answer=False, null_threshold=-9)
    assert given_answer.text == "x" and [answer.text for answer in answers] == ["x", "y"]


def test_probabilities_are_the_softmax_of_all_scores():
    scores = np.exp([2.5, 2.0, 1.0])
    _, answers = chosen_answer(FOUND, 2.5, may_have_no_answer=True, null_threshold=0)
    assert [answer.probability for answer in answers] == pytest.approx(scores / scores.sum())
    _, answers = chosen_answer(FOUND, 2.5, may_have_no_answer=False, null_threshold=0)
    assert [answer.probability for answer in answers] == pytest.approx(scores[1:] / scores[1:].sum())
