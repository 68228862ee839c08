import bz2
import gzip
import lzma
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_data import written

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.input_files import SourceFile
from keras_bert_impl.training.finetuning.data.text_source import TextSource, labelled_files, suffix_of


def source(path: str, encoding: str | None = None) -> TextSource:
    return TextSource(labelled_files([path], "train", lambda line: None)[0], encoding, "train")


class Pieces(TextSource):
    """Text that comes in given pieces."""

    def __init__(self, pieces: list[str]) -> None:
        self.given = pieces

    def pieces(self):
        yield from self.given


@given(st.lists(st.text(alphabet="ab\r\n\u2028\x0b\x85", max_size=6), max_size=6))
def test_lines_do_not_depend_on_the_pieces_they_come_in(pieces: list[str]):
    whole = "".join(pieces)
    lines = list(Pieces([piece for piece in pieces if piece]).lines())
    assert "".join(line for _, line in lines) == whole
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
    feed, lone = whole.find("\n"), re.search("\r(?!\n)", whole)
    if lone and (feed < 0 or lone.start() < feed):
        whole = whole.replace("\r\n", "\n").replace("\r", "\n")
        lines = [(number, line.replace("\r\n", "\n").replace("\r", "\n")) for number, line in lines]
    expected = whole.split("\n")
    assert [line.removesuffix("\n") for _, line in lines] == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-8"])
def test_a_byte_order_mark_says_the_encoding(encoding: str, tmp_path: Path):
    path = written(tmp_path, "a.tsv", "čaj\t1\n茶\t2\n".encode(encoding))
    assert list(source(path).lines()) == [(1, "čaj\t1\n"), (2, "茶\t2\n")]


def test_big_endian_text_is_known_by_its_mark(tmp_path: Path):
    path = written(tmp_path, "a.tsv", "\ufeff茶\n".encode("utf-16-be"))
    assert list(source(path).lines()) == [(1, "茶\n")]


@pytest.mark.parametrize("encoding", ["latin-1", "gb18030", "utf-16-le"])
def test_an_encoding_that_is_given_is_taken(encoding: str, tmp_path: Path):
    path = written(tmp_path, "a.tsv", "é\n".encode(encoding))
    assert list(source(path, encoding).lines()) == [(1, "é\n")]


def test_other_bytes_are_refused_with_their_line_and_a_guess(tmp_path: Path):
    german = "Das Frühstück war schön, die Räume nicht.\nÜber die Größe läßt sich streiten.\n"
    path = written(tmp_path, "a.tsv", b"first\r\n" + german.encode("cp1252"))
    message = r"`train` must be UTF-8 text\. Received: '.*a\.tsv', which is not in line 2; it may be `encoding` cp1252$"
    with pytest.raises(InputError, match=message):
        list(source(path).lines())


@pytest.mark.parametrize(
    ("text", "encoding", "guess"),
    [
        ("text\tlabel\ncafé good\t1\nbad film\t0\n", "latin-1", "may be `encoding` cp1252"),
        ("text\tlabel\nMuy buena película, el niño\t1\n¿Qué? mañana\t0\n", "cp1252", "may be `encoding` cp1252"),
        ("Zażółć gęślą jaźń, bardzo dobry film łódź\t1\n", "cp1250", "may be `encoding` cp1250"),
        ("Очень хороший фильм, всем советую посмотреть\t1\n", "koi8-r", "may be `encoding` koi8-r"),
        ("非常好的电影，推荐大家看一看\t1\n", "gb18030", "give its `encoding`"),  # as Korean it would read as well
    ],
)
def test_a_guess_is_a_usual_encoding_or_none(text: str, encoding: str, guess: str, tmp_path: Path):
    with pytest.raises(InputError, match=rf"must be UTF-8 text\. .*; (it )?{guess}$"):
        list(source(written(tmp_path, "a.tsv", text.encode(encoding))).lines())


def test_without_the_library_that_guesses_an_encoding_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    path = written(tmp_path, "a.tsv", b"a\nb\n\xff\n")
    with pytest.raises(InputError, match=r"which is not in line 3; give its `encoding`$"):
        list(source(path).lines())


def test_text_that_is_cut_inside_a_character_is_refused(tmp_path: Path):
    path = written(tmp_path, "a.tsv", "a\n茶".encode()[:-1])
    with pytest.raises(InputError, match=r"must be UTF-8 text\. .* which is not in line 2"):
        list(source(path).lines())


def test_bytes_that_a_given_encoding_has_not_are_refused(tmp_path: Path):
    path = written(tmp_path, "a.tsv", b"ok\n\xe9\n")
    with pytest.raises(InputError, match=r"`train` must be ascii text\. Received: '.*', which is not in line 2"):
        list(source(path, "ascii").lines())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_without_a_mark_is_recognised(encoding: str, tmp_path: Path):
    path = written(tmp_path, "a.tsv", "text\tlabel\n".encode(encoding))
    message = rf"of which every second byte is NUL; it may be `encoding` {encoding}$"
    with pytest.raises(InputError, match=message):
        list(source(path).lines())


def test_nul_characters_stay_and_are_counted(tmp_path: Path):
    text = source(written(tmp_path, "a.tsv", "a\0b\n\0\n"))
    assert list(text.lines()) == [(1, "a\0b\n"), (2, "\0\n")]
    assert text.nul_characters == 2


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_packed_files_are_read(suffix: str, pack, tmp_path: Path):
    path = written(tmp_path, "a.tsv" + suffix, pack(b"a\nb"))
    assert list(source(path).lines()) == [(1, "a\n"), (2, "b")]
    assert suffix_of(path) == "tsv"


def test_a_directory_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"`dev` must name files of examples\. Received: '.*', which is a directory$"):
        labelled_files([tmp_path], "dev", lambda line: None)


def test_a_pattern_stands_for_its_files_in_order(tmp_path: Path):
    for name in ("b.tsv", "a.tsv"):
        written(tmp_path, name, "x")
    files = labelled_files([tmp_path / "*.tsv"], "train", lambda line: None)
    assert [Path(file.path).name for file in files] == ["a.tsv", "b.tsv"]


def test_standard_input_can_be_gone_through_once():
    assert TextSource(SourceFile("-", 0), None, "input").once
