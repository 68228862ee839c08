import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.oddities import Oddities
from keras_bert_impl.training.corpus.text_lines import decoded, lines_of_text, without_surrogates

LETTERS = "a \n\r\t\0é好🙂\ufeff\v\f\x85\u2028\u2029\ufffd"


def in_pieces(content, size: int) -> list:
    return [content[start : start + size] for start in range(0, len(content), size)]


def lines(content: bytes, *, size: int = 1000, longest: int = 1000, on_bad_bytes: str = "error"):
    oddities = Oddities()
    texts = decoded(in_pieces(content, size), "a.txt", oddities, on_bad_bytes=on_bad_bytes)
    return [line for batch in lines_of_text(texts, longest, oddities) for line in batch], oddities


def lines_by_definition(content: bytes) -> list[str]:
    text = content.decode("utf-8").removeprefix("\ufeff")
    return [line.strip() for line in re.split(r"\r+\n|\n|\r", text)]


def as_documents(found: list[str]) -> list[str]:
    """What matters of the lines: several blank ones are as one, and none counts at either end."""
    return re.sub(r"\n\n+", "\n\n", "\n".join(found)).strip("\n").split("\n")


@given(st.text(LETTERS, max_size=60), st.integers(1, 20))
def test_lines_do_not_depend_on_where_the_pieces_end(text: str, size: int):
    content = text.encode()
    assert as_documents(lines(content, size=size)[0]) == as_documents(lines_by_definition(content))


@given(st.lists(st.text("ab好 ", max_size=50), max_size=10), st.integers(1, 20), st.integers(5, 40))
def test_a_cut_line_loses_nothing_but_white_space(texts: list[str], size: int, longest: int):
    found, oddities = lines("\n".join(texts).encode(), size=size, longest=longest)
    assert max(map(len, found)) <= longest
    assert "".join("".join(found).split()) == "".join("".join(texts).split())
    assert oddities.long_lines >= sum(len(text.strip()) > longest for text in texts)
    assert oddities.long_lines <= sum(len(text) > longest for text in texts)
    # A blank line parts documents, and none may come out of a long one.
    parts = [part for part in re.split(r"\n\s*\n", "\n".join(texts)) if part.strip()]
    assert len([part for part in "\n".join(found).split("\n\n") if part.strip("\n")]) == len(parts)


def test_a_long_line_is_cut_at_a_space_where_there_is_one():
    assert lines(b"one two three four", longest=10)[0] == ["one two", "three four"]
    assert lines(b"x" * 25, longest=10)[0] == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_long_line_counts_once(size: int):
    found, oddities = lines(b"short\n" + b"word " * 100 + b"\nshort", size=size, longest=20)
    assert oddities.long_lines == 1
    assert found[0] == found[-1] == "short" and "" not in found


def test_only_line_feed_and_carriage_return_end_a_line():
    line = "one\vtwo\fthree\x85four\u2028five\u2029six\x1cseven\0eight"
    assert lines(line.encode()) == ([line], Oddities(separators=5, nul_characters=1))


def test_these_are_white_space_at_the_ends_of_a_line_as_for_the_original():
    assert lines("\u2028one\x85\n\v\f\n\xa0two\u3000".encode())[0] == ["one", "", "two"]


def test_carriage_returns_and_byte_order_marks_are_counted():
    found, oddities = lines("\ufeffone\r\ntwo\rthree\ufeff".encode())
    assert found == ["one", "two", "three\ufeff"]
    assert oddities == Oddities(byte_order_marks=1, carriage_returns=2)


def test_many_carriage_returns_take_no_time():
    assert set(lines(b"a" + b"\r" * 1_000_000 + b"b", size=100_000)[0]) == {"a", "", "b"}
    assert lines(b"a" + b"\r" * 1_000_000 + b"\nb", size=2_000_000)[0] == ["a", "b"]


@given(st.binary(max_size=40), st.integers(1, 10))
def test_replaced_bytes_are_counted_wherever_pieces_end(content: bytes, size: int):
    text = content.decode("utf-8", "replace")
    oddities = Oddities()
    found = "".join(decoded(in_pieces(content, size), "a.txt", oddities, on_bad_bytes="replace"))
    assert found == text.removeprefix("\ufeff")
    assert oddities.replaced == text.count("\ufffd") - content.count(b"\xef\xbf\xbd")


@given(st.text(LETTERS, max_size=20), st.integers(1, 10))
def test_the_first_bad_byte_is_named_wherever_pieces_end(text: str, size: int):
    before = text.encode()
    message = (
        rf"`inputs` must be UTF-8 text\. Received: 'a\.txt', which is not at byte {len(before)} \(0xff\), "
        rf"in line {before.count(10) + 1}$"
    )
    with pytest.raises(InputError, match=message):
        list(decoded(in_pieces(before + b"\xffend", size), "a.txt", Oddities()))


def test_a_character_cut_off_at_the_end_is_named():
    with pytest.raises(InputError, match=r"which is not at byte 3 \(0xe5\), in line 2"):
        lines(b"ab\n" + "好".encode()[:2])


def test_half_a_surrogate_pair_is_refused_or_replaced():
    oddities = Oddities()
    options = {"on_bad_bytes": "replace", "argument": "texts"}
    assert without_surrogates("a\ud800b🙂", "number 1", oddities, **options) == "a\ufffdb🙂"
    assert oddities.replaced == 1
    message = r"`texts` must hold whole characters\. Received: number 1, which has half a surrogate pair \(U\+D800\) at"
    with pytest.raises(InputError, match=message):
        without_surrogates("a\ud800b", "number 1", oddities, on_bad_bytes="error", argument="texts")
