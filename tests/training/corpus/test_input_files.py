import os
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.input_files import find_files, format_of_name

TREE = "b.txt a.txt a/z.jsonl a/B.txt.gz é.parquet Z.TXT .hidden.txt .git/x.txt x.pdf README".split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


def names(folder: Path, inputs: list[str]) -> list[str]:
    return [Path(file.path).relative_to(folder).as_posix() for file in find_files(inputs)]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "txt"),
        ("a.TXT.XZ", "txt"),
        ("a.jsonl.zst", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a", None),
        ("txt", None),
        ("a.md", None),
    ],
)
def test_a_format_is_known_by_the_suffix(name: str, form: str | None):
    assert format_of_name(name) == form


def test_a_directory_gives_its_files_in_the_order_of_code_points(folder: Path):
    assert names(folder, [str(folder)]) == ["Z.TXT", "a/B.txt.gz", "a/z.jsonl", "a.txt", "b.txt", "é.parquet"]


def test_what_a_directory_leaves_out_is_said(folder: Path):
    said: list[str] = []
    find_files([str(folder)], say=said.append)
    assert said == [f"Directory {str(folder)!r}: 6 files; left out 2 hidden and 2 of other kinds (.pdf, README)."]


def test_a_pattern_gives_what_matches_in_order(folder: Path):
    assert names(folder, [str(folder / "*.txt")]) == ["a.txt", "b.txt"]
    assert names(folder, [str(folder / "**" / "*.txt*")]) == ["a/B.txt.gz", "a.txt", "b.txt"]


def test_inputs_keep_their_order(folder: Path):
    assert names(folder, [str(folder / "b.txt"), str(folder / "a"), str(folder / "a.txt")]) == [
        "b.txt",
        "a/B.txt.gz",
        "a/z.jsonl",
        "a.txt",
    ]


def test_a_file_that_is_named_is_taken_whatever_it_is_called(folder: Path):
    assert names(folder, [str(folder / ".hidden.txt"), str(folder / "README")]) == [".hidden.txt", "README"]


def test_a_file_with_the_name_of_a_pattern_is_that_file(tmp_path: Path):
    (tmp_path / "[a].txt").write_text("x", encoding="utf-8")
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    assert names(tmp_path, [str(tmp_path / "[a].txt")]) == ["[a].txt"]


def test_a_missing_file_is_named(tmp_path: Path):
    message = r"`inputs` must name files that exist\. Received: '.*none\.txt', which does not"
    with pytest.raises(InputError, match=message):
        find_files([str(tmp_path / "none.txt")])


def test_a_pattern_without_a_match_is_named(tmp_path: Path):
    message = r"`exclude` must name files that exist\. Received: '.*\*\.txt', which no file matches"
    with pytest.raises(InputError, match=message):
        find_files([str(tmp_path / "*.txt")], argument="exclude")


def test_a_directory_without_text_is_named(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(b"")
    message = (
        r"`inputs` must name files or directories with some\. Received: '.*', which has none that ends in \.txt, "
        r"\.jsonl, \.parquet; text may be packed as well \(\.gz, \.xz, \.bz2, \.zst\)"
    )
    with pytest.raises(InputError, match=message):
        find_files([str(tmp_path)])


def test_standard_input_comes_once():
    assert find_files(["-"])[0].path == "-"
    message = r"`inputs` can take standard input once\. Received: '-' more than once"
    with pytest.raises(InputError, match=message):
        find_files(["-", "-"])


def test_standard_input_that_is_closed_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match=r"`inputs` can be '-' only while standard input is open\. Received: '-'"):
        find_files(["-"])[0].open()


def test_a_directory_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch):
    scandir = os.scandir

    def refused(path: str):
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    message = r"`inputs` must name directories that can be read\. Received: '.*a' \(Permission denied\)"
    with pytest.raises(InputError, match=message):
        find_files([str(folder)])
