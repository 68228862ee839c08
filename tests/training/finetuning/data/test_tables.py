import csv
import datetime
import gzip
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_data import columns, written

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import TextExample
from keras_bert_impl.training.finetuning.data import read_text_examples, stream_text_rows


class Reader:
    """Reads files of a folder and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def __call__(
        self, content: str | bytes, name: str = "a.tsv", kind: str | None = "classification", pair=None, **given: Any
    ) -> list[TextExample]:
        path = written(self.folder, name, content)
        config = columns(**given)
        return read_text_examples([path], config, argument="train", kind=kind, pair=pair, say=self.said.append)

    def texts(self, content: str | bytes, name: str = "a.tsv", **given: Any) -> list[tuple[str, Any]]:
        return [(example.text, example.label) for example in self(content, name, **given)]

    def says(self, words: str) -> bool:
        return any(words in line for line in self.said)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


TWO = [("good", "1"), ("bad", "0")]


@pytest.mark.parametrize(
    "content",
    [
        "sentence\tlabel\ngood\t1\nbad\t0\n",
        "sentence\tlabel\r\ngood\t1\r\nbad\t0\r\n",
        "sentence\tlabel\rgood\t1\rbad\t0\r",
        "\ufeffsentence\tlabel\r\ngood\t1\r\nbad\t0\r\n\r\n",
        "sentence\tlabel\ngood\t1\nbad\t0\n\n\n",
        "Sentence\t Label \ngood\t1\nbad\t0",
        "id,label,text\n7,1,good\n8,0,bad\n",
        "label;review\n1;good\n0;bad\n",
        "label|content\n1|good\n0|bad\n",
    ],
)
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.txt", "a"])
def test_delimiter_header_and_line_ends_are_found_out(content: str, name: str, read: Reader):
    assert read.texts(content, name) == TWO
    assert not read.says("blank")


def test_what_was_found_out_is_said(read: Reader):
    read("id,label,text\n7,1,good\n8,0,bad\n", "a.csv")
    path = read.folder / "a.csv"
    assert read.said == [
        f"{path}: 2 rows; cells between commas, in quotation marks where needed, names in the first row; "
        "columns: text 'text', label 'label', id 'id'."
    ]


def test_rows_know_their_place_and_their_own_name(read: Reader):
    first, second = read("idx,label,text\n7,1,good\n\n8,0,bad\n", "a.csv")
    assert (first.id, first.place) == ("7", f"{read.folder / 'a.csv'}:2")
    assert (second.id, second.place) == ("8", f"{read.folder / 'a.csv'}:4")
    assert read.says("passed over 1 blank line.")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("sentence1 sentence2 label", ("a", "b")),
        ("Quality #1_ID #2_ID #1_String #2_String", ("d", "e")),
        ("index question sentence label", ("b", "c")),
        ("premise hypothesis gold_label", ("a", "b")),
        ("id qid1 qid2 question1 question2 is_duplicate", ("d", "e")),
        ("guid text_a text_b label", ("b", "c")),
        ("index genre filename year old_index source1 source2 sentence1 sentence2 score", ("h", "i")),
    ],
)
def test_pairs_are_known_by_the_usual_names(names: str, expected: tuple[str, str], read: Reader):
    head = [name.replace("_ID", " ID").replace("_String", " String") for name in names.split()]
    content = "\t".join(head) + "\n" + "\t".join("abcdefghij"[: len(head)]) + "\n"
    (example,) = read(content)
    assert (example.text, example.text_pair) == expected


@pytest.mark.parametrize("name", ["sentence", "text", "text_a", "review", "content"])
@pytest.mark.parametrize("label", ["label", "Quality", "sentiment", "class", "target", "category", "gold_label"])
def test_single_texts_are_known_by_the_usual_names(name: str, label: str, read: Reader):
    assert read.texts(f"{label}\tnumber\t{name}\n1\t7\tgood\n0\t8\tbad\n") == TWO


def test_columns_that_may_be_meant_alike_are_asked_for(read: Reader):
    message = (
        r"`text_column` must name the column of the text\. Received: 'text' or 'review'; "
        r"'.*a\.tsv' has the columns 'text', 'review', 'label'$"
    )
    with pytest.raises(InputError, match=message):
        read("text\treview\tlabel\na\tb\t1\n")
    message = r"`label_column` must name the column of the label\. Received: 'label' or 'score'; '.*' has the columns"
    with pytest.raises(InputError, match=message):
        read("text\tlabel\tscore\na\tb\t1\n")
    assert read("text\treview\tlabel\na\tb\t1\n", text_column="review")[0].text == "b"


def test_a_table_without_known_names_shows_its_columns(read: Reader):
    message = (
        r"`text_column` must name the column of the text\. Received: none; '.*a\.tsv' has the columns without names "
        r"1 \('gj04'\), 2 \('1'\), 3 \(''\), 4 \('A sentence\.'\)$"
    )
    with pytest.raises(InputError, match=message):
        read("gj04\t1\t\tA sentence.\n")


def test_samples_of_columns_are_cut_within_their_quotation_marks(read: Reader):
    with pytest.raises(InputError, match=r" 1 \('gj04'\), 2 \('a{28}…'\)$"):
        read(f"gj04\t{'a' * 40}\n")


def test_columns_may_be_called_by_number(read: Reader):
    content = "gj04\t1\t\tgood\ncj99\t0\t*\tbad\n"
    assert read.texts(content, text_column="4", label_column="2") == TWO
    assert read.says("no names in the first row; columns: text '4', label '2'.")
    assert read.texts("body\tstars\ngood\t1\nbad\t0\n", text_column="1", label_column="2", header="yes") == TWO


def test_a_column_that_is_not_there_is_named(read: Reader):
    content = "body\tstars\ngood\t1\n"
    with pytest.raises(InputError, match=r"`text_column` must name a column\. Received: 'bodi'; .* 'body', 'stars'$"):
        read(content, text_column="bodi", label_column="stars")
    with pytest.raises(InputError, match=r"`label_column` must name a column\. Received: '3'; "):
        read(content, text_column="body", label_column="3")
    with pytest.raises(InputError, match=r"`label_column` must be another column than the text\. Received: 'body'; "):
        read(content, text_column="body", label_column="body")
    with pytest.raises(InputError, match=r"`text_pair_column` must be another column than the text\. Received: 'body'"):
        read(content, text_column="body", text_pair_column="body", label_column="stars")


def test_given_columns_win_over_usual_names(read: Reader):
    content = "text\ttext_b\tlabel\tmine\ta\nx\ty\t1\tz\tw\n"
    (example,) = read(content, text_column="mine", text_pair_column="a", id_column="text")
    assert (example.text, example.text_pair, example.id) == ("z", "w", "x")


def test_the_second_text_may_be_left_out(read: Reader):
    content = "sentence1\tsentence2\tlabel\nx\ty\t1\n"
    assert read(content, text_column="sentence1")[0].text_pair == "y"
    assert read(content, text_column="sentence1", text_pair_column="")[0].text_pair is None
    assert read(content, text_column="sentence1", pair=False)[0].text_pair is None
    with pytest.raises(InputError, match=r"`text_column` must name the column of the text, since .*Received: a pair, "):
        read(content, pair=False)


def test_pairs_that_are_needed_are_asked_for(read: Reader):
    message = (
        r"`text_pair_column` must name the column of the second text, since the model takes pairs .*Received: none"
    )
    with pytest.raises(InputError, match=message):
        read("text\tlabel\nx\t1\n", pair=True)
    with pytest.raises(InputError, match=message):
        read("text\tlabel\nx\t1\n", pair=True, text_column="text")
    assert read("text\tlabel\tother\nx\t1\ty\n", text_pair_column="other")[0].text_pair == "y"


def test_a_pair_that_is_not_wanted_is_named(read: Reader):
    message = (
        r"`text_column` must name the column of the text, since the model takes single texts\. "
        r"Received: a pair, 'sentence1' with 'sentence2'; "
    )
    with pytest.raises(InputError, match=message):
        read("sentence1\tsentence2\tlabel\nx\ty\t1\n", pair=False)


def test_own_names_are_not_needed(read: Reader):
    assert read("id\ttext\tlabel\n5\tx\t1\n", id_column="")[0].id is None
    assert read("number\ttext\tlabel\n5\tx\t1\n", id_column="number")[0].id == "5"


@pytest.mark.parametrize(("row", "number"), [("bad", 1), ("bad\t0\tworse", 3)])
def test_a_short_or_long_row_is_named_by_its_line(row: str, number: int, read: Reader):
    message = rf"`train` must have 2 columns in every row\. Received: '.*a\.tsv', line 3, which has {number}$"
    with pytest.raises(InputError, match=message):
        read(f"text\tlabel\ngood\t1\n{row}\n")


def test_a_row_that_is_short_is_named_by_its_line_behind_cells_of_several_lines(read: Reader):
    with pytest.raises(InputError, match=r"must have 2 columns in every row\. Received: '.*', line 5, which has 1$"):
        read('text,label\n"a\nb\nc",1\nshort\n', "a.csv")


def test_a_quotation_mark_that_is_not_closed_is_named_by_its_line(read: Reader):
    message = (
        r"`train` must have quotation marks around whole cells, and doubled inside of them\. Received: '.*a\.csv', in "
        r"the row that begins in line 3 \(a quotation mark that is not closed\)$"
    )
    with pytest.raises(InputError, match=message):
        read('text,label\ngood,1\n"bad,0\nworse,0\n', "a.csv")
    with pytest.raises(InputError, match=r"in the row that begins in line 2 \(.* expected after"):
        read('text,label\n"good" one,1\n', "a.csv")


def test_lone_quotation_marks_in_tsv_are_text(read: Reader):
    content = 'text\tlabel\n" The firm said .\t1\nHe said " no "\t0\n"Yes"\t1\n'
    assert [text for text, _ in read.texts(content)] == ['" The firm said .', 'He said " no "', '"Yes"']
    assert read.says("1 cell in quotation marks, which are taken as part of the text")


def test_quoted_tsv_is_recognised(read: Reader):
    rows = [["text", "label"], ['He said "no"', "1"], ["two\nlines\tand a tab", "0"], ["plain", "1"]]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter="\t").writerows(rows)
    assert read.texts(buffer.getvalue()) == [tuple(row) for row in rows[1:]]
    assert read.says("cells between tabs, in quotation marks where needed")
    assert read.texts('"text"\t"label"\n"good"\t"1"\n"bad"\t"0"\n') == TWO


def test_carriage_returns_inside_of_cells_are_text(read: Reader):
    assert read.texts('text,label\n"a\rb\r\nc",1\n', "a.csv") == [("a\rb\r\nc", "1")]
    assert read.texts("text\tlabel\na\rb\t1\n") == [("a\rb", "1")]
    with pytest.raises(InputError, match=r"in the row that begins in line 2 \(new-line character seen"):
        read("text,label\na\rb,1\n", "a.csv")


def test_commas_in_running_text_are_no_delimiter(tmp_path: Path):
    path = written(tmp_path, "a.txt", "Good, good.\nBad; or | worse, is it\n")
    rows = stream_text_rows(path, columns(), say=[].append)
    assert [row.example.text for row in rows] == ["Good, good.", "Bad; or | worse, is it"]


def test_the_delimiter_of_csv_is_the_one_that_all_rows_have(read: Reader):
    assert read.texts("good, fine;1\nbad, poor, worse;0\n", "a.csv", text_column="1", label_column="2") == [
        ("good, fine", "1"),
        ("bad, poor, worse", "0"),
    ]
    assert read.texts("text\tlabel\nbad, poor\t0\n", "a.csv") == [("bad, poor", "0")]
    # Where two divide all rows, the suffix decides, and the other one is said.
    assert read.texts("good, fine;1\nbad, poor;0\n", "a.csv", text_column="2", label_column="1") == [
        ("fine;1".rjust(7), "good"),
        ("poor;0".rjust(7), "bad"),
    ]
    read.said = read.said[-1:]
    assert read.says("between commas, in quotation marks where needed (semicolons would fit as well: `delimiter` says")
    assert read.texts("id,text,label\n1,good,1;\n2;bad,0,x\n", "a.csv")[0] == ("good", "1;")
    assert not any("would fit" in line for line in read.said[1:])
    assert read.texts("text^label\nbad\t0^0\n", "a.csv", delimiter="^") == [("bad\t0", "0")]


def test_a_first_row_is_one_of_names_if_its_label_is_none(read: Reader):
    by_number = {"text_column": "1", "label_column": "2"}
    assert read.texts("comment body\tstars\ngood\t1\nbad\t0\n", **by_number) == TWO
    rows = "".join(f"t{number}\t{'yes' if number % 2 else 'no'}\n" for number in range(12))
    assert len(read("body\tverdict\n" + rows, **by_number)) == 12
    assert len(read("body\tyes\n" + rows, **by_number)) == 13
    assert len(read("body\tverdict\n" + rows, header="no", **by_number)) == 13
    assert len(read("body\tmaybe\ngood\tyes\nbad\tno\n", **by_number)) == 3


def test_a_header_can_be_denied(read: Reader):
    assert read.texts("text\tlabel\ngood\t1\n", header="no", text_column="1", label_column="2") == [
        ("text", "label"),
        ("good", "1"),
    ]


def test_empty_and_repeated_names_of_columns_get_their_number(tmp_path: Path):
    path = written(tmp_path, "a.csv", ",text,note,note\n0,good,a,b\n")
    rows = stream_text_rows(path, columns(), say=[].append)
    assert rows.names == ("(column 1)", "text", "note", "note (column 4)")
    assert [row.values for row in rows] == [{"(column 1)": "0", "text": "good", "note": "a", "note (column 4)": "b"}]


def test_empty_texts_are_kept_and_counted(read: Reader):
    assert read.texts("text\tlabel\n\t1\n  \t0\nx\t1\n") == [("", "1"), ("  ", "0"), ("x", "1")]
    assert read.says("2 rows with an empty text; kept.")


def test_an_empty_label_is_named_by_its_line_unless_labels_are_not_asked_for(read: Reader):
    content = "text\tlabel\ngood\t1\nbad\t\n"
    with pytest.raises(InputError, match=r"`train` must have a label in every row\. Received: none in .*a\.tsv:3$"):
        read(content)
    assert read.texts(content, kind=None) == [("good", None), ("bad", None)]


def test_numbers_and_several_labels_are_read(read: Reader):
    assert read.texts("text\tscore\na\t2.50\nb\t-1\n", kind="regression") == [("a", 2.5), ("b", -1.0)]
    assert read.texts("text\tlabels\na\tx,y\nb\t\n", kind="multilabel") == [("a", ("x", "y")), ("b", ())]
    with pytest.raises(InputError, match=r"must have finite numbers as labels\. Received: 'inf' in .*a\.tsv:2$"):
        read("text\tscore\na\tinf\n", kind="regression")


def test_long_texts_come_whole(read: Reader):
    text = "word " * 100_000
    assert read.texts(f"text,label\n{text},1\n", "a.csv") == [(text, "1")]
    assert read.texts(f"text\tlabel\n{text}\t1\n") == [(text, "1")]


def test_the_encoding_is_taken_from_the_settings(read: Reader):
    content = "text\tlabel\nGröße\t1\n"
    assert read.texts(content.encode("cp1252"), encoding="cp1252") == [("Größe", "1")]
    assert read.texts(content.encode("utf-16")) == [("Größe", "1")]
    assert read.texts(gzip.compress(content.encode()), "a.tsv.gz") == [("Größe", "1")]
    with pytest.raises(InputError, match=r"`train` must be UTF-8 text\. Received: '.*', which is not in line 2"):
        read(content.encode("cp1252"))


def test_nul_characters_are_said(read: Reader):
    assert read.texts("text\tlabel\na\0b\t1\n") == [("a\0b", "1")]
    assert read.says("1 NUL character, left in the text.")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_refused(content: str, read: Reader):
    with pytest.raises(InputError, match=r"`train` must have rows\. Received: '.*a\.tsv', which has none$"):
        read(content)


def test_files_with_and_without_pairs_are_not_mixed(tmp_path: Path):
    one = written(tmp_path, "one.tsv", "text\tlabel\na\t1\n")
    two = written(tmp_path, "two.tsv", "sentence1\tsentence2\tlabel\na\tb\t1\n")
    message = r"`dev` must all have pairs of texts, or none\. Received: '.*two\.tsv' with pairs and '.*one\.tsv' with"
    with pytest.raises(InputError, match=message):
        read_text_examples([one, two], columns(), argument="dev", kind="classification", say=[].append)


def test_files_of_several_forms_are_one_set(tmp_path: Path):
    files = [
        written(tmp_path, "a.tsv", "text\tlabel\ngood\t1\n"),
        written(tmp_path, "b.csv", "label,text\n0,bad\n"),
        written(tmp_path, "c.jsonl", '{"text": "so", "label": 2}\n'),
    ]
    examples = read_text_examples(files, columns(), argument="train", kind="classification", say=[].append)
    assert [(example.text, example.label) for example in examples] == [*TWO, ("so", "2")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.txt", "a"])
def test_json_lines_are_read(name: str, read: Reader):
    content = '{"text": "good", "label": 1, "id": 7}\n\n{"id": 8, "label": 0, "text": "bad"}\n'
    assert read.texts(content, name) == TWO
    assert [example.id for example in read(content, name)] == ["7", "8"]
    assert read.says("JSON lines; columns: text 'text', label 'label', id 'id'.")
    assert read.says("passed over 1 blank line.")


def test_labels_of_json_may_be_lists_numbers_and_truth_values(read: Reader):
    lines = [{"text": "a", "label": value} for value in (True, 1.5, 3, "x")]
    content = "\n".join(map(json.dumps, lines))
    assert [label for _, label in read.texts(content, "a.jsonl")] == ["true", "1.5", "3", "x"]
    content = '{"text": "a", "labels": ["x", "y"]}\n{"text": "b", "labels": []}'
    assert [label for _, label in read.texts(content, "a.jsonl", kind="multilabel")] == [("x", "y"), ()]
    with pytest.raises(InputError, match=r"must have labels that are text or numbers\. Received: \['x'\] in .*:1$"):
        read('{"text": "a", "label": ["x"]}', "a.jsonl")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', r"`train` must hold JSON, an object a line\. Received: '.*', line 2 \(.* at column 13\)$"),
        ("[1]", r"`train` must hold JSON, an object a line\. Received: '.*', line 2, which is list$"),
        ('{"body": "a"}', r"must have text in column 'text' of every row\. Received: none in .*a\.jsonl:2$"),
        ('{"text": null}', r"must have text in column 'text' of every row\. Received: none in .*a\.jsonl:2$"),
        ('{"text": 5}', r"must have text in column 'text' of every row\. Received: int 5 in .*a\.jsonl:2$"),
        ('{"text": "b"}', r"`train` must have a label in every row\. Received: none in .*a\.jsonl:2$"),
        (r'{"text": "\ud83d", "label": 1}', r"`train` must hold whole characters\. Received: .*a\.jsonl:2, which has"),
    ],
)
def test_a_faulty_line_of_json_is_named(line: str, message: str, read: Reader):
    with pytest.raises(InputError, match=message):
        read('{"text": "a", "label": 1}\n' + line, "a.jsonl")


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.json", '{\n "data": []}', "other JSON"),
        ("a.json", '[{"text": "a"}]', "other JSON"),
        ("a.conll", "EU B-ORG\n", "CoNLL"),
    ],
)
def test_files_of_other_tasks_are_refused(name: str, content: str, what: str, read: Reader):
    message = rf"`train` must be tables: \.tsv, \.csv, \.jsonl .* or \.parquet\. Received: '.*', which is {what}$"
    with pytest.raises(InputError, match=message):
        read(content, name)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"text": ["good", "bad"], "label": [1, 0], "tags": [["a"], []], "id": ["x", "y"]})
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "text": {"dtype": "string"}}
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path = str(tmp_path_factory.mktemp("parquet") / "a.parquet")
    parquet.write_table(table, path)
    return path


def test_parquet_is_read_with_the_names_of_its_classes(parquet: str):
    said: list[str] = []
    examples = read_text_examples([parquet], columns(), argument="train", kind="classification", say=said.append)
    assert examples == [
        TextExample("good", None, "pos", "x", f"{parquet}:1"),
        TextExample("bad", None, "neg", "y", f"{parquet}:2"),
    ]
    assert said == [f"{parquet}: 2 rows; Parquet; columns: text 'text', label 'label', id 'id'."]
    examples = read_text_examples(
        [parquet], columns("multilabel", label_column="tags"), argument="train", kind="multilabel", say=said.append
    )
    assert [example.label for example in examples] == [("a",), ()]


def test_parquet_from_standard_input_or_damaged_is_refused(tmp_path: Path, read: Reader):
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=r"`train` must be whole files\. Received: '.*', no Parquet file \("):
        read("text", "a.parquet")
    message = r"`input` in Parquet must be a file that is not packed\. Received: '-'$"
    with pytest.raises(InputError, match=message):
        stream_text_rows("-", columns(input_format="parquet"), say=[].append)


def test_dates_in_parquet_are_copied_as_text(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"text": ["good"], "day": [datetime.date(2024, 2, 29)], "n": [None]}), path)
    rows, _ = stream(path)
    assert [row.values for row in rows] == [{"text": "good", "day": "2024-02-29", "n": None}]


def stream(path: str, **given: Any):
    said: list[str] = []
    rows = stream_text_rows(path, columns(**given), say=said.append)
    return rows, said


def test_rows_to_be_answered_keep_all_their_columns(tmp_path: Path):
    path = written(tmp_path, "a.tsv", "id\ttext\tlabel\tnote\n5\tgood\t\tx\n6\t\t0\ty\n")
    rows, said = stream(path)
    assert (rows.names, rows.text_column, rows.pair_column, rows.id_column) == (
        ("id", "text", "label", "note"),
        "text",
        None,
        "id",
    )
    assert not rows.has_pairs
    first, second = rows
    assert first.values == {"id": "5", "text": "good", "label": "", "note": "x"}
    assert first.example == TextExample("good", None, None, "5", f"{path}:2")
    assert second.example.text == ""
    assert said[-1] == f"{path}: 1 row with an empty text; kept."


def test_as_many_lines_of_text_come_out_as_go_in(tmp_path: Path):
    path = written(tmp_path, "a.txt", '\nOne, "two"\n\n\n  \nthree\n')
    rows, _ = stream(path)
    assert rows.names == ("text",)
    found = list(rows)
    assert [row.example.text for row in found] == ["", 'One, "two"', "", "", "  ", "three"]
    assert [row.place for row in found] == [f"{path}:{number}" for number in range(1, 7)]


def test_lines_of_text_may_have_a_header(tmp_path: Path):
    rows, _ = stream(written(tmp_path, "a.txt", "text\none\ntwo\n"))
    assert [row.example.text for row in rows] == ["one", "two"]


@pytest.mark.parametrize("content", ["", "\n", "text\tlabel\n"])
def test_no_rows_give_no_answers(content: str, tmp_path: Path):
    rows, _ = stream(written(tmp_path, "a.txt", content))
    assert list(rows) == []


def test_a_pattern_of_several_files_is_no_input(tmp_path: Path):
    for name in ("a.tsv", "b.tsv"):
        written(tmp_path, name, "text\na\n")
    message = r"`input` must name one file\. Received: '.*\*\.tsv', which stands for 2$"
    with pytest.raises(InputError, match=message):
        stream(str(tmp_path / "*.tsv"))


def test_rows_from_a_pipe_come_before_it_ends(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    go_on = threading.Event()

    def write() -> None:
        with pipe.open("w", encoding="utf-8") as file:
            file.write("text\tlabel\ngood\t1\n")
            file.flush()
            go_on.wait(30)
            file.write("bad\t0\n")

    writer = threading.Thread(target=write)
    writer.start()
    rows, _ = stream(str(pipe))
    assert next(iter(rows)).example.text == "good"
    go_on.set()
    assert [row.example.text for row in rows] == ["bad"]
    writer.join()


# Before Python 3.13 the writer leaves a lone carriage return without the quotation marks that it needs.
cell_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff\r"), max_size=12)


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(st.tuples(cell_text, st.sampled_from(["0", "1", "x y"])), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_a_csv_writer_wrote_is_read(rows, delimiter, end, quoting, encoding, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([("text", "label"), *rows])
    read = Reader(folder)
    content = buffer.getvalue().encode(encoding)
    assert read.texts(content, "round.csv", delimiter=delimiter) == rows
    # The label column makes a column of usual names; so the delimiter can be found out as well.
    assert read.texts(content, "round.csv") == rows


plain_text = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff\t\r\n"), min_size=0, max_size=12
)


@settings(deadline=None, max_examples=25)
@given(rows=st.lists(st.tuples(plain_text, st.sampled_from(["0", "1"])), min_size=1, max_size=6))
def test_tsv_without_quotation_is_read_as_it_stands(rows, tmp_path_factory):
    read = Reader(tmp_path_factory.getbasetemp())
    content = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
    quoted = [text for text, _ in rows if text[:1] == '"' == text[-1:] and '""' in text[1:-1]]
    if not quoted:
        assert read.texts(content, "round.tsv") == rows


@pytest.mark.parametrize(
    "row",
    [
        '{"id": "a\\ud800", "text": "b", "label": "c"}',
        '{"text": "b", "label": "c\\udfff"}',
        '{"text": "b\\ud800", "label": "c"}',
    ],
)
def test_half_a_character_is_named_by_its_line_wherever_it_counts(row: str, read: Reader):
    with pytest.raises(
        InputError, match=r"`train` must hold whole characters\. Received: .*a\.jsonl:2, which has half a surrogate"
    ):
        read('{"id": "😀", "text": "\\ud83d\\ude00", "label": "c"}\n' + row + "\n", "a.jsonl")


@pytest.mark.parametrize("extra", ['"c\\ud800"', '[{"d": "\\ud800"}]', '{"\\ud800": 1}'])
def test_half_a_character_in_a_column_that_is_copied_is_refused(extra: str, read: Reader, tmp_path: Path):
    content = '{"text": "a", "label": "c"}\n{"text": "b", "label": "c", "extra": ' + extra + "}\n"
    assert len(read(content, "a.jsonl")) == 2  # In training it is not looked at.
    rows = stream(written(tmp_path, "a.jsonl", content))
    with pytest.raises(InputError, match=r"`input` must hold whole characters\. Received: .*a\.jsonl:2, which has hal"):
        list(rows[0] if isinstance(rows, tuple) else rows)
