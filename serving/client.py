"""A client of TensorFlow Serving, and so of the local server: the same answers over REST and gRPC."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra

from .long_context import answer_long_context
from .serving_error import (
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    ServingError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    error_of_status,
)
from .transports.connections import Connections
from .transports.deadline import Deadline
from .transports.rest import RestTransport, error_text
from .transports.rows import arrays_of, rows_of
from .transports.transport import Metadata, SignatureSpec, TensorSpec, Transport
from .version_status import VersionStatus

__all__ = [
    "Cancelled",
    "Client",
    "DataLoss",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "Metadata",
    "NotFound",
    "PermissionDenied",
    "ResourceExhausted",
    "ServingError",
    "SignatureSpec",
    "TensorSpec",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "VersionStatus",
    "predict",
]

_PORTS = {"http": 8501, "https": 443, "grpc": 8500}
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0

_Answer = TypeVar("_Answer")


class Client:
    """Asks one model of a server.

    ```python
    with Client("http://localhost:8501") as client:
        for answer in client.predict(["a text", "another"]):
            print(answer["label"])
    ```

    It may be used from several threads at once, and opens no connection before it is asked something.

    Args:
        address: `http://HOST:PORT` for REST (port 8501 if there is none), `https://HOST:PORT` for the same over TLS
            (443), or `grpc://HOST:PORT` (8500).
        model: the model's name.
        version: number of the version that is asked; the one that is served when not given.
        timeout: seconds that a call may take, with all its requests, retries and waits.
        max_batch: rows of one request; longer lists are sent in several, one after another.
        retries: how often a request is sent again if the server could not be reached, is too busy (HTTP status 429 or
            503, gRPC `UNAVAILABLE`) or hung up before it answered. Waits grow, with chance in them.

    Raises:
        InputError: if an argument is out of range, or the extra `serving` is not installed.
    """

    def __init__(
        self,
        address: str,
        model: str = "bert",
        *,
        version: int | None = None,
        timeout: float = 60.0,
        max_batch: int = 32,
        retries: int = 3,
    ) -> None:
        if not isinstance(model, str) or not model or {"/", ":"} & set(model):
            raise InputError(f"`model` must be a word without / and :. Received: model={model!r}")
        for name, value, lowest in (("version", version, 0), ("max_batch", max_batch, 1), ("retries", retries, 0)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < lowest):
                raise InputError(f"`{name}` must be a whole number, at least {lowest}. Received: {name}={value!r}")
        check_extra("The client", "serving", ["tenacity"])
        self._model = model
        self._version = version
        self._timeout = _checked_timeout(timeout)
        self._max_batch = max_batch
        self._retries = retries
        self._transport = _transport(address)
        self._lock = threading.Lock()
        self._signatures: dict[str, SignatureSpec] = {}

    def predict(
        self, rows: Iterable[Any], *, signature_name: str = "serving_default", timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """Returns the outputs of the signature for each row, by name, in the rows' order.

        Args:
            rows: dictionaries with a value for each input of the signature, or those values where there is one input:
                texts, or lists of numbers, which are as long as one another and filled up by whoever made them.
            signature_name: which of the model's signatures answers.
            timeout: seconds that this call may take.

        Returns:
            Values and lists of values: str, int, float (with the precision of the output's type) and bool; bytes for
            outputs whose name ends in `_bytes`. Rows of one request are as wide as the widest, filled up as the model
            does it.

        Raises:
            InputError: if there is no such signature, or rows do not fit its inputs; nothing was asked then.
            ServingError: if there is no answer, or a refusal. Answers to earlier rows of the call are lost.
        """
        deadline = self._deadline(timeout)
        if isinstance(rows, str | bytes | dict):
            raise InputError(f"`rows` must be a list of rows, not a single one. Received: {rows!r:.80}")
        rows = list(rows)
        if not rows:
            return []
        signature = self._signature(signature_name, deadline)
        parts = range(0, len(rows), self._max_batch)
        requests = [arrays_of(rows[first : first + self._max_batch], first, signature) for first in parts]
        answers: list[dict[str, Any]] = []
        try:
            for inputs in requests:
                count = len(next(iter(inputs.values())))
                ask = partial(
                    self._transport.predict, self._model, self._version, signature_name, signature, inputs, deadline
                )
                answers += rows_of(self._retried(ask, deadline), count)
        except ServingError:
            # The model may be another by now, with other signatures.
            self._forget()
            raise
        return answers

    def answer_long_context(
        self,
        question: str,
        context: str,
        *,
        length: int = 1000,
        overlap: int = 200,
        null_threshold: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Answers a question about a context of any length, which is read in stretches that overlap.

        See `keras_bert_impl.serving.long_context.answer_long_context` for the arguments and the answer.

        Raises:
            InputError: if the model is none that answers questions, or an argument is out of range.
            ServingError: as `predict` does.
        """
        deadline = self._deadline(timeout)
        inputs = sorted(self._signature("serving_default", deadline).inputs)
        if inputs != ["context", "question"]:
            raise InputError(
                "`model` must be one that answers questions, with the inputs context and question. "
                f"Received: model={self._model!r}, with {', '.join(inputs)}"
            )
        return answer_long_context(
            lambda rows: self.predict(rows, timeout=deadline.remaining()),
            question,
            context,
            length=length,
            overlap=overlap,
            null_threshold=null_threshold,
        )

    def metadata(self, *, timeout: float | None = None) -> Metadata:
        """Returns the version that answers, and its signatures.

        Raises:
            ServingError: if the server does not say.
        """
        deadline = self._deadline(timeout)
        found = self._retried(partial(self._transport.metadata, self._model, self._version, deadline), deadline)
        # One without inputs, as a SavedModel has for its initialization, answers nothing.
        asked = {name: signature for name, signature in found.signatures.items() if signature.inputs}
        return Metadata(found.version, asked)

    def status(self, *, timeout: float | None = None) -> list[VersionStatus]:
        """Returns the state of each version of the model that the server knows of.

        Raises:
            ServingError: if the server does not say.
        """
        deadline = self._deadline(timeout)
        return self._retried(partial(self._transport.status, self._model, self._version, deadline), deadline)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout if timeout is None else _checked_timeout(timeout))

    def _signature(self, name: str, deadline: Deadline) -> SignatureSpec:
        with self._lock:
            signature = self._signatures.get(name)
        if signature is not None:
            return signature
        signatures = dict(self.metadata(timeout=deadline.remaining()).signatures)
        with self._lock:
            self._signatures = signatures
        if name not in signatures:
            raise InputError(
                f"`signature_name` must be one of {', '.join(sorted(signatures))}. Received: signature_name={name!r}"
            )
        return signatures[name]

    def _forget(self) -> None:
        with self._lock:
            self._signatures = {}

    def _retried(self, ask: Callable[[], _Answer], deadline: Deadline) -> _Answer:
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ServingError) and error.worth_retrying),
            wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(self._retries + 1), tenacity.stop_before_delay(deadline.remaining())
            ),
            reraise=True,
        )
        return retrying(ask)


