"""The directory beside an output where it is made, held by one process at a time."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.errors import InputError

LOCK = "lock"
"""Name of the file that is held; the system lets go when the process ends."""


def lock_folder(
    folder: Path, output: str | os.PathLike[str], foreign: Callable[[Path], Path | None], *, patience: float
) -> int:
    """Makes a directory unless it is there, and holds it; returns the descriptor to close.

    Args:
        folder: the directory.
        output: what is made in it, as the user names it.
        foreign: returns what is there and is not of this package, if anything.
        patience: seconds to wait for another process that is ending.

    Raises:
        InputError: if there is something foreign, or another process holds the directory.
    """
    deadline = time.monotonic() + patience
    while True:
        if others := foreign(folder):
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
