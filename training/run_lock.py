"""One run directory, one trainer."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from keras_bert_impl.atomic import new_parents
from keras_bert_impl.errors import InputError

LOCK = ".lock"


@contextlib.contextmanager
def sole_trainer(directory: Path) -> Iterator[None]:
    """Holds the run directory for this process while the block runs; the system lets go when the process ends.

    Args:
        directory: the run directory; made if it is not there, and taken away if the block fails before it
            has put anything in.

    Raises:
        InputError: if another process trains in it.
    """
    with new_parents(directory / LOCK), (directory / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"`run` must not be in use by another process. Received: {str(directory)!r}, where one is training"
            ) from error
        try:
            yield
        except BaseException:
            if [path.name for path in directory.iterdir()] == [LOCK]:
                (directory / LOCK).unlink()
            raise
