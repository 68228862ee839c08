"""Outputs appear whole or not at all: written under a temporary name, then renamed."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from keras_bert_impl.errors import InputError


def check_new_directory(path: str | os.PathLike[str], argument: str) -> Path:
    """Returns `path`, which must be absent or an empty directory; raises `InputError` otherwise."""
    target = Path(path)
    if target.is_dir() and not any(target.iterdir()):
        return target
    if target.exists() or target.is_symlink():
        raise InputError(f"`{argument}` must be a new or empty directory. Received: {str(target)!r}, which has content")
    return target


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Yields a temporary directory beside `path` that becomes `path` when the block ends well.

    Args:
        path: the directory to make. Missing parents are created, and removed again on failure.
        replace: whether an existing directory at `path` may be swapped out.
    """
    target = Path(path)
    made_parents = _make_parents(target.parent)
    temporary: Path | None = None
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        _swap_in(temporary, target, replace)
    except BaseException:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file beside `path` (text is UTF-8) that becomes `path` when the block ends well."""
    target = Path(path)
    made_parents = _make_parents(target.parent)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
        temporary = Path(name)
        temporary.chmod(0o666 & ~_umask())
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _swap_in(temporary: Path, target: Path, replace: bool) -> None:
    if target.is_dir() and (replace or not any(target.iterdir())):
        # A directory cannot be renamed over another one that has content: move the old one aside first.
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
        target.rename(old)
        temporary.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        temporary.rename(target)


def _make_parents(directory: Path) -> list[Path]:
    """Creates `directory`; returns the parents that were missing, innermost first."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    return missing


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
