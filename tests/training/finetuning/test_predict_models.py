"""Predictions of real, if small, models: the same answers from the files as from Python."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from command_line import keras_bert
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder, BertQuestionAnswerer, BertTokenClassifier
from keras_bert_impl.tasks import QuestionAnswering, SentenceEmbedding, TaskSettings, TextClassification, WordTagging
from keras_bert_impl.training.configs import PredictConfig
from keras_bert_impl.training.finetuning.askers import task_of
from keras_bert_impl.training.finetuning.predict import predict

TEXTS = [f"{word}{' film' * (7 * number % 11)}" for number, word in enumerate("good bad Nice dull".split() * 4)]
TOKENIZER = toy_tokenizer()


def saved(folder, model, **settings):
    model.save_pretrained(folder, tokenizer=TOKENIZER)
    if settings:
        TaskSettings(**settings).save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    model = BertClassifier(toy_bert_config(TOKENIZER), labels=["bad", "good"], seed=3)
    return saved(tmp_path_factory.mktemp("model") / "classifier", model, task="classification", max_length=16)


def asked(model, rows, tmp_path, output="answers.jsonl", **settings):
    """Predicts rows as JSON lines; returns what is in the output, and what was said."""
    path, said = tmp_path / "input.jsonl", []
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = PredictConfig(model=model, input=str(path), output=str(tmp_path / output), **settings)
    predict(config, say=said.append)
    content = (tmp_path / output).read_bytes()
    return (list(map(json.loads, content.splitlines())) if output.endswith(".jsonl") else content), said


def texts(some=TEXTS):
    return [{"id": number, "text": text} for number, text in enumerate(some)]


@pytest.mark.slow
def test_a_classifier_gives_what_it_gives_from_python(classifier, tmp_path):
    rows, said = asked(classifier, texts([*TEXTS[:12], "film " * 3000]), tmp_path, batch_size=8)
    direct = TextClassification(classifier)([*TEXTS[:12], "film " * 3000])
    assert [row["id"] for row in rows] == [*range(13)]
    for row, answer in zip(rows, direct, strict=True):
        assert row["label"] == answer.label and row["truncated"] == answer.truncated
        assert row["probabilities"] == pytest.approx(answer.probabilities, abs=1e-5)
        assert row["probability"] == max(row["probabilities"].values())
    assert said.count("The model lower-cases texts; 23% of them have upper-case letters.") == 1


@pytest.mark.slow
def test_long_texts_in_windows_are_read_to_their_end(classifier, tmp_path):
    rows, said = asked(classifier, texts(["good", "film " * 3000 + "good"]), tmp_path, long_texts="windows")
    assert not rows[1]["truncated"] and rows[1]["windows"] > 400
    assert "Read in several windows of 16 ids: 1 row." in said


@pytest.mark.slow
def test_several_labels_and_numbers_of_pairs(tmp_path):
    config = toy_bert_config(TOKENIZER)
    model = BertClassifier(config, labels=["a", "b"], problem_type="multi_label_classification", seed=3)
    path = saved(tmp_path / "multilabel", model, task="multilabel", label_threshold=0.0)
    assert asked(path, texts(["good"]), tmp_path)[0][0]["label"] == ["a", "b"]
    model = BertClassifier(config, labels=["score"], problem_type="regression", seed=3)
    path = saved(tmp_path / "regression", model, task="regression", pair=True)
    pairs = [{"sentence1": "the film", "sentence2": text} for text in TEXTS]
    rows, _ = asked(path, pairs, tmp_path)
    direct = TextClassification(path)(["the film"] * len(TEXTS), TEXTS)
    np.testing.assert_allclose([row["label"] for row in rows], [answer.label for answer in direct], atol=1e-5)


@pytest.mark.slow
def test_a_directory_without_task_settings_is_known_by_its_head(tmp_path):
    path = saved(tmp_path / "plain", BertClassifier(toy_bert_config(TOKENIZER), labels=["no", "yes"], seed=3))
    assert asked(path, texts(["good"]), tmp_path, task="classification")[0][0]["label"] in ("no", "yes")
    with pytest.raises(InputError, match=r"`task` must be what the model was trained for, .*'regression'"):
        asked(path, texts(["good"]), tmp_path, task="regression")


def test_a_model_without_a_head_is_told_what_it_can(tmp_path):
    path = saved(tmp_path / "encoder", BertEncoder(toy_bert_config(TOKENIZER)))
    with pytest.raises(InputError, match=r"`model` must have been fine-tuned .*a BertModel; `--task embed` gives its"):
        task_of(path)
    assert task_of(path, "embed") == "embed"


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_any_model_gives_vectors(classifier, pooling, tmp_path):
    rows, _ = asked(classifier, texts(), tmp_path, task="embed", pooling=pooling)
    content, _ = asked(classifier, texts(), tmp_path, output="vectors.npy", task="embed", pooling=pooling)
    array = np.load(io.BytesIO(content))
    np.testing.assert_allclose(array, [row["vector"] for row in rows], atol=1e-5)
    np.testing.assert_allclose(array, SentenceEmbedding(classifier, pooling)(TEXTS), atol=1e-5)


@pytest.mark.slow
def test_a_tagger_gives_spans_that_are_slices(tmp_path):
    model = BertTokenClassifier(toy_bert_config(TOKENIZER), labels=["O", "B-X", "I-X"], seed=2)
    path = saved(tmp_path / "tagger", model, task="tagging", max_length=16)
    sentences = ["The  film, the book!", "", "a " * 140 + "film"]
    rows, said = asked(path, texts(sentences), tmp_path)
    for row, answer in zip(rows, WordTagging(path)(sentences), strict=True):
        assert (row["words"], row["tags"]) == (list(answer.words), list(answer.tags))
        assert all(row["text"][span["start"] : span["end"]] == span["text"] for span in row["spans"])
    assert len(rows[2]["tags"]) == 141 and "Read in several windows of 16 ids: 1 row." in said
    content, _ = asked(path, texts(sentences), tmp_path, output="a.conll")
    assert [line.split(" ")[0] for line in content.decode().split("\n")][:6] == ["The", "film", ",", "the", "book", "!"]


@pytest.mark.slow
def test_answers_to_questions_are_slices(tmp_path):
    settings = {"task": "qa", "max_length": 32, "max_question_length": 8}
    model = BertQuestionAnswerer(toy_bert_config(TOKENIZER), seed=2)
    path = saved(tmp_path / "qa", model, may_have_no_answer=True, **settings)
    contexts = ["a  good film!", "", "a great film . " * 30]
    questions = [{"id": str(n), "question": "the film?", "context": context} for n, context in enumerate(contexts)]
    rows, _ = asked(path, questions, tmp_path, n_best=3, null_threshold=1000.0)
    assert [row["id"] for row in rows] == ["0", "1", "2"] and len(rows[0]["answers"]) == 3
    for row in rows:
        assert row["context"][row["start"] : row["end"]] == row["answer"]
    assert rows[0]["answer"] and not rows[1]["answer"] and rows[2]["windows"] > 1
    assert [row["answer"] for row in asked(path, questions, tmp_path, null_threshold=-1000.0)[0]] == ["", "", ""]
    direct = QuestionAnswering(path)(["the film?"] * 3, contexts)
    content, _ = asked(path, questions, tmp_path, output="a.csv")
    table = list(csv.DictReader(io.StringIO(content.decode())))
    assert [row["answer"] for row in table] == [answer.text for answer in direct]
    TaskSettings(**settings).save(path)
    with pytest.raises(InputError, match="`null_threshold` must go with a model that was trained on questions without"):
        asked(path, questions, tmp_path, null_threshold=2.0)


@pytest.mark.slow
def test_a_reader_that_goes_ends_the_command_quietly(classifier, tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("text\n" + "good film\n" * 20000, encoding="utf-8")
    command = f"'{sys.executable}' -m keras_bert_console predict '{classifier}' --input '{path}' | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert json.loads(done.stdout)["text"] == "good film"
    assert done.returncode == 0 and "Traceback" not in done.stderr and "Broken pipe" not in done.stderr, done.stderr


@pytest.mark.slow
def test_the_command_writes_answers_only_on_standard_output(classifier, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\ngood film\nbad\n", encoding="utf-8")
    done = keras_bert("predict", classifier, "--input", path)
    assert done.code == 0, done.err
    assert [json.loads(line)["text"] for line in done.out.splitlines()] == ["good film", "bad"]
    assert "2 rows answered" in done.err and "tensorflow" not in done.err.lower()
