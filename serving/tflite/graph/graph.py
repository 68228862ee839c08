"""A TFLite graph in the making."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

from keras_bert_impl.errors import InputError

from .packing import packed

_SCHEMA_VERSION = 3
_MOST_BYTES = 2**31 - 2**20
_LAST_DEPRECATED_CODE = 127
_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "uint8": schema.TensorType.UINT8,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
}


class Value(NamedTuple):
    """A tensor of the graph.

    Attributes:
        number: its place among the tensors.
        shape: sizes; None for what is free.
        dtype: such as `"float32"`.
    """

    number: int
    shape: tuple[int | None, ...]
    dtype: str


class Graph:
    """Operators in the order in which they are added, with the weights that they use."""

    def __init__(self) -> None:
        self._tensors: list[Any] = []
        # By the format, the first buffer is empty.
        self._buffers: list[Any] = [schema.BufferT()]
        self._codes: dict[str, int] = {}
        self._operators: list[Any] = []
        self._stored: dict[Any, Value] = {}
        self._inputs: dict[str, Value] = {}
        self._part = ""

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Puts `name` before the names of what is added meanwhile, by which quantizers tell parts apart."""
        before, self._part = self._part, f"{self._part}{name}/"
        yield
        self._part = before

    def input(self, name: str, shape: Sequence[int | None], dtype: str) -> Value:
        """Adds an input of the whole graph."""
        self._inputs[name] = self._tensor(name, shape, dtype)
        return self._inputs[name]

    def add(
        self,
        operator: str,
        *inputs: Value,
        shape: Sequence[int | None],
        dtype: str | None = None,
        **options: Any,
    ) -> Value:
        """Adds an operator.

        Args:
            operator: the name of a built-in one in the schema, such as `"FULLY_CONNECTED"`.
            inputs: what it takes.
            shape: of its output.
            dtype: of its output; that of its first input when not given.
            **options: attributes of the schema's options for it, such as `adjY=True`.

        Returns:
            Its output.
        """
        added, [output] = self._operator(operator, inputs, [(shape, dtype or inputs[0].dtype)])
        name = _OPTIONS.get(operator)
        if name is not None:
            added.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            added.builtinOptions = getattr(schema, f"{name}T")()
            for key, value in options.items():
                setattr(added.builtinOptions, key, value)
        return output

    def cast(self, value: Value, dtype: str) -> Value:
        """Adds the same values in another dtype."""
        types = {"inDataType": _TYPES[value.dtype], "outDataType": _TYPES[dtype]}
        return self.add("CAST", value, shape=value.shape, dtype=dtype, **types)

    def custom(
        self, operator: str, *inputs: Value, outputs: Sequence[tuple[Sequence[int | None], str]], **options: Any
    ) -> list[Value]:
        """Adds an operator that an app must register; returns its outputs.

        Args:
            operator: its name.
            inputs: what it takes.
            outputs: shape and dtype of each.
            **options: its attributes.
        """
        added, values = self._operator(operator, inputs, outputs)
        added.customOptions = np.frombuffer(flexbuffers.Dumps(options), np.uint8)
        return values

    def weight(self, variable: keras.Variable) -> Value:
        """Adds a variable's values as float32, once however often it is used."""
        return self._weight(variable, "as it is", lambda values: values)

    def rows(self, variable: keras.Variable, count: int) -> Value:
        """Adds the first rows of a table."""
        return self._weight(variable, f"{count} rows", lambda values: values[:count])

    def kernel(self, variable: keras.Variable, scale: float = 1.0) -> Value:
        """Adds a kernel `(inputs, outputs)` as FULLY_CONNECTED has it, `(outputs, inputs)`, times a number."""
        return self._weight(variable, f"turned {scale}", lambda values: values.T * np.float32(scale))

    def scaled(self, variable: keras.Variable, scale: float) -> Value:
        """Adds a variable's values times a number."""
        return self._weight(variable, f"scaled {scale}", lambda values: values * np.float32(scale))

    def constant(self, value: Any, dtype: str = "float32") -> Value:
        """Adds a number, or a list of them, once however often it is used."""
        key = dtype, repr(value)
        if key not in self._stored:
            self._stored[key] = self._store(np.array(value, dtype), f"constant_{len(self._stored)}")
        return self._stored[key]

    def stored(self, array: np.ndarray, name: str) -> Value:
        """Adds an array that is no weight."""
        return self._store(array, name)

    def text(self, content: bytes, name: str) -> Value:
        """Adds one string."""
        # How many there are, where each begins and the last one ends, and the bytes.
        places = np.array([1, 12, 12 + len(content)], "<i4").tobytes()
        value = self._store(np.frombuffer(places + content, np.uint8), name)
        tensor = self._tensors[value.number]
        tensor.type, tensor.shape = _TYPES["string"], []
        return Value(value.number, (), "string")

    def file(self, signature: str, outputs: Mapping[str, Value], description: str) -> bytes:
        """Returns what the outputs need as a TFLite file of one signature.

        Args:
            signature: its name.
            outputs: by name; of different tensors, which are no inputs.
            description: what the file is.

        Raises:
            InputError: if the weights are too large for such a file, 2 GiB.
        """
        size = sum(0 if buffer.data is None else buffer.data.nbytes for buffer in self._buffers)
        if size > _MOST_BYTES:
            raise InputError(f"`model` must have at most 2 GiB of weights as TFLite. Received: {size:,} bytes")
        graph = schema.SubGraphT()
        graph.name, graph.tensors = "main", self._tensors
        graph.operators = self._needed_for({value.number for value in outputs.values()})
        graph.inputs = [value.number for value in self._inputs.values()]
        graph.outputs = [value.number for value in outputs.values()]
        model = schema.ModelT()
        model.version, model.description = _SCHEMA_VERSION, description
        model.operatorCodes = [_code(name) for name in self._codes]
        model.subgraphs, model.buffers = [graph], self._buffers
        model.signatureDefs = [_signature(signature, self._inputs, outputs)]
        return packed(model)

    def _needed_for(self, tensors: set[int]) -> list[Any]:
        """Returns the operators that tensors come from; tools stumble over those that nothing comes from."""
        needed, operators = set(tensors), []
        for operator in reversed(self._operators):
            if needed.intersection(operator.outputs):
                needed.update(operator.inputs)
                operators.append(operator)
        return operators[::-1]

    def _operator(
        self, operator: str, inputs: Sequence[Value], outputs: Sequence[tuple[Sequence[int | None], str]]
    ) -> tuple[Any, list[Value]]:
        stem = f"{self._part}{operator.lower()}_{len(self._operators)}"
        values = [self._tensor(f"{stem}_{i}" if i else stem, shape, dtype) for i, (shape, dtype) in enumerate(outputs)]
        added = schema.OperatorT()
        added.opcodeIndex = self._codes.setdefault(operator, len(self._codes))
        added.inputs = [value.number for value in inputs]
        added.outputs = [value.number for value in values]
        self._operators.append(added)
        return added, values

    def _weight(self, variable: keras.Variable, form: str, change: Any) -> Value:
        key = id(variable), form
        if key not in self._stored:
            values = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
            self._stored[key] = self._store(np.ascontiguousarray(change(values)), variable.path)
        return self._stored[key]

    def _store(self, array: np.ndarray, name: str) -> Value:
        value = self._tensor(name, array.shape, array.dtype.name)
        buffer = schema.BufferT()
        buffer.data = array.reshape(-1).view(np.uint8)
        self._tensors[value.number].buffer = len(self._buffers)
        self._buffers.append(buffer)
        return value

    def _tensor(self, name: str, shape: Sequence[int | None], dtype: str) -> Value:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.hasRank = name, _TYPES[dtype], True
        tensor.shape = [1 if size is None else size for size in shape]
        if None in shape:
            tensor.shapeSignature = [-1 if size is None else size for size in shape]
        tensor.buffer = 0
        self._tensors.append(tensor)
        return Value(len(self._tensors) - 1, tuple(shape), dtype)


