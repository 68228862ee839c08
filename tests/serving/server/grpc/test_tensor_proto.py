"""Tensors of gRPC messages: what is read is what was written, and nothing else is read."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tensorflow.core.framework import types_pb2
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto

from keras_bert_impl.serving.server.grpc.tensor_proto import from_array, to_array
from keras_bert_impl.serving.server.request_error import RequestError

MAX_BYTES = 100_000
NUMBERS = [
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
number_arrays = st.sampled_from(NUMBERS).flatmap(lambda dtype: arrays.arrays(dtype, SHAPES))


@st.composite
def string_arrays(draw):
    shape = draw(SHAPES)
    array = np.empty(int(np.prod(shape)), object)
    array[:] = [draw(st.binary(max_size=9)) for _ in range(array.size)]
    return array.reshape(shape)


def proto(dtype, shape, **values):
    dims = [TensorShapeProto.Dim(size=size) for size in shape]
    return TensorProto(dtype=dtype, tensor_shape=TensorShapeProto(dim=dims), **values)


def assert_same(array, expected):
    assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
    if expected.dtype == object:
        assert array.tolist() == expected.tolist()
    else:
        assert array.tobytes() == np.ascontiguousarray(expected).tobytes()


@settings(max_examples=60, deadline=None)
@given(number_arrays | string_arrays())
def test_what_is_written_is_read_again(array):
    assert_same(to_array(TensorProto.FromString(from_array(array).SerializeToString()), MAX_BYTES), array)


@settings(max_examples=40, deadline=None)
@given(number_arrays | string_arrays())
def test_tensorflow_and_this_read_each_other(array):
    if array.size:
        assert_same(to_array(tf.make_tensor_proto(array), MAX_BYTES), array)
    assert_same(tf.make_ndarray(from_array(array)), array)


@settings(max_examples=30, deadline=None)
@given(number_arrays)
def test_packed_content_is_read(array):
    dtype = tf.as_dtype(array.dtype).as_datatype_enum
    assert_same(to_array(proto(dtype, array.shape, tensor_content=array.tobytes()), MAX_BYTES), array)


def test_bfloat16_is_written_and_read():
    array = np.array([[1.5, -2.0], [np.inf, 0.0]], ml_dtypes.bfloat16)
    assert from_array(array).dtype == types_pb2.DT_BFLOAT16
    assert_same(to_array(from_array(array), MAX_BYTES), array)


def test_an_array_that_is_not_in_one_piece_is_written():
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    assert_same(to_array(from_array(array), MAX_BYTES), array)


def test_values_stand_in_the_field_of_their_type():
    assert list(from_array(np.float32([0.5, 2])).float_val) == [0.5, 2]
    assert list(from_array(np.complex64([1 + 2j])).scomplex_val) == [1, 2]
    assert list(from_array(np.float16([1])).half_val) == [0x3C00]
    assert list(from_array(np.int32([[7]])).int_val) == [7]
    assert list(from_array(np.array([b"a"], object)).string_val) == [b"a"]
    assert not from_array(np.float32([0.5])).tensor_content


def test_strings_in_packed_form_are_read():
    long = b"x" * 300
    content = bytes([1, 0, 0xAC, 2]) + b"a" + long
    array = to_array(proto(types_pb2.DT_STRING, [3], tensor_content=content), MAX_BYTES)
    assert array.tolist() == [b"a", b"", long]


def test_values_that_are_left_out_are_the_last_one_or_zero():
    assert to_array(proto(types_pb2.DT_FLOAT, [3], float_val=[1, 2]), MAX_BYTES).tolist() == [1, 2, 2]
    assert to_array(proto(types_pb2.DT_INT32, [2, 1]), MAX_BYTES).tolist() == [[0], [0]]
    assert to_array(proto(types_pb2.DT_STRING, [3], string_val=[b"a"]), MAX_BYTES).tolist() == [b"a"] * 3
    assert to_array(proto(types_pb2.DT_STRING, [2]), MAX_BYTES).tolist() == [b"", b""]


def test_any_byte_but_0_is_true():
    array = to_array(proto(types_pb2.DT_BOOL, [3], tensor_content=b"\x00\x01\x02"), MAX_BYTES)
    assert (array == [False, True, True]).all()


UNKNOWN_RANK = TensorProto(dtype=types_pb2.DT_FLOAT, tensor_shape=TensorShapeProto(unknown_rank=True))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (TensorProto(), "its dtype DT_INVALID cannot be read"),
        (TensorProto(dtype=999), "its dtype 999 cannot be read"),
        (proto(types_pb2.DT_QINT8, [1], int_val=[1]), "its dtype DT_QINT8 cannot be read"),
        (proto(types_pb2.DT_RESOURCE, [1]), "its dtype DT_RESOURCE cannot be read"),
        (UNKNOWN_RANK, "its shape is unknown"),
        (proto(types_pb2.DT_FLOAT, [-1]), r"its shape \[-1\] has a negative size"),
        (proto(types_pb2.DT_FLOAT, [1] * 65), "its shape has 65 dimensions, more than 64"),
        (proto(types_pb2.DT_FLOAT, [2**40]), r"its shape \[1099511627776\] takes more than the 100000 bytes"),
        (proto(types_pb2.DT_FLOAT, [2**62] * 64), "takes more than the 100000 bytes that are allowed"),
        (proto(types_pb2.DT_FLOAT, [0, 2**62, 2**62]), "takes more than the 100000 bytes that are allowed"),
        (proto(types_pb2.DT_STRING, [10_000]), "takes more than the 100000 bytes that are allowed"),
        (proto(types_pb2.DT_STRING, [20], string_val=[b"x" * 9000]), "takes more than the 100000 bytes"),
        (proto(types_pb2.DT_FLOAT, [2], float_val=[1, 2, 3]), r"its shape \[2\] has room for 2 numbers"),
        (
            proto(types_pb2.DT_STRING, [], string_val=[b"", b""]),
            "room for 1 numbers or strings, and it has 2",
        ),
        (proto(types_pb2.DT_COMPLEX64, [2], scomplex_val=[1, 2, 3]), "room for 4 numbers or strings, and it has 3"),
        (proto(types_pb2.DT_FLOAT, [2], tensor_content=b"1234567"), r"\[2\] takes 8 bytes, and it has 7"),
        (proto(types_pb2.DT_FLOAT, [0], tensor_content=b"1"), r"\[0\] takes 0 bytes, and it has 1"),
        (proto(types_pb2.DT_INT8, [1], int_val=[128]), "its int_val has a number that is no DT_INT8"),
        (proto(types_pb2.DT_UINT16, [1], int_val=[-1]), "its int_val has a number that is no DT_UINT16"),
        (proto(types_pb2.DT_HALF, [1], half_val=[2**16]), "its half_val has a number that is no DT_HALF"),
        (proto(types_pb2.DT_STRING, [2], tensor_content=b"\x01"), "its tensor_content does not have 2 strings"),
        (proto(types_pb2.DT_STRING, [1], tensor_content=b"\x01ab"), "its tensor_content does not have 1 strings"),
        (proto(types_pb2.DT_STRING, [1], tensor_content=b"\xff" * 99), "its tensor_content does not have 1 strings"),
    ],
)
def test_each_broken_tensor_has_its_sentence(tensor, message):
    with pytest.raises(RequestError, match=message) as error:
        to_array(tensor, MAX_BYTES)
    assert error.value.code == "INVALID_ARGUMENT"


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([*types_pb2.DataType.values(), -1, 70]),
    st.lists(st.integers(-1, 5) | st.sampled_from([2**31, 2**63 - 1]), max_size=4),
    st.binary(max_size=40),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5),
    st.lists(st.binary(max_size=5), max_size=5),
)
def test_any_tensor_is_read_or_refused(dtype, shape, content, numbers, strings):
    tensor = proto(
        dtype,
        shape,
        tensor_content=content,
        int_val=numbers,
        half_val=numbers,
        dcomplex_val=numbers,
        string_val=strings,
    )
    try:
        array = to_array(tensor, MAX_BYTES)
    except RequestError:
        return
    assert array.shape == tuple(shape)
    assert array.nbytes <= MAX_BYTES
    assert_same(to_array(from_array(array), MAX_BYTES), array)
