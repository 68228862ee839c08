"""Room for many open files: every memory-mapped array keeps one, and many systems allow 1,024 unless asked."""

import os
import resource

from keras_bert_impl.errors import InputError

_SPARE = 256


def make_room_for_files(count: int) -> None:
    """Lets the process open `count` more files, if need be by raising its soft limit.

    Raises:
        InputError: if the system's hard limit forbids it.
    """
    needed = len(os.listdir("/dev/fd")) + count + _SPARE  # noqa: PTH208
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):
        raise InputError(
            f"`data` needs {count:,} files open at once; allow the process more of them (ulimit -n). "
            f"Received: a limit of {hard:,} files"
        ) from None
