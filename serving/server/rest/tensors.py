"""TensorFlow Serving's REST form of tensors: JSON to arrays, arrays to JSON, with its error texts.

Row form: `{"instances": [...]}` is answered by `{"predictions": [...]}`, one item per row. Column form:
`{"inputs": ...}` is answered by `{"outputs": ...}`. Bytes are `{"b64": "..."}`.
"""

import base64
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...nested_values import nested_values
from ..models.signature import TensorInfo
from ..request_error import RequestError
from .json_values import decode_base64, echo, is_base64, shortest_decimals, type_name

# Name in TensorFlow's messages: array type, and the range that a JSON number must keep to.
_INTEGERS = {"int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"}
_FLOATS: dict[str, type[np.floating]] = {"float": np.float32, "double": np.float64}
_MAX_RANK = 32
_VALUES_AT_ONCE = 2**20


def signature_name(document: Mapping[str, Any]) -> str:
    """Returns the name of the signature that the request asks for."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(
            f"JSON Value: {echo(document)} not formatted correctly. 'signature_name' key must be a string value."
        )
    return name or "serving_default"


def read_inputs(document: Mapping[str, Any], inputs: Mapping[str, TensorInfo]) -> tuple[dict[str, np.ndarray], bool]:
    """Returns an array for each input of the signature, and whether the request is in row form."""
    if "instances" in document and "inputs" in document:
        raise RequestError(
            f"JSON Value: {echo(document)} Not formatted correctly expecting only"
            " one of 'inputs' or 'instances' keys to exist "
        )
    if "instances" in document:
        instances = document["instances"]
        if not isinstance(instances, list):
            raise RequestError(f"JSON Value: {echo(document)} Excepting 'instances' to be an list/array")
        if not instances:
            raise RequestError(f"JSON Value: {echo(document)} No values in 'instances' array")
        arrays = _read_rows(instances, inputs)
    elif "inputs" in document:
        arrays = _read_columns(document["inputs"], inputs)
    else:
        raise RequestError("Missing 'inputs' or 'instances' key")
    for name, array in arrays.items():
        _check_shape(name, array, inputs[name].shape)
    return arrays, "instances" in document


def write_outputs(outputs: Mapping[str, np.ndarray], row_form: bool) -> bytes:
    """Returns the answer's JSON. A single output stands without its name."""
    single = len(outputs) == 1
    if row_form:
        parts = _in_parts(outputs, _common_batch_size(outputs))
        return b'{"predictions": [' + b", ".join(_rows_json(part, single) for part in parts) + b"]}"
    values = {name: _column_json(name, array) for name, array in outputs.items()}
    answer = next(iter(values.values())) if single else _object_json(values)
    return b'{"outputs": ' + answer + b"}"


