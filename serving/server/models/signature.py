"""What a loaded version can be asked."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple


class TensorInfo(NamedTuple):
    """What a signature says of one tensor.

    Attributes:
        tensor: name in the graph.
        dtype: TensorFlow's name of the type in messages: `"string"`, `"int32"`, `"float"`, ….
        shape: None where a dimension is free; None as a whole for an unknown rank.
    """

    tensor: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """One signature of a SavedModel.

    Attributes:
        method_name: such as `"tensorflow/serving/predict"`.
        inputs: by name, in alphabetical order.
        outputs: by name, in alphabetical order.
        definition: the `SignatureDef` that says so.
    """

    method_name: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    definition: Any

    @property
    def by_rows(self) -> bool:
        """Whether the first dimension of everything is free, and so counts the rows of a request."""
        tensors = [*self.inputs.values(), *self.outputs.values()]
        return bool(self.inputs) and all(tensor.shape and tensor.shape[0] is None for tensor in tensors)
