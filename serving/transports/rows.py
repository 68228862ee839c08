"""From rows, as people write them, to a signature's arrays; and from its outputs back to rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError

from ..serving_error import DataLoss
from .transport import SignatureSpec, TensorSpec

_KINDS = {"f": ("iuf", "numbers"), "i": ("iu", "whole numbers"), "u": ("iu", "whole numbers"), "b": ("b", "booleans")}
_LONGEST_ECHO = 80


def arrays_of(rows: Sequence[Any], first: int, signature: SignatureSpec) -> dict[str, np.ndarray]:
    """Returns an array for each input of a signature.

    Args:
        rows: each a dictionary with a value for each input, or that value where there is one input.
        first: the number of the first, for messages.
        signature: what the server says of it.

    Raises:
        InputError: if a row lacks an input or has others, or a value is not of the input's type or not as long as
            those of other rows.
    """
    columns: dict[str, list[Any]] = {name: [] for name in signature.inputs}
    for i, row in enumerate(rows, first):
        for name, value in _named(row, i, list(columns)).items():
            columns[name].append(value)
    return {name: _array(name, columns[name], first, spec) for name, spec in signature.inputs.items()}


def rows_of(outputs: Mapping[str, list[Any]], count: int) -> list[dict[str, Any]]:
    """Returns a dictionary of all outputs for each row of a request.

    Raises:
        DataLoss: if an output has not as many values as the request had rows.
    """
    for name, values in outputs.items():
        if len(values) != count:
            raise DataLoss(f"The output {name} has {len(values)} values for {count} rows")
    return [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]


def _named(row: Any, i: int, names: list[str]) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        if len(names) == 1:
            return {names[0]: row}
        raise InputError(
            f"`rows` must be dictionaries, since the signature has the inputs {', '.join(sorted(names))}. "
            f"Received: {_echo(row)} as row {i}"
        )
    if row.keys() != set(names):
        raise InputError(
            f"`rows` must have exactly the signature's inputs: {', '.join(sorted(names))}. "
            f"Received: {', '.join(map(str, row)) or 'nothing'} in row {i}"
        )
    return row


def _array(name: str, values: list[Any], first: int, spec: TensorSpec) -> np.ndarray:
    array = _strings(name, values, first) if spec.dtype == "string" else _numbers(name, values, first, spec.dtype)
    if spec.shape is not None and len(spec.shape) != array.ndim:
        raise InputError(
            f"`rows` must have {_levels(len(spec.shape) - 1)} for {name}. Received: {_levels(array.ndim - 1)}"
        )
    return array


def _strings(name: str, values: list[Any], first: int) -> np.ndarray:
    try:
        array = np.array(values, object)
    except ValueError:
        raise _uneven(name, first, len(values)) from None
    encoded = np.empty(array.size, object)
    of_row = max(1, array.size // len(values))
    for i, value in enumerate(array.ravel()):
        row = first + i // of_row
        if isinstance(value, list | tuple | np.ndarray):
            raise _uneven(name, first, len(values))
        if not isinstance(value, str | bytes):
            raise InputError(f"`rows` must have texts or bytes for {name}. Received: {_echo(value)} in row {row}")
        try:
            encoded[i] = value.encode("utf-8") if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError:
            raise InputError(
                f"`rows` must have texts of whole characters for {name}. "
                f"Received: {_echo(value)}, with half of one, in row {row}"
            ) from None
    return encoded.reshape(array.shape)


def _numbers(name: str, values: list[Any], first: int, dtype: str) -> np.ndarray:
    try:
        wanted = np.dtype(dtype)
        kinds, words = _KINDS[wanted.kind]
    except (TypeError, KeyError):
        raise InputError(
            f"`signature_name` must be one whose inputs are texts or numbers. Received: {name}, which is {dtype}"
        ) from None
    try:
        array = np.array(values)
    except ValueError:
        raise _uneven(name, first, len(values)) from None
    if array.size and array.dtype.kind not in kinds:
        row = next((i for i, value in enumerate(values) if not _is_of(value, kinds)), 0)
        raise InputError(f"`rows` must have {words} for {name}. Received: {_echo(values[row])} in row {first + row}")
    if array.size and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        outside = (array < limits.min) | (array > limits.max)
        if outside.any():
            row = first + int(np.flatnonzero(outside.reshape(len(values), -1).any(axis=1))[0])
            raise InputError(
                f"`rows` must have numbers from {limits.min} to {limits.max} for {name}. "
                f"Received: {array.min()} to {array.max()}, the first in row {row}"
            )
    return array.astype(wanted)


def _is_of(value: Any, kinds: str) -> bool:
    """Whether a row's value has numbers of these kinds alone; a list that is uneven in itself has not."""
    try:
        array = np.array(value)
    except ValueError:
        return False
    return not array.size or array.dtype.kind in kinds


def _uneven(name: str, first: int, count: int) -> InputError:
    return InputError(
        f"`rows` must have lists of one length for {name}, since they are sent together; nothing is filled up here. "
        f"Received: several lengths in rows {first} to {first + count - 1}"
    )


def _levels(count: int) -> str:
    return {0: "single values", 1: "lists of values"}.get(count, f"lists of {count} levels")


def _echo(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_ECHO else text[:_LONGEST_ECHO] + "…"
