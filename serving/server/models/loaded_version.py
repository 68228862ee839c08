"""What the server needs of a loaded version; `Servable` is one."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

from .signature import Signature


class LoadedVersion(Protocol):
    """See `Servable`."""

    name: str
    version: int
    signatures: Mapping[str, Signature]

    def run(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Runs a signature; may be called from several threads at once."""

    def metadata(self) -> dict[str, Any]:
        """Returns the signatures as the JSON form of their protocol buffers."""

    def signature_def_map(self) -> Any:
        """Returns the signatures as TensorFlow Serving's `SignatureDefMap`."""

    def close(self) -> None:
        """Frees what it holds."""
