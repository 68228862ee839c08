"""Memory of versions that are gone."""

import ctypes


def give_back() -> None:
    """Returns freed memory to the system, where the C library can be told to (glibc's `malloc_trim`).

    By itself it keeps what a version had for the next one, and the server would look larger with every version.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
