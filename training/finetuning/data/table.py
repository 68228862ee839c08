"""A table while it is read, and what a row of it gives."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from keras_bert_impl.errors import InputError

from ...corpus.oddities import Oddities
from ...corpus.text_lines import without_surrogates
from ...corpus.wording import counted
from .class_names import ClassNames
from .text_source import TextSource


class Row(NamedTuple):
    """One row: where it was read, and its values by column."""

    place: str
    values: dict[str, Any]


@dataclasses.dataclass
class Table:
    """A table that is being read.

    Attributes:
        path: its file.
        names: of the columns; of JSON lines those of the first one.
        rows: to be gone through once.
        form: how it is laid out, as said to the user.
        by_number: whether columns may be called by number.
        named: whether the file has names for its columns.
        first: the first row.
        class_names: what stands for numbers in columns, from the file.
        blank_lines: passed over so far.
        marked_cells: cells wholly in quotation marks that are taken as text, so far.
        source: its text, if it is one.
    """

    path: str
    names: tuple[str, ...]
    rows: Iterator[Row]
    form: str
    by_number: bool = True
    named: bool = True
    first: Row | None = None
    class_names: dict[str, ClassNames] = dataclasses.field(default_factory=dict)
    blank_lines: int = 0
    marked_cells: int = 0
    source: TextSource | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path if self.path.startswith("`") else repr(self.path)

    def notes(self) -> Iterator[str]:
        """Yields a sentence for everything odd, after the last row."""
        if self.blank_lines:
            yield f"{self.path}: passed over {counted(self.blank_lines, 'blank line')}."
        if self.marked_cells:
            yield (
                f"{self.path}: {counted(self.marked_cells, 'cell')} in quotation marks, which are taken as part of "
                "the text (under `input_format` csv they would be marks around it)."
            )
        if self.source and self.source.nul_characters:
            yield f"{self.path}: {counted(self.source.nul_characters, 'NUL character')}, left in the text."


def with_first(table: Table) -> Table:
    """Looks at the first row, which stays in the table."""
    table.first = next(table.rows, None)
    if table.first is not None:
        table.rows = itertools.chain([table.first], table.rows)
    return table


def text_of(row: Row, column: str, argument: str) -> str:
    """Returns the text of a column.

    Raises:
        InputError: if the row has none, or a value that is no text.
    """
    value = row.values.get(column)
    if not isinstance(value, str):
        what = "none" if value is None else f"{type(value).__name__} {value!r:.60}"
        raise InputError(
            f"`{argument}` must have text in column {column!r} of every row. Received: {what} in {row.place}"
        )
    return without_surrogates(value, row.place, Oddities(), on_bad_bytes="error", argument=argument)


def id_of(row: Row, column: str | None, argument: str) -> str | None:
    """Returns the row's own name as text.

    Raises:
        InputError: if it has half a character, which JSON can hold but no file of answers.
    """
    value = row.values.get(column) if column is not None else None
    check_characters(value, row.place, argument)
    return None if value is None else str(value)


def check_characters(value: Any, place: str, argument: str) -> None:
    """Refuses text, also inside of lists and dicts, with half a character (a lone surrogate) in it.

    Raises:
        InputError: that names the place.
    """
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            without_surrogates(part, place, Oddities(), on_bad_bytes="error", argument=argument)
        elif isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
