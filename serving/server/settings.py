"""How a local server is set up."""

import dataclasses

from keras_bert_impl.errors import InputError

_MOST_MEGABYTES = 2047  # what a message may have
_LONGEST_PAUSE = 86_400
_LONGEST_TIMEOUT_MS = 60_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Ports, limits and times of a local server.

    Args:
        host: address to listen on; the default is reached from this machine only.
        rest_port: port of the REST interface; 0 for a free one, None for none.
        grpc_port: port of the gRPC interface; 0 for a free one, None for none.
        model_name: name of the model, where only a directory is given.
        max_body_mb: longer requests are refused, in megabytes.
        max_request_rows: requests of more rows are refused.
        max_batch_rows: rows up to which requests are joined into one run; 1 for none.
        batch_timeout_ms: how long a request is held back for others to join it, in milliseconds.
        max_waiting: requests that may wait for their turn; more are refused.
        poll_seconds: how often the directories are looked into for new versions.
        json_log: whether each request is told in a line of JSON on the error stream.

    Raises:
        InputError: if one of them is out of range.
    """

    host: str = "127.0.0.1"
    rest_port: int | None = 8501
    grpc_port: int | None = 8500
    model_name: str = "bert"
    max_body_mb: float = 32
    max_request_rows: int = 1024
    max_batch_rows: int = 32
    batch_timeout_ms: float = 2
    max_waiting: int = 256
    poll_seconds: float = 1
    json_log: bool = False

    def __post_init__(self) -> None:
        check_model_name(self.model_name, "model_name")
        for name in ("rest_port", "grpc_port"):
            port = getattr(self, name)
            if port is not None and not 0 <= port <= 65535:
                raise InputError(f"`{name}` must be at least 0 and at most 65535. Received: {name}={port!r}")
        if self.rest_port is None and self.grpc_port is None:
            raise InputError(
                "`rest_port` or `grpc_port` must be given: the server would have none. Received: None for both"
            )
        if self.rest_port and self.rest_port == self.grpc_port:
            raise InputError(f"`grpc_port` must not be `rest_port`. Received: {self.grpc_port} for both")
        for name in ("max_request_rows", "max_batch_rows", "max_waiting"):
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` must be at least 1. Received: {name}={getattr(self, name)!r}")
        for name, most in (("max_body_mb", _MOST_MEGABYTES), ("poll_seconds", _LONGEST_PAUSE)):
            if not 0 < getattr(self, name) <= most:
                raise InputError(
                    f"`{name}` must be more than 0 and at most {most:,}. Received: {name}={getattr(self, name)!r}"
                )
        if not 0 <= self.batch_timeout_ms <= _LONGEST_TIMEOUT_MS:
            raise InputError(
                f"`batch_timeout_ms` must be at least 0 and at most {_LONGEST_TIMEOUT_MS:,}. "
                f"Received: batch_timeout_ms={self.batch_timeout_ms!r}"
            )

    @property
    def max_body_bytes(self) -> int:
        """The limit of a request, in bytes."""
        return int(self.max_body_mb * 1024 * 1024)


def check_model_name(name: str, argument: str) -> None:
    """Raises `InputError` if a name cannot stand in an address."""
    if not name or set("/:") & set(name):
        raise InputError(f"`{argument}` must be a word without / and :. Received: {argument}={name!r}")
