"""Progress of long work on the error stream: how far, how fast, how long still."""

import contextlib
import sys
from typing import Any

from tqdm import tqdm


def progress_bar(total: int | None, unit: str, description: str, initial: int = 0, show: bool = True) -> Any:
    """Returns a `tqdm` bar with rate and estimate.

    On a terminal it redraws itself; elsewhere (a log file, a pipe) it writes a line every ten seconds.

    Args:
        total: units of work, or None when unknown.
        unit: what is counted, in the singular, for example `"step"`.
        description: what is being done.
        initial: units done before this process.
        show: False for silence.
    """
    terminal = sys.stderr.isatty()
    return tqdm(
        total=total,
        unit=unit,
        desc=description,
        initial=initial,
        disable=not show,
        mininterval=0.2 if terminal else 10,
        maxinterval=1 if terminal else 10,
        file=sys.stderr if terminal else _Lines(),
        ncols=None if terminal else 130,
        dynamic_ncols=terminal,
        unit_scale=unit == "byte",
        delay=0.5,
        smoothing=0.1,
    )


class _Lines:
    """Turns the bar's carriage returns into lines; where nobody reads them any more, the work goes on."""

    def write(self, text: str) -> None:
        line = text.replace("\r", "").strip()
        if line:
            with contextlib.suppress(OSError):
                sys.stderr.write(line + "\n")

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
