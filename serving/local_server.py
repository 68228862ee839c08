"""A server for development and tests that speaks TensorFlow Serving's protocol on this machine, by REST and gRPC.

In production the same export is served by TensorFlow Serving itself.
"""

import contextlib
import errno
import functools
import json
import logging
import os
import queue
import shlex
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Self

from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra
from keras_bert_impl.quiet import held_back_error_stream

from .server.models.example_requests import example_requests
from .server.models.version_directory import has_saved_model, version_directories
from .server.settings import ServerSettings, check_model_name

_SECONDS_TO_FINISH = 30

ExportDirs = str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]]
"""A directory of numbered version directories, or several by the models' names."""


def serve(export_dir: ExportDirs, *, say: Callable[[str], None] = lambda line: None, **settings: Any) -> None:
    """Serves the highest version of each model until SIGINT or SIGTERM; accepted requests are answered first.

    Args:
        export_dir: directory of numbered version directories, or several such by the models' names.
        say: receives the lines for the user.
        **settings: those of `keras_bert_impl.serving.server.settings.ServerSettings`.

    Raises:
        InputError: if a model has no version that can be loaded, or a port cannot be had.
    """
    server = _Server(export_dir, ServerSettings(**settings), say)
    with _stopped_by_signals(server), server.saying() as say, server:
        if not server.stopping:
            for line in server.greeting():
                say(line)
        server.wait()
        server.close()
        say("Stopped.")


class LocalServer:
    """The same server beside the program, for tests and notebooks.

    ```python
    with LocalServer("exports/bert") as server:
        print(server.url)  # http://127.0.0.1:…/v1/models/bert
    ```

    Args:
        export_dir: directory of numbered version directories, or several such by the models' names.
        rest_port: port of the REST interface; 0, the default, for a free one; None for none.
        grpc_port: port of the gRPC interface; 0 for a free one; None, the default, for none.
        say: receives the lines for the user: which versions come and go.
        **settings: the others of `keras_bert_impl.serving.server.settings.ServerSettings`.

    Raises:
        InputError: as `serve` does.
    """

    def __init__(
        self,
        export_dir: ExportDirs,
        *,
        rest_port: int | None = 0,
        grpc_port: int | None = None,
        say: Callable[[str], None] = lambda line: None,
        **settings: Any,
    ) -> None:
        self._server = _Server(export_dir, ServerSettings(rest_port=rest_port, grpc_port=grpc_port, **settings), say)

    @property
    def url(self) -> str:
        """Address of the first model: `:predict`, `/metadata` and so on are appended to it."""
        return self._server.url(self._server.names[0])

    @property
    def root_url(self) -> str:
        """Address of the server, `http://HOST:PORT`."""
        return self._server.root_url

    @property
    def grpc_target(self) -> str:
        """Address of the gRPC interface, `HOST:PORT`."""
        return self._server.grpc_target

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._server.saying())
            stack.enter_context(self._server)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()


