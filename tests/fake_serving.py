"""Servers that speak TensorFlow Serving's two protocols without a model, and fail when told to."""

import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

VERSION = 4
# Of each signature the inputs and outputs: type, as JSON has it, and number of dimensions.
SIGNATURES: dict[str, tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]] = {
    "serving_default": (
        {"text": ("DT_STRING", 1)},
        {
            "upper": ("DT_STRING", 1),
            "letters": ("DT_STRING", 2),
            "raw_bytes": ("DT_STRING", 1),
            "length": ("DT_INT32", 1),
            "tenths": ("DT_FLOAT", 2),
            "exact": ("DT_DOUBLE", 1),
            "long": ("DT_BOOL", 1),
        },
    ),
    "ids": (
        {"token_ids": ("DT_INT32", 2), "weights": ("DT_FLOAT", 2), "kept": ("DT_BOOL", 2)},
        {"sum": ("DT_FLOAT", 1)},
    ),
    # A SavedModel of TensorFlow 2 has it for its initialization.
    "__saved_model_init_op": ({}, {"__saved_model_init_op": ("DT_INVALID", 0)}),
}


def model(signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the servers compute."""
    if signature == "ids":
        kept = np.where(inputs["kept"], inputs["token_ids"] * inputs["weights"], 0)
        return {"sum": kept.sum(axis=1).astype(np.float32)}
    raw = list(inputs["text"])
    texts = [text.decode("utf-8", errors="replace") for text in raw]
    width = max(map(len, texts))
    letters = np.array([[*text, *[""] * (width - len(text))] for text in texts], object).reshape(len(texts), width)
    return {
        "upper": np.array([text.upper().encode() for text in texts], object),
        "letters": np.frompyfunc(str.encode, 1, 1)(letters),
        "raw_bytes": np.array(raw, object),
        "length": np.array([len(text) for text in texts], np.int32),
        "tenths": np.array([[len(text) / 10, np.nan] for text in texts], np.float32),
        "exact": np.array([len(text) / 3 for text in texts], np.float64),
        "long": np.array([len(text) > 3 for text in texts]),
    }


def definition(signature: str) -> dict[str, Any]:
    """The JSON form of a SignatureDef."""

    def tensors(specs: dict[str, tuple[str, int]]) -> dict[str, Any]:
        return {
            name: {
                "name": f"{name}:0",
                "dtype": dtype,
                "tensor_shape": {"dim": [{"size": "-1", "name": ""}] * rank, "unknown_rank": False},
            }
            for name, (dtype, rank) in specs.items()
        }

    inputs, outputs = SIGNATURES[signature]
    return {"inputs": tensors(inputs), "outputs": tensors(outputs), "method_name": "tensorflow/serving/predict"}


class Handler(BaseHTTPRequestHandler):
    """Answers as TensorFlow Serving's REST interface does."""

    protocol_version = "HTTP/1.1"
    server: "RestServer"

    def do_GET(self) -> None:
        path = self.path
        if path.endswith("/metadata"):
            definitions = {name: definition(name) for name in SIGNATURES}
            self.answer(
                200,
                {
                    "model_spec": {"name": "bert", "signature_name": "", "version": str(VERSION)},
                    "metadata": {"signature_def": {"signature_def": definitions}},
                },
            )
        elif path.rpartition("/versions/")[2] in (path, str(VERSION)):
            ok = {"error_code": "OK", "error_message": ""}
            self.answer(200, {"model_version_status": [{"version": str(VERSION), "state": "AVAILABLE", "status": ok}]})
        else:
            self.answer(404, {"error": "Could not find version 9 of model bert"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(body))
        behave = self.server.behaviours.pop(0) if self.server.behaviours else predict
        behave(self)

    def answer(self, status: int, document: Any) -> None:
        self.send_bytes(status, json.dumps(document, ensure_ascii=False).encode())

    def send_bytes(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def predict(handler: Handler) -> None:
    """Answers the last request."""
    request = handler.server.requests[-1]
    signature = request["signature_name"]
    arrays = {}
    for name, (dtype, _) in SIGNATURES[signature][0].items():
        values = request["inputs"][name]
        if dtype == "DT_STRING":
            values = [base64.b64decode(x["b64"]) if isinstance(x, dict) else x.encode() for x in values]
        arrays[name] = np.array(values, object if dtype == "DT_STRING" else None)
    outputs = {name: _json(name, array) for name, array in model(signature, arrays).items()}
    handler.answer(200, {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))})


def _json(name: str, array: np.ndarray) -> Any:
    if array.dtype == np.float32:
        return [[float(f"{x:.9g}") for x in row] if array.ndim == 2 else float(f"{row:.9g}") for row in array]
    if array.dtype != object:
        return array.tolist()
    if name.endswith("_bytes"):
        return [{"b64": base64.b64encode(value).decode()} for value in array]
    return np.frompyfunc(lambda value: value.decode(), 1, 1)(array).tolist()


class RestServer(ThreadingHTTPServer):
    """Each `:predict` request takes the next of `behaviours`; the rest are answered."""

    daemon_threads = True

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.behaviours: list[Callable[[Handler], None]] = []
        self.requests: list[Any] = []
        self.address = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *arguments: Any) -> None:
        """Clients that hang up are what is tested."""


