"""Joins requests that come at the same time into one run of the model."""

import collections
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

import numpy as np

from .models.loaded_version import LoadedVersion
from .request_error import RequestError

Outputs = dict[str, np.ndarray]


@dataclasses.dataclass
class _Waiting:
    servable: LoadedVersion
    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: frozenset[str] | None
    rows: int
    """0 where the request must be run by itself."""
    kind: tuple[object, ...]
    """Requests of one kind may be run together."""
    wanted: Callable[[], bool]
    since: float
    answer: Future[Outputs] = dataclasses.field(default_factory=Future)


class _Batch:
    def __init__(self) -> None:
        self.requests: list[_Waiting] = []
        self.rows = 0

    @property
    def kind(self) -> tuple[object, ...]:
        return self.requests[0].kind

    def add(self, request: _Waiting) -> None:
        self.requests.append(request)
        self.rows += request.rows


class Batching:
    """Runs requests in the order in which they come, joined with others of their kind that are waiting then.

    Requests are of one kind if they ask the same version for the same outputs of the same signature, whose first
    dimension counts rows everywhere, with arrays that are equal in dtype and in all dimensions but the first: nothing
    is ever padded. If a joined run fails, each of its requests is run by itself, so that it gets its own error or
    answer.

    A request that finds no other of its kind waiting or being run is run at once. Else it is waited for others until
    `wait_seconds` after it came, or until there are `max_rows`.

    Args:
        max_rows: rows of a joined run. A request that has more is run by itself, and not split.
        wait_seconds: how long the first of a run waits for others.
        max_waiting: requests that may wait at once; more are refused.
        threads: runs at once; as many as there are processors, but at most four, when not given.
        on_run: is told the rows and the number of requests of every run.
    """

    def __init__(
        self,
        *,
        max_rows: int = 32,
        wait_seconds: float = 0.002,
        max_waiting: int = 256,
        threads: int | None = None,
        on_run: Callable[[int, int], None] = lambda rows, requests: None,
    ) -> None:
        self.max_waiting = max_waiting
        self._max_rows = max_rows
        self._wait_seconds = wait_seconds
        self._on_run = on_run
        self._changed = threading.Condition()
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._running: collections.Counter[tuple[object, ...]] = collections.Counter()
        self._forming: dict[tuple[object, ...], _Batch] = {}
        self._closed = False
        count = threads or min(4, os.cpu_count() or 1)
        self._threads = [
            threading.Thread(target=self._work, name=f"keras-bert-batches-{i}", daemon=True) for i in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def run(
        self,
        servable: LoadedVersion,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Collection[str] | None = None,
        *,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Outputs:
        """Runs a signature and returns this request's outputs; waits until it has been its turn.

        Args:
            servable: a leased version.
            signature: the name of one of its signatures.
            inputs: an array for each of the signature's inputs.
            outputs: names of those that are wanted; all when not given.
            wanted: whether anybody still waits for the answer; asked when it is the request's turn.

        Raises:
            RequestError: `UNAVAILABLE`, if too many wait or this has been closed; `CANCELLED`, if nobody waited for
                the answer any more; or as the model says.
        """
        return self.submit(servable, signature, inputs, outputs, wanted=wanted).result()

    def submit(
        self,
        servable: LoadedVersion,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Collection[str] | None = None,
        *,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Future[Outputs]:
        """The same without waiting."""
        names = None if outputs is None else frozenset(outputs)
        rows = _rows(servable, signature, inputs)
        shapes = tuple((name, inputs[name].dtype, inputs[name].shape[1:]) for name in sorted(inputs)) if rows else ()
        kind = (id(servable), signature, names, shapes)
        request = _Waiting(servable, signature, inputs, names, rows, kind, wanted, time.monotonic())
        with self._changed:
            if self._closed:
                raise _stopping()
            batch = self._forming.get(request.kind)
            if batch is not None and batch.rows + rows <= self._max_rows:
                batch.add(request)
            else:
                if len(self._waiting) >= self.max_waiting:
                    raise RequestError(
                        "The batch scheduling queue to which this task was submitted is full", "UNAVAILABLE"
                    )
                self._waiting.append(request)
                # Is the first of the next run, so that none of its kind overtakes it.
                self._forming.pop(request.kind, None)
            self._changed.notify_all()
        return request.answer

    @property
    def closed(self) -> bool:
        """Whether new requests are refused."""
        return self._closed

    def close(self, *, abandon: bool = False) -> None:
        """Refuses new requests and returns when those that wait are answered.

        Args:
            abandon: whether those that wait are refused, too, since nobody is there any more who would read answers.
        """
        with self._changed:
            self._closed = True
            while abandon and self._waiting:
                self._waiting.popleft().answer.set_exception(_stopping())
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while batch := self._next():
            try:
                self._answer([request for request in batch.requests if _begun(request)])
            finally:
                with self._changed:
                    self._running[batch.kind] -= 1
                    self._running += collections.Counter()  # drops kinds of which none is left
                # Not held until the next request comes: a version that was retired must be free to go.
                del batch

    def _next(self) -> _Batch | None:
        """Returns what is to be run together; None when there is nothing left to do."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            batch = _Batch()
            first = self._waiting.popleft()
            batch.add(first)
            more_may_come = first.rows > 0 and not self._take_more(batch)
            if more_may_come and (self._running[first.kind] or len(batch.requests) > 1):
                self._wait_for_more(batch, first.since + self._wait_seconds)
            self._running[first.kind] += 1
            return batch

    def _take_more(self, batch: _Batch) -> bool:
        """Moves waiting requests into the batch; returns whether no more fit."""
        others: list[_Waiting] = []
        full = batch.rows >= self._max_rows
        while self._waiting and not full:
            request = self._waiting.popleft()
            if request.kind == batch.kind and batch.rows + request.rows <= self._max_rows:
                batch.add(request)
                full = batch.rows == self._max_rows
            else:
                others.append(request)
                full = request.kind == batch.kind
        self._waiting.extendleft(reversed(others))
        return full

    def _wait_for_more(self, batch: _Batch, until: float) -> None:
        self._forming[batch.kind] = batch
        while self._forming.get(batch.kind) is batch and batch.rows < self._max_rows and not self._closed:
            left = until - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
        if self._forming.get(batch.kind) is batch:
            del self._forming[batch.kind]

    def _answer(self, batch: list[_Waiting]) -> None:
        if len(batch) > 1:
            try:
                parts = self._run_joined(batch)
            except Exception:
                parts = None
            if parts is not None:
                for request, part in zip(batch, parts, strict=True):
                    request.answer.set_result(part)
                return
        for request in batch:
            try:
                request.answer.set_result(self._run(request, request.inputs, request.rows, 1))
            except BaseException as error:
                request.answer.set_exception(error)

    def _run(self, request: _Waiting, inputs: Mapping[str, np.ndarray], rows: int, requests: int) -> Outputs:
        outputs = request.servable.run(request.signature, inputs, request.outputs)
        self._on_run(rows, requests)
        return outputs

    def _run_joined(self, batch: list[_Waiting]) -> list[Outputs] | None:
        """Returns the outputs of each request; None if the model did not give a row for each row."""
        inputs = {name: np.concatenate([request.inputs[name] for request in batch]) for name in batch[0].inputs}
        rows = sum(request.rows for request in batch)
        outputs = self._run(batch[0], inputs, rows, len(batch))
        if any(array.ndim == 0 or len(array) != rows for array in outputs.values()):
            return None
        parts, start = [], 0
        for request in batch:
            # Copied, lest a small answer keep the whole batch in memory.
            end = start + request.rows
            parts.append({name: array[start:end].copy() for name, array in outputs.items()})
            start = end
        return parts


def _begun(request: _Waiting) -> bool:
    """Returns whether a request whose turn it is shall be run: not if nobody waits for its answer any more."""
    if not request.answer.set_running_or_notify_cancel():
        return False
    if not request.wanted():
        request.answer.set_exception(RequestError("The client is gone", "CANCELLED"))
        return False
    return True


def _stopping() -> RequestError:
    return RequestError("The server is stopping", "UNAVAILABLE")


def _rows(servable: LoadedVersion, signature: str, inputs: Mapping[str, np.ndarray]) -> int:
    """Returns how many rows a request has, 0 where that cannot be said or nothing may be joined with it."""
    if not servable.signatures[signature].by_rows:
        return 0
    sizes = {array.shape[0] if array.ndim else 0 for array in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else 0
