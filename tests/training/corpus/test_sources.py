import io
import os
import tempfile
import threading
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.readers import Reading, read_documents
from keras_bert_impl.training.corpus.sources import open_sources

TEXTS = ["one\ntwo", "three 好", "", "four\x00"]
LINES = [("one", "two"), ("three 好",), ("four\x00",)]


def twice(*arguments, **options) -> list[tuple[str, ...]]:
    """Reads everything, and again, as `prepare` does."""
    reading = Reading(text_field=options.get("text_field", "text"))
    with open_sources(*arguments, **options) as sources:
        first, second = ([document.lines for document in read_documents(sources, reading=reading)] for _ in range(2))
    assert first == second
    return first


class Rows:
    """What a data set of Hugging Face looks like from here: rows, each a mapping, as often as one likes."""

    def __iter__(self):
        return ({"id": number, "body": text} for number, text in enumerate(TEXTS))


@pytest.mark.parametrize("texts", [TEXTS, tuple(TEXTS), Rows(), [{"body": text} for text in TEXTS]])
def test_strings_and_rows_are_documents(texts):
    said: list[str] = []
    assert twice((), texts, text_field="body", say=said.append) == LINES
    assert said == []


def test_a_generator_is_put_into_a_file_and_it_is_said():
    said: list[str] = []
    assert twice((), (text for text in TEXTS), say=said.append) == LINES
    assert twice((), iter(Rows()), text_field="body") == LINES
    assert said == ["`texts` can be gone through once only and is needed twice: put into a temporary file of 42 bytes."]


def test_texts_come_after_the_files(tmp_path: Path):
    (tmp_path / "a.txt").write_text("zero", encoding="utf-8")
    assert twice([str(tmp_path / "a.txt")], TEXTS) == [("zero",), *LINES]


def test_a_real_data_set_is_read():
    datasets = pytest.importorskip("datasets")
    assert twice((), datasets.Dataset.from_dict({"body": TEXTS}), text_field="body") == LINES


def test_standard_input_is_put_into_a_file_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in").write_text("one\ntwo\n\nthree 好\n\nfour\0", encoding="utf-8")
    said: list[str] = []
    with (tmp_path / "in").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert twice(["-"], say=said.append) == LINES
    assert said == [
        "Standard input can be gone through once only and is needed twice: put into a temporary file of 25 bytes."
    ]


def test_standard_input_that_is_read_once_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in").write_text("one\n", encoding="utf-8")
    with (tmp_path / "in").open() as file, open_sources(["-"], once=True) as sources:
        monkeypatch.setattr("sys.stdin", file)
        assert [document.lines for document in read_documents(sources)] == [("one",)]
        assert sources[0].place is None and not file.closed


def test_a_pipe_is_read_like_standard_input(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("one\n\ntwo",))
    writer.start()
    assert twice([str(tmp_path / "pipe")]) == [("one",), ("two",)]
    writer.join()


def test_nothing_is_left_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    twice((), iter(TEXTS))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_temporary_files_that_is_full_is_named(monkeypatch: pytest.MonkeyPatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    message = r"The folder for temporary files could not be written: No space left on device; TMPDIR names another\."
    with pytest.raises(InputError, match=message):
        twice((), iter(TEXTS))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, r"`inputs` must name at least one text file\. Received: inputs=\(\)"),
        ("one text", r"`texts` must be an iterable of strings or rows\. Received: str"),
        (7, r"`texts` must be an iterable of strings or rows\. Received: int"),
        ({"train": [], "test": []}, r"`texts` must be one split of a data set\. Received: .*\['test', 'train'\]"),
        (["a", 7], r"`texts` must hold strings\. Received: int as number 2"),
        ([{"text": None}], r"`texts` must hold strings\. Received: NoneType as number 1"),
        ([{"body": "a"}], r"`text_field` must name a column\. Received: 'text'; row 1 of `texts` has \['body'\]"),
        (["a", "\udc80"], r"`texts` must hold whole characters\. Received: number 2 of '<texts>', .*\(U\+DC80\)"),
    ],
)
def test_what_is_no_text_is_refused(texts, message: str):
    with pytest.raises(InputError, match=message):
        twice((), texts)


def test_text_files_opened_in_python_are_iterables_of_lines():
    assert twice((), io.StringIO("one\ntwo\n")) == [("one",), ("two",)]
