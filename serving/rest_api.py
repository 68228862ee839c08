"""The HTTP side of the local server: TensorFlow Serving's REST interface, version 1, as an ASGI application."""

import json
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .rest_protocol import RequestError, parse_json, read_inputs, signature_name, write_outputs
from .servable import Servable

MAX_BODY_BYTES = 32 * 1024 * 1024

_MODEL = r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_POST_PATH = re.compile(rf"{_MODEL}:(?P<method>classify|regress|predict)", re.IGNORECASE | re.ASCII)
_GET_PATH = re.compile(rf"{_MODEL}(?P<metadata>/metadata)?", re.IGNORECASE | re.ASCII)
_LARGEST_VERSION = 2**63 - 1

_log = logging.getLogger(__name__)


class RestApi:
    """Answers status, metadata and `:predict` requests for loaded models.

    Args:
        models: one loaded version per model name.
        max_body_bytes: longer request bodies are refused with status 413.
    """

    def __init__(self, models: Mapping[str, Servable], max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._models = models
        self._max_body_bytes = max_body_bytes
        self._limiter = anyio.CapacityLimiter(max(2, os.cpu_count() or 1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection, as ASGI has it."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            status, body = 200, await self._answer(request)
        except ClientDisconnect:
            return
        except RequestError as error:
            status, body = error.status, _error_body(str(error))
        except Exception:
            # The client learns that it was not its fault, and nothing of our insides.
            _log.exception("%s %s failed", request.method, request.url.path)
            status, body = 500, _error_body("Internal error")
        await Response(body, status, media_type="application/json")(scope, receive, send)

    async def _answer(self, request: Request) -> bytes:
        path = request.scope["path"]
        pattern = {"POST": _POST_PATH, "GET": _GET_PATH, "HEAD": _GET_PATH}.get(request.method)
        match = pattern.fullmatch(path) if pattern else None
        if match is None:
            raise RequestError(f"Malformed request: {request.method} {path}")
        parts = match.groupdict()
        if parts["label"] is not None:
            raise RequestError(f"Unrecognized servable version label: {parts['label']}")
        version = None if parts["version"] is None else int(parts["version"][:20])
        if version is not None and version > _LARGEST_VERSION:
            raise RequestError(f"Failed to convert version: {parts['version'][:40]} to numeric.")
        if request.method != "POST":
            answer = self._metadata if parts["metadata"] else self._status
            return json.dumps(answer(parts["name"], version), ensure_ascii=False, indent=1).encode("utf-8")
        body = await self._read_body(request)
        method = self._predict if parts["method"].lower() == "predict" else self._classify_or_regress
        return await anyio.to_thread.run_sync(method, match, version, body, limiter=self._limiter)

    async def _read_body(self, request: Request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._max_body_bytes:
                raise RequestError(f"Request body is larger than {self._max_body_bytes} bytes", status=413)
        return bytes(body)

    def _servable(self, name: str, version: int | None) -> Servable:
        servable = self._models.get(name)
        if servable is None or version not in (None, servable.version):
            wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RequestError(f"Servable not found for request: {wanted}", status=404)
        return servable

    def _status(self, name: str, version: int | None) -> dict[str, Any]:
        servable = self._models.get(name)
        if servable is None or version not in (None, servable.version):
            missing = "any versions" if version is None else f"version {version}"
            raise RequestError(f"Could not find {missing} of model {name}", status=404)
        ok = {"error_code": "OK", "error_message": ""}
        return {"model_version_status": [{"version": str(servable.version), "state": "AVAILABLE", "status": ok}]}

    def _metadata(self, name: str, version: int | None) -> dict[str, Any]:
        servable = self._servable(name, version)
        return {
            "model_spec": {"name": name, "signature_name": "", "version": str(servable.version)},
            "metadata": {"signature_def": {"signature_def": servable.metadata()}},
        }

    def _predict(self, match: re.Match[str], version: int | None, body: bytes) -> bytes:
        document = parse_json(body)
        signature = signature_name(document)
        servable = self._servable(match["name"], version)
        if signature not in servable.signatures:
            raise RequestError(f'Serving signature name: "{signature}" not found in signature def')
        inputs, row_form = read_inputs(document, servable.signatures[signature])
        return write_outputs(servable.run(signature, inputs), row_form)

    def _classify_or_regress(self, match: re.Match[str], version: int | None, body: bytes) -> bytes:
        """No export of ours has such a signature, so this is always the refusal that the real server gives."""
        document = parse_json(body)
        signature = signature_name(document)
        servable = self._servable(match["name"], version)
        if signature not in servable.signatures:
            raise RequestError(f"No signature was found with the name: {signature}")
        kind = "classification" if match["method"].lower() == "classify" else "regression"
        raise RequestError(f"No {kind} inputs found in SignatureDef: {signature}")


def _error_body(message: str) -> bytes:
    # Half a surrogate pair, which JSON can bring in, has no UTF-8 form: written as an escape.
    return json.dumps({"error": message}, ensure_ascii=False).encode("utf-8", errors="backslashreplace")
