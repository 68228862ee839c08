"""Files put together: one that goes on with what another gives, and several signatures in one."""

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_bert_impl.errors import InputError

from .packing import packed

_SCHEMA_VERSION = 3
_MOST_BYTES = 2**31 - 2**20


def chain(first: bytes, second: bytes) -> bytes:
    """Returns a file whose graph is the first one's and then the second one's.

    Args:
        first: of one signature, with all inputs of the second among its outputs.
        second: of one signature, whose name the new file's has.

    Returns:
        The file, with the inputs of the first and the outputs of both.
    """
    target = _Target()
    before, after = (target.moved(file) for file in (first, second))
    (graph, signature), (other, other_signature) = before, after
    given = {_text(one.name): one.tensorIndex for one in signature.outputs}
    numbers = {one.tensorIndex: given[_text(one.name)] for one in other_signature.inputs}
    for number, tensor in enumerate(other.tensors):
        if number not in numbers:
            numbers[number] = len(graph.tensors)
            graph.tensors.append(tensor)
    for operator in other.operators:
        # Of inputs that may be left out, those that are have the number -1.
        operator.inputs = [numbers.get(int(number), -1) for number in operator.inputs]
        operator.outputs = [numbers[int(number)] for number in operator.outputs]
    for one in other_signature.outputs:
        one.tensorIndex = numbers[one.tensorIndex]
    graph.operators = [*graph.operators, *other.operators]
    signature.outputs = [*other_signature.outputs, *signature.outputs]
    graph.outputs = [one.tensorIndex for one in signature.outputs]
    signature.signatureKey = other_signature.signatureKey
    return target.file([(graph, signature)], other.name)


def join(files: Mapping[str, bytes]) -> bytes:
    """Returns one file with the graphs of several, each as a signature; weights that are alike are stored once.

    Args:
        files: by the name of the signature that it becomes, files of one signature each.

    Raises:
        InputError: if they have more than 2 GiB of weights together.
    """
    target, parts = _Target(), []
    for name, file in files.items():
        graph, signature = target.moved(file)
        graph.name = signature.signatureKey = name
        parts.append((graph, signature))
    return target.file(parts, ", ".join(files))


class _Target:
    """The operator codes and buffers of a new file."""

    def __init__(self) -> None:
        self._buffers: list[Any] = [schema.BufferT()]
        self._codes: list[Any] = []
        self._number_of_code: dict[tuple[Any, ...], int] = {}
        self._number_of_content: dict[bytes, int] = {}

    def moved(self, file: bytes) -> tuple[Any, Any]:
        """Returns graph and signature of a file of one, with the numbers of codes and buffers that they have here."""
        model = schema.ModelT.InitFromPackedBuf(file, 0)
        [graph], [signature] = model.subgraphs, model.signatureDefs
        buffers = [self._buffer(_content(buffer, file)) for buffer in model.buffers]
        codes = [self._code(code) for code in model.operatorCodes]
        for tensor in graph.tensors:
            tensor.buffer = buffers[tensor.buffer]
        for operator in graph.operators:
            operator.opcodeIndex = codes[operator.opcodeIndex]
        return graph, signature

    def file(self, parts: list[tuple[Any, Any]], description: Any) -> bytes:
        """Returns the file of graphs with their signatures."""
        size = sum(0 if buffer.data is None else len(buffer.data) for buffer in self._buffers)
        if size > _MOST_BYTES:
            raise InputError(f"`files` must have at most 2 GiB of weights together. Received: {size:,} bytes")
        model = schema.ModelT()
        model.version, model.description = _SCHEMA_VERSION, description
        model.operatorCodes, model.buffers = self._codes, self._buffers
        model.subgraphs = [graph for graph, _ in parts]
        model.signatureDefs = []
        for number, (_, signature) in enumerate(parts):
            signature.subgraphIndex = number
            model.signatureDefs.append(signature)
        return packed(model)

    def _buffer(self, content: np.ndarray | None) -> int:
        if content is None or not len(content):
            return 0
        digest = hashlib.sha256(content.data).digest()
        if digest not in self._number_of_content:
            self._number_of_content[digest] = len(self._buffers)
            buffer = schema.BufferT()
            buffer.data = content
            self._buffers.append(buffer)
        return self._number_of_content[digest]

    def _code(self, code: Any) -> int:
        key = code.builtinCode, code.deprecatedBuiltinCode, code.customCode, code.version
        if key not in self._number_of_code:
            self._number_of_code[key] = len(self._codes)
            self._codes.append(copy.copy(code))
        return self._number_of_code[key]


def _content(buffer: Any, file: bytes) -> np.ndarray | None:
    # Some tools put weights behind the rest of the file, and say in the buffer where they are.
    if buffer.offset > 1:
        return np.frombuffer(file, np.uint8, buffer.size, buffer.offset)
    return None if buffer.data is None else np.asarray(buffer.data, np.uint8)


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else name
