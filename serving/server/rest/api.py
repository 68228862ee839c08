"""The HTTP side of the local server: TensorFlow Serving's REST interface, version 1, as an ASGI application."""

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..models.store import ModelStore
from ..monitoring import Monitor
from ..predictor import Predictor
from ..request_error import RequestError
from ..request_record import RequestRecord
from .json_values import parse_json
from .tensors import read_inputs, signature_name, write_outputs

MAX_BODY_BYTES = 32 * 1024 * 1024

_LONGEST_ERROR = 1024
_DISCARDED_BODIES = 4
_DISCARDING_SECONDS = 5.0
_DIGITS_OF_A_LENGTH = 18

_MODEL = r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_POST_PATH = re.compile(rf"{_MODEL}:(?P<method>classify|regress|predict)", re.IGNORECASE | re.ASCII)
_GET_PATH = re.compile(rf"{_MODEL}(?P<metadata>/metadata)?", re.IGNORECASE | re.ASCII)
_LARGEST_VERSION = 2**63 - 1
_HTTP_STATUS = {
    "OK": 200,
    "CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "UNAUTHENTICATED": 401,
}
"""As TensorFlow Serving maps the canonical codes; those that are not here are 500."""

_log = logging.getLogger(__name__)


class RestApi:
    """Answers REST requests for models, and what watches over servers asks: health and metrics.

    Args:
        predictor: answers for models.
        store: whose versions and states are told.
        monitor: whose counts are told; there are none when not given.
        max_body_bytes: longer request bodies are refused with status 413.
        max_requests: requests that may be in work at once; more are refused with status 503.
        silent_seconds: how long nothing of a body that is awaited may come, lest clients that stall take all places;
            then it is refused with status 408.
        pages: applications by the path that they answer below, such as `"/playground"`.

    Attributes:
        draining: once it is true, connections end with the answer that is next on them, and `/readyz` says no.
    """

    def __init__(
        self,
        predictor: Predictor,
        store: ModelStore,
        *,
        monitor: Monitor | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_requests: int = 256,
        silent_seconds: float = 30.0,
        pages: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        self.draining = False
        self.in_work = 0
        self._predictor = predictor
        self._store = store
        self._monitor = monitor
        self._max_body_bytes = max_body_bytes
        self._max_requests = max_requests
        self._silent_seconds = silent_seconds
        self._pages = dict(pages or {})
        # A request waits in its thread until it has been its turn, so there is one for each.
        self._limiter = anyio.CapacityLimiter(max_requests + (os.cpu_count() or 1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request, as ASGI has it."""
        if scope["type"] != "http":
            return
        self.in_work += 1
        try:
            await self._handle(scope, receive, self._last_on_its_connection(send))
        finally:
            self.in_work -= 1

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        page = next(
            (page for start, page in self._pages.items() if path == start or path.startswith(f"{start}/")), None
        )
        if page is not None:
            await page(scope, receive, send)
            return
        request = Request(scope, receive)
        response = self._watched(request.method, path)
        if response is None:
            response = await self._response(request)
        await response(scope, receive, send)

    def _last_on_its_connection(self, send: Send) -> Send:
        async def sending(message: Any) -> None:
            if self.draining and message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        return sending

    def _watched(self, method: str, path: str) -> Response | None:
        if method not in ("GET", "HEAD"):
            return None
        if path == "/healthz":
            return _json({"live": True}, 200)
        if path == "/readyz":
            ready = self._store.ready and not self.draining
            return _json({"ready": ready}, 200 if ready else 503)
        if path == "/monitoring/prometheus/metrics" and self._monitor is not None:
            return Response(self._monitor.text(), media_type=self._monitor.content_type)
        return None

    async def _response(self, request: Request) -> Response:
        pattern = {"POST": _POST_PATH, "GET": _GET_PATH, "HEAD": _GET_PATH}.get(request.method)
        match = pattern.fullmatch(request.scope["path"]) if pattern else None
        name = "" if match is None else match["name"]
        try:
            with self._predictor.request("REST", _method(request.method, match), name) as record:
                try:
                    return Response(await self._answer(request, match, record), media_type="application/json")
                except asyncio.CancelledError:
                    # The time of a server that stops is over. Whoever waits may ask another one.
                    raise RequestError("The server is stopping", "UNAVAILABLE") from None
        except RequestError as error:
            status = error.status if isinstance(error, _BodyError) else _HTTP_STATUS.get(error.code, 500)
            return error_response(str(error), status)
        except Exception:
            # The client learns that it was not its fault, and nothing of our insides.
            _log.exception("%s %s failed", request.method, request.url.path)
            return error_response("Internal error", 500)

    async def _answer(self, request: Request, match: re.Match[str] | None, record: RequestRecord) -> bytes:
        if match is None:
            raise RequestError(f"Malformed request: {request.method} {request.scope['path']}")
        # Digits beyond any number would take Python long to read.
        version = None if match["version"] is None else int(match["version"].lstrip("0")[:20] or "0")
        if version is not None and version > _LARGEST_VERSION:
            raise RequestError(f"Failed to convert version: {match['version'][:40]} to numeric.")
        if request.method != "POST":
            answer = self._metadata(match, version) if match["metadata"] else self._status(match, version)
            return json.dumps(answer, ensure_ascii=False, indent=1).encode("utf-8")
        if self.in_work > self._max_requests:
            raise RequestError("The batch scheduling queue to which this task was submitted is full", "UNAVAILABLE")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise _BodyError("Request bodies must come as they are, without Content-Encoding", 415)
        body = await self._read_body(request)
        method = self._predict if match["method"].lower() == "predict" else self._classify_or_regress
        gone = asyncio.ensure_future(_disconnection(request))
        record.wanted = lambda: not gone.done()
        try:
            return await anyio.to_thread.run_sync(method, match, version, body, limiter=self._limiter)
        finally:
            gone.cancel()

    async def _read_body(self, request: Request) -> bytes:
        # More digits than any length has would take Python long to read; the parser has refused what is no number.
        told = request.headers.get("content-length", "0")
        body, chunks = bytearray(), request.stream()
        if len(told) > _DIGITS_OF_A_LENGTH or int(told) > self._max_body_bytes:
            # On a connection that stays, what still comes is passed over.
            if request.headers.get("connection", "").lower() == "close" or request.scope["http_version"] == "1.0":
                await self._discard(chunks)
            raise self._too_large()
        try:
            while True:
                with anyio.fail_after(self._silent_seconds):
                    body += await anext(chunks)
                if len(body) > self._max_body_bytes:
                    await self._discard(chunks)
                    raise self._too_large()
        except StopAsyncIteration:
            pass
        except TimeoutError:
            raise _BodyError(f"Nothing of the request body came for {self._silent_seconds:g} seconds", 408) from None
        except ClientDisconnect:
            raise RequestError("The client is gone", "CANCELLED") from None
        return bytes(body)

    def _too_large(self) -> "_BodyError":
        return _BodyError(f"Request body is larger than {self._max_body_bytes} bytes", 413)

    async def _discard(self, chunks: AsyncIterator[bytes]) -> None:
        """Reads on for a while: a client that still sends would see its connection break, and not the answer."""
        left = _DISCARDED_BODIES * self._max_body_bytes
        with anyio.move_on_after(_DISCARDING_SECONDS):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return

    def _status(self, match: re.Match[str], version: int | None) -> dict[str, Any]:
        if match["label"] is not None:
            raise RequestError(f"Unrecognized servable version label: {match['label']}")
        states = [
            {
                "version": str(known.version),
                "state": known.state,
                "status": {"error_code": known.code, "error_message": known.message},
            }
            for known in self._store.status(match["name"], version)
        ]
        return {"model_version_status": states}

    def _metadata(self, match: re.Match[str], version: int | None) -> dict[str, Any]:
        with self._predictor.lease(match["name"], version, match["label"]) as servable:
            return {
                "model_spec": {"name": match["name"], "signature_name": "", "version": str(servable.version)},
                "metadata": {"signature_def": {"signature_def": servable.metadata()}},
            }

    def _predict(self, match: re.Match[str], version: int | None, body: bytes) -> bytes:
        document = parse_json(body)
        name = signature_name(document)
        with self._predictor.lease(match["name"], version, match["label"]) as servable:
            if name not in servable.signatures:
                raise RequestError(f'Serving signature name: "{name}" not found in signature def')
            inputs, row_form = read_inputs(document, servable.signatures[name].inputs)
            outputs = self._predictor.run(servable, name, inputs)
        return write_outputs(outputs, row_form)

    def _classify_or_regress(self, match: re.Match[str], version: int | None, body: bytes) -> bytes:
        from ..classification import classify, regress
        from .examples import read_examples, write_classifications, write_regressions

        methods = {"classify": (classify, write_classifications), "regress": (regress, write_regressions)}
        answer, write = methods[match["method"].lower()]
        document = parse_json(body)
        name, examples = signature_name(document), read_examples(document)
        with self._predictor.lease(match["name"], version, match["label"]) as servable:
            result = answer(self._predictor, servable, name, examples)
        return write(result)


async def _disconnection(request: Request) -> None:
    """Returns when the client of a request, whose body has been read, has ended the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _BodyError(RequestError):
    """A body that is refused before it is read whole, with a status of its own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _method(method: str, match: re.Match[str] | None) -> str:
    """Returns the request's name as gRPC has it."""
    if match is None:
        return "Malformed"
    if method == "POST":
        return match["method"].capitalize()
    return "GetModelMetadata" if match["metadata"] else "GetModelStatus"


def error_response(message: str, status: int) -> Response:
    """Returns an error's answer, in TensorFlow Serving's form; a long text is cut."""
    shown = message if len(message) <= _LONGEST_ERROR else f"{message[:_LONGEST_ERROR]}…"
    return _json({"error": shown}, status)


def _json(value: Any, status: int) -> Response:
    # Half a surrogate pair, which JSON can bring in, has no UTF-8 form: written as an escape.
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", errors="backslashreplace")
    return Response(body, status, media_type="application/json")
