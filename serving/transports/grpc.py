"""TensorFlow Serving's gRPC interface, on its own messages and stubs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from keras_bert_impl.extras import check_extra

from ..nested_values import nested_values
from ..serving_error import DataLoss, error_of_code
from ..version_status import VersionStatus
from .deadline import Deadline
from .transport import Metadata, SignatureSpec, TensorSpec, dtype_of, text_or_bytes

_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A server that comes back is found by the next try, not a second later.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # The address that was given is the one that is asked, as over REST.
    ("grpc.enable_http_proxy", 0),
]


class GrpcTransport:
    """Asks one server over gRPC.

    Args:
        host: name or address of the server.
        port: port of its gRPC interface.

    Raises:
        InputError: if the extra `serving` is not installed.
    """

    def __init__(self, host: str, port: int) -> None:
        check_extra("An `address` that begins with grpc://", "serving", ["grpc", "tensorflow_serving"])
        import grpc
        from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

        self._channel = grpc.insecure_channel(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", _OPTIONS)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(
        self,
        model: str,
        version: int | None,
        signature_name: str,
        signature: SignatureSpec,
        inputs: Mapping[str, np.ndarray],
        deadline: Deadline,
    ) -> dict[str, list[Any]]:
        """See `Transport`."""
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        _name_model(request.model_spec, model, version)
        request.model_spec.signature_name = signature_name
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(array, tf.as_dtype(signature.inputs[name].dtype)))
        answer = _ask(self._predictions.Predict, request, deadline)
        try:
            return {name: _values(name, tf.make_ndarray(answer.outputs[name])) for name in signature.outputs}
        except (TypeError, ValueError) as error:
            raise DataLoss(f"An output is no tensor: {error}") from error

    def metadata(self, model: str, version: int | None, deadline: Deadline) -> Metadata:
        """See `Transport`."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        _name_model(request.model_spec, model, version)
        answer = _ask(self._predictions.GetModelMetadata, request, deadline)
        definitions = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(definitions)
        signatures = {
            name: SignatureSpec(_tensors(definition.inputs), _tensors(definition.outputs))
            for name, definition in definitions.signature_def.items()
        }
        return Metadata(answer.model_spec.version.value, signatures)

    def status(self, model: str, version: int | None, deadline: Deadline) -> list[VersionStatus]:
        """See `Transport`."""
        from tensorflow.core.protobuf import error_codes_pb2
        from tensorflow_serving.apis import get_model_status_pb2

        request = get_model_status_pb2.GetModelStatusRequest()
        _name_model(request.model_spec, model, version)
        answer = _ask(self._models.GetModelStatus, request, deadline)
        state_name = get_model_status_pb2.ModelVersionStatus.State.Name
        return [
            VersionStatus(
                known.version,
                state_name(known.state),
                error_codes_pb2.Code.Name(known.status.error_code),
                known.status.error_message,
            )
            for known in answer.model_version_status
        ]

    def close(self) -> None:
        """See `Transport`."""
        self._channel.close()


def _ask(method: Callable[..., Any], request: Any, deadline: Deadline) -> Any:
    import grpc

    try:
        return method(request, timeout=deadline.remaining())
    except grpc.RpcError as error:
        code = error.code().name
        if code == "DEADLINE_EXCEEDED":
            raise deadline.exceeded() from error
        raise error_of_code(code, error.details() or "The server gave no reason") from error


def _name_model(model_spec: Any, model: str, version: int | None) -> None:
    model_spec.name = model
    if version is not None:
        model_spec.version.value = version


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    from tensorflow.core.framework import types_pb2

    return {
        name: TensorSpec(
            dtype_of(types_pb2.DataType.Name(info.dtype)),
            None
            if info.tensor_shape.unknown_rank
            else tuple(None if dimension.size < 0 else dimension.size for dimension in info.tensor_shape.dim),
        )
        for name, info in sorted(infos.items())
    }


def _values(name: str, array: np.ndarray) -> list[Any]:
    if not array.ndim:
        raise ValueError(f"{name} is a single value")
    return nested_values(array, partial(text_or_bytes, name)) if array.dtype == object else array.tolist()