_OPTIONS = {
    "ADD": "AddOptions",
    "ARG_MAX": "ArgMaxOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CAST": "CastOptions",
    "CONCATENATION": "ConcatenationOptions",
    "CUMSUM": "CumsumOptions",
    "EQUAL": "EqualOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "GATHER": "GatherOptions",
    "GELU": "GeluOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "LESS": "LessOptions",
    "LOGICAL_AND": "LogicalAndOptions",
    "LOGICAL_OR": "LogicalOrOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MUL": "MulOptions",
    "PADV2": "PadV2Options",
    "RESHAPE": "ReshapeOptions",
    "SCATTER_ND": "ScatterNdOptions",
    "SELECT_V2": "SelectV2Options",
    "SHAPE": "ShapeOptions",
    "SLICE": "SliceOptions",
    "SOFTMAX": "SoftmaxOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
    "SUB": "SubOptions",
    "SUM": "ReducerOptions",
    "TRANSPOSE": "TransposeOptions",
    "WHERE": "WhereOptions",
}
"""The schema's name for what an operator has options of; RELU, RSQRT, TANH, LOGISTIC, EMBEDDING_LOOKUP have none."""


def _code(operator: str) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, operator, schema.BuiltinOperator.CUSTOM)
    if code.builtinCode == schema.BuiltinOperator.CUSTOM:
        code.customCode = operator
    code.deprecatedBuiltinCode = min(code.builtinCode, _LAST_DEPRECATED_CODE)
    code.version = 1
    return code


def _signature(name: str, inputs: Mapping[str, Value], outputs: Mapping[str, Value]) -> Any:
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = name, 0
    signature.inputs, signature.outputs = _named(inputs), _named(outputs)
    return signature


def _named(values: Mapping[str, Value]) -> list[Any]:
    named = []
    for name, value in values.items():
        one = schema.TensorMapT()
        one.name, one.tensorIndex = name, value.number
        named.append(one)
    return named
