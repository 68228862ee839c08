import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus import json_lines
from keras_bert_impl.training.corpus.json_lines import json_texts
from keras_bert_impl.training.corpus.oddities import Oddities


def texts(content: bytes, *, size: int = 1000, on_bad_bytes: str = "error") -> list[tuple[int, str]]:
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    return list(json_texts(chunks, "a.jsonl", "text", Oddities(), on_bad_bytes=on_bad_bytes))


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), lambda inner: st.lists(inner), max_leaves=5
)


@given(
    st.lists(st.tuples(st.text(), st.dictionaries(st.text(), values, max_size=3)), max_size=6),
    st.integers(1, 50),
    st.sampled_from([b"\n", b"\r\n", b"\n \n"]),
    st.booleans(),
    st.booleans(),
)
def test_every_text_comes_as_it_was_written(rows: list, size: int, end: bytes, escaped: bool, marked: bool):
    lines = [json.dumps({**others, "text": text}, ensure_ascii=escaped).encode() for text, others in rows]
    content = marked * b"\xef\xbb\xbf" + end.join(lines)
    assert [text for _, text in texts(content, size=size)] == [text for text, _ in rows]


def test_lines_are_numbered_and_blank_ones_passed_over():
    assert texts(b'{"text": "a"}\n\n \t\n{"id": 7, "text": "b\\nc"}\n') == [(1, "a"), (4, "b\nc")]


@pytest.mark.parametrize("end", ["\u2028", "\x85"])
def test_only_a_line_feed_ends_a_line_of_json(end: str):
    assert texts(f'{{"text": "a{end}b"}}\n'.encode()) == [(1, f"a{end}b")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"text": "a"',
            r"`inputs` must hold JSON, an object a line\. Received: line 2 of .* \(.* column 13\)",
        ),
        (b"[" * 100_000, r"`inputs` must hold JSON, an object a line\. Received: line 2 of 'a\.jsonl' \(.*\)"),
        (b'"text"', r"`inputs` must hold JSON, an object a line\. Received: line 2 of 'a\.jsonl', which is text"),
        (b"[1]", r"Received: line 2 of 'a\.jsonl', which is a list"),
        (b"1" * 5000, r"`inputs` must hold JSON, an object a line\. Received: line 2 of 'a\.jsonl'"),
        (
            b'{"body": "a", "id": 1}',
            r"`text_field` must name a field of every line\. Received: 'text'; line 2 of .* has \['body', 'id'\]",
        ),
        (b'{"text": 1}', r"`text_field` must name a field with text\. Received: 'text'; line 2 of .* has a number"),
        (b'{"text": null}', r"`text_field` must name a field with text\. .*line 2 of 'a\.jsonl' has null"),
        (b'{"text": "\xe4"}', r"`inputs` must be UTF-8 text\. Received: line 2 of 'a\.jsonl', .* byte 10 \(0xe4\)"),
    ],
)
def test_a_line_that_gives_no_text_is_named(line: bytes, message: str):
    with pytest.raises(InputError, match=message):
        texts(b'{"text": "a"}\n' + line + b'\n{"text": "b"}')


def test_bad_bytes_can_be_replaced():
    oddities = Oddities()
    found = list(json_texts([b'{"text": "\xe4\xef\xbf\xbd"}'], "a", "text", oddities, on_bad_bytes="replace"))
    assert (found, oddities.replaced) == ([(1, "\ufffd\ufffd")], 1)


def test_a_line_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_lines, "LONGEST_LINE", 1000)
    line = json.dumps({"text": "a" * 900}).encode() + b"\n"
    assert len(texts(5 * line, size=100)) == 5
    message = "`inputs` must hold JSON in lines of at most 1,000 bytes. Received: line 2 of 'a.jsonl', which is longer"
    with pytest.raises(InputError, match=re.escape(message)):
        texts(line + json.dumps({"text": "a" * 2000}).encode(), size=100)
