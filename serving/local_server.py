"""A server for development and tests that speaks TensorFlow Serving's REST interface on this machine.

In production the same export is served by TensorFlow Serving itself.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from keras_bert_impl.errors import InputError

_SECONDS_TO_FINISH = 30
_DESCRIPTION = Path("assets.extra", "signature.json")


def serve(
    export_dir: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    rest_port: int = 8501,
    model_name: str = "bert",
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serves the highest version in `export_dir` until SIGINT or SIGTERM; accepted requests are answered first.

    Args:
        export_dir: directory of numbered version directories.
        host: address to listen on; the default is reached from this machine only.
        rest_port: port; 0 for a free one, which `say` is told.
        model_name: name in the URL, `/v1/models/NAME`.
        say: receives the lines for the user.

    Raises:
        InputError: if the export cannot be loaded or the port not be had.
    """
    server = _Server(export_dir, host, rest_port, model_name)
    with _stopped_by_signals(server), server:
        for line in server.greeting():
            say(line)
        server.run()
    say("Stopped.")


class LocalServer:
    """The same server in a background thread, for tests and notebooks.

    ```python
    with LocalServer("exports/bert") as server:
        print(server.url)  # http://127.0.0.1:…/v1/models/bert
    ```

    Args:
        export_dir: directory of numbered version directories.
        host: address to listen on.
        rest_port: port; 0, the default, for a free one.
        model_name: name in the URL.
    """

    def __init__(
        self,
        export_dir: str | os.PathLike[str],
        *,
        host: str = "127.0.0.1",
        rest_port: int = 0,
        model_name: str = "bert",
    ) -> None:
        self._server = _Server(export_dir, host, rest_port, model_name)
        self._thread = threading.Thread(target=self._server.run, name="keras-bert-server", daemon=True)

    @property
    def url(self) -> str:
        """Address of the model: `:predict`, `/metadata` and so on are appended to it."""
        return self._server.url

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.stop()
        self._thread.join()
        self._server.__exit__(None, None, None)


class _Server:
    """Port, loaded model and HTTP server. Inside `with`, connections are accepted; `run` answers them."""

    def __init__(self, export_dir: str | os.PathLike[str], host: str, rest_port: int, model_name: str) -> None:
        if not model_name or set("/:") & set(model_name):
            raise InputError(f"`model_name` must be a word without / and :. Received: model_name={model_name!r}")
        if not 0 <= rest_port <= 65535:
            raise InputError(f"`rest_port` must be at least 0 and at most 65535. Received: rest_port={rest_port!r}")
        self._directory = latest_version(export_dir)
        self._examples = _example_requests(self._directory)
        self._model_name = model_name
        self._host = host
        self._rest_port = rest_port
        self._stop_requested = False
        self._uvicorn: Any = None

    def __enter__(self) -> Self:
        _check_http_stack()
        with contextlib.ExitStack() as stack:
            self._socket = stack.enter_context(_listen(self._host, self._rest_port))
            import uvicorn

            from .rest_api import RestApi
            from .rest_protocol import RequestError, read_inputs
            from .servable import Servable

            servable = stack.enter_context(contextlib.closing(Servable(self._directory)))
            try:
                for signature, request in self._examples.items():
                    # The first run of a graph is slow, since TensorFlow optimises it then.
                    servable.run(signature, read_inputs(request, servable.signatures[signature])[0])
            except (KeyError, RequestError):
                raise _badly_described(self._directory) from None
            config = uvicorn.Config(
                RestApi({self._model_name: servable}),
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_SECONDS_TO_FINISH,
            )
            self._uvicorn = uvicorn.Server(config)
            # Signals are handled by `serve`: uvicorn would raise them anew after its end, and exit with their code.
            self._uvicorn.capture_signals = contextlib.nullcontext
            if self._stop_requested:
                self.stop()
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{port}/v1/models/{self._model_name}"

    def greeting(self) -> list[str]:
        lines = [f"Ready: version {self._directory.name} at {self.url} (stop with Ctrl-C)"]
        if "serving_default" in self._examples:
            request = json.dumps(self._examples["serving_default"], ensure_ascii=False)
            lines.append(f"Ask it: curl -d {shlex.quote(request)} {self.url}:predict")
        return lines

    def run(self) -> None:
        self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        self._stop_requested = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


def latest_version(export_dir: str | os.PathLike[str]) -> Path:
    """Returns the version directory with the highest number; raises `InputError` where there is none."""
    directory = Path(export_dir)
    if not directory.is_dir():
        raise InputError(f"`export_dir` must be a directory that `export` wrote. Received: {str(directory)!r}")
    versions = [path for path in directory.iterdir() if _is_version(path)]
    if not versions:
        hint = ", which is a version directory itself: give the one above" if _has_saved_model(directory) else ""
        raise InputError(
            "`export_dir` must hold numbered version directories, each with a saved_model.pb. "
            f"Received: {str(directory)!r}{hint}"
        )
    return max(versions, key=lambda path: int(path.name))


def _is_version(path: Path) -> bool:
    return path.name.isascii() and path.name.isdigit() and _has_saved_model(path)


def _has_saved_model(path: Path) -> bool:
    return (path / "saved_model.pb").is_file()


def _check_http_stack() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"The local server needs the extra `serving`: pip install 'keras-bert-impl[serving]'. Missing: {error.name}"
        ) from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        raise InputError(
            f"`rest_port` must be one that this server may listen on at {host}; {reason}. Received: rest_port={port}"
        ) from error


def _example_requests(version_directory: Path) -> dict[str, Any]:
    """The example requests that an export carries, by signature."""
    description = version_directory / _DESCRIPTION
    if not description.is_file():
        return {}
    try:
        signatures = json.loads(description.read_text(encoding="utf-8"))["signatures"]
        requests = {name: signature["example"]["request"] for name, signature in signatures.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _badly_described(version_directory) from None
    if not all(isinstance(request, dict) for request in requests.values()):
        raise _badly_described(version_directory)
    return requests


def _badly_described(version_directory: Path) -> InputError:
    return InputError(
        "`export_dir` must hold a whole export; export it anew. "
        f"Received: {str(version_directory / _DESCRIPTION)!r}, which does not describe its signatures"
    )


@contextlib.contextmanager
def _stopped_by_signals(server: _Server) -> Iterator[None]:
    """Lets SIGINT and SIGTERM end the server in good order, also while it is still loading."""

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
