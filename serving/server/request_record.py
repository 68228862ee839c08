"""What is known of a request when it has been answered: for metrics and logs, never its texts."""

import dataclasses


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
    """

    protocol: str
    method: str
    model: str
    version: int | None = None
    signature: str | None = None
    rows: int | None = None
    seconds: float = 0.0
    code: str = "OK"
