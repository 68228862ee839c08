"""What a client needs of a transport, and what servers say of models in either of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..version_status import VersionStatus
from .deadline import Deadline


class TensorSpec(NamedTuple):
    """An input or output of a signature.

    Attributes:
        dtype: such as `"string"`, `"int32"` or `"float32"`.
        shape: None where a dimension is free; None as a whole for an unknown rank.
    """

    dtype: str
    shape: tuple[int | None, ...] | None


class SignatureSpec(NamedTuple):
    """What a signature takes and gives, by name, in alphabetical order."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class Metadata(NamedTuple):
    """What a server says of a model.

    Attributes:
        version: the one that answers.
        signatures: by name.
    """

    version: int
    signatures: Mapping[str, SignatureSpec]


class Transport(Protocol):
    """A way to one server. Methods may be called from several threads at once, and raise `ServingError`."""

    def predict(
        self,
        model: str,
        version: int | None,
        signature_name: str,
        signature: SignatureSpec,
        inputs: Mapping[str, np.ndarray],
        deadline: Deadline,
    ) -> dict[str, list[Any]]:
        """Returns the outputs as nested lists of str, bytes, int, float and bool.

        Args:
            model: the model's name.
            version: its number; the one that is served when None.
            signature_name: the signature's name.
            signature: what the server says of it.
            inputs: an array for each input; strings are bytes in an array of objects.
            deadline: when the answer must be there.
        """

    def metadata(self, model: str, version: int | None, deadline: Deadline) -> Metadata:
        """Returns what the server says of a model's signatures."""

    def status(self, model: str, version: int | None, deadline: Deadline) -> list[VersionStatus]:
        """Returns what the server says of a model's versions."""

    def close(self) -> None:
        """Closes the connections."""


def dtype_of(name: str) -> str:
    """Returns the usual name of a type for that of TensorFlow's protocol buffers, such as `"DT_FLOAT"`."""
    dtype = name.removeprefix("DT_").lower()
    return {"float": "float32", "double": "float64", "half": "float16"}.get(dtype, dtype)


def text_or_bytes(name: str, value: bytes) -> str | bytes:
    """Returns the value of a string output: bytes where its name says so, as TensorFlow Serving's REST form has it."""
    return value if name.endswith("_bytes") else value.decode("utf-8", errors="replace")
