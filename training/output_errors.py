"""What hinders an output from being written, told apart from all else that the system can refuse meanwhile."""

import contextlib
from collections.abc import Iterator


class OutputError(OSError):
    """An output could not be written. An `OSError` of the inputs, or of whoever is told, is none of these."""


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Marks what the system refuses in the block, or in the decorated function, as an error of the output.

    Raises:
        OutputError: in the place of every other `OSError`.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror or str(error)) from error
