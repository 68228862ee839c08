"""What a server says of one version of a model, and a client hears."""

from typing import NamedTuple


class VersionStatus(NamedTuple):
    """The status of a version.

    Attributes:
        version: its number.
        state: as in TensorFlow Serving's `ModelVersionStatus`: `"START"`, `"LOADING"`, `"AVAILABLE"`, `"UNLOADING"` or
            `"END"`.
        code: TensorFlow's canonical code by name; `"OK"` unless something went wrong with it.
        message: what went wrong; the local server names no paths.
    """

    version: int
    state: str
    code: str = "OK"
    message: str = ""
