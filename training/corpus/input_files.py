"""Which files are read, and in which order: the same on every machine."""

import dataclasses
import glob
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from keras_bert_impl.errors import InputError

from .compression import PACKINGS, packing_of_name
from .oddities import Oddities
from .wording import counted

STANDARD_INPUT = "-"
FORMATS = ("txt", "jsonl", "parquet")
_MANY = 5


@dataclasses.dataclass
class SourceFile:
    """One source of text and what was found in it; complete once it has been read to its end.

    Attributes:
        path: how it was named; `-` is standard input.
        size: bytes on disk, packed ones as they are.
        sha256: of these bytes.
        documents: how many it gave.
        oddities: what was odd in its text.
        place: where it lies if not at `path`: standard input that was put into a temporary file.
        texts: an iterable of strings in place of a file.
    """

    path: str
    size: int
    sha256: str = ""
    documents: int = 0
    oddities: Oddities = dataclasses.field(default_factory=Oddities)
    place: str | None = None
    texts: Iterable[str] | None = dataclasses.field(default=None, compare=False)

    def open(self, argument: str = "inputs") -> io.FileIO:
        """Opens it for reading; what hinders that is said in an `InputError`."""
        try:
            if self.path == STANDARD_INPUT and self.place is None:
                if sys.stdin is None:
                    raise InputError(f"`{argument}` can be '-' only while standard input is open. Received: '-'")
                return io.FileIO(sys.stdin.fileno(), closefd=False)
            return Path(self.place or self.path).open("rb", buffering=0)
        except OSError as error:
            raise InputError(
                f"`{argument}` must name files that can be read. Received: {self.path!r} ({error.strerror or error})"
            ) from None


def format_of_name(path: str) -> str | None:
    """Returns the format that a name's suffix says, in front of one for packing; None for an unknown one."""
    packing = packing_of_name(path)
    suffix = Path(path[: path.rindex(".")] if packing else path).suffix.lower()[1:]
    return suffix if suffix in FORMATS and not (packing and suffix == "parquet") else None


def find_files(
    inputs: Sequence[str], *, argument: str = "inputs", say: Callable[[str], None] = lambda line: None
) -> list[SourceFile]:
    """Returns the files that the inputs name, in the order of the inputs.

    A directory stands for all files below it whose suffix is known, hidden ones left out, and a pattern (`*`, `?`,
    `[…]`, `**`) for what matches it, both in the order of the code points of their names. A file that is named itself
    is taken whatever its suffix.

    Args:
        inputs: files, directories, patterns, or `-` for standard input.
        argument: what error messages call the inputs.
        say: told what a directory gave and what was left out.

    Raises:
        InputError: if one is not there, gives no file, or standard input is named twice.
    """
    files: list[SourceFile] = []
    for name in inputs:
        path = Path(name)
        if name == STANDARD_INPUT:
            files.append(SourceFile(name, 0))
        elif path.is_dir():
            files += _files_below(path, argument, say)
        elif path.exists():
            files.append(SourceFile(str(name), path.stat().st_size))
        elif glob.has_magic(str(name)):
            files += _files_like(str(name), argument)
        else:
            raise InputError(f"`{argument}` must name files that exist. Received: {name!r}, which does not")
    if sum(file.path == STANDARD_INPUT for file in files) > 1:
        raise InputError(f"`{argument}` can take standard input once. Received: '-' more than once")
    return files


def _files_like(pattern: str, argument: str) -> Iterator[SourceFile]:
    found = (Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207
    files = sorted((path for path in found if path.is_file()), key=lambda path: path.parts)
    if not files:
        raise InputError(f"`{argument}` must name files that exist. Received: {pattern!r}, which no file matches")
    yield from (SourceFile(str(path), path.stat().st_size) for path in files)


def _files_below(folder: Path, argument: str, say: Callable[[str], None]) -> Iterator[SourceFile]:
    files, hidden, unknown = [], 0, []

    def refuse(error: OSError) -> None:
        raise InputError(
            f"`{argument}` must name directories that can be read. Received: {error.filename!r} ({error.strerror})"
        )

    for place, folders, names in os.walk(folder, onerror=refuse):
        hidden += sum(name.startswith(".") for name in (*folders, *names))
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.startswith("."):
                continue
            if format_of_name(name) and (path := Path(place) / name).is_file():
                files.append(path)
            else:
                unknown.append(Path(name).suffix or name)
    if not files:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(
            f"`{argument}` must name files or directories with some. Received: {str(folder)!r}, which has none "
            f"that ends in {known}; text may be packed as well ({', '.join(PACKINGS)})"
        )
    left_out = []
    if hidden:
        left_out.append(f"{hidden:,} hidden")
    if unknown:
        kinds = sorted(set(unknown))
        more = ", …" if len(kinds) > _MANY else ""
        left_out.append(f"{len(unknown):,} of other kinds ({', '.join(kinds[:_MANY])}{more})")
    note = f"; left out {' and '.join(left_out)}" if left_out else ""
    say(f"Directory {str(folder)!r}: {counted(len(files), 'file')}{note}.")
    for path in sorted(files, key=lambda path: path.parts):
        yield SourceFile(str(path), path.stat().st_size)
