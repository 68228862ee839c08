"""HTTP connections that are kept for the next request, and wait no longer than to a deadline."""

import http.client
import socket
import ssl
import threading
from typing import Any

from ..serving_error import DataLoss, ServingError, Unauthenticated, Unavailable
from .deadline import Deadline


class Connections:
    """Connections to one server, as many as threads ask at once.

    Args:
        host: name or address of the server.
        port: its port.
        tls: whether they are encrypted. The server's certificate is checked against those that the system trusts, or
            those in the file that the environment variable `SSL_CERT_FILE` names.
    """

    def __init__(self, host: str, port: int, *, tls: bool = False) -> None:
        self._host = host
        self._port = port
        self._tls = _tls_context() if tls else None
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def request(self, method: str, path: str, body: bytes | None, deadline: Deadline) -> tuple[int, bytes]:
        """Returns status and body of the answer.

        Raises:
            Unavailable: if there is no connection, or it ended before an answer began.
            Unauthenticated: if the server's certificate cannot be trusted.
            DeadlineExceeded: if the whole answer was not there in time.
            DataLoss: if the answer was cut off or is not HTTP.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._exchange(connection, method, path, body, deadline)
            except Unavailable:
                # Servers close connections that were idle for long, which shows only now. The others are as old.
                self.close()
        return self._exchange(_Connection(self._host, self._port, self._tls), method, path, body, deadline)

    def close(self) -> None:
        """Closes those that are idle; others are closed when their answer is there."""
        with self._lock:
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def _exchange(
        self, connection: "_Connection", method: str, path: str, body: bytes | None, deadline: Deadline
    ) -> tuple[int, bytes]:
        try:
            response = self._begin(connection, method, path, body, deadline)
            try:
                answer = response.read()
            except TimeoutError:
                raise deadline.exceeded() from None
            except (OSError, http.client.HTTPException) as error:
                raise DataLoss(f"The answer of {self._where} was cut off", status=response.status) from error
        except ServingError:
            connection.close()
            raise
        if response.will_close or connection.is_broken:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return response.status, answer

    def _begin(
        self, connection: "_Connection", method: str, path: str, body: bytes | None, deadline: Deadline
    ) -> http.client.HTTPResponse:
        connection.wait_no_longer_than(deadline)
        try:
            if connection.sock is None:
                connection.connect()
            try:
                connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            except (BrokenPipeError, ConnectionResetError):
                # A server that does not want the whole body may have said so before it hung up.
                connection.is_broken = True
            return connection.getresponse()
        except TimeoutError:
            raise deadline.exceeded() from None
        except ssl.SSLCertVerificationError as error:
            # Not worth another try, as what cannot be reached is.
            raise Unauthenticated(
                f"The certificate of {self._where} cannot be trusted: {error.verify_message}"
            ) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unavailable(f"No server answers at {self._where}: {reason}") from error
        except http.client.HTTPException as error:
            raise DataLoss(f"What answers at {self._where} is no HTTP server") from error

    @property
    def _where(self) -> str:
        return f"{self._host}:{self._port}"


class _Socket(socket.socket):
    """Has one deadline for everything that is sent and received, not a new one for each part."""

    deadline: Deadline

    def sendall(self, *args: Any) -> None:
        self.settimeout(self.deadline.remaining())
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.deadline.remaining())
        return super().recv_into(*args)


class _TlsSocket(ssl.SSLSocket):
    """The same over TLS, where `sendall` sends part by part."""

    deadline: Deadline

    def send(self, *args: Any) -> int:
        self.settimeout(self.deadline.remaining())
        return super().send(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.deadline.remaining())
        return super().recv_into(*args)


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.sslsocket_class = _TlsSocket
    return context


class _Connection(http.client.HTTPConnection):
    """A connection; encrypted if there is a `tls`.

    Attributes:
        is_broken: whether the server has hung up.
    """

    sock: _Socket | _TlsSocket | None
    is_broken = False

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self._tls = tls
        if tls is not None:
            self.default_port = http.client.HTTPS_PORT  # left out of what it tells the server of its name

    def wait_no_longer_than(self, deadline: Deadline) -> None:
        self._deadline = deadline
        if self.sock is not None:
            self.sock.deadline = deadline

    def connect(self) -> None:
        failure = OSError("the name has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            connected = _Socket(family, kind, protocol)
            connected.deadline = self._deadline
            try:
                connected.settimeout(self._deadline.remaining())
                connected.connect(address)
            except OSError as error:
                connected.close()
                failure = error
            else:
                # Small messages go at once.
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sock = connected if self._tls is None else self._encrypted(connected, self._tls)
                return
        raise failure

    def _encrypted(self, connected: _Socket, tls: ssl.SSLContext) -> _TlsSocket:
        try:
            connected.settimeout(self._deadline.remaining())
            encrypted: Any = tls.wrap_socket(connected, server_hostname=self.host)
        except BaseException:
            connected.close()
            raise
        encrypted.deadline = self._deadline
        return encrypted
