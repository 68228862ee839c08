"""A TFLite file from its parts, the objects of the schema."""

from typing import Any

import flatbuffers
import numpy as np

_FILE_IDENTIFIER = b"TFL3"
_ALIGNMENT = 16


def packed(model: Any) -> bytes:
    """Returns the file of a `ModelT`."""
    size = sum(0 if buffer.data is None else len(buffer.data) for buffer in model.buffers)
    builder = _Builder(size + 2**20)
    builder.Finish(model.Pack(builder), file_identifier=_FILE_IDENTIFIER)
    return bytes(builder.Output())


class _Builder(flatbuffers.Builder):
    """Puts weights where kernels may read whole registers of them; the schema asks for it, its Python form forgets."""

    def CreateNumpyVector(self, x: np.ndarray) -> int:  # noqa: N802
        self.StartVector(x.itemsize, x.size, _ALIGNMENT)
        self.head -= x.nbytes
        self.Bytes[self.head : self.head + x.nbytes] = x.tobytes()
        self.vectorNumElems = x.size
        return self.EndVector()
