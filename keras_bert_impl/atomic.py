"""Outputs appear whole or not at all: written under a temporary name, brought to the disk, then renamed."""

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from keras_bert_impl.errors import InputError


def check_new_directory(path: str | os.PathLike[str], argument: str) -> Path:
    """Returns `path`, which must be absent or an empty directory that another one can replace.

    A link may point to such a place.

    Raises:
        InputError: if it is anything else, a mount point or the current directory.
    """
    target, place = Path(path), followed(path)
    if place.is_symlink():
        fault = "a link that leads in a circle"
    elif not place.exists():
        return target
    elif not place.is_dir():
        fault = "which is no directory"
    elif any(place.iterdir()):
        fault = "which has content"
    else:
        _check_replaceable(place, path, f"`{argument}`")
        if place.samefile("."):
            raise InputError(
                f"`{argument}` must not be the current directory, which would be replaced under the feet of those in "
                f"it; name a new directory in it. Received: {os.fspath(path)!r}"
            )
        return target
    raise InputError(f"`{argument}` must be a new or empty directory. Received: {str(target)!r}, {fault}")


def _check_replaceable(target: Path, path: str | os.PathLike[str], subject: str) -> None:
    if os.path.ismount(target):
        raise InputError(
            f"{subject} must not be a mount point, which cannot be replaced; name a new directory in it. "
            f"Received: {os.fspath(path)!r}"
        )


@contextlib.contextmanager
def atomic_directory(
    path: str | os.PathLike[str], *, replace: bool = False, if_taken: Callable[[], Path] | None = None
) -> Iterator[Path]:
    """Yields a temporary directory beside `path` that becomes `path` when the block ends well.

    What killed processes left of earlier ones for the same path is cleared; that of living ones is left alone.

    Args:
        path: the directory to make. Missing parents are created, and removed again on failure.
        replace: whether an existing directory at `path` may be swapped out. Only one process may do so.
        if_taken: returns another path beside it, if meanwhile one has come to be there that may not be replaced.

    Raises:
        InputError: if `path` is a mount point, or has come to be there meanwhile.
    """
    target = followed(path)
    _check_replaceable(target, path, "An output directory")
    with new_parents(target):
        _clear_leftovers(target, and_olds=replace)
        with _held_directory(target) as temporary:
            temporary.chmod(0o777 & ~_umask())
            yield temporary
            for content in (*temporary.rglob("*"), temporary):
                if not content.is_symlink():
                    to_disk(content)
            while not _swapped_in(temporary, target, replace):
                if if_taken is None:
                    raise InputError(
                        "An output directory must not come to be there while it is made; another process has made it. "
                        f"Received: {os.fspath(path)!r}"
                    )
                target = if_taken()
            to_disk(target.parent)


@contextlib.contextmanager
def _held_directory(target: Path) -> Iterator[Path]:
    """Yields a temporary directory beside `target`, locked while this process lives; removed if the block fails."""
    while True:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        with contextlib.suppress(FileNotFoundError):  # before it was locked, another process may have cleared it
            handle = os.open(temporary, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if temporary.exists():
                break
            os.close(handle)
    try:
        yield temporary
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path with the suffix of `path`, whose file becomes `path` when the block ends well.

    For libraries that open their files themselves. What killed processes left is cleared.

    Raises:
        InputError: if `path` is there and is no regular file.
    """
    target = followed(path)
    _check_regular(target, path)
    with new_parents(target):
        _clear_leftovers(target, and_olds=True)
        with _held_directory(target) as folder:
            temporary = folder / target.name
            yield temporary
            give_usual_mode(temporary)
            to_disk(temporary)
            temporary.replace(target)
            to_disk(target.parent)
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file beside `path` (text is UTF-8) that becomes `path` when the block ends well.

    A link is followed: the file it points to is replaced.

    Raises:
        InputError: if `path` is there and is no regular file.
    """
    target = followed(path)
    _check_regular(target, path)
    with new_parents(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
        temporary = Path(name)
        try:
            give_usual_mode(temporary)
            with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            to_disk(target.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def give_usual_mode(file: Path) -> None:
    """Lets a file be read and written by those who may read and write any new file, as the umask says."""
    file.chmod(0o666 & ~_umask())


def to_disk(path: Path) -> None:
    """Returns when a file, or which names a directory holds, would outlive a loss of power, as far as that is known."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:  # may be written to but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot, for directories
            raise
    finally:
        os.close(handle)


def _check_regular(target: Path, path: str | os.PathLike[str]) -> None:
    if target.exists() and not target.is_file():
        raise InputError(f"An output file must be new or a regular file. Received: {str(path)!r}, which is neither")


def followed(path: str | os.PathLike[str]) -> Path:
    """Returns what a link points to; another path as it is."""
    return Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)


@contextlib.contextmanager
def new_parents(target: Path) -> Iterator[None]:
    """Creates the missing parents of `target`; takes them away again if the block fails."""
    missing = [path for path in target.parents if not path.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:  # innermost first
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _swapped_in(temporary: Path, target: Path, replace: bool) -> bool:
    """Puts a directory in its place; returns whether that was free, or might be taken."""
    if not (target.is_dir() and (replace or not any(target.iterdir()))):
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True
    if not _exchange(temporary, target):
        # Not at one stroke on this system: between the two renames a kill leaves what `_clear_leftovers` mends.
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
        target.rename(old)
        temporary.rename(target)
        temporary = old
    shutil.rmtree(temporary, ignore_errors=True)
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Lets two directories change places at one stroke (Linux' renameat2); returns whether it could."""
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _clear_leftovers(target: Path, *, and_olds: bool) -> None:
    if and_olds:
        if not target.exists() and (olds := _leftovers(target, "old")):
            olds[-1].rename(target)
        for rest in _leftovers(target, "old"):
            shutil.rmtree(rest, ignore_errors=True)
    for rest in _leftovers(target, "partial"):
        with contextlib.suppress(OSError):
            handle = os.open(rest, os.O_RDONLY)
            try:
                # Whoever is at work on it holds it.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(rest, ignore_errors=True)
            finally:
                os.close(handle)


def _leftovers(target: Path, suffix: str) -> list[Path]:
    """Returns the temporary directories of this target, known by its name and eight random letters."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.{suffix}")
    return sorted(path for path in target.parent.iterdir() if pattern.fullmatch(path.name))


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
