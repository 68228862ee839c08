"""An ONNX graph in the making."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Tensor(NamedTuple):
    """An input or output of the whole graph.

    Attributes:
        value: its name inside.
        dtype: such as `"float32"`.
        shape: sizes, and names of those that are free.
    """

    value: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def description(self) -> dict[str, Any]:
        """What it is like, as plain JSON values; free sizes are -1."""
        return {"dtype": self.dtype, "shape": [-1 if isinstance(size, str) else size for size in self.shape]}


class Graph:
    """Nodes in the order in which they are added, with the weights that they use.

    Values are known by their names. Every method returns the name of what it adds.

    Attributes:
        weight_bytes: size of all weights.
    """

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._stored: dict[Any, onnx.TensorProto] = {}
        self._part: list[str] = []
        self._counts: dict[str, int] = {}
        self.weight_bytes = 0

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Puts `name` before the names of the nodes that are added meanwhile."""
        self._part.append(name)
        yield
        self._part.pop()

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """Adds a node, of whose outputs the first is used."""
        stem = "/".join([*self._part, operator])
        number = self._counts[stem] = self._counts.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}_{number}"
        unused = [f"{name}/output_{i}" for i in range(1, outputs)]
        self._nodes.append(helper.make_node(operator, list(inputs), [name, *unused], name=name, **attributes))
        return name

    def weight(self, variable: keras.Variable) -> str:
        """Adds a variable's values, once however often it is used."""
        if id(variable) not in self._stored:
            array = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
            self._stored[id(variable)] = numpy_helper.from_array(array, variable.path)
            self.weight_bytes += array.nbytes
        return self._stored[id(variable)].name

    def constant(self, value: Any, dtype: str) -> str:
        """Adds a number, a text, or a list of them, once however often it is used."""
        key = dtype, repr(value)
        if key not in self._stored:
            array = np.array(value, object if dtype == "string" else dtype)
            self._stored[key] = numpy_helper.from_array(array, f"constant_{len(self._stored)}")
        return self._stored[key].name

    def number(self, value: float) -> str:
        """Adds a float32."""
        return self.constant(value, "float32")

    def ints(self, *values: int) -> str:
        """Adds a list of int64, such as axes or a shape."""
        return self.constant(list(values), "int64")

    def write(
        self,
        path: Path,
        inputs: Sequence[Tensor],
        outputs: dict[str, Tensor],
        *,
        opset: int,
        with_weights_apart: bool = False,
    ) -> None:
        """Writes the whole, after a check that it is well-formed.

        Args:
            path: the file.
            inputs: named by their values.
            outputs: by the names that they are to have.
            opset: version of the operators.
            with_weights_apart: whether the weights go into a file beside it, with `.data` behind its name.
        """
        ends = [helper.make_node("Identity", [tensor.value], [output]) for output, tensor in outputs.items()]
        graph = helper.make_graph(
            [*self._nodes, *ends],
            path.stem,
            [_value_info(tensor.value, tensor) for tensor in inputs],
            [_value_info(output, tensor) for output, tensor in outputs.items()],
            list(self._stored.values()),
        )
        opsets = [helper.make_opsetid("", opset)]
        # The oldest form of the file that has these operators, for the sake of older runtimes.
        ir_version = helper.find_min_ir_version_for(opsets)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="keras-bert-impl")
        onnx.save_model(
            model, path, save_as_external_data=with_weights_apart, location=f"{path.name}.data", size_threshold=1024
        )
        onnx.checker.check_model(path, full_check=True)


def _value_info(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    element = (
        TensorProto.STRING if tensor.dtype == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    )
    return helper.make_tensor_value_info(name, element, tensor.shape)
