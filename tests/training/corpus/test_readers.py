import gzip
import hashlib
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.readers import find_files, read_documents


def read(path: Path) -> list[tuple[str, ...]]:
    return [document.lines for document in read_documents(find_files([str(path)]))]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_blank_lines_separate_documents(tmp_path: Path):
    path = written(tmp_path / "a.txt", b"\n\none\ntwo\n\n  \t\n\nthree\n")
    assert read(path) == [("one", "two"), ("three",)]


def test_the_last_line_needs_no_line_end(tmp_path: Path):
    assert read(written(tmp_path / "a.txt", b"one\n\ntwo")) == [("one",), ("two",)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\r\r\n"], ids=["LF", "CRLF", "CR", "CRCRLF"])
def test_line_ends_of_every_system_give_the_same(tmp_path: Path, end: bytes):
    path = written(tmp_path / "a.txt", end.join([b"one", b"two", b"", b"three", b""]))
    assert read(path) == [("one", "two"), ("three",)]


def test_a_byte_order_mark_is_no_text(tmp_path: Path):
    assert read(written(tmp_path / "a.txt", b"\xef\xbb\xbfone\n")) == [("one",)]


def test_other_separators_than_line_ends_stay_in_the_line(tmp_path: Path):
    line = "one\u2028two\x0bthree\x85four"
    assert read(written(tmp_path / "a.txt", line.encode() + b"\n")) == [(line,)]


def test_files_are_read_in_the_given_order_and_never_joined(tmp_path: Path):
    files = find_files([str(written(tmp_path / "b.txt", b"b")), str(written(tmp_path / "a.txt", b"a\n\na\n"))])
    assert [document.lines for document in read_documents(files)] == [("b",), ("a",), ("a",)]
    assert [file.documents for file in files] == [1, 2]
    assert files[0].sha256 == hashlib.sha256(b"b").hexdigest()
    assert files[1].size == 5


def test_progress_is_told_in_bytes(tmp_path: Path):
    sizes: list[int] = []
    list(read_documents(find_files([str(written(tmp_path / "a.txt", b"one\n\n\xc3\xa9\n"))]), sizes.append))
    assert sum(sizes) == 8


@pytest.mark.parametrize(
    ("content", "byte", "value"),
    [
        (b"abc\xff", 3, "ff"),
        (b"abc\n\nd\xe4r\n", 6, "e4"),
        (b"\xef\xbb\xbfab\xe4\n", 5, "e4"),
        (b"ok\ncut \xc3", 7, "c3"),
        ("utf-16".encode("utf-16"), 0, "ff"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_the_byte(tmp_path: Path, content: bytes, byte: int, value: str):
    path = written(tmp_path / "a.txt", content)
    message = rf"`inputs` must be UTF-8 text\. Received: '.*a\.txt', which is not at byte {byte} \(0x{value}\)"
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_compressed_file_is_not_taken_for_text(tmp_path: Path):
    with pytest.raises(InputError, match="which is not at byte 1"):
        read(written(tmp_path / "a.gz", gzip.compress(b"text", mtime=0)))


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(
        InputError, match=r"`inputs` must name files that exist\. Received: '.*none\.txt', which does not"
    ):
        find_files([str(tmp_path / "none.txt")])


def test_a_directory_is_not_a_text_file(tmp_path: Path):
    with pytest.raises(InputError, match=r"`inputs` must name text files\. Received: '.*', which is not a file"):
        find_files([str(tmp_path)])


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path):
    path = written(tmp_path / "a.txt", b"text")
    files = find_files([str(path)])
    path.unlink()
    with pytest.raises(InputError, match=r"`inputs` must name files that can be read\. Received: '.*' \(No such file"):
        list(read_documents(files))
