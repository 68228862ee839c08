"""What the commands tell the user."""

import contextlib
import sys


def say(line: str) -> None:
    """Prints one line of narration at once."""
    print(line, flush=True)


def say_beside(line: str) -> None:
    """Prints one line of narration on the error stream, where standard output is for answers."""
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(line, file=sys.stderr, flush=True)
