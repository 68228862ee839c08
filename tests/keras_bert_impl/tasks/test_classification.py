"""Texts in, labels and numbers out."""

import numpy as np
import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.tasks import TaskSettings, TextClassification
from keras_bert_impl.tasks.rows import batch_inputs, row_windows, text_row

TOKENIZER = toy_tokenizer()
LABELS = ["bad", "good", "odd"]
LONG = " ".join(["good film", "bad play", "the song was dull"] * 12)


@pytest.fixture(scope="module")
def model():
    return BertClassifier(toy_bert_config(TOKENIZER, num_hidden_layers=1), labels=LABELS, seed=3)


@pytest.fixture(scope="module")
def classify(model):
    return TextClassification(model=model, tokenizer=TOKENIZER, settings=TaskSettings(task="classification"))


@pytest.fixture(scope="module")
def number_model():
    config = toy_bert_config(TOKENIZER, num_hidden_layers=1)
    return BertClassifier(config, labels=["score"], problem_type="regression", seed=3)


def scores_of(model, rows):
    return np.asarray(model(batch_inputs(rows, 0), training=False), "float64")


def softmax(scores):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def of_task(classify, task, **settings):
    """The same compiled model, asked otherwise."""
    other = TextClassification(model=classify.model, tokenizer=TOKENIZER, settings=TaskSettings(task=task, **settings))
    other._form = classify._form
    return other


def test_the_likeliest_label_comes_with_the_probabilities_of_all(classify, model):
    texts = ["good film", "the play was dull", ""]
    expected = softmax(scores_of(model, [text_row(TOKENIZER, 64, text) for text in texts]))
    answers = classify(texts)
    for answer, probabilities in zip(answers, expected, strict=True):
        assert answer.label == LABELS[probabilities.argmax()]
        assert list(answer.probabilities) == LABELS
        np.testing.assert_allclose(list(answer.probabilities.values()), probabilities, atol=1e-5)
        assert not answer.truncated and answer.windows == 1
    assert len({answer.probabilities["good"] for answer in answers}) == 3  # so that the order is seen


def test_a_pair_is_read_as_a_pair(classify, model):
    expected = softmax(scores_of(model, [text_row(TOKENIZER, 64, "good film", "bad play")]))[0]
    (answer,) = classify(["good film"], ["bad play"])
    np.testing.assert_allclose(list(answer.probabilities.values()), expected, atol=1e-5)


def test_a_long_text_is_cut_and_flagged_or_taken_in_windows_and_averaged(classify, model):
    cut, short = classify([LONG, "good"])
    assert cut.truncated and cut.windows == 1 and not short.truncated
    windows = row_windows(TOKENIZER, 64, LONG)
    expected = softmax(scores_of(model, windows)).mean(axis=0)
    whole, short_again = classify([LONG, "good"], long_texts="windows")
    assert not whole.truncated and whole.windows == len(windows) == 3
    np.testing.assert_allclose(list(whole.probabilities.values()), expected, atol=1e-5)
    assert short_again.windows == 1 and short_again.probabilities == pytest.approx(short.probabilities, abs=1e-5)


def test_several_labels_may_hold_or_none(classify, model):
    scores = scores_of(model, [text_row(TOKENIZER, 64, "good film")])[0]
    expected = 1 / (1 + np.exp(-scores))
    (answer,) = of_task(classify, "multilabel")(["good film"])
    np.testing.assert_allclose(list(answer.probabilities.values()), expected, atol=1e-5)
    assert answer.label == tuple(name for name, p in zip(LABELS, expected, strict=True) if p >= 0.5)
    assert of_task(classify, "multilabel", label_threshold=0.0)(["good film"])[0].label == tuple(LABELS)
    assert of_task(classify, "multilabel", label_threshold=1.1)(["good film"])[0].label == ()


def test_a_number_is_a_number_and_has_no_probabilities(number_model):
    answers = TextClassification(model=number_model, tokenizer=TOKENIZER)(["good", LONG], long_texts="windows")
    expected = scores_of(number_model, [text_row(TOKENIZER, 64, "good")])[0, 0]
    assert answers[0].label == pytest.approx(expected, abs=1e-5) and answers[0].probabilities is None
    assert answers[1].label == pytest.approx(scores_of(number_model, row_windows(TOKENIZER, 64, LONG)).mean(), abs=1e-5)


def test_the_head_says_what_is_answered_where_no_task_file_does(number_model, tmp_path):
    number_model.save_pretrained(tmp_path, TOKENIZER)
    assert TextClassification(tmp_path).settings.task == "regression"
    config = (tmp_path / "config.json").read_text()
    # As Hugging Face writes heads of one output that were trained without naming the problem.
    (tmp_path / "config.json").write_text(config.replace('"problem_type": "regression"', '"problem_type": null'))
    assert TextClassification(tmp_path).settings.task == "regression"
    (tmp_path / "config.json").write_text(config.replace('"regression"', '"multi_label_classification"'))
    assert TextClassification(tmp_path).settings.task == "multilabel"


def test_no_texts_give_no_answers(classify):
    assert classify([]) == []


def test_arguments_are_checked(classify, model):
    with pytest.raises(InputError, match=r"`texts` must be a list of texts\. Received: 'good'"):
        classify("good")
    with pytest.raises(InputError, match=r"`pairs` must be a list of texts\. Received: 'good'"):
        classify(["good"], "good")
    with pytest.raises(InputError, match=r"`pairs` must be as many as `texts`\. Received: 1 and 2"):
        classify(["good", "bad"], ["good"])
    with pytest.raises(InputError, match=r"`long_texts` must be 'truncate' or 'windows'\. Received: long_texts='cut'"):
        classify(["good"], long_texts="cut")
    with pytest.raises(InputError, match=r"`pairs` must be given, since the model was trained on pairs of texts"):
        of_task(classify, "classification", pair=True)(["good"])
    with pytest.raises(InputError, match=r"`texts` must be texts\. Received: int at place 0"):
        classify([3])
    for value, what in ((None, "None"), (5, "int"), (b"good", "bytes"), ({"good": 1}, "dict")):
        with pytest.raises(InputError, match=rf"`texts` must be a list of texts\. Received: {what}"):
            classify(value)
    with pytest.raises(InputError, match=r"`pairs` must be a list of texts\. Received: int"):
        classify(["good"], 5)
    with pytest.raises(InputError, match=r"`texts` must be texts of Unicode characters\. Received: at place 1 a"):
        classify(["good", "b\ud800d"])
    with pytest.raises(
        InputError,
        match=r"`pairs` must not be given, since the model was trained on texts alone\. Received: text 1",
    ):
        of_task(classify, "classification", pair=False)(["good", "bad"], [None, "good"])
    with pytest.raises(InputError, match=r"`model` must have one output to answer with a number\. Received: 3, bad,"):
        TextClassification(model=model, tokenizer=TOKENIZER, settings=TaskSettings(task="regression"))