@contextlib.contextmanager
def rest_server(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[RestServer]:
    with RestServer(port, tls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def refuse(status: int, error: str = "no") -> Callable[[Handler], None]:
    return lambda handler: handler.answer(status, {"error": error})


def say(body: bytes, length: int | None = None) -> Callable[[Handler], None]:
    def behave(handler: Handler) -> None:
        handler.send_bytes(200, body, length)
        handler.close_connection = True

    return behave


def hang_up(handler: Handler) -> None:
    handler.close_connection = True


def not_http(handler: Handler) -> None:
    handler.wfile.write(b"hello\r\n\r\n")
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """Sends a byte of an answer now and then."""
    with contextlib.suppress(OSError):
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b" " * 500:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.05)
    handler.close_connection = True


class GrpcServer:
    """The same over gRPC; each Predict takes the next of `failures`, pairs of a code's name and a text."""

    def __init__(self) -> None:
        import grpc
        from google.protobuf import json_format
        from tensorflow_serving.apis import (
            get_model_metadata_pb2,
            get_model_status_pb2,
            model_service_pb2_grpc,
            predict_pb2,
            prediction_service_pb2_grpc,
        )

        fake = self

        class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
            def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
                import tensorflow as tf

                fake.requests.append(request)
                if fake.failures:
                    code, text = fake.failures.pop(0)
                    if code == "DEADLINE_EXCEEDED":
                        time.sleep(1)
                    context.abort(grpc.StatusCode[code], text)
                arrays = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
                answer = predict_pb2.PredictResponse()
                for name, array in model(request.model_spec.signature_name, arrays).items():
                    answer.outputs[name].CopyFrom(tf.make_tensor_proto(array))
                return answer

            def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
                signatures = {"signature_def": {name: definition(name) for name in SIGNATURES}}
                definitions = json_format.ParseDict(signatures, get_model_metadata_pb2.SignatureDefMap())
                answer = get_model_metadata_pb2.GetModelMetadataResponse()
                answer.model_spec.version.value = VERSION
                answer.metadata["signature_def"].Pack(definitions)
                return answer

        class Models(model_service_pb2_grpc.ModelServiceServicer):
            def GetModelStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
                if request.model_spec.version.value not in (0, VERSION):
                    context.abort(grpc.StatusCode.NOT_FOUND, "Could not find version 9 of model bert")
                answer = get_model_status_pb2.GetModelStatusResponse()
                answer.model_version_status.add(version=VERSION, state="AVAILABLE")
                return answer

        self.failures: list[tuple[str, str]] = []
        self.requests: list[Any] = []
        self._server = grpc.server(ThreadPoolExecutor(4))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Predictions(), self._server)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), self._server)
        self.address = f"grpc://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> "GrpcServer":
        self._server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.stop(None).wait()
