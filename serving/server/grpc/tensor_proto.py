"""`TensorProto`, the form of tensors in gRPC messages: to NumPy arrays and back."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

from ..request_error import RequestError

# Where TensorFlow puts the values of each type. The others (quantized, float8, int4, handles) are not read.
_FIELDS = {
    types_pb2.DT_HALF: "half_val",
    types_pb2.DT_BFLOAT16: "half_val",
    types_pb2.DT_FLOAT: "float_val",
    types_pb2.DT_DOUBLE: "double_val",
    types_pb2.DT_INT8: "int_val",
    types_pb2.DT_INT16: "int_val",
    types_pb2.DT_INT32: "int_val",
    types_pb2.DT_INT64: "int64_val",
    types_pb2.DT_UINT8: "int_val",
    types_pb2.DT_UINT16: "int_val",
    types_pb2.DT_UINT32: "uint32_val",
    types_pb2.DT_UINT64: "uint64_val",
    types_pb2.DT_BOOL: "bool_val",
    types_pb2.DT_COMPLEX64: "scomplex_val",
    types_pb2.DT_COMPLEX128: "dcomplex_val",
    types_pb2.DT_STRING: "string_val",
}
_MAX_RANK = 64  # of NumPy
_BYTES_OF_A_STRING = 24  # in a tensor, without its content


def to_array(proto: TensorProto, max_bytes: int) -> np.ndarray:
    """Reads a tensor as TensorFlow does: where values are left out, the last one (or zero) stands for the rest.

    Unlike TensorFlow it refuses values that are too many for the shape or too large for the type.

    Args:
        proto: the tensor, of any content.
        max_bytes: memory that it may take: a few bytes can ask for a tensor of any size.

    Returns:
        An array; strings are bytes in an array of objects.

    Raises:
        RequestError: saying what is wrong with it.
    """
    field = _FIELDS.get(proto.dtype)
    if field is None:
        raise RequestError(f"its dtype {_dtype_name(proto.dtype)} cannot be read")
    shape = _shape(proto.tensor_shape)
    dtype = np.dtype(tf.as_dtype(proto.dtype).as_numpy_dtype)
    width = _BYTES_OF_A_STRING if field == "string_val" else dtype.itemsize
    if math.prod(size or 1 for size in shape) * width > max_bytes:
        raise _too_large(shape, max_bytes)
    size = math.prod(shape)
    if field == "string_val":
        return _strings(proto, shape, size, max_bytes)
    if proto.tensor_content:
        if len(proto.tensor_content) != size * width:
            raise RequestError(
                f"its shape {_text(shape)} takes {size * width} bytes, and it has {len(proto.tensor_content)}"
            )
        array = tf.make_ndarray(proto)
        # Bytes other than 0 and 1 are true, but would not equal it.
        return array.view(np.uint8) != 0 if dtype == np.bool_ else array
    _check_count(len(getattr(proto, field)), shape, 2 if dtype.kind == "c" else 1)
    try:
        return tf.make_ndarray(proto)
    except OverflowError:
        raise RequestError(f"its {field} has a number that is no {_dtype_name(proto.dtype)}") from None


def from_array(array: np.ndarray) -> TensorProto:
    """Writes a tensor as TensorFlow Serving answers with it: value by value, in the field of its type.

    Args:
        array: of one of the types that `to_array` reads.
    """
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in array.shape])
    if array.dtype.kind in "OS":
        strings = [tf.compat.as_bytes(value) for value in array.ravel().tolist()]
        return TensorProto(dtype=types_pb2.DT_STRING, tensor_shape=shape, string_val=strings)
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    proto = TensorProto(dtype=dtype, tensor_shape=shape)
    field = _FIELDS[dtype]
    values = np.ascontiguousarray(array).ravel()
    if field == "half_val":
        proto.half_val.extend(values.view(np.uint16).tolist())
    elif array.dtype.kind in "fc" and array.size:
        # As they stand in the message. Given to the library one by one, they would take eighty times as long.
        packed = TensorProto(tensor_content=values.tobytes()).SerializeToString()
        proto.MergeFromString(_tag(field) + packed[1:])
    else:
        getattr(proto, field).extend(values.tolist())
    return proto


def _tag(field: str) -> bytes:
    """Returns what begins a field of packed values in a message, and of bytes alike."""
    return bytes([TensorProto.DESCRIPTOR.fields_by_name[field].number << 3 | 2])


def _shape(proto: TensorShapeProto) -> tuple[int, ...]:
    if proto.unknown_rank:
        raise RequestError("its shape is unknown")
    if len(proto.dim) > _MAX_RANK:
        raise RequestError(f"its shape has {len(proto.dim)} dimensions, more than {_MAX_RANK}")
    shape = tuple(dim.size for dim in proto.dim)
    if any(size < 0 for size in shape):
        raise RequestError(f"its shape {_text(shape)} has a negative size")
    return shape


def _strings(proto: TensorProto, shape: tuple[int, ...], size: int, max_bytes: int) -> np.ndarray:
    values = list(proto.string_val)
    if proto.tensor_content:
        values = _string_list(proto.tensor_content, size)
    _check_count(len(values), shape, 1)
    left_out = size - len(values)
    last = values[-1] if values else b""
    if size * _BYTES_OF_A_STRING + sum(map(len, values)) + left_out * len(last) > max_bytes:
        raise _too_large(shape, max_bytes)
    array = np.empty(size, object)
    array[:] = values + left_out * [last]
    return array.reshape(shape)


def _string_list(content: bytes, count: int) -> list[bytes]:
    """Reads strings as `tensor_content` has them: the length of each as a varint, then the strings themselves."""
    lengths, position = [], 0
    for _ in range(count):
        length, shift = 0, 0
        while True:
            byte = content[position] if position < len(content) and shift < 64 else -1
            if byte < 0:
                raise RequestError(f"its tensor_content does not have {count} strings")
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise RequestError(f"its tensor_content does not have {count} strings")
    strings = []
    for length in lengths:
        strings.append(content[position : position + length])
        position += length
    return strings


def _check_count(count: int, shape: tuple[int, ...], numbers_per_value: int) -> None:
    room = math.prod(shape) * numbers_per_value
    if count > room or count % numbers_per_value:
        raise RequestError(f"its shape {_text(shape)} has room for {room} numbers or strings, and it has {count}")


def _too_large(shape: tuple[int, ...], max_bytes: int) -> RequestError:
    return RequestError(f"its shape {_text(shape)} takes more than the {max_bytes} bytes that are allowed")


def _dtype_name(dtype: int) -> str:
    return types_pb2.DataType.Name(dtype) if dtype in types_pb2.DataType.values() else str(dtype)


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