def predict(
    url: str, instances: Sequence[Any], *, signature_name: str = "serving_default", timeout: float = 60.0
) -> list[Any]:
    """Returns the server's predictions, one for each instance: one request over REST, sent once.

    Args:
        url: address of the model, `http://HOST:PORT/v1/models/NAME[/versions/VERSION]`, or the same with `https`.
        instances: texts, or dictionaries of the signature's inputs.
        signature_name: which of the model's signatures answers.
        timeout: seconds to wait for the whole answer.

    Raises:
        InputError: if `url` is not such an address, or nobody answers there.
        ServingError: with the server's own words, if it answers with an error.
    """
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.startswith("/v1/models/"):
        raise InputError(
            f"`url` must have the form http://HOST:PORT/v1/models/NAME, or the same with https. Received: url={url!r}"
        )
    body = json.dumps({"signature_name": signature_name, "instances": list(instances)}).encode("utf-8")
    connections = Connections(parts.hostname, parts.port or (443 if tls else 80), tls=tls)
    try:
        status, answer = connections.request("POST", f"{parts.path}:predict", body, Deadline(timeout))
    except ServingError as error:
        raise InputError(f"`url` must be the address of a running server; {error}. Received: url={url!r}") from error
    finally:
        connections.close()
    if status != 200:
        raise error_of_status(status, error_text(answer))
    return json.loads(answer)["predictions"]


def _checked_timeout(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
        raise InputError(f"`timeout` must be a number of seconds above 0. Received: timeout={timeout!r}")
    return timeout


def _transport(address: str) -> Transport:
    refusal = InputError(
        "`address` must have the form http://HOST:PORT, https://HOST:PORT or grpc://HOST:PORT. "
        f"Received: address={address!r}"
    )
    try:
        parts = urlsplit(address)
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
    except (ValueError, KeyError, AttributeError, TypeError):
        raise refusal from None
    if (
        parts.scheme not in _PORTS
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
        or parts.username is not None
    ):
        raise refusal
    if parts.scheme != "grpc":
        return RestTransport(parts.hostname, port, tls=parts.scheme == "https")
    from .transports.grpc import GrpcTransport

    return GrpcTransport(parts.hostname, port)
