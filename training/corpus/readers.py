"""From files to documents, one at a time and in bounded memory.

Files are found by `input_files`, unpacked by `compression` and taken apart by `text_lines`, `json_lines` or
`parquet_column`; here their pieces become documents.
"""

import contextlib
import dataclasses
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from .compression import unpacked_chunks
from .documents import Document
from .input_files import SourceFile, find_files, format_of_name
from .json_lines import json_texts
from .oddities import Oddities
from .parquet_column import parquet_texts
from .text_lines import decoded, lines_of_text, without_surrogates

__all__ = ["Reading", "SourceFile", "find_files", "read_documents"]


@dataclasses.dataclass(frozen=True)
class Reading:
    """How files are read; the fields are those of `VocabConfig` and `PrepareConfig`.

    Attributes:
        input_format: `"auto"`: by the suffix, `"txt"` for an unknown one; or `"txt"`, `"jsonl"`, `"parquet"`.
        documents: what a document is in a `.txt` file: `"blank-lines"`: what stands between blank lines;
            `"file"`: the whole file; `"line"`: every line that is not blank.
        text_field: field or column with the text, each one a document.
        on_bad_bytes: what happens where text is not UTF-8: `"error"` or `"replace"`, by U+FFFD.
        max_document_chars: longer lines and longer documents are cut.
    """

    input_format: str = "auto"
    documents: str = "blank-lines"
    text_field: str = "text"
    on_bad_bytes: str = "error"
    max_document_chars: int = 1_000_000

    @classmethod
    def of(cls, config: Any) -> Self:
        """Returns the reading part of a config."""
        return cls(**{field.name: getattr(config, field.name) for field in dataclasses.fields(cls)})


_DEFAULT = Reading()


def read_documents(
    files: Sequence[SourceFile],
    advance: Callable[[int], object] = lambda size: None,
    reading: Reading = _DEFAULT,
    argument: str = "inputs",
) -> Iterator[Document]:
    """Yields the documents of all files in order, and completes what each `SourceFile` says of itself.

    Args:
        files: from `find_files` or `sources.open_sources`.
        advance: called with numbers of bytes, of the files as they lie there, that add up; for a progress bar.
        reading: how to read them.
        argument: what error messages call the files.

    Raises:
        InputError: if a file cannot be opened, is not what its name says or not UTF-8, or a text is missing.
    """
    for file in files:
        file.documents, file.oddities = 0, Oddities()
        for document in _documents_of_file(file, advance, reading, argument):
            file.documents += 1
            yield document


def _documents_of_file(
    file: SourceFile, advance: Callable[[int], object], reading: Reading, argument: str
) -> Iterator[Document]:
    if file.texts is not None:
        yield from _documents_of_texts(_numbered(file, advance), file, reading, "texts")
        return
    form = reading.input_format
    if form == "auto":
        form = format_of_name(file.path) or "txt"
    with contextlib.closing(_Watched(file.open(argument), advance if form != "parquet" else lambda size: None)) as raw:
        if form == "parquet":
            while raw.read(2**20):
                pass
            rows = parquet_texts(
                file.place or file.path,
                file.path,
                reading.text_field,
                lambda share: advance(round(share * file.size)),
                argument,
            )
            yield from _documents_of_texts(rows, file, reading, argument)
        else:
            chunks = unpacked_chunks(raw, file.path, argument)
            options: Any = {"on_bad_bytes": reading.on_bad_bytes, "argument": argument}
            if form == "jsonl":
                rows = json_texts(chunks, file.path, reading.text_field, file.oddities, **options)
                yield from _documents_of_texts(rows, file, reading, argument)
            else:
                texts = decoded(chunks, file.path, file.oddities, **options)
                batches = lines_of_text(texts, reading.max_document_chars, file.oddities)
                yield from documents_of_lines(batches, reading.documents, reading.max_document_chars, file.oddities)
        file.sha256 = raw.digest.hexdigest()
        file.size = raw.size


def documents_of_lines(
    batches: Iterable[list[str]], documents: str, longest: int, oddities: Oddities
) -> Iterator[Document]:
    """Yields the documents that stripped lines make up; `documents` and `longest` as in `Reading`."""
    block: list[str] = []
    size = 0
    cut = False
    for lines in batches:
        for line in lines:
            if line:
                if documents == "line":
                    yield Document((line,))
                    continue
                if size + len(line) > longest and block:
                    if not cut:
                        oddities.long_documents += 1
                        cut = True
                    yield Document(tuple(block))
                    block, size = [], 0
                block.append(line)
                size += len(line) + 1
            elif block and documents == "blank-lines":
                yield Document(tuple(block))
                block, size, cut = [], 0, False
    if block:
        yield Document(tuple(block))


def _documents_of_texts(
    rows: Iterable[tuple[int, str]], file: SourceFile, reading: Reading, argument: str
) -> Iterator[Document]:
    """Yields a document for each text, more for a long one, none for one of white space."""
    for number, text in rows:
        place = f"number {number} of {file.path!r}"
        text = without_surrogates(text, place, file.oddities, on_bad_bytes=reading.on_bad_bytes, argument=argument)
        file.oddities.count_characters(text)
        if len(text) < reading.max_document_chars and "\r" not in text:
            # Nothing has to be cut, so this does at once what is done below.
            if lines := tuple(stripped for line in text.split("\n") if (stripped := line.strip())):
                yield Document(lines)
            else:
                file.oddities.empty_texts += 1
            continue
        empty = True
        batches = lines_of_text([text], reading.max_document_chars, file.oddities)
        for document in documents_of_lines(batches, "file", reading.max_document_chars, file.oddities):
            empty = False
            yield document
        file.oddities.empty_texts += empty


def _numbered(file: SourceFile, advance: Callable[[int], object]) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text) of what came as strings, and completes their size and digest."""
    digest, size = hashlib.sha256(), 0
    for number, text in enumerate(file.texts or (), start=1):
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(raw + b"\0")
        size += len(raw)
        advance(len(raw))
        yield number, text
    file.size, file.sha256 = size, digest.hexdigest()


class _Watched(io.RawIOBase):
    """Passes on the bytes of a file; keeps their digest and number, and reports them as they come."""

    def __init__(self, stream: io.FileIO, advance: Callable[[int], object]):
        self.stream, self.advance = stream, advance
        self.digest, self.size = hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.stream.readinto(buffer)
        self.digest.update(buffer[:count])
        self.size += count
        self.advance(count)
        return count

    def close(self) -> None:
        self.stream.close()
        super().close()
