"""Serves an ASGI application in a thread, and ends without leaving a request unanswered."""

import asyncio
import contextlib
import socket
import threading
import time
from http import HTTPStatus

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .api import RestApi, error_response

# Longer than clients keep an idle connection, lest one be closed under a request that is on its way.
_KEEP_ALIVE_SECONDS = 120
_QUIET_SECONDS = 0.2
_LONGEST_DRAIN_SECONDS = 2.0
_LONGEST_HEAD = 64 * 1024


class HttpServer:
    """Answers the connections of a listening socket.

    Args:
        api: the application.
        listener: the socket; is closed when the server stops.
        seconds_to_finish: how long requests may take that have been accepted when it is told to stop.
    """

    def __init__(self, api: RestApi, listener: socket.socket, *, seconds_to_finish: int) -> None:
        config = uvicorn.Config(
            api,
            http=_Connection,
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=seconds_to_finish,
        )
        self._server = _DrainingServer(config, api)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="keras-bert-rest", daemon=True
        )

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Accepts no more connections, answers what has come on the others, and returns when that is done."""
        self._server.should_exit = True
        self._thread.join()


class _Connection(HttpToolsProtocol):
    """Refuses what is no HTTP as it refuses requests, and heads without end."""

    _head_bytes: int | None = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_bytes is None or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > _LONGEST_HEAD:
            self._refuse("The head of the request is too long", 431)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse("Malformed request: it is no HTTP that can be read", 400)

    def _refuse(self, message: str, status: int) -> None:
        response = error_response(message, status)
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        head += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"connection: close", b"", bytes(response.body)]))
        self.transport.close()


class _DrainingServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, api: RestApi) -> None:
        super().__init__(config)
        self._api = api

    @contextlib.contextmanager
    def capture_signals(self):
        """Leaves signals to the command: uvicorn would raise them anew after its end, and exit with their code."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets clients end their connections with an answer before those that are idle are closed.

        On a connection that is kept alive the next request may be on its way, unread, when it would be closed.
        """
        self._api.draining = True
        await asyncio.sleep(0)  # what the kernel has accepted is taken in
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        end = time.monotonic() + _LONGEST_DRAIN_SECONDS
        quiet_since = time.monotonic()
        requests = self.server_state.total_requests
        while time.monotonic() < min(end, quiet_since + _QUIET_SECONDS) and self.server_state.connections:
            await asyncio.sleep(0.02)
            if self._api.in_work or self.server_state.total_requests != requests:
                requests, quiet_since = self.server_state.total_requests, time.monotonic()
        await super().shutdown(sockets)
