"""Files of answers: JSON lines, tables, words with their tags, arrays of vectors."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none

from ..configs.predict import STANDARD_STREAM
from ..corpus.wording import counted

SUFFIXES = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".conll": "conll",
    ".bio": "conll",
    ".npy": "npy",
}
_NOT_WRITTEN = (".parquet", ".gz", ".xz", ".zst", ".bz2", ".zip", ".xlsx")
_SUFFIX = "_predicted"
_SPACE = re.compile(r"\s")


def output_format(output: str, chosen: str) -> str:
    """Returns the format of an output: the chosen one, or with "auto" that of its suffix, else JSON lines.

    Raises:
        InputError: if the suffix says a format that is not written, or an array of vectors has no file.
    """
    if chosen == "auto":
        suffix = Path(output).suffix.lower()
        if suffix in _NOT_WRITTEN:
            raise InputError(
                f"`output` must end in {', '.join(SUFFIXES)}, or `output_format` be given. Received: {output!r}"
            )
        chosen = "jsonl" if output == STANDARD_STREAM else SUFFIXES.get(suffix, "jsonl")
    if chosen == "npy" and output == STANDARD_STREAM:
        raise InputError("`output` must be a file for npy, whose first bytes tell how many rows follow. Received: '-'")
    return chosen


class AnswerFile:
    """Takes answers row by row.

    Args:
        file: what they are written to.

    Attributes:
        binary: whether the file takes bytes.
    """

    binary = False

    def __init__(self, file: IO[Any]) -> None:
        self.file = file
        self._notes: dict[str, int] = {}

    @property
    def notes(self) -> list[str]:
        """Sentences on what was renamed or left out, complete when all rows are written."""
        return [note.replace("{count}", counted(count, "row")) for note, count in self._notes.items()]

    def begin(self, columns: Sequence[str]) -> None:
        """Takes the names of the input's columns, before any row."""

    def write(self, columns: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes the answer to a row with these columns."""
        raise NotImplementedError

    def end(self) -> None:
        """Completes the file after the last row."""

    def with_null(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a row with None for numbers that are not finite, which JSON has not; counts it if it has some."""
        sound = finite_or_none(dict(row))
        if sound != row:
            self.note("Numbers of the input that are NaN or infinite are written as null or nothing: {count}.")
        return sound

    def note(self, sentence: str) -> None:
        """Counts a row of which `sentence` is true; `{count}` in it stands for the number of rows."""
        self._notes[sentence] = self._notes.get(sentence, 0) + 1


def unused_name(name: str, taken: Mapping[str, Any] | Sequence[str]) -> str:
    """Returns the name of an answer's column beside others."""
    while name in taken:
        name += _SUFFIX
    return name


class JsonLines(AnswerFile):
    """An object for each row: its columns, then the fields of the answer."""

    def write(self, columns: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes an answer."""
        row = self.with_null(columns)
        for name, value in answer.items():
            if name == "words" and row.get(name) == value:
                continue
            new = unused_name(name, row)
            if new != name:
                self.note(f"The answer's {name!r} is called {new!r} where the input has a {name!r}: {{count}}.")
            row[new] = value
        self.file.write(json.dumps(row, ensure_ascii=False, default=str, allow_nan=False) + "\n")


class Table(AnswerFile):
    """A line for each row: its columns, then those of the answer; with a header.

    Args:
        file: what it is written to.
        delimiter: what stands between columns.
        names: the answer's columns.
        separator: what stands between several labels.
    """

    def __init__(self, file: IO[str], delimiter: str, names: Sequence[str], separator: str) -> None:
        super().__init__(file)
        self.writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self.names = list(names)
        self.separator = separator
        self.columns: list[str] = []

    def begin(self, columns: Sequence[str]) -> None:
        """Begins the file."""
        self.columns = list(columns)
        header = list(columns)
        for name in self.names:
            header.append(unused_name(name, header))
            if header[-1] != name:
                self._notes[f"The answer's {name!r} is called {header[-1]!r}, since the input has a {name!r}."] = 1
        self.writer.writerow(header)

    def write(self, columns: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes an answer."""
        for name in columns.keys() - set(self.columns):
            self.note(f"The column {name!r}, which the first row has not, is left out; JSON lines keep it: {{count}}.")
        columns, cells = self.with_null(columns), flat(answer, self.separator)
        self.writer.writerow(
            [*(_cell(columns.get(name)) for name in self.columns), *(_cell(cells.get(name)) for name in self.names)]
        )


def flat(answer: Mapping[str, Any], separator: str) -> dict[str, Any]:
    """Returns the fields of an answer as cells: a column for each label's probability, several labels joined."""
    cells = dict(answer)
    if isinstance(cells.get("label"), list):
        cells["label"] = separator.join(cells["label"])
    probabilities = cells.pop("probabilities", None)
    if isinstance(probabilities, dict):
        cells |= {f"probability:{name}": value for name, value in probabilities.items()}
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


class WordLines(AnswerFile):
    """A line for each word with its tag, an empty line after each sentence.

    Args:
        file: what it is written to.
        delimiter: what stands between word and tag.
    """

    def __init__(self, file: IO[str], delimiter: str) -> None:
        super().__init__(file)
        self.delimiter = delimiter

    def write(self, columns: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes an answer."""
        if not answer["words"]:
            self.note("Without words, and so without lines: {count}.")
        words = [_SPACE.sub("_", word) for word in answer["words"]]
        if words != list(answer["words"]):
            self.note("White space inside words is written as _: {count}.")
        lines = [f"{word}{self.delimiter}{tag}\n" for word, tag in zip(words, answer["tags"], strict=True)]
        self.file.write("".join(lines) + "\n")


class VectorArray(AnswerFile):
    """The vectors as a float32 array of NumPy's, `(rows, size)`.

    Args:
        file: a binary file.
        size: numbers of a vector.
    """

    binary = True

    def __init__(self, file: IO[bytes], size: int) -> None:
        super().__init__(file)
        self.size = size
        self.rows = 0
        self._start = file.tell()

    def begin(self, columns: Sequence[str]) -> None:
        """Begins the file."""
        self._header()

    def _header(self) -> None:
        # NumPy leaves room for the number of rows to grow.
        described = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, self.size)}
        np.lib.format.write_array_header_1_0(self.file, described)

    def write(self, columns: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Writes an answer."""
        self.rows += 1
        self.file.write(np.asarray(answer["vector"], "<f4").tobytes())

    def end(self) -> None:
        """Completes the file."""
        self.file.seek(self._start)
        self._header()


@contextmanager
def opened_output(output: str, binary: bool) -> Iterator[Any]:
    """Opens standard output, or a file that is there as a whole or not at all."""
    if output == STANDARD_STREAM:
        yield _Flushed(sys.stdout)
        return
    with atomic_file(output, "wb" if binary else "w") as file:
        yield file


class _Flushed(io.TextIOBase):
    """Hands every line on at once."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(text)
        self.stream.flush()
        return len(text)
