"""Predictions on files and streams: one row out for each row in, in the same order, nothing cut off silently.

What answers here are stand-ins by simple rules; `test_predict_models.py` has models.
"""

import csv
import io
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.cli import main
from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import TaskSettings
from keras_bert_impl.training.configs import PredictConfig
from keras_bert_impl.training.finetuning import predict as module
from keras_bert_impl.training.finetuning.askers import Asker
from keras_bert_impl.training.finetuning.predict import predict

TEXTS = [f"{word}{' film' * (7 * number % 11)}" for number, word in enumerate("good bad nice dull".split() * 4)]
LONG = 16


def class_answer(config, example):
    windows = max(1, -(-len(example.text.split()) // LONG)) if config.long_texts == "windows" else 1
    sure = 0.75 if example.text_pair is None else 0.625
    label = "good" if "good" in example.text else "bad"
    probabilities = {name: sure if name == label else 1 - sure for name in ("bad", "good")}
    truncated = windows == 1 and len(example.text.split()) > LONG
    return {
        **{"label": label, "probability": sure, "probabilities": probabilities},
        **{"truncated": truncated, "windows": windows},
    }


def labels_answer(config, example):
    probabilities = {"a": 0.5, "b": 0.25, "c": 0.0}
    return {"label": ["a", "b"], "probabilities": probabilities, "truncated": False, "windows": 1}


def number_answer(config, example):
    return {"label": len(example.text) + len(example.text_pair) / 3, "truncated": False, "windows": 1}


def tags_answer(config, example):
    words = list(example.words) if hasattr(example, "words") else example.text.split()
    tags = ["B-X" if word == "film" else "O" for word in words]
    return {
        **{"words": words, "tags": tags, "probabilities": [1.0] * len(words), "spans": []},
        **{"truncated": False, "windows": 1},
    }


def question_answer(config, example):
    answers = [{"text": example.context[:n]} for n in range(config.n_best)]
    return {
        **{"answer": example.context[:4], "start": 0, "end": min(4, len(example.context)), "probability": 0.5},
        **{"score": 1.5, "truncated": False, "windows": 1},
        **({"answers": answers} if config.n_best > 1 else {}),
    }


def vector_answer(config, example):
    return {"vector": [float(len(example.text)), 1 / 3, 0.0], "truncated": False, "windows": 1}


STAND_INS = {
    "classification": (class_answer, ["label", "probability", "probability:bad", "probability:good"]),
    "multilabel": (labels_answer, ["label", "probability:a", "probability:b", "probability:c"]),
    "regression": (number_answer, ["label"]),
    "tagging": (tags_answer, ["words", "tags", "probabilities", "spans"]),
    "qa": (question_answer, ["answer", "start", "end", "probability", "score"]),
    "embed": (vector_answer, ["vector"]),
}


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    def open_stand_in(config, task):
        answer, names = STAND_INS[task]
        model = types.SimpleNamespace(
            max_length=LONG,
            notes=["The stand-in has a note."],
            settings=TaskSettings(task="classification" if task == "embed" else task),
            model=types.SimpleNamespace(labels=("a", "b", "c"), config=types.SimpleNamespace(hidden_size=3)),
        )

        def ask(examples, on_progress):
            assert len(examples) <= 16 * config.batch_size
            return [answer(config, example) for example in examples]

        return Asker(model, ask, (*names, "truncated", "windows"))

    monkeypatch.setattr(module, "open_asker", open_stand_in)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Returns the directory of a model for a task, of which only the settings are there."""
    folder = tmp_path_factory.mktemp("models")

    def make(task, **settings):
        path = folder / task
        path.mkdir(exist_ok=True)
        TaskSettings(task=task, **settings).save(path)
        return str(path)

    return make


@pytest.fixture
def classifier(model):
    return model("classification", pair=False)


def asked(model, content, tmp_path, suffix=".tsv", output="answers.jsonl", **settings):
    """Writes an input, predicts into a file; returns its text and what was said."""
    path, said = tmp_path / f"input{suffix}", []
    path.write_text(content, encoding="utf-8", newline="")
    output = tmp_path / output
    predict(PredictConfig(model=model, input=str(path), output=str(output), **settings), say=said.append)
    return output.read_bytes() if output.suffix == ".npy" else output.read_text(encoding="utf-8"), said


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def lines(texts):
    return "text\n" + "".join(f"{text}\n" for text in texts)


def test_thirteen_rows_with_batches_of_eight_come_out_in_order(classifier, tmp_path):
    text, said = asked(classifier, lines(TEXTS[:13]), tmp_path, batch_size=8)
    rows = rows_of(text)
    assert [row["text"] for row in rows] == TEXTS[:13]
    assert [row["label"] for row in rows] == ["good" if "good" in text else "bad" for text in TEXTS[:13]]
    assert any(line.startswith("13 rows answered at ") and str(tmp_path) in line for line in said)


def test_a_table_keeps_header_id_and_the_right_labels(classifier, tmp_path):
    content = "\ufeffid\tsentence\tlabel\r\n7\tgood film\tgood\r\n8\t\tbad\r\n\r\n"
    text, said = asked(classifier, content, tmp_path, output="answers.csv")
    header, *rows = csv.reader(io.StringIO(text))
    assert header == [
        *["id", "sentence", "label", "label_predicted", "probability"],
        *["probability:bad", "probability:good", "truncated", "windows"],
    ]
    assert [row[:3] for row in rows] == [["7", "good film", "good"], ["8", "", "bad"]]
    assert all(float(row[5]) + float(row[6]) == pytest.approx(1, abs=1e-6) for row in rows)
    assert "The answer's 'label' is called 'label_predicted', since the input has a 'label'." in said


def test_a_row_of_3000_words_is_flagged_and_said(classifier, tmp_path):
    text, said = asked(classifier, lines(["good", "film " * 3000, "bad"]), tmp_path)
    assert [row["truncated"] for row in rows_of(text)] == [False, True, False]
    assert "Cut off, longer than the 16 ids of a row: 1 row; `long_texts` windows reads all of them." in said


def test_a_row_of_3000_words_is_read_in_windows_if_asked(classifier, tmp_path):
    text, said = asked(classifier, lines(["good", "film " * 3000, "bad"]), tmp_path, long_texts="windows")
    long = rows_of(text)[1]
    assert not long["truncated"] and long["windows"] == 188
    assert "Read in several windows of 16 ids: 1 row." in said


def test_a_short_row_is_named_by_its_line_and_leaves_no_file(classifier, tmp_path):
    with pytest.raises(InputError, match=r"input\.tsv', line 3, which has 1"):
        asked(classifier, "id\ttext\n1\tgood\n2\n", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["input.tsv"]


def test_the_rows_before_a_short_one_reach_standard_output(classifier, tmp_path, capsys):
    path = tmp_path / "a.tsv"
    path.write_text("id\ttext\n" + "1\tgood\n" * 20 + "2\n")
    with pytest.raises(InputError, match="line 22"):
        predict(PredictConfig(model=classifier, input=str(path), batch_size=1))
    assert len(rows_of(capsys.readouterr().out)) == 16


def test_a_row_of_a_stream_is_answered_before_the_next_has_come(classifier, monkeypatch):
    ours, theirs = os.pipe()
    answered, answers = threading.Event(), []

    class Answers(io.StringIO):
        def write(self, text):
            answers.append(json.loads(text))
            answered.set()

    monkeypatch.setattr("sys.stdin", os.fdopen(ours))
    monkeypatch.setattr("sys.stdout", Answers())
    done = threading.Thread(target=predict, args=[PredictConfig(model=classifier)])
    done.start()
    for number, text in enumerate(["good film", "bad", "nice"], start=1):
        os.write(theirs, (json.dumps({"id": number, "text": text}) + "\n").encode())
        assert answered.wait(30)
        answered.clear()
        assert [row["id"] for row in answers] == [*range(1, number + 1)]
    os.close(theirs)
    done.join(30)
    assert not done.is_alive()


def test_lines_of_text_are_answered_as_they_are(classifier, monkeypatch, tmp_path, capsys):
    path = tmp_path / "texts"
    path.write_text("good film, not bad\n\nnice\n")
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        predict(PredictConfig(model=classifier))
    assert [row["text"] for row in rows_of(capsys.readouterr().out)] == ["good film, not bad", "", "nice"]


def test_several_labels_are_a_list_or_joined(model, tmp_path):
    path = model("multilabel")
    text, _ = asked(path, lines(["good"]), tmp_path)
    assert rows_of(text)[0]["label"] == ["a", "b"] and "probability" not in rows_of(text)[0]
    text, _ = asked(path, lines(["good"]), tmp_path, output="a.tsv", label_separator="|")
    assert [line.split("\t") for line in text.splitlines()] == [
        ["text", "label", "probability:a", "probability:b", "probability:c", "truncated", "windows"],
        ["good", "a|b", "0.5", "0.25", "0.0", "false", "1"],
    ]
    with pytest.raises(InputError, match=r"`label_separator` must not be in a label. Received: 'a', which is in 'a'"):
        asked(path, lines(["good"]), tmp_path, output="b.tsv", label_separator="a")


def test_a_number_is_a_number_of_seven_digits(model, tmp_path):
    path, pairs = model("regression", pair=True), "sentence1\tsentence2\nthe film\tthe book\n"
    assert rows_of(asked(path, pairs, tmp_path)[0])[0]["label"] == 10.66667
    text, _ = asked(path, pairs, tmp_path, output="a.csv")
    assert text.splitlines()[0] == "sentence1,sentence2,label,truncated,windows"


def test_a_model_of_single_texts_reads_no_second_column(classifier, tmp_path):
    text, _ = asked(classifier, "sentence\tsentence2\ngood\tbad\n", tmp_path)
    assert rows_of(text)[0]["probability"] == 0.75
    with pytest.raises(InputError, match="`text_pair_column` must go with a model that was trained on pairs of texts"):
        asked(classifier, "a\tb\ngood\tbad\n", tmp_path, text_column="a", text_pair_column="b")


def test_vectors_are_the_same_as_json_as_cells_and_as_an_array(classifier, tmp_path):
    expected = [[len(text), 1 / 3, 0] for text in TEXTS]
    text, _ = asked(classifier, lines(TEXTS), tmp_path, task="embed")
    np.testing.assert_allclose([row["vector"] for row in rows_of(text)], expected, rtol=1e-6)
    raw, said = asked(classifier, lines(TEXTS), tmp_path, task="embed", output="vectors.npy")
    array = np.load(io.BytesIO(raw))
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, expected, rtol=1e-6)
    assert any("16 rows answered" in line and "vectors.npy" in line for line in said)
    header, row, *_ = csv.reader(
        io.StringIO(asked(classifier, lines(TEXTS), tmp_path, task="embed", output="a.csv")[0])
    )
    assert header == ["text", "vector", "truncated", "windows"] and json.loads(row[1]) == [4.0, 0.3333333, 0.0]


def test_words_get_tags_in_their_form(model, tmp_path):
    content = "the O\nfilm B-Y\n\nnot O\n"
    text, _ = asked(model("tagging"), content, tmp_path, suffix=".conll", output="a.conll")
    assert text == "the O\nfilm B-X\n\nnot O\n\n"
    text, _ = asked(model("tagging"), content, tmp_path, suffix=".conll", output="a.tsv")
    assert text == "the\tO\nfilm\tB-X\n\nnot\tO\n\n"
    text, _ = asked(model("tagging"), content, tmp_path, suffix=".conll")
    assert [row["tags"] for row in rows_of(text)] == [["O", "B-X"], ["O"]]


def test_lists_of_words_and_texts_get_tags(model, tmp_path):
    content = '{"id": 1, "tokens": ["a", "film"]}\n{"id": 2, "tokens": []}\n'
    rows = rows_of(asked(model("tagging"), content, tmp_path, suffix=".jsonl")[0])
    assert [(row["id"], row["words"], row["tags"]) for row in rows] == [(1, ["a", "film"], ["O", "B-X"]), (2, [], [])]
    rows = rows_of(asked(model("tagging"), lines(["the film"]), tmp_path)[0])
    assert rows[0]["text"] == "the film" and rows[0]["tags"] == ["O", "B-X"]


def test_questions_keep_their_columns_and_ids(model, tmp_path):
    rows = [{"id": n, "question": "the film?", "context": context} for n, context in enumerate(["a  good film!", ""])]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    answers = rows_of(asked(model("qa"), content, tmp_path, suffix=".jsonl", n_best=3)[0])
    assert [(row["id"], row["answer"], len(row["answers"])) for row in answers] == [(0, "a  g", 3), (1, "", 3)]
    text, _ = asked(model("qa"), content, tmp_path, suffix=".jsonl", output="a.csv")
    assert next(csv.reader(io.StringIO(text)))[:7] == [
        *["id", "question", "context", "answer", "start", "end", "probability"]
    ]


def test_squad_files_are_answered(model, tmp_path):
    paragraph = {"context": "a good film", "qas": [{"id": "q1", "question": "what?", "answers": []}]}
    content = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]})
    row = rows_of(asked(model("qa"), content, tmp_path, suffix=".json")[0])[0]
    assert (row["id"], row["question"], row["context"], row["answer"]) == ("q1", "what?", "a good film", "a go")


def test_answers_that_are_not_finite_are_null_counted_and_said_once(model, tmp_path, monkeypatch):
    def broken(config, example):
        label = float("nan") if "bad" in example.text else float("inf") if "dull" in example.text else 1.5
        return {"label": label, "truncated": False, "windows": 1}

    monkeypatch.setitem(STAND_INS, "regression", (broken, ["label"]))
    text, said = asked(model("regression"), lines(["good", "bad", "dull"]), tmp_path)
    assert [row["label"] for row in rows_of(text)] == [1.5, None, None]
    assert [line for line in said if "not finite" in line] == [
        "The model gave numbers that are not finite for 2 rows: its weights are damaged, or its training diverged; "
        "such answers mean nothing. JSON has null in place of the numbers."
    ]


@pytest.mark.parametrize("name", ["config.json", "task.json", "vocab.txt", "link.jsonl"])
def test_an_output_does_not_replace_a_file_of_the_model(name, classifier, tmp_path):
    folder = Path(classifier)
    before = sorted(folder.iterdir())
    output = folder / name
    if "link" in name:
        output = tmp_path / name
        output.symlink_to(folder / "task.json")
    with pytest.raises(InputError, match=r"`output` must not replace a file of `model`\. Received: '.*', in the dir"):
        asked(classifier, lines(["good"]), tmp_path, output=output, output_format="jsonl")
    assert sorted(folder.iterdir()) == before
    answers = folder / "answers.jsonl"
    asked(classifier, lines(["good"]), tmp_path, output=answers)
    answers.unlink()


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1", "/dev/null"])
def test_a_stream_is_no_file_to_be_written(output, classifier, tmp_path):
    with pytest.raises(
        InputError, match=r"`output` must be a file: a new or a regular one\. Received: '/.*', which is"
    ):
        asked(classifier, lines(["good"]), tmp_path, output=output)


@pytest.mark.parametrize(
    "which,settings,message",
    [
        (
            "classification",
            {"pooling": "cls"},
            "`pooling` must be left as it is with a model for classification. Received",
        ),
        ("classification", {"n_best": 2}, "`n_best` must be left as it is with a model for classification. Received"),
        (
            "classification",
            {"null_threshold": 1.0},
            "`null_threshold` must be left as it is with a model for classific",
        ),
        ("tagging", {"long_texts": "windows"}, "`long_texts` must be left as it is with a model for tagging. Received"),
        (
            "classification",
            {"task": "embed", "text_pair_column": "b"},
            "`text_pair_column` must go with a model that was tr",
        ),
        ("tagging", {"task": "qa"}, "`task` must be what the model was trained for, tagging. Received: task='qa'"),
        (
            "classification",
            {"output": "a.npy"},
            "`output_format` npy must go with the task embed. Received: a model for",
        ),
        (
            "classification",
            {"output": "a.conll"},
            "`output_format` conll must go with a model for tagging. Received: a m",
        ),
        ("tagging", {"output": "a.csv"}, "`output_format` must be jsonl, conll or tsv .* for tagging. Received: csv"),
        (
            "classification",
            {"output": "input.tsv"},
            "`output` must be another file than `input`. Received: '.*input.tsv'",
        ),
    ],
)
def test_what_cannot_go_together_is_refused(which, settings, message, model, tmp_path):
    with pytest.raises(InputError, match=message):
        asked(model(which), lines(["good"]), tmp_path, **settings)


def test_the_command_answers_on_standard_output_and_talks_beside_it(classifier, tmp_path, capfd):
    path = tmp_path / "a.csv"
    path.write_text("text\nThe film\n")
    assert main(["predict", classifier, "--input", str(path)]) == 0
    captured = capfd.readouterr()
    assert [row["text"] for row in rows_of(captured.out)] == ["The film"]
    assert "1 row answered" in captured.err and "standard output" in captured.err
    assert captured.err.count("The stand-in has a note.") == 1


def test_mistakes_are_found_before_tensorflow_is_opened(classifier, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\nThe film\n")
    script = (
        "import keras_bert_console, sys\n"
        "from keras_bert_impl.training.configs import PredictConfig\n"
        "from keras_bert_impl.training.finetuning.predict import checked\n"
        f"print(checked(PredictConfig(model={classifier!r}, input={str(path)!r}, output='a.csv')))\n"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["('classification', 'csv', False)", "[]"], done.stderr


def test_the_command_says_what_is_wrong_with_the_input(classifier, tmp_path, capsys):
    assert main(["predict", classifier, "--input", str(tmp_path / "nope.csv")]) == 2
    assert "`input` must name files that exist. Received: " in capsys.readouterr().err


def test_a_separator_is_text():
    with pytest.raises(InputError, match=r"`label_separator` must be text. Received: label_separator=''"):
        PredictConfig(model="m", label_separator="")


def test_formats_are_those_that_are_written():
    with pytest.raises(InputError, match=r"`output_format` must be auto, jsonl, csv, tsv, conll or npy. Received: "):
        PredictConfig(model="m", output_format="xlsx")
