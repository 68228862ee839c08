"""Warm-up requests of an export: TensorFlow Serving runs them before it calls a new version available.

A file of TFRecords, each a `tensorflow.serving.PredictionLog` with a `PredictRequest`, in the version's `assets.extra`.
The server refuses a version when one of them fails, or when there are more than 1,000. The model's name in them is
not looked at: they are run by the version that they lie in (`saved_model_warmup.cc`), so an export may be served
under any name.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.util import deprecation

from keras_bert_impl.errors import InputError

from .proof.clean_process import ExportError

FILE = Path("assets.extra", "tf_serving_warmup_requests")
"""Within a version directory."""

MOST = 1000
"""Requests that the server accepts."""


class Request(NamedTuple):
    """A request for one of a version's signatures.

    Attributes:
        signature: its name.
        inputs: by name; strings are bytes in an array of objects.
        outputs: names of those that are asked for; all if empty.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """What it asks for at once: the size of the inputs' first dimension."""
        return max((array.shape[0] for array in self.inputs.values() if array.ndim), default=1)


def write(version_directory: str | os.PathLike[str], model_name: str, requests: Iterable[Request]) -> int:
    """Writes the requests into a version directory, and reads them back; returns how many they are.

    Args:
        version_directory: has the `saved_model.pb`.
        model_name: name of the model in the requests, which servers do not look at.
        requests: at most 1,000.

    Raises:
        InputError: if there are more.
        ExportError: if they are not read as they were written.
    """
    requests = list(requests)
    records = [_record(model_name, request) for request in requests]
    if len(records) > MOST:
        raise InputError(
            f"`requests` must be at most {MOST:,}, since TensorFlow Serving refuses a version with more. "
            f"Received: {len(records):,}"
        )
    path = Path(version_directory) / FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for record in records:
            writer.write(record)
    if not all(_alike(request, found) for request, found in zip(requests, read(version_directory), strict=True)):
        raise ExportError(f"The export was not put in place: {path.name} is not read as it was written")
    return len(records)


def read(version_directory: str | os.PathLike[str]) -> Iterator[Request]:
    """Yields the warm-up requests of a version directory; none if it has no such file.

    Raises:
        InputError: at a record that is damaged, is no request to predict, or is one too many.
    """
    path = Path(version_directory) / FILE
    if not path.is_file():
        return
    # Not by tf.data, which opens the GPU for eager operations, of which a server has none.
    with deprecation.silence():
        records = tf.compat.v1.io.tf_record_iterator(os.fspath(path))
    for number in itertools.count(1):
        try:
            record = next(records, None)
            request = None if record is None else _request(record)
        except _OtherKindError as error:
            raise _refusal(path, f"of which number {number} is {error}") from None
        except (tf.errors.OpError, DecodeError, TypeError, ValueError) as error:
            raise _refusal(path, f"of which number {number} cannot be read") from error
        if request is None:
            return
        if number > MOST:
            raise _refusal(path, f"which has more than {MOST:,}")
        yield request


class _OtherKindError(Exception):
    """The record holds no request to predict."""


def _alike(one: Request, other: Request) -> bool:
    return (one.signature, one.outputs, one.inputs.keys()) == (
        other.signature,
        other.outputs,
        other.inputs.keys(),
    ) and all(np.array_equal(array.astype(object), other.inputs[name]) for name, array in one.inputs.items())


def _refusal(path: Path, fault: str) -> InputError:
    return InputError(
        f"A version's warm-up file must hold requests to predict, at most {MOST:,}. Received: {str(path)!r}, {fault}"
    )


def _record(model_name: str, request: Request) -> bytes:
    log = _PREDICTION_LOG()
    predict = log.predict_log.request
    predict.model_spec.name = model_name
    predict.model_spec.signature_name = request.signature
    for name, array in sorted(request.inputs.items()):
        predict.inputs.add(key=name, value=_tensor(array).SerializeToString())
    predict.output_filter.extend(request.outputs)
    return log.SerializeToString()


def _tensor(array: np.ndarray) -> tensor_pb2.TensorProto:
    if array.dtype.kind in "SO":
        return tf.make_tensor_proto(array.ravel().tolist(), tf.string, array.shape)
    return tf.make_tensor_proto(array)


def _request(record: bytes) -> Request:
    log = _PREDICTION_LOG.FromString(record)
    if (kind := log.WhichOneof("log_type")) != "predict_log":
        raise _OtherKindError(kind or "of no kind known here")
    predict = log.predict_log.request
    inputs = {item.key: tf.make_ndarray(tensor_pb2.TensorProto.FromString(item.value)) for item in predict.inputs}
    return Request(predict.model_spec.signature_name or "serving_default", inputs, tuple(predict.output_filter))


def _prediction_log_class() -> Any:
    """Makes the class of `tensorflow.serving.PredictionLog`, as far as it is needed here.

    tensorflow-serving-api has it, too, but an export needs no server's package. Same numbers, same bytes: a map is a
    list of its items, and a message that is not opened here is `bytes`.
    """
    field = descriptor_pb2.FieldDescriptorProto
    text, raw = field.TYPE_STRING, field.TYPE_BYTES
    file = descriptor_pb2.FileDescriptorProto(name="warm_up.proto", package="warm_up", syntax="proto3")

    def message(name: str, /, **fields: tuple[int, Any]) -> Any:
        """Adds a message of fields, each with its number and its type or its message's name."""
        new = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            added = new.field.add(name=field_name, number=number, label=field.LABEL_OPTIONAL)
            if isinstance(kind, str):
                added.type, added.type_name = field.TYPE_MESSAGE, f".warm_up.{kind}"
            else:
                added.type = kind
        return new

    message("ModelSpec", name=(1, text), signature_name=(3, text))
    message("Input", key=(1, text), value=(2, raw))
    request = message("PredictRequest", model_spec=(1, "ModelSpec"), inputs=(2, "Input"), output_filter=(3, text))
    for several in request.field[1:]:
        several.label = field.LABEL_REPEATED
    message("PredictLog", request=(1, "PredictRequest"))
    log = message(
        "PredictionLog",
        classify_log=(2, raw),
        regress_log=(3, raw),
        multi_inference_log=(4, raw),
        session_run_log=(5, raw),
        predict_log=(6, "PredictLog"),
        predict_streamed_log=(7, raw),
    )
    log.oneof_decl.add(name="log_type")
    for kind in log.field:
        kind.oneof_index = 0
    # A pool of its own, where no name can meet one of another package.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("warm_up.PredictionLog"))


_PREDICTION_LOG = _prediction_log_class()
