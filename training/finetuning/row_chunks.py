"""Rows in chunks: of a file, as many as fit; of a stream, those that have arrived."""

import itertools
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

Row = TypeVar("Row")
_END = object()
# How often a reader that nobody listens to any more looks up.
_LOOK_UP = 0.5


def full_chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yields rows in chunks of `size`, the last one with the rest."""
    stream = iter(rows)
    while chunk := list(itertools.islice(stream, size)):
        yield chunk


def arriving_chunks(rows: Iterable[Row], size: int, patience: float = 0.05) -> Iterator[list[Row]]:
    """Yields rows of a stream in chunks, as they arrive; what reading raises is raised after the rows before it.

    A chunk ends when it is full, or when nothing more has come within `patience` seconds of its first row. The rows
    are read in a thread of their own, also while a chunk is worked on.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=size)
    stopped = threading.Event()

    def hand_over(thing: Any) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(thing, timeout=_LOOK_UP)
                return True
            except queue.Full:
                continue
        return False

    def read() -> None:
        try:
            if all(map(hand_over, rows)):
                hand_over(_END)
        except BaseException as error:
            hand_over(_Raised(error))

    # A daemon: a stream that says nothing must not keep the process from ending.
    threading.Thread(target=read, name="reading rows", daemon=True).start()
    try:
        last: Any = None
        while last is None:
            chunk, last = _next_chunk(waiting, size, patience)
            if chunk:
                yield chunk
        if isinstance(last, _Raised):
            raise last.error
    finally:
        stopped.set()


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _next_chunk(waiting: queue.Queue[Any], size: int, patience: float) -> tuple[list[Any], Any]:
    """Returns the rows of a chunk, and what ended the stream, if it has ended."""
    chunk: list[Any] = []
    deadline = 0.0
    while len(chunk) < size:
        try:
            thing = waiting.get(timeout=max(deadline - time.monotonic(), 0) if chunk else None)
        except queue.Empty:
            break
        if thing is _END or isinstance(thing, _Raised):
            return chunk, thing
        if not chunk:
            deadline = time.monotonic() + patience
        chunk.append(thing)
    return chunk, None
