"""Fine-tuning on lists, rows and data sets."""

import numpy as np
import pytest
from finetuning_runs import BAD, GOOD, toy_texts, write_toy_files

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import QuestionAnswering, TextClassification, WordTagging
from keras_bert_impl.training import finetune_questions, finetune_sentences, finetune_texts
from keras_bert_impl.training.finetuning import from_texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_toy_files(tmp_path_factory.mktemp("toy"), train=4, dev=4)


class ClassLabel:
    names = ("bad", "good")


class DataSet(list):
    """Looks like a `datasets.Dataset`."""

    features = {"text": object(), "label": ClassLabel()}  # noqa: RUF012


class Frame:
    """Looks like a data frame."""

    columns = ("Text", "Score")

    def to_dict(self, orient):
        assert orient == "records"
        return [{"Text": "a film", "Score": 0.5}, {"Text": "a book", "Score": 1.0}]


@pytest.mark.parametrize(
    ("texts", "labels", "task"),
    [
        (["a"], ["good", "bad"], "classification"),
        (["a"], [1, 0], "classification"),
        (["a"], [True, False], "classification"),
        (["a"], np.array([3, 4]), "classification"),
        (["a"], [0.5, 1], "regression"),
        (["a"], np.array([0.5, 1.5]), "regression"),
        (["a"], [("x", "y"), []], "multilabel"),
        (["a"], [{"x", "y"}, set()], "multilabel"),
        ([{"text": "a", "label": 0.5}], None, "regression"),
        ([{"sentence": "a", "labels": ["x"]}], None, "multilabel"),
        (DataSet([{"text": "a", "label": 1}]), None, "classification"),
        (Frame(), None, "regression"),
    ],
)
def test_the_task_is_told_by_the_labels(texts, labels, task):
    assert from_texts._task_of(texts, None if labels is None else list(labels), None) == task


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["good", 0.5]}, r"`labels` must be all text or whole numbers, .* Received: float, str"),
        ({"labels": ["good", None]}, r"`labels` must have a label for every text\. .* the label of row 2 is missing$"),
        ({"labels": [float("nan"), 1.0]}, r"`labels` must have a label .* Received: the label of row 1 is missing$"),
        ({"labels": 5}, r"`labels` must be a list or another iterable\. Received: int$"),
        ({"texts": None, "labels": None}, r"`texts` must be a list or another iterable\. Received: none$"),
        (
            {"texts": [{"text": "a", "label": "x"}, {"text": "b"}], "labels": None},
            r"`labels` must have a label for every text\. Received: the label of row 2 is missing",
        ),
        ({"seeds": 5}, r"`seeds` must be a list of whole numbers\. Received: seeds=5"),
        (
            {"output": "/proc/x/y"},
            r"`output` must be where a directory can be made\. Received: '/proc/x/y', where",
        ),
        (
            {"texts": ["a", "b"] * 3, "labels": [0, 1] * 3, "dev": (["a", "b"], [0, 1], ["c", "d"])},
            r"`dev` must have texts alone, as `train` has\. Received: 2 pairs, the first `dev` number 1",
        ),
        ({"labels": None}, r"`labels` must be given for a list of texts\. Received: none"),
        (
            {"texts": [{"text": "a", "mood": "x"}], "labels": None},
            r"`label_column` must name the labels among the columns\. Received: label_column=None, columns text, mood",
        ),
        ({"task": "tagging"}, r"`task` must be classification, multilabel or regression\. Received: task='tagging'"),
        ({"dev": (["a"],)}, r"`dev` must be a tuple of 2 or 3 lists, or rows\. Received: 1"),
        ({"train": ["a.tsv"]}, r"`train` must not be among the settings here\. Received: train="),
        ({"speed": 3}, r"Unknown `settings` keys: \['speed'\]\..* Known keys: "),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, arguments, message):
    values = {"texts": ["a film", "a book"], "labels": ["good", "bad"]}
    with pytest.raises(InputError, match=message):
        finetune_texts(str(folder / "model"), **{**values, **arguments})


@pytest.mark.slow
def test_from_texts_and_labels_comes_a_model_that_answers(folder, tmp_path):
    texts = toy_texts(160)
    said = []
    classify = finetune_texts(
        str(folder / "model"),
        [text for _, text in texts[:120]],
        [label for label, _ in texts[:120]],
        dev=([text for _, text in texts[120:]], [label for label, _ in texts[120:]]),
        epochs=10,
        learning_rate=1e-2,
        say=said.append,
    )
    assert isinstance(classify, TextClassification)
    assert [answer.label for answer in classify(["the good film", "a dull book"])] == ["good", "bad"]
    assert said[-1].endswith(" on 40 dev examples.")
    classify.save(tmp_path / "model")
    again = TextClassification(tmp_path / "model")
    assert again(["the good film"]) == classify(["the good film"])


@pytest.mark.slow
def test_numbers_are_learned_from_rows_and_written_where_asked(folder, tmp_path):
    rows = [{"text": text, "score": 1.0 if label == "good" else 0.0} for label, text in toy_texts(80)]
    output = str(tmp_path / "out")
    rate = finetune_texts(str(folder / "model"), rows, output=output, epochs=2, learning_rate=1e-2)
    assert isinstance(rate(["a film"])[0].label, float)
    assert (tmp_path / "out" / "finetuning" / "report.html").exists()


@pytest.mark.slow
def test_from_sentences_and_tags_comes_a_tagger(folder):
    sentences = [text.split() for _, text in toy_texts(120)]
    tags = [["B-MOOD" if word in (*GOOD, *BAD) else "O" for word in words] for words in sentences]
    tag = finetune_sentences(str(folder / "model"), sentences, tags, epochs=10, batch_size=8, learning_rate=1e-2)
    assert isinstance(tag, WordTagging)
    (answer,) = tag([["the", "bad", "film"]])
    assert answer.tags == ("O", "B-MOOD", "O")


@pytest.mark.slow
def test_from_questions_comes_a_model_that_answers_with_a_slice(folder):
    contexts = [text for _, text in toy_texts(60)]
    questions = ["a film"] * len(contexts)
    answer = finetune_questions(
        str(folder / "model"),
        questions,
        contexts,
        [text.split()[0] for text in contexts],
        epochs=1,
        max_question_length=8,
    )
    assert isinstance(answer, QuestionAnswering)
    (found,) = answer(["a film"], [contexts[0]])
    assert found.text and contexts[0][found.start : found.end] == found.text
