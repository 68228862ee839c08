"""A line of JSON for each request and each event of the server; never a text that was asked about."""

import contextlib
import json
import logging
import os
import time
from typing import Any

from .request_record import RequestRecord

_LONGEST_NAME = 100


class JsonLog(logging.Handler):
    """Writes lines to the error stream; as a handler, also what the process logs.

    Args:
        stream: file descriptor; that of the error stream when not given.
    """

    def __init__(self, stream: int = 2) -> None:
        super().__init__(logging.WARNING)
        # A copy: what TensorFlow writes while it starts is held back from the stream itself.
        self._stream: int | None = os.dup(stream)

    def close(self) -> None:
        """Gives the copy of the stream back."""
        if self._stream is not None:
            os.close(self._stream)
            self._stream = None
        super().close()

    def answered(self, record: RequestRecord) -> None:
        """Writes the line of a request."""
        self._write(
            {
                "protocol": record.protocol,
                "method": record.method,
                "model": record.model[:_LONGEST_NAME],
                "version": record.version,
                "signature": record.signature,
                "rows": record.rows,
                "seconds": round(record.seconds, 6),
                "code": record.code,
            }
        )

    def event(self, line: str) -> None:
        """Writes what the server tells of itself."""
        self._write({"event": line})

    def emit(self, record: logging.LogRecord) -> None:
        """Writes what was logged, with its traceback in the same line."""
        traceback = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        self._write(
            {
                "level": record.levelname,
                "logger": record.name,
                "event": record.getMessage(),
                **({"traceback": traceback} if traceback else {}),
            }
        )

    def _write(self, values: dict[str, Any]) -> None:
        now = time.time()
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
        line = json.dumps({"time": moment, **values}) + "\n"
        with contextlib.suppress(OSError):  # nobody reads it any more
            if self._stream is not None:
                # In one piece, so that lines of several threads do not mix.
                os.write(self._stream, line.encode("ascii"))
