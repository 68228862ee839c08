"""What the command line says in one sentence: what the user can mend, and what ends a training in order."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one plain sentence that names the argument, the rule and what came. The command
    line prints it without a traceback and exits with code 2; from Python it is an ordinary
    `ValueError`.
    """


class StoppedBySignal(KeyboardInterrupt):
    """Ctrl-C or SIGTERM has ended training in order, after a step whose checkpoint is written.

    Args:
        number: the signal.
        message: one sentence on where it stopped.
    """

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class WorkerLostError(RuntimeError):
    """Another machine that trains with this one has ended or cannot be reached, so this one ends too.

    The message is one sentence on which it was and how to go on.
    """


def nearest(unknown: Iterable[str], known: Iterable[str]) -> list[str]:
    """Returns the known names that unknown ones may have been meant as, the nearest of each."""
    names = list(known)
    found = (difflib.get_close_matches(name, names, n=1, cutoff=0.7) for name in unknown)
    return list(dict.fromkeys(name for names in found for name in names))
