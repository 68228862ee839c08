"""Ctrl-C and SIGTERM during training: the step in progress ends, its checkpoint is written, then the run stops."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from keras_bert_impl.errors import StoppedBySignal

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# `timeout` and some schedulers send a signal to the process and once more to its group.
ONCE_SECONDS = 1.0
# What can end in order after a second signal has done so by then.
PATIENCE_SECONDS = 2.0


Agree = Callable[[int, int | None], int | None]


def _alone(step: int, wanted: int | None) -> int | None:
    return wanted


class Stopping:
    """Whether the run has been asked to stop. See `stop_after_step`.

    Args:
        agree: from the steps done and the signal that has come here to the signal that ends the run after this step,
            on all machines that train together.
    """

    def __init__(self, agree: Agree = _alone) -> None:
        self.agree = agree
        self.signal: signal.Signals | None = None
        # When the first signal came here; other machines may have been told before.
        self.heard: float | None = None

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self.signal is not None

    def due(self, step: int) -> bool:
        """Returns whether the run ends after this step, here and on every other machine."""
        number = self.agree(step, self.signal)
        if number is not None:
            self.signal = signal.Signals(number)
        return number is not None

    def stop(self, step: int) -> NoReturn:
        """Raises `StoppedBySignal`, to be called once the checkpoint of the step is written."""
        number = self.signal or signal.SIGTERM
        raise StoppedBySignal(
            number,
            f"Stopped by {'Ctrl-C' if number == signal.SIGINT else number.name} after step {step}, whose checkpoint "
            "is written; the same command goes on from there.",
        )


@contextlib.contextmanager
def stop_after_step(agree: Agree = _alone) -> Iterator[Stopping]:
    """While the block runs, notes the first Ctrl-C or SIGTERM in what it yields; a second one does what it always did.

    Outside the main thread, where signals cannot be handled, it changes nothing.

    Args:
        agree: see `Stopping`.
    """
    stopping = Stopping(agree)
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    # A handler of another language, for which Python has no name, could not be put back.
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) is not None}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: Any) -> None:
        if stopping.heard is None:
            stopping.heard = time.monotonic()
            stopping.signal = stopping.signal or signal.Signals(number)
        elif time.monotonic() - stopping.heard > ONCE_SECONDS:
            restore()
            signal.raise_signal(number)

    for number, handler in before.items():
        # What was told to ignore Ctrl-C, as `nohup` and shells do for work in the background, goes on ignoring it.
        if handler != signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield stopping
    finally:
        restore()


@contextlib.contextmanager
def sure_to_stop() -> Iterator[None]:
    """While the block runs, a second Ctrl-C or SIGTERM ends the process, even in the middle of a long step.

    Python's own handlers wait until TensorFlow returns from a step, which may take minutes. It is for commands, which
    end with the process; outside the main thread it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    ended = threading.Event()
    threading.Thread(target=_end_at_second_signal, args=(reader, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writer)


def _end_at_second_signal(reader: int, ended: threading.Event) -> None:
    first: float | None = None
    while number := os.read(reader, 1):
        if number[0] not in SIGNALS:
            continue
        if first is None:
            first = time.monotonic()
        elif time.monotonic() - first > ONCE_SECONDS and not ended.wait(PATIENCE_SECONDS):
            os.write(2, b"Interrupted.\n")
            os._exit(128 + number[0])
    os.close(reader)