def _in_parts(arrays: Mapping[str, np.ndarray], rows: int) -> Iterator[dict[str, np.ndarray]]:
    """Yields so many rows at a time that their values as Python's objects, ten times as large, are few."""
    values_of_a_row = sum(array.size for array in arrays.values()) // max(1, rows)
    at_once = max(1, _VALUES_AT_ONCE // max(1, values_of_a_row))
    for start in range(0, rows, at_once):
        yield {name: array[start : start + at_once] for name, array in arrays.items()}


def _rows_json(part: Mapping[str, np.ndarray], single: bool) -> bytes:
    """Returns rows without the brackets around them."""
    columns = {name: _json_values(name, array) for name, array in part.items()}
    if single:
        [rows] = columns.values()
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _json(rows)[1:-1]


def _column_json(name: str, array: np.ndarray) -> bytes:
    if array.ndim == 0:
        return _json(_json_values(name, array))
    return b"[" + b", ".join(_rows_json(part, single=True) for part in _in_parts({name: array}, len(array))) + b"]"


def _object_json(values: Mapping[str, bytes]) -> bytes:
    return b"{" + b", ".join(_json(name) + b": " + value for name, value in values.items()) + b"}"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _read_rows(instances: list[Any], inputs: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    if len(inputs) > 1 and not isinstance(instances[0], dict):
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple input tensors required"
            " as per tensorinfo_map"
        )
    named = _is_named(instances[0])
    rows: dict[str, list[np.ndarray]] = {name: [] for name in inputs}
    for i, instance in enumerate(instances):
        if named != _is_named(instance):
            expected, got = ("object", "list") if named else ("value/list", "object")
            raise RequestError(f"Expecting {expected} but got {got} at item {i} of input list")
        items = instance if named else {next(iter(inputs)): instance}
        for name, value in items.items():
            where = f"element: {i} key: {name}" if named else f"element: {i}"
            try:
                if name not in inputs:
                    raise RequestError(f"JSON object: does not have named input: {name}")
                row = _to_array(value, inputs[name].dtype)
                _check_like_first(row, rows[name])
            except RequestError as error:
                raise RequestError(
                    f"Failed to process {where} of 'instances' list. Error: INVALID_ARGUMENT: {error}"
                ) from None
            rows[name].append(row)
        if items.keys() != inputs.keys():
            raise RequestError(
                f"Failed to process element: {i} of 'instances' list. JSON object: {echo(instance)}"
                f" must only have keys: {','.join(sorted(inputs))}"
            )
    return {name: np.stack(row) for name, row in rows.items()}


def _read_columns(value: Any, inputs: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    if not _is_named(value):
        if len(inputs) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required"
                " as per tensorinfo_map"
            )
        [(name, info)] = inputs.items()
        return {name: _to_array(value, info.dtype)}
    for name in inputs:
        if name not in value:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    return {name: _to_array(value[name], info.dtype) for name, info in inputs.items()}


def _to_array(value: Any, dtype: str) -> np.ndarray:
    """Turns nested lists into an array; every list of one level must be as long as the first."""
    shape: list[int] = []
    first = value
    while isinstance(first, list):
        shape.append(len(first))
        if len(shape) > _MAX_RANK:
            raise RequestError(f"Encountered list at unexpected level: {_MAX_RANK} expected < {_MAX_RANK}")
        if not first:
            break
        first = first[0]
    items = [value]
    for level, size in enumerate(shape):
        for item in items:
            if not isinstance(item, list):
                raise RequestError(
                    f"JSON Value: {echo(item)} found at incorrect level: {level + 1} in the JSON DOM."
                    f" Expected at level: {len(shape)}"
                )
            if len(item) != size:
                raise RequestError(
                    f"Encountered list at unexpected size: {len(item)} at level: {level} expected size: {size}"
                )
        items = list(itertools.chain.from_iterable(items))
    if any(isinstance(item, list) for item in items):
        raise RequestError(f"Encountered list at unexpected level: {len(shape)} expected < {len(shape)}")
    convert, array_type = _converter(dtype)
    array = np.empty(len(items), array_type)
    array[:] = [convert(item) for item in items]
    return array.reshape(shape)


def _converter(dtype: str) -> tuple[Callable[[Any], Any], Any]:
    """Returns what turns one JSON value into an element, and the array's type."""

    def type_error(value: Any) -> RequestError:
        return RequestError(f"JSON Value: {echo(value)} Type: {type_name(value)} is not of expected type: {dtype}")

    def string(value: Any) -> bytes:
        if isinstance(value, dict):
            return decode_base64(value)
        if not isinstance(value, str):
            raise type_error(value)
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise RequestError("JSON Parse error: The surrogate pair in string is invalid.") from None

    def boolean(value: Any) -> bool:
        if not isinstance(value, bool):
            raise type_error(value)
        return value

    if dtype == "string":
        return string, object
    if dtype == "bool":
        return boolean, np.bool_
    if dtype in _INTEGERS:
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)

        def integer(value: Any) -> int:
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise type_error(value)
            return value

        return integer, np.dtype(dtype)
    if dtype in _FLOATS:
        largest = float(np.finfo(_FLOATS[dtype]).max)
        largest_integer = 2 ** (np.finfo(_FLOATS[dtype]).nmant + 1) - 1

        def decimal(value: Any) -> float:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise type_error(value)
            bound = largest_integer if isinstance(value, int) else largest
            if abs(value) > bound and abs(value) != float("inf"):
                raise RequestError(f"Cannot convert JSON value: {echo(value)} to {dtype} without loss of precision.")
            return float(value)

        return decimal, _FLOATS[dtype]
    raise RequestError(f"Conversion of JSON values to type: {dtype} is not supported", "UNIMPLEMENTED")


def _is_named(value: Any) -> bool:
    """Whether the value is an object of named inputs, rather than an input."""
    return isinstance(value, dict) and not is_base64(value)


def _check_like_first(row: np.ndarray, rows: list[np.ndarray]) -> None:
    if rows and row.size != rows[0].size:
        raise RequestError(f"Expecting tensor size: {rows[0].size} but got: {row.size}")
    if rows and row.shape != rows[0].shape:
        raise RequestError(f"Expecting shape {_shape_text(rows[0].shape)} but got: {_shape_text(row.shape)}")


def _check_shape(name: str, array: np.ndarray, shape: tuple[int | None, ...] | None) -> None:
    if shape is None:
        return
    if len(shape) != array.ndim or any(s not in (None, size) for s, size in zip(shape, array.shape, strict=True)):
        wanted = tuple(-1 if size is None else size for size in shape)
        raise RequestError(
            f"Expecting shape {_shape_text(wanted)} for input: {name} but got: {_shape_text(array.shape)}"
        )


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _common_batch_size(outputs: Mapping[str, np.ndarray]) -> int:
    batch_size = 0
    for name, array in outputs.items():
        if array.ndim == 0:
            raise RequestError(f"Tensor name: {name} has no shape information ")
        if len(array) < 1:
            raise RequestError(f"Tensor name: {name} has invalid batch size: {len(array)}")
        if batch_size not in (0, len(array)):
            raise RequestError(f"Tensor name: {name} has inconsistent batch size: {len(array)} expecting: {batch_size}")
        batch_size = len(array)
    return batch_size


def _json_values(name: str, array: np.ndarray) -> Any:
    if array.dtype == object:
        if name.endswith("_bytes"):
            return nested_values(array, lambda value: {"b64": base64.b64encode(value).decode("ascii")})
        return nested_values(array, lambda value: value.decode("utf-8", errors="replace"))
    if array.dtype == np.float32:
        return shortest_decimals(array).tolist()
    return array.tolist()
