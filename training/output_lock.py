"""The directory beside an output where it is made, `.NAME.unfinished`, held by one process at a time.

What else lies in it is the business of those who make the output, but for `command.json`: what the output depends on.
"""

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.errors import InputError

LOCK = "lock"
"""Name of the file that is held; the system lets go when the process ends."""
COMMAND = "command.json"
PARTIAL = re.compile(r"\..+\.[a-z0-9_]{8}\.partial")
"""What a kill leaves of a file that was being written; see `atomic`."""
PATIENCE = 1.0
"""Seconds in which the workers of a process that was killed let go of the lock."""


def folder_beside(target: Path) -> Path:
    """Returns the directory of an output."""
    return target.parent / f".{target.name}.unfinished"


def foreign_in(folder: Path, is_ours: Callable[[Path], bool]) -> Path | None:
    """Returns what is there and was not made here, if anything: the directory itself or something in it.

    Args:
        folder: the directory, which need not exist.
        is_ours: says of what is in it whether it was made here.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        return folder
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return None
    if entries and not {COMMAND, LOCK} & {path.name for path in entries}:
        return folder
    return next((path for path in entries if not is_ours(path)), None)


def empty(folder: Path, first: str | None = None) -> None:
    """Takes away all but the lock, what has the name `first` before the rest."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name != first):
        if path.name != LOCK:
            take_away(path)


def clear(folder: Path, first: str | None = None) -> None:
    """Takes everything away as `empty` does, and the lock last, by which others know whose the directory is."""
    with contextlib.suppress(OSError):
        empty(folder, first)
        (folder / LOCK).unlink()
        folder.rmdir()


def take_away(path: Path) -> None:
    """Removes a file or a directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def lock_folder(
    folder: Path, output: str | os.PathLike[str], is_ours: Callable[[Path], bool], *, patience: float | None = None
) -> int:
    """Makes a directory unless it is there, and holds it; returns the descriptor to close.

    Args:
        folder: the directory.
        output: what is made in it, as the user names it.
        is_ours: says of what is in it whether it was made here.
        patience: seconds to wait for another process that is ending; `PATIENCE` if not given.

    Raises:
        InputError: if there is something foreign, or another process holds the directory.
    """
    deadline = time.monotonic() + (PATIENCE if patience is None else patience)
    while True:
        if others := foreign_in(folder, is_ours):
            raise InputError(
                f"`output` must leave {str(folder)!r} to what is unfinished of it; move away what is not. "
                f"Received: {str(output)!r}, beside which there is {str(others)!r}"
            )
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:  # Cleared by another process between the two lines.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(lock, folder / LOCK):
                return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(lock)
                raise InputError(
                    f"`output` must not be in use by another process. Received: {str(output)!r}, which one is writing"
                ) from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        time.sleep(0.02)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
