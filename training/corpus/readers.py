"""From files to documents, one at a time.

A reader has two halves, so that a compressed form or another format is one more entry in one of them:
`open_bytes` turns a path into a stream of bytes, `text_documents` turns such a stream into documents.
"""

import codecs
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from keras_bert_impl.errors import InputError

from .documents import Document


@dataclasses.dataclass
class SourceFile:
    """One input file and what was found in it; complete once it has been read to its end."""

    path: str
    size: int
    sha256: str = ""
    documents: int = 0


def find_files(inputs: Sequence[str]) -> list[SourceFile]:
    """Returns the input files in the given order; a missing one raises `InputError`."""
    files = []
    for name in inputs:
        path = Path(name)
        if not path.exists():
            raise InputError(f"`inputs` must name files that exist. Received: {name!r}, which does not")
        if not path.is_file():
            raise InputError(f"`inputs` must name text files. Received: {name!r}, which is not a file")
        files.append(SourceFile(str(name), path.stat().st_size))
    return files


def read_documents(
    files: Sequence[SourceFile], advance: Callable[[int], object] = lambda size: None
) -> Iterator[Document]:
    """Yields the documents of all files in order, and completes each file's `sha256` and `documents`.

    Args:
        files: from `find_files`.
        advance: called with the number of bytes after each line; for a progress bar.

    Raises:
        InputError: if a file cannot be opened or is not UTF-8; the message names the byte.
    """
    for file in files:
        file.documents = 0
        digest = hashlib.sha256()
        with open_bytes(file.path) as stream:
            for document in text_documents(_watched(stream, digest.update, advance), file.path):
                file.documents += 1
                yield document
        file.sha256 = digest.hexdigest()


def open_bytes(path: str) -> BinaryIO:
    """Opens a file for reading; what hinders it is said in an `InputError`."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InputError(f"`inputs` must name files that can be read. Received: {path!r} ({error.strerror})") from None


def text_documents(lines: Iterator[bytes], path: str) -> Iterator[Document]:
    """Yields a document for each block of lines between blank ones; `lines` are UTF-8 with their line ends."""
    block: list[str] = []
    position = 0
    for raw in lines:
        start = len(codecs.BOM_UTF8) if position == 0 and raw.startswith(codecs.BOM_UTF8) else 0
        try:
            text = raw[start:].decode("utf-8")
        except UnicodeDecodeError as error:
            byte = position + start + error.start
            raise InputError(
                f"`inputs` must be UTF-8 text. Received: {path!r}, which is not at byte {byte} "
                f"(0x{raw[start + error.start]:02x})"
            ) from None
        position += len(raw)
        # A carriage return in the middle was a line end once; at the end it belongs to the line feed.
        for line in text.rstrip("\r\n").split("\r"):
            if line := line.strip():
                block.append(line)
            elif block:
                yield Document(tuple(block))
                block = []
    if block:
        yield Document(tuple(block))


def _watched(stream: BinaryIO, update: Callable[[bytes], object], advance: Callable[[int], object]) -> Iterator[bytes]:
    for line in stream:
        update(line)
        advance(len(line))
        yield line
