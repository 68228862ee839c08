"""What is known of a request, and at last told to metrics and logs: never its texts."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class RequestRecord:
    """One request.

    Attributes:
        protocol: `"REST"` or `"gRPC"`.
        method: such as `"Predict"`.
        model: its name; empty where the request named none.
        version: the one that answered; None if none did.
        signature: the one that was asked; None if none was.
        rows: its rows; None if it was not run.
        seconds: from its first to its last step here.
        code: TensorFlow's canonical code of the answer, by name.
        wanted: whether the client still waits for the answer; may be asked in any thread.
    """

    protocol: str
    method: str
    model: str
    version: int | None = None
    signature: str | None = None
    rows: int | None = None
    seconds: float = 0.0
    code: str = "OK"
    wanted: Callable[[], bool] = lambda: True
