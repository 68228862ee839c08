"""Memory that a step frees, kept for the next one."""

import ctypes
import platform

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # from malloc.h
_LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Tells glibc to hand freed memory to the next tensor and not back to the system.

    By default every tensor of more than 128 KB to 32 MB comes from the system anew, and each of its pages costs a
    fault when it is first touched: 15,000 in a step of a small BERT, and a tenth of its time. The process then holds
    on to the most that it ever used at once.

    Returns:
        Whether it was done: with glibc only, so on most Linux systems.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, _LARGEST))
