"""The texts of a file of JSON lines."""

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from .oddities import Oddities

# A line is parsed as a whole, so it has to fit into memory.
LONGEST_LINE = 2**26
_KINDS = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false"}


def json_texts(
    chunks: Iterable[bytes],
    path: str,
    field: str,
    oddities: Oddities,
    *,
    on_bad_bytes: str = "error",
    argument: str = "inputs",
) -> Iterator[tuple[int, str]]:
    """Yields (line number, text) for the named field of every line; blank lines and other fields are passed over.

    Raises:
        InputError: with file and line, if a line is not UTF-8, no JSON object, has no such field or no text in it.
    """
    for number, raw in enumerate(_lines(chunks, path, argument), start=1):
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            oddities.byte_order_marks += 1
            raw = raw[len(codecs.BOM_UTF8) :]
        if raw.strip():
            yield number, _text_of_line(raw, f"line {number} of {path!r}", field, oddities, on_bad_bytes, argument)


def _text_of_line(raw: bytes, place: str, field: str, oddities: Oddities, on_bad_bytes: str, argument: str) -> str:
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if on_bad_bytes == "error":
            raise InputError(
                f"`{argument}` must be UTF-8 text. Received: {place}, which is not at its byte {error.start} "
                f"(0x{raw[error.start]:02x})"
            ) from None
        line = raw.decode("utf-8", "replace")
        oddities.replaced += line.count("\ufffd") - raw.count("\ufffd".encode())
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"`{argument}` must hold JSON, an object a line. Received: {place} ({why})") from None
    if not isinstance(value, dict):
        raise InputError(f"`{argument}` must hold JSON, an object a line. Received: {place}, which is {_kind(value)}")
    if field not in value:
        known = sorted(value)[:10]
        raise InputError(f"`text_field` must name a field of every line. Received: {field!r}; {place} has {known}")
    text = value[field]
    if not isinstance(text, str):
        raise InputError(f"`text_field` must name a field with text. Received: {field!r}; {place} has {_kind(text)}")
    return text


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")


def _lines(chunks: Iterable[bytes], path: str, argument: str) -> Iterator[bytes]:
    rest, count = [b""], 0
    size = 0
    for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join(rest) + lines[0]
            yield from lines
            rest, size, count = [], 0, count + len(lines)
        rest.append(last)
        size += len(last)
        if size > LONGEST_LINE:
            raise InputError(
                f"`{argument}` must hold JSON in lines of at most {LONGEST_LINE:,} bytes. "
                f"Received: line {count + 1} of {path!r}, which is longer"
            )
    yield b"".join(rest)
