"""What is said where the folder for temporary files is full."""

import contextlib
import tempfile
from collections.abc import Iterator

from keras_bert_impl.errors import InputError


@contextlib.contextmanager
def temporary_room() -> Iterator[None]:
    """Turns the failure to write a temporary file into an `InputError` that says where and what can be done."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The folder for temporary files could not be written: {error.strerror or error}; TMPDIR names another. "
            f"Received: {tempfile.gettempdir()!r}"
        ) from error
