"""How the lines of a table are to be taken apart: delimiter, quoting and header, found out from its first lines."""

import contextlib
import csv
import dataclasses
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .columns import USUAL_NAMES

DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}
_ENOUGH_ROWS = 10


@dataclasses.dataclass(frozen=True)
class Layout:
    """The form of a table.

    Attributes:
        delimiter: what stands between cells; None where a line is a text as it is.
        quoted: whether cells may stand in quotation marks, as RFC 4180 has it; else a mark is text.
        header: whether the first row has the names of the columns.
        other: another delimiter that would fit as well.
    """

    delimiter: str | None
    quoted: bool
    header: bool
    other: str | None = None

    def __str__(self) -> str:
        if self.delimiter is None:
            form = "a text a line"
        else:
            form = f"cells between {DELIMITERS.get(self.delimiter, repr(self.delimiter))}"
            form += ", in quotation marks where needed" if self.quoted else ""
        if self.other is not None:
            form += f" ({DELIMITERS[self.other]} would fit as well: `delimiter` says which are meant)"
        return f"{form}, {'names' if self.header else 'no names'} in the first row"


def find_layout(lines: Sequence[str], whole: bool, form: str, config: Any, labelled: bool) -> Layout:
    """Returns the layout of a table.

    Args:
        lines: the first ones, with their ends.
        whole: whether these are all.
        form: `"tsv"` or `"csv"`; `"txt"` where nothing says that it is a table.
        config: the settings of columns; what they say is taken.
        labelled: whether the table should have labels.
    """
    delimiter, other = (config.delimiter, None) if config.delimiter else _delimiter(lines, form)
    quoted = form == "csv" or (delimiter is not None and _quoting_is_evident(lines, whole, delimiter))
    rows = [row for row in sample_rows(lines, delimiter, quoted) if any(row)]
    header = config.header == "yes" or (config.header == "auto" and _has_header(rows, config, labelled))
    return Layout(delimiter, quoted, header, other)


def sample_rows(lines: Sequence[str], delimiter: str | None, quoted: bool) -> list[list[str]]:
    """Takes lines apart, up to one that cannot be."""
    if not quoted:
        return [cells(line, delimiter) for line in lines]
    allow_long_cells()
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # What is wrong is said when its row is reached.
        for row in csv.reader(lines, delimiter=delimiter or ","):
            rows.append(row)
    return rows


def cells(line: str, delimiter: str | None) -> list[str]:
    """Returns the cells of a line in which quotation marks are text."""
    text = line.rstrip("\r\n")
    return [text] if delimiter is None else text.split(delimiter)


def allow_long_cells() -> None:
    """Lets `csv` read cells of any length; its own limit would refuse the text of a long page."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def usual(names: Sequence[str]) -> int:
    """Counts the names that are usual ones of columns."""
    return sum(name.strip().casefold() in USUAL_NAMES for name in names)


def _delimiter(lines: Sequence[str], form: str) -> tuple[str | None, str | None]:
    """Returns the delimiter, and another one by which all lines have as many cells as well, if there is one."""
    first = next((line for line in lines if line.strip()), "")
    if form != "csv" and "\t" in first:
        return "\t", None
    own = {"csv": ",", "tsv": "\t", "txt": None}[form]
    best: tuple[bool, float, bool, int] = (False, 0.0, False, 1)
    found, fitting = None, {}
    for mark in DELIMITERS:
        rows = [row for row in sample_rows(lines, mark, True) if any(row)]
        if not rows or len(rows[0]) < 2:
            continue
        like_the_first = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        key = (usual(rows[0]) > 0, like_the_first, mark == own, len(rows[0]))
        # In running text every mark occurs; there only the names of columns make one a delimiter.
        if form != "csv" and not key[0]:
            continue
        fitting[mark] = key[:2]
        if key > best:
            best, found = key, mark
    if found is None:
        return own, None
    others = (mark for mark, fit in fitting.items() if mark != found and fit == best[:2] and fit[1] == 1)
    return found, next(others, None)


def _quoting_is_evident(lines: Sequence[str], whole: bool, delimiter: str) -> bool:
    """Whether cells in quotation marks are well formed throughout, and one could not be read without."""
    if not any('"' in line for line in lines):
        return False
    allow_long_cells()
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width, evident, line = 0, False, 0
    try:
        for row in reader:
            raw = "".join(lines[line : reader.line_num]).rstrip("\r\n")
            several, line = reader.line_num - line > 1, reader.line_num
            if not any(row):
                continue
            if not width:
                width = len(row)
                evident = all(cell[:1] == '"' == cell[-1:] and len(cell) > 1 for cell in raw.split(delimiter))
            if len(row) != width:
                return False
            plain = raw.split(delimiter)
            evident |= several or len(plain) != width
            evident |= any(text != cell and '""' in text for text, cell in zip(plain, row, strict=False))
    except csv.Error:
        # The last row of a part of a file may go on behind it.
        return evident and not whole and reader.line_num >= len(lines)
    return evident


def _has_header(rows: list[list[str]], config: Any, labelled: bool) -> bool:
    if not rows:
        return False
    first = [cell.strip() for cell in rows[0]]
    given = [config.text_column, config.text_pair_column, config.label_column, config.id_column]
    if usual(first) or any(name and not name.isdecimal() and name in first for name in given):
        return True
    number = config.label_column
    if not (labelled and number and number.isdecimal() and 1 <= int(number) <= len(first)):
        return False
    column = [row[int(number) - 1].strip() for row in rows if len(row) >= int(number)]
    label, others = column[0], Counter(column[1:])
    if others and all(map(_is_number, others)):
        return bool(label) and not _is_number(label)
    return len(column) > _ENOUGH_ROWS and label not in others and min(others.values()) > 1


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def quoted_rows(lines: Iterator[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (number of its first line, cells) of every row; raises `csv.Error` where marks are out of place."""
    allow_long_cells()
    reader = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
    number = 1
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise csv.Error(f"{number}:{error}") from None
        if row is None:
            return
        yield number, row
        number = reader.line_num + 1
