"""A line of JSON for each request and each event of the server; never a text that was asked about."""

import contextlib
import json
import os
import time
from typing import Any

from .request_record import RequestRecord

_LONGEST_NAME = 100


class JsonLog:
    """Writes lines to the error stream.

    Args:
        stream: file descriptor; that of the error stream when not given.
    """

    def __init__(self, stream: int = 2) -> None:
        # A copy: what TensorFlow writes while it starts is held back from the stream itself.
        self._stream = os.dup(stream)

    def close(self) -> None:
        """Gives the copy of the stream back."""
        os.close(self._stream)

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

    def _write(self, values: dict[str, Any]) -> None:
        now = time.time()
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
        line = json.dumps({"time": moment, **values}) + "\n"
        with contextlib.suppress(OSError):  # nobody reads it any more
            # In one piece, so that lines of several threads do not mix.
            os.write(self._stream, line.encode("ascii"))
