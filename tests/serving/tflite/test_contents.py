"""What lies in a TFLite file behind the graph: it comes back as it was, and whatever is wrong with it is a sentence."""

import dataclasses
import io
import json
import re
import subprocess
import sys
import warnings
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_faults import faults_of
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.tflite.contents import Contents, append, read
from keras_bert_impl.tasks.settings import TaskSettings

GRAPH = b"\x1c\x00\x00\x00TFL3" + bytes(range(256)) * 4
"""Bytes with the mark of a TFLite file; contents know no more of a graph."""


def contents(**fields):
    tokenizer = toy_tokenizer(lowercase=False, max_chars_per_word=99, added_tokens=["film"])
    sides = {"inputs": {"token_ids": {"dtype": "int32", "shape": [1, 32]}}, "outputs": {"logits": {"dtype": "float32"}}}
    return Contents(
        **{
            "kind": "classification",
            "tokenizer": tokenizer,
            "config": toy_bert_config(tokenizer),
            "settings": TaskSettings(task="classification", max_length=40, pair=True),
            "labels": ("bad", "søso\nla", "good"),
            "max_length": 32,
            "length": 32,
            "quantization": "dynamic",
            "signatures": {"token_ids": sides},
            "facts": {"parameters": 12},
            **fields,
        }
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(append(GRAPH, contents()))
    return path


def rewritten(path, name=None, content=None, *, drop=None, compression=zipfile.ZIP_STORED, twice=()):
    """Writes the archive behind the graph anew, with something else in it."""
    with zipfile.ZipFile(path) as archive:
        files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    if name is not None:
        files[name] = content
    files.pop(drop, None)
    written = io.BytesIO(GRAPH)
    with zipfile.ZipFile(written, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for one in (*files, *twice):
            archive.writestr(zipfile.ZipInfo(one), files[one], compress_type=compression)
    path.write_bytes(written.getvalue())
    return path


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"length": None, "max_length": 64},
        {"kind": "tagging", "settings": TaskSettings(task="tagging", stride=5, labelled_pieces="all")},
        {"kind": "question answering", "settings": TaskSettings(task="qa", null_threshold=1.5), "labels": ()},
        {"kind": "fill-mask", "settings": None, "labels": ()},
    ],
)
def test_contents_come_back_as_they_were(fields, tmp_path):
    given, path = contents(**fields), tmp_path / "model.tflite"
    path.write_bytes(append(GRAPH, given))
    found = read(path)
    for field in dataclasses.fields(Contents):
        if field.name != "tokenizer":
            assert getattr(found, field.name) == getattr(given, field.name), field.name
    assert found.tokenizer.vocabulary == given.tokenizer.vocabulary
    assert found.tokenizer.options == given.tokenizer.options
    assert found.columns == (64 if given.length is None else 32)


def test_the_graph_stays_as_it_is_and_any_zip_tool_reads_the_rest(file):
    assert file.read_bytes().startswith(GRAPH)
    done = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(file)], capture_output=True, text=True, check=True
    )
    assert set(re.findall(r"^\S+\.(?:json|txt)", done.stdout, re.M)) == {"signature.json", "vocab.txt", "labels.txt"}
    with zipfile.ZipFile(file) as archive:
        assert archive.read("labels.txt").decode() == "bad\nsøso la\ngood\n"
        assert archive.read("vocab.txt").decode().split("\n")[:3] == ["[PAD]", "[UNK]", "[CLS]"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        signature = json.loads(archive.read("signature.json"))
    assert signature["labels"] == ["bad", "søso\nla", "good"] and signature["quantization"] == "dynamic"


def test_the_same_contents_are_the_same_bytes():
    assert append(GRAPH, contents()) == append(GRAPH, contents())


def test_other_files_in_the_archive_are_left_alone(file):
    assert read(rewritten(file, "my_app/notes.bin", b"\0" * 100)).kind == "classification"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"PK" + data, "must be a TFLite file. Received: .*its mark, TFL3, is not there"),
        (lambda data: b"", "must be a TFLite file"),
        (lambda data: data[: len(GRAPH)], "must have its vocabulary and notes at its end.*nothing behind the graph"),
        (
            lambda data: data[:-300],
            "must have its vocabulary and notes at its end.*nothing behind the graph, or its end was cut off",
        ),
        (lambda data: data[:99] + b"\0" + data[100:], "must be whole.*a graph that has been changed since"),
    ],
)
def test_what_is_damaged_is_said(change, message, file):
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(InputError, match=f"`model` {message}"):
        read(file)


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(InputError, match=r"`model` must be a file that can be read\. Received: .*No such file"):
        read(tmp_path / "none.tflite")
    with pytest.raises(InputError, match=r"`model` must be a file that can be read\. Received: .*Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "vocab.txt"}, "no vocab.txt in its archive"),
        ({"twice": ("vocab.txt",)}, "2 vocab.txt in its archive"),
        ({"drop": "signature.json"}, "no signature.json in its archive"),
        ({"compression": zipfile.ZIP_DEFLATED}, "a signature.json that is compressed or larger than 67,108,864 bytes"),
        ({"name": "signature.json", "content": b"{"}, "a signature.json that is no JSON"),
        ({"name": "signature.json", "content": b"\xff"}, "a signature.json that is no JSON"),
        ({"name": "signature.json", "content": b"[]"}, "a signature.json that holds no JSON object"),
        ({"name": "vocab.txt", "content": b"[PAD]\n\xff"}, "`vocab.txt` must be UTF-8. Received: byte 6"),
        ({"name": "vocab.txt", "content": b"[PAD]\n[UNK]"}, "`vocab.txt` must have as many tokens as are told"),
    ],
)
def test_an_archive_that_is_not_ours_is_said(change, message, file):
    with pytest.raises(InputError, match=message):
        read(rewritten(file, **change))


def test_a_file_that_unpacks_to_more_than_is_allowed_is_not_unpacked(file):
    bomb = rewritten(file, "vocab.txt", b"\0" * (80 * 2**20), compression=zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 10**6
    with pytest.raises(InputError, match="compressed or larger than 67,108,864 bytes"):
        read(bomb)


def test_whatever_is_wrong_in_the_notes_is_a_sentence(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(append(GRAPH, contents()))
    with zipfile.ZipFile(path) as archive:
        notes = json.loads(archive.read("signature.json"))
    notes["tokenizer"] |= {"added_tokens": ["film"]}
    refused = 0
    for number, text in enumerate(faults_of(notes)):
        if number % 3:  # each is a file of its own
            continue
        try:
            read(rewritten(path, "signature.json", text.encode("utf-8", "surrogatepass")))
        except InputError as error:
            assert "Received" in str(error) and len(str(error)) < 1000
            refused += 1
    assert refused > 100


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), length=st.integers(1, 40), bytes_=st.binary(min_size=1, max_size=40))
def test_a_file_that_was_written_over_anywhere_is_a_sentence_or_as_it_was(place, length, bytes_, tmp_path):
    data = append(GRAPH, contents())
    start = int(place * len(data))
    path = tmp_path / "model.tflite"
    path.write_bytes(data[:start] + bytes_ + data[start + length :])
    try:
        found = read(path)
    except InputError as error:
        assert str(error).startswith("`model` must ")
    else:
        assert found.kind in ("classification", "tagging", "question answering", "embedding", "fill-mask")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_any_bytes_behind_the_mark_are_a_sentence(tmp_path, data):
    path = tmp_path / "model.tflite"
    path.write_bytes(GRAPH[:8] + data)
    with pytest.raises(InputError, match="`model` must "):
        read(path)
