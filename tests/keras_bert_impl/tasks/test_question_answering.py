"""Questions and texts in, slices of the texts out."""

import numpy as np
import pytest
from answerers import EagerAnswering, told_answerer
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertQuestionAnswerer
from keras_bert_impl.tasks import QuestionAnswering, TaskSettings

TOKENIZER = toy_tokenizer()
SETTINGS = TaskSettings(
    task="qa", max_length=16, max_question_length=4, max_answer_length=3, may_have_no_answer=True, null_threshold=1.0
)
SCORES = {"film": (5, 0), "good": (0, 5), "bad": (3, 3), "[CLS]": (1, 2)}


@pytest.fixture(scope="module")
def model():
    return told_answerer(TOKENIZER, SCORES, num_hidden_layers=1)


@pytest.fixture(scope="module")
def answering(model):
    return EagerAnswering(model=model, tokenizer=TOKENIZER, settings=SETTINGS)


def test_the_answer_is_a_slice_of_the_text_wherever_it_stands(answering):
    context = "İ  x y z  😀 a b c d e f g h The  FILM\twas Good, i j k"
    (given,) = answering(["the book ?"], [context], 3)
    assert given.text == "FILM\twas Good" == context[given.start : given.end]
    assert given.windows > 1 and not given.truncated
    assert given.score == pytest.approx(10, abs=1e-4) and given.null_score == pytest.approx(3, abs=1e-4)
    assert [answer.text for answer in given.answers] == ["FILM\twas Good", "FILM", "FILM\twas"]
    assert given.answers[0].probability == given.probability > 0.9


def test_no_answer_is_given_where_it_scores_better_by_the_threshold(answering):
    contexts = ["x y z", "a bad play", "the film"]  # 0, 6 and 5 against 3
    given = answering(["the book ?"] * 3, contexts, 2)
    assert [one.text for one in given] == ["", "bad", "film"]
    assert (given[0].start, given[0].end, given[0].score) == (0, 0, given[0].null_score)
    assert [answer.text for answer in given[0].answers] == ["", "x"]
    assert [answer.text for answer in given[2].answers] == ["film", ""]


def test_a_model_without_such_questions_always_answers(model):
    settings = TaskSettings(task="qa", max_length=16, max_question_length=4)
    answering = EagerAnswering(model=model, tokenizer=TOKENIZER, settings=settings)
    (given,) = answering(["the book ?"], ["x y z"])
    assert given.text == "x" and given.null_score is None and len(given.answers) == 1


def test_answers_do_not_depend_on_the_batch(answering):
    contexts = ["x y z", "a bad play", "the film " * 9, "", "good"]
    together = answering(["the book ?"] * 5, contexts, batch_size=2)
    alone = [answering(["the book ?"], [context], batch_size=7)[0] for context in contexts]
    assert [one.text for one in together] == [one.text for one in alone] == ["", "bad", "film", "", "good"]
    np.testing.assert_allclose([one.score for one in together], [one.score for one in alone], atol=1e-5)


def test_a_question_that_is_cut_off_is_marked(answering):
    given = answering(["the very good film i", "the very good film"], ["x", "x"])
    assert [one.truncated for one in given] == [True, False]


def test_progress_is_told_in_rows(answering):
    told: list[int] = []
    given = answering(["the"] * 3, ["x " * 30, "y", "z"], batch_size=2, on_progress=told.append)
    assert sum(told) == sum(one.windows for one in given) > 3


def test_upper_case_letters_are_noted_once(model):
    answering = EagerAnswering(model=model, tokenizer=TOKENIZER, settings=SETTINGS)
    answering(["the", "the"], ["x", "X"])
    (note,) = answering.notes
    assert note.startswith("The model lower-cases texts; 50")


@pytest.mark.parametrize(
    "questions,contexts,n_best,message",
    [
        (["a"], ["b", "c"], 1, "`contexts` must have one text for each question. Received: 1 questions, 2 texts"),
        ("a", ["b"], 1, "`questions` must be a list of texts. Received: 'a'"),
        (["a"], 7, 1, "`contexts` must be a list of texts. Received: int"),
        (["a", None], ["b", "c"], 1, "`questions` must be texts. Received: NoneType at place 1"),
        (["a"], ["b"], 0, "`n_best` must be a positive whole number. Received: n_best=0"),
    ],
)
def test_what_is_no_list_of_questions_and_texts_is_refused(answering, questions, contexts, n_best, message):
    with pytest.raises(InputError, match=message):
        answering(questions, contexts, n_best)


def test_a_model_directory_answers_by_its_settings_and_one_without_by_the_usual_ones(model, tmp_path):
    model.save_pretrained(tmp_path / "model", TOKENIZER)
    usual = QuestionAnswering(tmp_path / "model")
    assert usual.settings == TaskSettings(task="qa", max_length=64, max_question_length=32)
    SETTINGS.save(tmp_path / "model")
    assert QuestionAnswering(tmp_path / "model").settings == SETTINGS
    # In shorter rows there must be room for the text.
    shorter = EagerAnswering(tmp_path / "model", max_length=7)
    assert shorter(["the very good film"], ["a b c bad"])[0].truncated


def test_a_model_without_trained_head_is_refused(tmp_path):
    BertClassifier(toy_bert_config(TOKENIZER), labels=["a", "b"]).save_pretrained(tmp_path / "model", TOKENIZER)
    with pytest.raises(InputError, match=r"`model` must have a trained head for qa. Received"):
        QuestionAnswering(tmp_path / "model")


@pytest.mark.slow
def test_a_compiled_model_answers_as_it_does_step_by_step():
    model = BertQuestionAnswerer(toy_bert_config(TOKENIZER), seed=3)
    questions, contexts = ["the book ?"] * 4, ["x y z", "a bad play " * 20, "the film", ""]
    compiled, eager = (
        kind(model=model, tokenizer=TOKENIZER, settings=SETTINGS)(questions, contexts, 3)
        for kind in (QuestionAnswering, EagerAnswering)
    )
    assert [one.text for one in compiled] == [one.text for one in eager]
    np.testing.assert_allclose([one.score for one in compiled], [one.score for one in eager], atol=1e-5)
