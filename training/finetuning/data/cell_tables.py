"""The rows of TSV and CSV, and lines of text, which are tables of one column."""

import csv
import itertools
from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from ...corpus.wording import counted
from .layout import Layout, cells, find_layout, quoted_rows, sample_rows
from .table import Row, Table, with_first
from .text_source import TextSource

_SAMPLE = 1000


def open_cells(source: TextSource, lines: Iterator[tuple[int, str]], form: str, config: Any, labelled: bool) -> Table:
    """Opens a table whose lines are rows of cells."""
    # Standard input is answered as it comes, so its first line that is not blank has to do.
    wanted = 1 if source.once else _SAMPLE
    sample: list[tuple[int, str]] = []
    for numbered in lines:
        sample.append(numbered)
        wanted -= bool(numbered[1].strip())
        if not wanted:
            break
    texts = [line for _, line in sample]
    layout = find_layout(texts, wanted > 0, form, config, labelled)
    first = next((row for row in sample_rows(texts, layout.delimiter, layout.quoted) if any(row)), [])
    table = Table(source.path, (), iter(()), str(layout), named=layout.header, source=source)
    if layout.header:
        table.names = _distinct([name.strip() for name in first])
    else:
        table.names = ("text",) if len(first) == 1 else tuple(map(str, range(1, len(first) + 1)))
    table.rows = _rows_of_cells(table, itertools.chain(sample, lines), layout, source.argument)
    return with_first(table)


def _rows_of_cells(table: Table, lines: Iterator[tuple[int, str]], layout: Layout, argument: str) -> Iterator[Row]:
    width, blank, header = len(table.names), 0, layout.header
    for number, row in _taken_apart(table, lines, layout, argument):
        if not row or (len(row) == 1 and not (row[0].strip() if width > 1 else row[0] or layout.quoted)):
            blank += 1
            continue
        if header:
            table.blank_lines += blank
            header, blank = False, 0
            continue
        if width == 1 and blank:
            # A line without text between others is a row of its own: no answer may slip to another line.
            yield from (Row(f"{table.path}:{number - back}", {table.names[0]: ""}) for back in range(blank, 0, -1))
        else:
            table.blank_lines += blank
        blank = 0
        if len(row) != width:
            raise InputError(
                f"`{argument}` must have {counted(width, 'column')} in every row. Received: {table.path!r}, "
                f"line {number}, which has {len(row)}"
            )
        yield Row(f"{table.path}:{number}", dict(zip(table.names, row, strict=True)))
    # Blank lines at the end are usual in tables; at the end of a list of texts they may be meant as such.
    table.blank_lines += blank if width == 1 else 0


def _taken_apart(
    table: Table, lines: Iterator[tuple[int, str]], layout: Layout, argument: str
) -> Iterator[tuple[int, list[str]]]:
    if layout.quoted:
        try:
            yield from quoted_rows(lines, layout.delimiter or ",")
        except csv.Error as error:
            begun, _, reason = str(error).partition(":")
            reason = "a quotation mark that is not closed" if reason == "unexpected end of data" else reason
            raise InputError(
                f"`{argument}` must have quotation marks around whole cells, and doubled inside of them. "
                f"Received: {table.path!r}, in the row that begins in line {begun} ({reason})"
            ) from None
        return
    for number, line in lines:
        row = cells(line, layout.delimiter)
        if layout.delimiter is not None and '"' in line:
            table.marked_cells += sum(len(cell) > 1 and cell[0] == '"' == cell[-1] for cell in row)
        yield number, row


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Returns the names; one that is empty or there already gets its number."""
    result: list[str] = []
    for number, name in enumerate(names, start=1):
        if not name or name in result:
            name = f"{name} (column {number})".strip()
        result.append(name)
    return tuple(result)
