"""Answers over gRPC: which methods there are, the limits, and the form of refusals."""

import logging
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)

from keras_bert_impl.errors import InputError

from ..models.store import ModelStore
from ..predictor import Predictor
from ..request_error import RequestError
from .services import Services, asked_model

MAX_MESSAGE_BYTES = 32 * 1024 * 1024

_LONGEST_DETAILS = 1024

_log = logging.getLogger(__name__)


class GrpcServer:
    """Answers gRPC requests for models.

    Args:
        predictor: answers for models.
        store: whose versions and states are told.
        host: address to listen on.
        port: port; 0 for a free one.
        max_body_bytes: longer messages are refused, and so are tensors that would take more memory.
        max_requests: requests that may be in work at once; more are refused.

    Attributes:
        port: the one that it listens on.

    Raises:
        InputError: if the port cannot be had.
    """

    def __init__(
        self,
        predictor: Predictor,
        store: ModelStore,
        host: str,
        port: int,
        *,
        max_body_bytes: int = MAX_MESSAGE_BYTES,
        max_requests: int = 256,
    ) -> None:
        self._predictor = predictor
        self._server = grpc.server(
            # A request waits in its thread until it has been its turn, so there is one for each.
            futures.ThreadPoolExecutor(max_requests, thread_name_prefix="keras-bert-grpc"),
            maximum_concurrent_rpcs=max_requests,
            options=[
                ("grpc.max_receive_message_length", max_body_bytes),
                ("grpc.max_send_message_length", -1),
                # Else a second server on the same port would get a part of the requests, and nobody an error.
                ("grpc.so_reuseport", 0),
            ],
        )
        services = Services(predictor, store, max_body_bytes)
        handlers = {
            "tensorflow.serving.PredictionService": {
                "Predict": self._handler(predict_pb2.PredictRequest, services.predict),
                "Classify": self._handler(classification_pb2.ClassificationRequest, services.classify),
                "Regress": self._handler(regression_pb2.RegressionRequest, services.regress),
                "MultiInference": self._handler(inference_pb2.MultiInferenceRequest, services.multi_inference),
                "GetModelMetadata": self._handler(
                    get_model_metadata_pb2.GetModelMetadataRequest, services.get_model_metadata
                ),
            },
            "tensorflow.serving.ModelService": {
                "GetModelStatus": self._handler(get_model_status_pb2.GetModelStatusRequest, services.get_model_status),
                "HandleReloadConfigRequest": self._handler(
                    model_management_pb2.ReloadConfigRequest, services.handle_reload_config_request
                ),
            },
        }
        for name, methods in handlers.items():
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, methods)])
        try:
            self.port: int = self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError as error:
            raise InputError(
                f"`grpc_port` must be one that this server may listen on at {host}. Received: grpc_port={port}"
            ) from error

    def start(self) -> None:
        """Begins to answer."""
        self._server.start()

    def stop(self, grace: float) -> None:
        """Accepts no more requests, and returns when the others are answered, or after `grace` seconds."""
        self._server.stop(grace).wait()

    def _handler(self, request_class: type[Message], answer: Callable[[Any], Message]) -> grpc.RpcMethodHandler:
        """Returns what answers a method. Messages are read here, where a broken one can be refused in our words."""
        method = "".join(word.capitalize() for word in answer.__name__.split("_"))

        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            try:
                return self._answer(method, request_class, answer, data, context)
            except RequestError as error:
                code, details = grpc.StatusCode[error.code], str(error)
            except Exception:
                # The client learns that it was not its fault, and nothing of our insides.
                _log.exception("%s failed", method)
                code, details = grpc.StatusCode.INTERNAL, "Internal error"
            if len(details) > _LONGEST_DETAILS:
                details = f"{details[:_LONGEST_DETAILS]}...TRUNCATED"
            context.set_code(code)
            context.set_details(details)
            return b""

        return grpc.unary_unary_rpc_method_handler(handle)

    def _answer(
        self,
        method: str,
        request_class: type[Message],
        answer: Callable[[Any], Message],
        data: bytes,
        context: grpc.ServicerContext,
    ) -> bytes:
        try:
            request = request_class.FromString(data)
        except DecodeError:
            request = None
        with self._predictor.request("gRPC", method, asked_model(request).name) as record:
            record.wanted = context.is_active
            if request is None:
                raise RequestError(f"The message is no {request_class.DESCRIPTOR.name}", "INTERNAL")
            _check_deadline(context)
            result = answer(request).SerializeToString()
            # Nobody gets it any more, and it counts as what the client has seen.
            _check_deadline(context)
            if not context.is_active():
                raise RequestError("The client is gone", "CANCELLED")
            return result


def _check_deadline(context: grpc.ServicerContext) -> None:
    seconds_left = context.time_remaining()
    if seconds_left is not None and seconds_left <= 0:
        raise RequestError("Deadline Exceeded", "DEADLINE_EXCEEDED")
