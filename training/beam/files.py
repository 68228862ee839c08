"""Files that workers on other machines read and write: local paths, or what Beam's file systems know (`gs://…`)."""

import contextlib
import posixpath
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from keras_bert_impl.errors import InputError

from ..corpus.input_files import SourceFile, find_files, format_of_name
from ..corpus.temporary import temporary_room
from ..corpus.wording import counted

# What is packed is unpacked by our own readers, and nothing else is to be packed.
_AS_IT_IS = {"compression_type": CompressionTypes.UNCOMPRESSED}


def is_remote(path: str) -> bool:
    """Whether a path is for Beam's file systems rather than a local one."""
    return "://" in path


def find_everywhere(
    inputs: Sequence[str], *, argument: str = "inputs", say: Callable[[str], None] = lambda line: None
) -> list[SourceFile]:
    """Returns the files that the inputs name, as `find_files` does, remote ones among them.

    A remote path is a file or a pattern, or, with a slash at its end, a directory.

    Raises:
        InputError: if one is not there, gives no file, or is none that every worker can open twice.
    """
    files: list[SourceFile] = []
    for name in inputs:
        if is_remote(name):
            files += _remote_files(name, argument, say)
        else:
            files += find_files([name], argument=argument, say=say)
    for file in files:
        if not is_remote(file.path):
            if not Path(file.path).is_file():
                raise InputError(
                    f"`{argument}` of a pipeline must be files that every worker can open. Received: {file.path!r}"
                )
            file.place = str(Path(file.path).absolute())  # Workers may start elsewhere.
    return files


def _remote_files(name: str, argument: str, say: Callable[[str], None]) -> list[SourceFile]:
    try:
        (match,) = FileSystems.match([f"{name}**" if name.endswith("/") else name])
    except (OSError, ValueError) as error:
        raise InputError(f"`{argument}` must name files that can be read. Received: {name!r} ({error})") from None
    found = [SourceFile(file.path, file.size_in_bytes) for file in match.metadata_list]
    files = [file for file in found if not name.endswith("/") or _is_text(file.path[len(name) :])]
    if not files:
        raise InputError(f"`{argument}` must name files that exist. Received: {name!r}, which no file matches")
    if name.endswith("/"):
        others = len(found) - len(files)
        note = f"; left out {others:,} hidden or of other kinds" if others else ""
        say(f"Directory {name!r}: {counted(len(files), 'file')}{note}.")
    return sorted(files, key=lambda file: file.path.split("/"))


def _is_text(path: str) -> bool:
    return format_of_name(path) is not None and not any(part.startswith(".") for part in path.split("/"))


@contextlib.contextmanager
def fetched(file: SourceFile, argument: str = "inputs") -> Iterator[None]:
    """While the block runs, which reads a file, a remote one lies in a temporary one as well and is read from there."""
    remote = is_remote(file.path)
    try:
        with _copied(file.path) if remote else contextlib.nullcontext(file.place) as file.place:
            yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"`{argument}` must name files that can be read. Received: {file.path!r} ({reason})") from None
    finally:
        if remote:
            file.place = None


@contextlib.contextmanager
def _copied(path: str) -> Iterator[str]:
    try:
        source = FileSystems.open(path, **_AS_IT_IS)
    except ValueError as error:  # No such file system here.
        raise OSError(str(error)) from None
    with source, contextlib.ExitStack() as stack:
        with temporary_room():
            local = stack.enter_context(tempfile.NamedTemporaryFile(prefix="keras-bert-"))
        while chunk := source.read(2**20):
            with temporary_room():
                local.write(chunk)
        with temporary_room():
            local.flush()
        yield local.name


def join(folder: str, *names: str) -> str:
    """Returns the path of something in a folder."""
    return posixpath.join(folder, *names)


def write_file(path: str, content: bytes) -> None:
    """Writes a file, with the folders that it lies in; what hinders that is an `OSError`."""
    if is_remote(path):
        with FileSystems.create(path, **_AS_IT_IS) as file:
            file.write(content)
    else:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)


def read_file(path: str) -> bytes:
    """Returns what a file holds."""
    if not is_remote(path):
        return Path(path).read_bytes()
    with FileSystems.open(path, **_AS_IT_IS) as file:
        return file.read()
