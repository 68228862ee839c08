"""The rows of JSON lines: an object on each."""

import json
from collections.abc import Iterator

from keras_bert_impl.errors import InputError

from .table import Row, Table, with_first
from .text_source import TextSource


def open_json(source: TextSource, lines: Iterator[tuple[int, str]]) -> Table:
    """Opens a table of JSON lines."""
    table = Table(source.path, (), iter(()), "JSON lines", by_number=False, source=source)
    table.rows = _rows_of_json(source, lines, table)
    table = with_first(table)
    table.names = tuple(table.first.values) if table.first else ()
    return table


def _rows_of_json(source: TextSource, lines: Iterator[tuple[int, str]], table: Table) -> Iterator[Row]:
    rule = f"`{source.argument}` must hold JSON, an object a line"
    for number, line in lines:
        if not line.strip():
            table.blank_lines += 1
            continue
        place = f"{source.path!r}, line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{rule}. Received: {place} ({why})") from None
        if not isinstance(value, dict):
            raise InputError(f"{rule}. Received: {place}, which is {type(value).__name__}")
        yield Row(f"{source.path}:{number}", value)
