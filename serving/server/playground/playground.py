"""The playground's paths, as an ASGI application."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...version_status import VersionStatus
from .served_model import served_model

PATHS = ("/", "/playground")
"""What it answers; of the second, everything below."""

HEADERS = {
    # Scripts, styles and answers come from this server alone, whatever a model's answer holds.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    # After an update the page and its scripts must be of one version.
    "Cache-Control": "no-cache",
}

_FILES = Path(__file__).parent / "page"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Answer(NamedTuple):
    """What is sent for a path."""

    status: int
    media_type: str
    body: bytes


class Statuses(Protocol):
    """What the playground needs of `ModelStore`."""

    def status(self, name: str) -> list[VersionStatus]:
        """Returns what is known of a model's versions, the highest first."""


class Playground:
    """Answers with the page, its files, and `models.json`: the models that can be tried.

    Args:
        models: directory of numbered version directories, by the model's name.
        store: knows which versions are served.
    """

    def __init__(self, models: Mapping[str, Path], store: Statuses) -> None:
        self._models = dict(models)
        self._store = store
        self._files = {
            path.name: Answer(200, _MEDIA_TYPES[path.suffix], path.read_bytes())
            for path in sorted(_FILES.iterdir())
            if path.suffix in _MEDIA_TYPES
        }

    def answer(self, path: str) -> Answer:
        """Returns what is at a path."""
        if path in ("/", "/playground", "/playground/"):
            return self._files["page.html"]
        if path == "/playground/models.json":
            return _json(200, {"models": [self._described(name) for name in self._models]})
        return self._files.get(path.removeprefix("/playground/")) or _refusal(404, "There is no such page")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request, as ASGI has it."""
        if scope["method"] in ("GET", "HEAD"):
            answer = self.answer(scope["path"])
        else:
            answer = _refusal(405, "The playground is only read")
        response = Response(answer.body, answer.status, headers=HEADERS, media_type=answer.media_type)
        await response(scope, receive, send)

    def _described(self, name: str) -> dict[str, Any]:
        versions = [known.version for known in self._store.status(name) if known.state == "AVAILABLE"]
        facts = served_model(self._models[name], versions[0]) if versions else {}
        return {"name": name, "versions": versions, **facts}


def _json(status: int, document: Any) -> Answer:
    return Answer(status, "application/json", json.dumps(document).encode("ascii"))


def _refusal(status: int, sentence: str) -> Answer:
    return _json(status, {"error": sentence})
