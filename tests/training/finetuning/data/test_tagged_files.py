import json
from pathlib import Path
from typing import Any

import pytest
from labelled_data import columns, written

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import TaggedSentence, TextExample
from keras_bert_impl.training.finetuning.data import read_tagged_sentences, stream_words

LINES = (
    '{"id": 1, "tokens": ["EU", "rejects"], "ner_tags": ["I-ORG", "O"]}\n'
    '{"id": 2, "tokens": ["Bonn"], "ner_tags": ["I-LOC"]}\n'
)


def read(path: str, labelled: bool = True, **given: Any) -> list[TaggedSentence]:
    config = columns("tagging", **given)
    return read_tagged_sentences([path], config, argument="train", labelled=labelled, say=lambda line: None)


def test_lists_of_words_and_tags_come_from_json_lines(tmp_path: Path):
    path = written(tmp_path, "a.jsonl", LINES)
    assert read(path) == [
        TaggedSentence(("EU", "rejects"), ("B-ORG", "O"), "1", f"{path}:1"),
        TaggedSentence(("Bonn",), ("B-LOC",), "2", f"{path}:2"),
    ]
    assert [sentence.tags for sentence in read(path, labelled=False)] == [None, None]


def test_columns_of_lists_may_be_named(tmp_path: Path):
    path = written(tmp_path, "a.jsonl", '{"w": ["a"], "t": ["X"], "tags": ["Y"], "n": "five"}\n')
    assert read(path, text_column="w", label_column="t", id_column="n") == [
        TaggedSentence(("a",), ("X",), "five", f"{path}:1")
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"tokens": ["a", "b"], "tags": ["O"]}', r"as many tags as words\. Received: 2 words and 1 tag in .*:1$"),
        ('{"tokens": ["a"], "tags": [1]}', r"`train` must have tags by name\. Received: numbers in .*:1, for which"),
        ('{"tokens": ["a", ""], "tags": ["O", "O"]}', r"must have lists of text, none of it empty, in column 'tokens'"),
        (
            '{"tokens": ["a"], "tags": ["O"], "ner_tags": ["O"]}',
            r"column of the tags\. Received: 'tags' or 'ner_tags'; ",
        ),
        ('{"tokens": ["a"]}', r"`label_column` must name the column of the tags\. Received: none; "),
        (
            '{"tokens": "a b", "tags": ["O"]}',
            r"`text_column` must name a column with lists of words\. Received: none; ",
        ),
    ],
)
def test_a_faulty_row_is_named(line: str, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, "a.jsonl", line))


@pytest.mark.parametrize(("name", "content"), [("a.csv", "word,tag\na,O\n"), ("a.json", '{\n"data": []}')])
def test_other_files_are_refused(name: str, content: str, tmp_path: Path):
    message = r"`train` must be CoNLL files, or JSON lines or Parquet with lists of words\. Received: '.*'$"
    with pytest.raises(InputError, match=message):
        read(written(tmp_path, name, content))


def test_numbers_of_tags_in_parquet_get_the_names_of_their_classes(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"tokens": [["EU", "rejects"], []], "ner_tags": [[1, 0], []]})
    path = str(tmp_path / "a.parquet")
    parquet.write_table(table, path)
    with pytest.raises(InputError, match=r"must have tags by name\. Received: numbers in .*a\.parquet:1, for which"):
        read(path)
    names = {"feature": {"names": ["O", "B-ORG"], "_type": "ClassLabel"}, "_type": "Sequence"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"ner_tags": names}}})}
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    assert [sentence.tags for sentence in read(path)] == [("B-ORG", "O"), ()]


def words_of(path: str, **given: Any):
    said: list[str] = []
    rows = stream_words(path, columns("tagging", **given), say=said.append)
    return rows, [row.example for row in rows]


def test_sentences_to_be_tagged_come_in_words_where_the_file_has_them(tmp_path: Path):
    path = written(tmp_path, "a.conll", "EU\tB-ORG\nrejects\tO\n\nBonn\tB-LOC\n")
    rows, examples = words_of(path)
    assert rows.sentences_of_words
    assert examples == [
        TaggedSentence(("EU", "rejects"), None, None, f"{path}:1"),
        TaggedSentence(("Bonn",), None, None, f"{path}:4"),
    ]
    path = written(tmp_path, "a.jsonl", LINES)
    rows, examples = words_of(path)
    assert rows.sentences_of_words and rows.names == ("id", "tokens", "ner_tags") and rows.id_column == "id"
    assert [example.words for example in examples] == [("EU", "rejects"), ("Bonn",)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "EU rejects\nBonn\n"),
        ("a.jsonl", '{"text": "EU rejects"}\n{"text": "Bonn"}\n'),
        ("a.csv", "id,text\n1,EU rejects\n2,Bonn\n"),
    ],
)
def test_sentences_to_be_tagged_may_be_texts(name: str, content: str, tmp_path: Path):
    rows, examples = words_of(written(tmp_path, name, content))
    assert not rows.sentences_of_words
    assert all(isinstance(example, TextExample) for example in examples)
    assert [example.text for example in examples] == ["EU rejects", "Bonn"]


def test_any_file_is_conll_if_the_settings_say_so(tmp_path: Path):
    _, examples = words_of(written(tmp_path, "a.txt", "EU\nrejects\n"), input_format="conll")
    assert [example.words for example in examples] == [("EU", "rejects")]


def test_empty_input_gives_no_sentences(tmp_path: Path):
    assert words_of(written(tmp_path, "a.jsonl", ""))[1] == []
    assert words_of(written(tmp_path, "a.conll", ""))[1] == []
