"""Which form a file of examples has, by settings, suffix and content, and the table that is in it."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from ...corpus.input_files import STANDARD_INPUT, SourceFile
from .cell_tables import open_cells
from .json_tables import open_json
from .parquet_tables import open_parquet
from .table import Table
from .text_source import TextSource, is_packed, suffix_of

_SUFFIXES = {
    "tsv": "tsv",
    "tab": "tsv",
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "conll": "conll",
    "bio": "conll",
    "iob": "conll",
    "iob2": "conll",
    "bmes": "conll",
    "bioes": "conll",
}


def form_of(file: SourceFile, config: Any, argument: str) -> str:
    """Returns the form that settings or the suffix say, of `columns.TABLE_FORMATS`; `"json"`, `"txt"` need a look."""
    form = config.input_format
    if form == "auto":
        suffix = suffix_of(file.path)
        form = _SUFFIXES.get(suffix, "json" if suffix == "json" else "txt")
    if form == "parquet" and (file.path == STANDARD_INPUT or is_packed(file.path)):
        raise InputError(f"`{argument}` in Parquet must be a file that is not packed. Received: {file.path!r}")
    return str(form)


def looked_at(source: TextSource, form: str) -> tuple[str, Iterator[tuple[int, str]]]:
    """Returns the form of a file with another suffix, `"jsonl"`, `"squad"` or still `"txt"`, and all of its lines."""
    lines = source.lines()
    seen: list[tuple[int, str]] = []
    for numbered in lines:
        seen.append(numbered)
        if numbered[1].strip():
            break
    everything = itertools.chain(seen, lines)
    first = seen[-1][1].strip() if seen else ""
    if not first.startswith(("{", "[")):
        return form, everything
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return ("squad" if form == "json" or first == "{" else form), everything
    if isinstance(value, dict):
        return ("squad" if isinstance(value.get("data"), list) else "jsonl"), everything
    return ("squad" if form == "json" else form), everything


def open_table(
    file: SourceFile,
    form: str,
    lines: Iterator[tuple[int, str]] | None,
    source: TextSource,
    config: Any,
    labelled: bool,
) -> Table:
    """Opens a table.

    Args:
        file: from `labelled_files`.
        form: `"tsv"`, `"csv"`, `"txt"`, `"jsonl"` or `"parquet"`.
        lines: those of the source, if they were begun.
        source: the text.
        config: the settings of columns.
        labelled: whether it should have labels.

    Raises:
        InputError: there or while rows are read, with file and line.
    """
    if form == "parquet":
        return open_parquet(file, source.argument)
    lines = source.lines() if lines is None else lines
    return open_json(source, lines) if form == "jsonl" else open_cells(source, lines, form, config, labelled)