class _Server:
    """Models, ports and protocols. Inside `with`, requests are answered."""

    def __init__(self, export_dir: ExportDirs, settings: ServerSettings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._log: Any = None
        self._directories = _directories(export_dir, settings.model_name)
        for directory in self._directories.values():
            _check_some_version(directory)
        # Unlike an event, safe to be told from a signal handler.
        self._stop: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._store: Any = None
        self._grpc: Any = None
        self._listener: socket.socket | None = None
        self.stopping = False

    @property
    def names(self) -> list[str]:
        return list(self._directories)

    @contextlib.contextmanager
    def saying(self) -> Iterator[Callable[[str], None]]:
        """Yields what receives the lines for the user: with `json_log`, the log, which has all that is logged too."""
        if not self._settings.json_log:
            yield self._say
            return
        from .server.json_log import JsonLog

        root = logging.getLogger()
        with contextlib.closing(JsonLog()) as log:
            self._log, self._say = log, log.event
            root.addHandler(log)
            try:
                yield self._say
            finally:
                root.removeHandler(log)

    def __enter__(self) -> Self:
        _check_extra(self._settings)
        with contextlib.ExitStack() as stack:
            if self._settings.rest_port is not None:
                self._listener = _listen(self._settings.host, self._settings.rest_port, "rest_port")
                stack.callback(self._listener.close)
            if self._settings.grpc_port:
                # Found out before the models are loaded; gRPC opens it itself.
                _listen(self._settings.host, self._settings.grpc_port, "grpc_port").close()
            self._start(stack)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server in good order; may be called again."""
        self._resources.close()

    def _start(self, stack: contextlib.ExitStack) -> None:
        from .server.batching import Batching
        from .server.models.store import ModelStore
        from .server.monitoring import Monitor
        from .server.predictor import Predictor
        from .server.replay import load_and_replay

        settings = self._settings
        store = self._store = ModelStore(
            self._directories, load=load_and_replay, poll_seconds=settings.poll_seconds, say=self._say
        )
        stack.callback(store.close)
        if self.stopping:
            return
        # TensorFlow's first session writes lines of its own, whatever the level of its log.
        with held_back_error_stream():
            store.start()
        if self.stopping:
            return
        monitor = Monitor(store)
        batching = Batching(
            max_rows=settings.max_batch_rows,
            wait_seconds=settings.batch_timeout_ms / 1000,
            max_waiting=settings.max_waiting,
            on_run=monitor.ran,
        )
        # By then both servers have ended: what still waits was given up after its time.
        stack.callback(batching.close, abandon=True)
        predictor = Predictor(
            store,
            batching,
            monitor,
            log=None if self._log is None else self._log.answered,
            max_request_rows=settings.max_request_rows,
        )
        servers = stack.enter_context(_stopped_together())
        if self._listener is not None:
            servers.append(self._start_rest(self._listener, predictor, store, monitor))
        if settings.grpc_port is not None:
            servers.append(self._start_grpc(settings.grpc_port, predictor, store))

    def _start_rest(self, listener: socket.socket, predictor: Any, store: Any, monitor: Any) -> Callable[[], None]:
        """Begins to answer over REST; returns what ends it."""
        from .server.playground import PATHS, Playground
        from .server.rest.api import RestApi
        from .server.rest.http_server import HttpServer

        api = RestApi(
            predictor,
            store,
            monitor=monitor,
            max_body_bytes=self._settings.max_body_bytes,
            max_requests=self._settings.max_waiting,
            pages=dict.fromkeys(PATHS, Playground(self._directories, store)),
        )
        http = HttpServer(api, listener, seconds_to_finish=_SECONDS_TO_FINISH)
        http.start()
        return http.stop

    def _start_grpc(self, port: int, predictor: Any, store: Any) -> Callable[[], None]:
        """Begins to answer over gRPC; returns what ends it."""
        from .server.grpc.server import GrpcServer

        self._grpc = GrpcServer(
            predictor,
            store,
            self._settings.host,
            port,
            max_body_bytes=self._settings.max_body_bytes,
            max_requests=self._settings.max_waiting,
        )
        self._grpc.start()
        return functools.partial(self._grpc.stop, _SECONDS_TO_FINISH)

    @property
    def root_url(self) -> str:
        if self._listener is None:
            raise InputError("`rest_port` must be given for a URL. Received: rest_port=None")
        host, port = self._listener.getsockname()[:2]
        return f"http://{_in_address(host)}:{port}"

    def url(self, name: str) -> str:
        return f"{self.root_url}/v1/models/{name}"

    @property
    def grpc_target(self) -> str:
        if self._grpc is None:
            raise InputError("`grpc_port` must be given for a gRPC target. Received: grpc_port=None")
        return f"{_in_address(self._settings.host)}:{self._grpc.port}"

    def greeting(self) -> Iterator[str]:
        hint = " (stop with Ctrl-C)"
        for name in self.names:
            place = f"{self.grpc_target}, model {name}" if self._listener is None else self.url(name)
            yield f"Ready: version {self._served_version(name)} at {place}{hint}"
            hint = ""
        if self._grpc is not None and self._listener is not None:
            yield f"gRPC at {self.grpc_target}"
        if self._listener is None:
            return
        name = self.names[0]
        version = version_directories(self._directories[name]).get(self._served_version(name))
        examples = {} if version is None else example_requests(version)
        if "serving_default" in examples:
            request = json.dumps(examples["serving_default"], ensure_ascii=False)
            yield f"Ask it: curl -d {shlex.quote(request)} {self.url(name)}:predict"

    def _served_version(self, name: str) -> int:
        with self._store.lease(name) as servable:
            return servable.version

    def wait(self) -> None:
        """Returns when `stop` has been called."""
        self._stop.get()

    def stop(self) -> None:
        self.stopping = True
        if self._store is not None:
            self._store.interrupt()
        self._stop.put(None)


def named_exports(words: Sequence[str], model_name: str) -> dict[str, str]:
    """Returns the export directories by the models' names, of words `EXPORT_DIR` or `NAME=EXPORT_DIR`.

    Args:
        words: as on the command line.
        model_name: name of the one that has none.

    Raises:
        InputError: if two have the same name.
    """
    models: dict[str, str] = {}
    for word in words:
        name, sign, directory = word.partition("=")
        if not sign or Path(word).is_dir():
            name, directory = model_name, word
        if name in models:
            raise InputError(
                f"`export_dir` must be given as NAME=EXPORT_DIR, each model by a name of its own. "
                f"Received: {models[name]!r} and {directory!r}, both for {name!r}"
            )
        models[name] = directory
    return models


def latest_version(export_dir: str | os.PathLike[str]) -> Path:
    """Returns the version directory with the highest number; raises `InputError` where there is none."""
    versions = _versions(Path(export_dir))
    return versions[max(versions)]


def _versions(directory: Path) -> dict[int, Path]:
    if not directory.is_dir():
        raise InputError(f"`export_dir` must be a directory that `export` wrote. Received: {str(directory)!r}")
    versions = version_directories(directory)
    if not versions:
        hint = ", which is a version directory itself: give the one above" if has_saved_model(directory) else ""
        raise InputError(
            "`export_dir` must hold numbered version directories, each with a saved_model.pb. "
            f"Received: {str(directory)!r}{hint}"
        )
    return versions


def _check_some_version(directory: Path) -> None:
    """Finds out before TensorFlow's start whether there is a version whose description is whole."""
    faults = []
    for _, version in sorted(_versions(directory).items(), reverse=True):
        try:
            example_requests(version)
        except InputError as error:
            faults.append(error)
        else:
            return
    raise faults[0]


def _directories(export_dir: ExportDirs, model_name: str) -> dict[str, Path]:
    models = export_dir if isinstance(export_dir, Mapping) else {model_name: export_dir}
    if not models:
        raise InputError("`export_dir` must name a model. Received: none")
    for name in models:
        check_model_name(name, "model_name")
    return {name: Path(directory) for name, directory in models.items()}


def _check_extra(settings: ServerSettings) -> None:
    needed = ["prometheus_client"]
    needed += [] if settings.rest_port is None else ["starlette", "uvicorn"]
    needed += [] if settings.grpc_port is None else ["grpc", "tensorflow_serving"]
    check_extra("The local server", "serving", needed)


def _listen(host: str, port: int, argument: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=1024)
        # Connections inherit it. An answer goes out in two pieces, of which the second would wait for the client's
        # acknowledgement of the first: 40 ms on every kept connection.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"`host` must be an address of this machine; {reason}. Received: host={host!r}") from error
        raise InputError(
            f"`{argument}` must be one that this server may listen on at {host}; {reason}. Received: {argument}={port}"
        ) from error


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextlib.contextmanager
def _stopped_together() -> Iterator[list[Callable[[], None]]]:
    """Stops the servers of both protocols at the same time: neither accepts requests while the other finishes."""
    stops: list[Callable[[], None]] = []
    try:
        yield stops
    finally:
        threads = [threading.Thread(target=stop, name="keras-bert-stop") for stop in stops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


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
