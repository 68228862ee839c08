import dataclasses
import gzip
import hashlib
import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.input_files import SourceFile
from keras_bert_impl.training.corpus.oddities import Oddities
from keras_bert_impl.training.corpus.readers import Reading, find_files, read_documents


def read(path: Path, **reading) -> list[tuple[str, ...]]:
    return [document.lines for document in read_documents(find_files([str(path)]), reading=Reading(**reading))]


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


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path):
    path = written(tmp_path / "a.txt", b"text")
    files = find_files([str(path)])
    path.unlink()
    with pytest.raises(InputError, match=r"`inputs` must name files that can be read\. Received: '.*' \(No such file"):
        list(read_documents(files))


TEXT = b"one\ntwo\n\nthree\n"


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ("blank-lines", [("one", "two"), ("three",)]),
        ("file", [("one", "two", "three")]),
        ("line", [("one",), ("two",), ("three",)]),
    ],
)
def test_a_document_is_what_is_asked_for(tmp_path: Path, documents: str, expected: list):
    assert read(written(tmp_path / "a.txt", TEXT), documents=documents) == expected


def test_every_line_of_json_and_every_row_is_a_document(tmp_path: Path):
    texts = ["one\n\ntwo\r\nthree", "  ", "four\vfive"]
    lines = "".join(json.dumps({"body": text, "id": 3}) + "\n" for text in texts)
    files = find_files([str(written(tmp_path / "a.jsonl.xz", lzma.compress(lines.encode())))])
    found = [document.lines for document in read_documents(files, reading=Reading(text_field="body"))]
    assert found == [("one", "two", "three"), ("four\vfive",)]
    assert files[0].oddities == Oddities(carriage_returns=1, separators=1, empty_texts=1)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"body": texts}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", text_field="body") == found


def test_a_format_can_be_named_where_the_suffix_says_nothing(tmp_path: Path):
    assert read(written(tmp_path / "a.data", b'{"text": "one"}'), input_format="jsonl") == [("one",)]
    assert read(written(tmp_path / "a.jsonl", b'{"text": "one"}'), input_format="txt") == [('{"text": "one"}',)]


def test_size_digest_and_progress_are_those_of_the_packed_file(tmp_path: Path):
    content = gzip.compress((TEXT + b"\n") * 1000, mtime=0)
    sizes: list[int] = []
    files = find_files([str(written(tmp_path / "a.txt.gz", content))])
    assert len(list(read_documents(files, sizes.append))) == 2000
    assert files == [
        SourceFile(str(tmp_path / "a.txt.gz"), len(content), hashlib.sha256(content).hexdigest(), documents=2000)
    ]
    assert sum(sizes) == len(content)


def test_parquet_has_size_digest_and_progress_too(tmp_path: Path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"text": [f"text {number}" for number in range(1000)]}), path)
    sizes: list[int] = []
    files = find_files([str(path)])
    assert len(list(read_documents(files, sizes.append))) == 1000
    assert files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert abs(sum(sizes) - path.stat().st_size) < 20


@pytest.mark.parametrize("documents", ["blank-lines", "file"])
def test_a_long_document_is_cut_and_counted_once(tmp_path: Path, documents: str):
    files = find_files([str(written(tmp_path / "a.txt", b"line\n" * 1000 + b"\nlast\n"))])
    found = list(read_documents(files, reading=Reading(documents=documents, max_document_chars=1000)))
    assert len(found) in (5, 6)
    assert max(document.size for document in found) <= 1001
    assert sum(len(document.lines) for document in found) == 1001
    assert files[0].oddities == Oddities(long_documents=1)


def test_reading_again_counts_anew(tmp_path: Path):
    files = find_files([str(written(tmp_path / "a.txt", b"a\0b\r\n"))])
    list(read_documents(files))
    first = dataclasses.replace(files[0])
    list(read_documents(files))
    assert files[0] == first and first.oddities == Oddities(carriage_returns=1, nul_characters=1)


def test_bad_bytes_can_be_replaced_and_are_counted(tmp_path: Path):
    files = find_files([str(written(tmp_path / "a.txt", b"caf\xe9 au lait"))])
    assert next(read_documents(files, reading=Reading(on_bad_bytes="replace"))).lines == ("caf\ufffd au lait",)
    assert files[0].oddities.replaced == 1


@pytest.mark.slow
@pytest.mark.parametrize("word", ["word ", "x", " ", "好", "\r"], ids=["words", "letters", "spaces", "Chinese", "CR"])
def test_a_file_of_one_line_is_read_in_little_memory(tmp_path: Path, word: str):
    path = tmp_path / "a.txt"
    with path.open("wb") as file:
        file.write(b"begin")
        for _ in range(200):
            file.write((word * 1_000_000).encode()[:1_000_000] if word != "好" else word.encode() * 333_333)
        file.write(b"end")
    script = (
        "import sys, resource, keras_bert_console\n"
        "from keras_bert_impl.training.corpus.readers import find_files, read_documents\n"
        "files = find_files(sys.argv[1:])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "size = sum(document.size for document in read_documents(files))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(size, (after - before) // 1024, files[0].oddities.long_lines)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    size, megabytes, long_lines = map(int, done.stdout.split())
    assert size >= {" ": 8, "\r": 8, "好": 66_000_000}.get(word, 190_000_000)
    assert megabytes < 60
    assert long_lines == (word != "\r")


@pytest.mark.slow
def test_a_row_group_is_never_in_memory_as_a_whole(tmp_path: Path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = [f"{number} " * 200 for number in range(150_000)]
    parquet.write_table(arrow.table({"text": texts}), tmp_path / "a.parquet", row_group_size=10**7, compression="none")
    assert (tmp_path / "a.parquet").stat().st_size > 150_000_000
    script = (
        "import sys, resource, keras_bert_console, pyarrow.parquet\n"
        "from keras_bert_impl.training.corpus.readers import find_files, read_documents\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count = sum(1 for document in read_documents(find_files(sys.argv[1:])))\n"
        "print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    path = str(tmp_path / "a.parquet")
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    count, megabytes = map(int, done.stdout.split())
    assert count == 150_000
    assert megabytes < 80
