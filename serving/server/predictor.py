"""The one way in for both protocols: a request for a model by its name, answered, counted and logged."""

import contextlib
import contextvars
import time
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from .batching import Batching
from .models.loaded_version import LoadedVersion
from .models.store import ModelStore
from .monitoring import Monitor
from .request_error import RequestError
from .request_record import RequestRecord

MAX_REQUEST_ROWS = 1024

_current: contextvars.ContextVar[RequestRecord | None] = contextvars.ContextVar("current request", default=None)


class Predictor:
    """Answers requests for models by name; its methods may be called from several threads at once.

    ```python
    with predictor.request("gRPC", "Predict", "bert"), predictor.lease("bert") as servable:
        outputs = predictor.run(servable, "serving_default", {"text": texts})
    ```

    Args:
        store: the models.
        batching: joins requests; each is run by itself when not given.
        monitor: counts them.
        log: is told of each when it has been answered.
        max_request_rows: rows that one request may have.
    """

    def __init__(
        self,
        store: ModelStore,
        batching: Batching | None = None,
        monitor: Monitor | None = None,
        *,
        log: Callable[[RequestRecord], None] | None = None,
        max_request_rows: int = MAX_REQUEST_ROWS,
    ) -> None:
        self._store = store
        self._batching = batching
        self._monitor = monitor
        self._log = log
        self._max_request_rows = max_request_rows

    @contextlib.contextmanager
    def request(self, protocol: str, method: str, model: str) -> Iterator[RequestRecord]:
        """Counts and logs what happens inside as one request; leases and runs inside fill in what they know.

        Args:
            protocol: `"REST"` or `"gRPC"`.
            method: such as `"Predict"`.
            model: the name that the request gives.
        """
        record = RequestRecord(protocol, method, model)
        token = _current.set(record)
        started = time.perf_counter()
        try:
            yield record
        except RequestError as error:
            record.code = error.code
            raise
        except BaseException:
            record.code = "INTERNAL"
            raise
        finally:
            _current.reset(token)
            record.seconds = time.perf_counter() - started
            if self._monitor is not None:
                self._monitor.answered(record)
            if self._log is not None:
                self._log(record)

    @contextlib.contextmanager
    def lease(self, name: str, version: int | None = None, label: str | None = None) -> Iterator[LoadedVersion]:
        """Yields a loaded version, which stays loaded inside the block.

        Args:
            name: the model's.
            version: its number; the one that is served when not given.
            label: is refused: no version has one.

        Raises:
            RequestError: `NOT_FOUND`, if there is no such model or the version is not served.
        """
        if label is not None:
            raise RequestError(f"Unrecognized servable version label: {label}")
        with self._store.lease(name, version) as servable:
            record = _current.get()
            if record is not None:
                record.version = servable.version
            yield servable

    def run(
        self,
        servable: LoadedVersion,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        outputs: Collection[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Runs a signature, together with other requests where that cannot be told.

        Args:
            servable: a leased version.
            signature: the name of one of its signatures.
            inputs: an array for each of the signature's inputs.
            outputs: names of those that are wanted; all when not given.

        Returns:
            The outputs, by name.

        Raises:
            RequestError: if there is no such signature, there are too many rows, the server is too busy, the client
                has given up before it was the request's turn, or the model refuses the arrays.
        """
        if signature not in servable.signatures:
            raise RequestError(f'Serving signature key "{signature}" not found.', "FAILED_PRECONDITION")
        rows = max((array.shape[0] if array.ndim else 1 for array in inputs.values()), default=0)
        if servable.signatures[signature].by_rows:
            _check_rows(inputs)
        record = _current.get()
        if record is not None:
            record.signature, record.rows = signature, rows
        if rows > self._max_request_rows:
            raise RequestError(f"Task size {rows} is larger than maximum input batch size {self._max_request_rows}")
        if self._batching is None:
            return servable.run(signature, inputs, outputs)
        if record is None:
            return self._batching.run(servable, signature, inputs, outputs)
        return self._batching.run(servable, signature, inputs, outputs, wanted=record.wanted)


def _check_rows(inputs: Mapping[str, np.ndarray]) -> None:
    """Refuses inputs of unequal numbers of rows, of which a graph would speak by its operations."""
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in inputs.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise RequestError(f"Expecting inputs of one number of rows but got: {shown}")
