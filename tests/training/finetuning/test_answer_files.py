"""Files of answers: every row, its columns as they came, and no name twice."""

import csv
import io
import json

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.finetuning.answer_files import (
    JsonLines,
    Table,
    VectorArray,
    WordLines,
    opened_output,
    output_format,
)

SURE = {"label": "good", "probability": 0.75, "probabilities": {"bad": 0.25, "good": 0.75}, "truncated": False}
NAMES = ("label", "probability", "probability:bad", "probability:good", "truncated")


def written(make, rows, columns=()):
    """Writes (columns, answer) pairs; returns the text and the notes."""
    stream = io.StringIO()
    file = make(stream)
    file.begin(columns)
    for row in rows:
        file.write(*row)
    file.end()
    return stream.getvalue(), file.notes


def table(stream):
    return Table(stream, ",", NAMES, ",")


@pytest.mark.parametrize(
    "output,chosen,expected",
    [
        ("-", "auto", "jsonl"),
        ("a.CSV", "auto", "csv"),
        ("a.tsv", "auto", "tsv"),
        ("a.conll", "auto", "conll"),
        ("a.npy", "auto", "npy"),
        ("a.txt", "auto", "jsonl"),
        ("a.csv", "jsonl", "jsonl"),
        ("a.gz", "csv", "csv"),
    ],
)
def test_the_suffix_says_the_format_unless_one_is_chosen(output, chosen, expected):
    assert output_format(output, chosen) == expected


def test_a_suffix_of_a_format_that_is_not_written_is_refused():
    with pytest.raises(
        InputError, match=r"`output` must end in \.jsonl, .*or `output_format` be given. .*'a\.parquet'"
    ):
        output_format("a.parquet", "auto")


def test_an_array_needs_a_file():
    with pytest.raises(InputError, match=r"`output` must be a file for npy, whose first bytes tell .* Received: '-'"):
        output_format("-", "npy")


def test_json_lines_keep_the_columns_as_they_came_and_in_front():
    text, notes = written(JsonLines, [({"id": 7, "text": "Größe \u2028 😀", "more": [1, None]}, SURE)])
    row = json.loads(text)
    assert [*row] == ["id", "text", "more", *SURE]
    assert row["text"] == "Größe \u2028 😀" and row["more"] == [1, None] and "Größe" in text
    assert not notes


def test_the_right_label_of_the_input_stays_beside_the_given_one_and_it_is_said():
    rows = [({"text": "a", "label": "bad"}, SURE), ({"text": "b"}, SURE), ({"text": "c", "label": "good"}, SURE)]
    text, notes = written(JsonLines, rows)
    assert [json.loads(line).get("label_predicted") for line in text.splitlines()] == ["good", None, "good"]
    assert notes == ["The answer's 'label' is called 'label_predicted' where the input has a 'label': 2 rows."]


def test_words_that_the_input_has_are_not_repeated():
    text, notes = written(JsonLines, [({"words": ["a"]}, {"words": ["a"], "tags": ["O"]})])
    assert json.loads(text) == {"words": ["a"], "tags": ["O"]} and not notes


def test_numbers_that_json_has_not_are_null_and_said():
    rows = [({"text": "a", "n": float("nan"), "m": [{"x": float("-inf")}]}, {"label": "x"}), ({"text": "b"}, SURE)]
    text, notes = written(JsonLines, rows)
    assert json.loads(text.splitlines()[0]) == {"text": "a", "n": None, "m": [{"x": None}], "label": "x"}
    assert notes == ["Numbers of the input that are NaN or infinite are written as null or nothing: 1 row."]
    text, notes = written(table, rows[:1], ["text", "n", "m"])
    assert next(csv.reader(text.splitlines()[1:]))[:3] == ["a", "", '[{"x": null}]'] and len(notes) == 1


def test_a_table_has_the_input_and_a_column_for_each_probability():
    text, notes = written(table, [({"id": "1", "text": 'a "b", c\nd'}, SURE)], ["id", "text"])
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["id", "text", *NAMES], ["1", 'a "b", c\nd', "good", "0.75", "0.25", "0.75", "false"]]
    assert not notes


def test_a_column_of_the_same_name_is_left_and_the_answer_renamed():
    text, notes = written(table, [({"label": "x", "label_predicted": "y"}, SURE)], ["label", "label_predicted"])
    header, row = list(csv.reader(io.StringIO(text)))
    assert header[:3] == ["label", "label_predicted", "label_predicted_predicted"]
    assert row[:3] == ["x", "y", "good"]
    assert notes == ["The answer's 'label' is called 'label_predicted_predicted', since the input has a 'label'."]


def test_several_labels_are_joined():
    answer = {"label": ["a", "b"], "probabilities": {"a": 0.9, "b": 0.8}, "truncated": True}
    text, _ = written(lambda stream: Table(stream, "\t", ["label", "truncated"], ";"), [({}, answer)])
    assert text.splitlines() == ["label\ttruncated", "a;b\ttrue"]


def test_columns_that_come_later_are_left_out_of_a_table_and_counted():
    rows = [({"a": "1"}, SURE), ({"a": "2", "b{}": "3"}, SURE), ({"b{}": "4"}, SURE)]
    text, notes = written(table, rows, ["a"])
    assert len(text.splitlines()) == 4
    assert notes == ["The column 'b{}', which the first row has not, is left out; JSON lines keep it: 2 rows."]


def test_a_table_of_no_rows_has_its_header():
    assert written(table, [], ["text"])[0] == "text," + ",".join(NAMES) + "\n"


def test_words_and_tags_stand_on_lines_and_sentences_apart():
    rows = [({}, {"words": ["New York", "is"], "tags": ["B-LOC", "O"]}), ({}, {"words": [], "tags": []})]
    text, notes = written(lambda stream: WordLines(stream, " "), [*rows, ({}, {"words": ["a"], "tags": ["O"]})])
    assert text == "New_York B-LOC\nis O\n\n\na O\n\n"
    assert notes == [
        "White space inside words is written as _: 1 row.",
        "Without words, and so without lines: 1 row.",
    ]


@pytest.mark.parametrize("count", [0, 3])
def test_vectors_become_an_array(tmp_path, count):
    vectors = np.random.default_rng(1).normal(size=(count, 5)).astype("float32")
    path = tmp_path / "vectors.npy"
    with opened_output(str(path), binary=True) as stream:
        file = VectorArray(stream, 5)
        file.begin([])
        for vector in vectors:
            file.write({}, {"vector": vector.tolist()})
        file.end()
    read = np.load(path)
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, vectors)


def test_an_output_that_fails_is_not_there(tmp_path):
    with pytest.raises(KeyError), opened_output(str(tmp_path / "new" / "a.jsonl"), binary=False) as file:
        file.write("half a line")
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_standard_output_is_flushed_row_by_row(monkeypatch):
    class Stream(io.StringIO):
        flushed = ""

        def flush(self):
            self.flushed = self.getvalue()

    stream = Stream()
    monkeypatch.setattr("sys.stdout", stream)
    with opened_output("-", binary=False) as file:
        JsonLines(file).write({}, {"label": "a"})
        assert stream.flushed == '{"label": "a"}\n'
