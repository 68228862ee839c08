"""A model that is read once and asked many times."""

import json

import numpy as np
import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder, BertTokenClassifier
from keras_bert_impl.tasks.rows import batch_inputs, text_row
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tasks.task_model import TaskModel

TOKENIZER = toy_tokenizer()
TEXTS = ["good film", "the play was very bad and dull , i was not", "a", "", "great ! " * 8]


class OfTexts(TaskModel):
    model_class = BertClassifier
    head = "classifier"
    tasks = ("classification", "multilabel")


class OfTokens(TaskModel):
    model_class = BertTokenClassifier
    head = "classifier"
    tasks = ("tagging",)
    per_token = True


@pytest.fixture(scope="module")
def classifier():
    return BertClassifier(toy_bert_config(TOKENIZER, num_hidden_layers=1), labels=["bad", "good"], seed=1)


@pytest.fixture(scope="module")
def directory(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    classifier.save_pretrained(path, TOKENIZER)
    return path


@pytest.fixture(scope="module")
def asked(classifier):
    return OfTexts(model=classifier, tokenizer=TOKENIZER)


def rows(texts=TEXTS, max_length=64):
    return [text_row(TOKENIZER, max_length, text) for text in texts]


def test_outputs_are_the_models_own_in_the_order_of_the_rows(asked, classifier):
    one_by_one = [np.asarray(classifier(batch_inputs([row], 0), training=False))[0] for row in rows()]
    given = asked.outputs(rows())
    assert all(array.dtype == "float32" for array in given)
    np.testing.assert_allclose(np.stack(given), np.stack(one_by_one), atol=1e-5)


def test_neighbours_and_batch_size_have_no_influence(asked):
    together = np.stack(asked.outputs(rows(), batch_size=5))
    for batch_size in (1, 2):
        np.testing.assert_allclose(np.stack(asked.outputs(rows(), batch_size=batch_size)), together, atol=1e-5)


def test_outputs_for_tokens_have_the_length_of_their_row():
    model = BertTokenClassifier(toy_bert_config(TOKENIZER, num_hidden_layers=1), labels=["O", "B-X"], seed=1)
    given = OfTokens(model=model, tokenizer=TOKENIZER).outputs(rows(), batch_size=2)
    for row, array in zip(rows(), given, strict=True):
        alone = np.asarray(model(batch_inputs([row], 0), training=False))[0]
        np.testing.assert_allclose(array, alone, atol=1e-5)


def test_progress_counts_every_row_and_no_rows_give_nothing(asked):
    done = []
    asked.outputs(rows(), batch_size=2, on_progress=done.append)
    assert done == [2, 2, 1]
    assert asked.outputs([]) == []


def test_a_directory_without_task_file_has_the_usual_settings(directory, asked):
    read = OfTexts(directory)
    assert read.settings == TaskSettings(task="classification") and read.max_length == 64
    np.testing.assert_array_equal(np.stack(read.outputs(rows())), np.stack(asked.outputs(rows())))


def test_settings_come_from_the_directory_unless_they_are_given(classifier, tmp_path):
    classifier.save_pretrained(tmp_path, TOKENIZER)
    TaskSettings(task="multilabel", max_length=20).save(tmp_path)
    assert OfTexts(tmp_path).settings.task == "multilabel" and OfTexts(tmp_path).max_length == 20
    assert OfTexts(tmp_path, max_length=30).max_length == 30
    assert OfTexts(tmp_path, settings=TaskSettings(task="classification")).max_length == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1", r"`model` must have a task\.json that is JSON\. Received: "),
        ("[]", r"with keys of .*pair, .* Received: '.*task\.json', which holds no JSON object"),
        ('{"task": "qa", "pairs": true}', r"Received: '.*task\.json', with the key 'pairs', which is not known"),
        ('{"pair": true}', r"Received: '.*task\.json', without the key 'task'"),
        ('{"task": "qa", "pair": 1}', r"`pair` must be true or false\. Received: pair=1, in '.*task\.json'"),
        ('{"task": "qa", "may_have_no_answer": "no"}', r"`may_have_no_answer` must be true or false\. Received: "),
        ('{"task": "qa", "null_threshold": Infinity}', r"`null_threshold` must be a finite number\. Received: "),
        ('{"task": ["qa"]}', r"`task` must be one of .* Received: task=\['qa'\], in "),
    ],
)
def test_a_task_file_that_cannot_be_is_refused_with_what_is_wrong(tmp_path, text, message):
    (tmp_path / "task.json").write_text(text)
    with pytest.raises(InputError, match=message):
        TaskSettings.load(tmp_path)


def test_a_task_file_need_not_have_every_key(tmp_path):
    (tmp_path / "task.json").write_text('{"task": "qa"}')
    assert TaskSettings.load(tmp_path) == TaskSettings(task="qa")


def test_a_saved_model_is_read_again_with_its_settings_and_may_be_replaced(classifier, tmp_path):
    settings = TaskSettings(task="multilabel", max_length=20, label_threshold=0.3)
    asked = OfTexts(model=classifier, tokenizer=TOKENIZER, settings=settings)
    for _ in range(2):
        asked.save(tmp_path / "model")
        assert OfTexts(tmp_path / "model").settings == settings


def test_upper_case_is_noted_once_for_a_model_that_lower_cases(classifier):
    asked = OfTexts(model=classifier, tokenizer=TOKENIZER)
    asked.count_texts(["good", "Bad", "dull"])
    asked.count_texts(["Fine"])
    assert asked.notes == ["The model lower-cases texts; 50% of them have upper-case letters."]
    cased = OfTexts(model=classifier, tokenizer=toy_tokenizer(lowercase=False))
    cased.count_texts(["Bad"])
    assert cased.notes == []


def test_a_model_without_the_head_is_refused_with_what_to_do(tmp_path):
    BertEncoder(toy_bert_config(TOKENIZER, num_hidden_layers=1)).save_pretrained(tmp_path, TOKENIZER)
    with pytest.raises(
        InputError,
        match=r"`model` must have a trained head for classification or multilabel\. Received: '.*', a BertModel "
        r"without one; `keras-bert finetune --task classification --model MODEL` trains one",
    ):
        OfTexts(tmp_path)


def test_a_model_with_weights_that_are_not_finite_is_refused(tmp_path):
    model = BertClassifier(toy_bert_config(TOKENIZER, num_hidden_layers=1), labels=("no", "yes"))
    bias = model.weights[-1]
    bias.assign(np.full(bias.shape, np.inf))
    model.save_pretrained(tmp_path, TOKENIZER)
    with pytest.raises(
        InputError, match=rf"`model` must have weights that are finite\. Received: '.*', where .*{bias.name} has values"
    ):
        OfTexts(tmp_path)


def test_a_model_of_another_task_is_refused_with_the_name_of_the_right_class(directory):
    with pytest.raises(InputError, match=r"a BertForSequenceClassification; TextClassification asks it"):
        OfTokens(directory)


def test_a_model_without_vocabulary_is_refused(classifier, tmp_path):
    classifier.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"`model` must have its vocabulary beside its weights. Received"):
        OfTexts(tmp_path)
    assert OfTexts(tmp_path, tokenizer=TOKENIZER).tokenizer is TOKENIZER


def test_arguments_are_checked(classifier, asked, directory):
    with pytest.raises(
        InputError, match=r"`OfTexts` must be given a path, or `model` and `tokenizer`. Received: path="
    ):
        OfTexts(model=classifier)
    with pytest.raises(InputError, match=r"`model` must be a BertTokenClassifier for OfTokens. Received: BertClassi"):
        OfTokens(model=classifier, tokenizer=TOKENIZER)
    with pytest.raises(InputError, match=r"`settings` must be of the task classification or multilabel for OfTexts"):
        OfTexts(directory, settings=TaskSettings(task="qa"))
    with pytest.raises(InputError, match=r"`max_length` must be a whole number from 3 to 64, the positions of the m"):
        OfTexts(directory, max_length=65)
    with pytest.raises(InputError, match=r"`batch_size` must be a positive whole number. Received: batch_size=0"):
        asked.outputs(rows(), batch_size=0)
    with pytest.raises(InputError, match=r"`rows` must have at most 64 ids. Received: a row of 90"):
        asked.outputs(rows(["good " * 88], 90))
    with pytest.raises(InputError, match=r"`model` must have a row for every token of its vocabulary. Received"):
        OfTexts(model=classifier, tokenizer=toy_tokenizer([*(f"word{i}" for i in range(99))]))


def test_a_damaged_task_file_is_named(classifier, tmp_path):
    classifier.save_pretrained(tmp_path, TOKENIZER)
    (tmp_path / "task.json").write_text(json.dumps({"task": "classification", "colour": 1}))
    with pytest.raises(InputError, match=r"`model` must have a task\.json with keys of .*'colour', which is not k"):
        OfTexts(tmp_path)
