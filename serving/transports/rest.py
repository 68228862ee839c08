"""TensorFlow Serving's REST interface, with nothing but the standard library and NumPy."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from ..nested_values import nested_values
from ..serving_error import DataLoss, error_of_status
from ..version_status import VersionStatus
from .connections import Connections
from .deadline import Deadline
from .transport import Metadata, SignatureSpec, TensorSpec, dtype_of, text_or_bytes


class RestTransport:
    """Asks one server over HTTP.

    Args:
        host: name or address of the server.
        port: port of its REST interface.
        tls: whether over TLS; see `Connections`.
    """

    def __init__(self, host: str, port: int, *, tls: bool = False) -> None:
        self._connections = Connections(host, port, tls=tls)

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
        columns = {name: _json_values(array) for name, array in inputs.items()}
        body = json.dumps({"signature_name": signature_name, "inputs": columns}, ensure_ascii=False)
        answer = self._ask("POST", f"{_path(model, version)}:predict", deadline, body.encode("utf-8"))
        try:
            # A single output stands without its name.
            outputs = answer["outputs"]
            columns = outputs if len(signature.outputs) > 1 else dict.fromkeys(signature.outputs, outputs)
            return {name: _values(name, columns[name], spec.dtype) for name, spec in signature.outputs.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise _not_an_answer(error) from error

    def metadata(self, model: str, version: int | None, deadline: Deadline) -> Metadata:
        """See `Transport`."""
        answer = self._ask("GET", f"{_path(model, version)}/metadata", deadline)
        try:
            definitions = answer["metadata"]["signature_def"]["signature_def"]
            signatures = {name: _signature(definition) for name, definition in definitions.items()}
            return Metadata(int(answer["model_spec"]["version"]), signatures)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _not_an_answer(error) from error

    def status(self, model: str, version: int | None, deadline: Deadline) -> list[VersionStatus]:
        """See `Transport`."""
        answer = self._ask("GET", _path(model, version), deadline)
        try:
            return [
                VersionStatus(
                    int(known["version"]),
                    str(known["state"]),
                    str(known["status"]["error_code"]),
                    str(known["status"]["error_message"]),
                )
                for known in answer["model_version_status"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise _not_an_answer(error) from error

    def close(self) -> None:
        """See `Transport`."""
        self._connections.close()

    def _ask(self, method: str, path: str, deadline: Deadline, body: bytes | None = None) -> dict[str, Any]:
        status, answer = self._connections.request(method, path, body, deadline)
        if status != 200:
            raise error_of_status(status, error_text(answer))
        try:
            # Strings of models need not be UTF-8, and the real server sends them as they are.
            document = json.loads(answer.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError) as error:
            raise _not_an_answer(error) from error
        if not isinstance(document, dict):
            raise DataLoss("What answers is not TensorFlow Serving: its answer is no JSON object", status=status)
        return document


def error_text(answer: bytes) -> str:
    """Returns the sentence in the body of a refusal."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return answer.decode("utf-8", errors="replace").strip() or "The server gave no reason"


def _path(model: str, version: int | None) -> str:
    versions = "" if version is None else f"/versions/{version}"
    return f"/v1/models/{quote(model, safe='')}{versions}"


def _signature(definition: Mapping[str, Any]) -> SignatureSpec:
    return SignatureSpec(_tensors(definition["inputs"]), _tensors(definition["outputs"]))


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    tensors = {}
    for name, info in sorted(infos.items()):
        shape = info["tensor_shape"]
        sizes = [int(dimension["size"]) for dimension in shape.get("dim", [])]
        tensors[name] = TensorSpec(
            dtype_of(info["dtype"]),
            None if shape.get("unknown_rank") else tuple(None if size < 0 else size for size in sizes),
        )
    return tensors


def _json_values(array: np.ndarray) -> Any:
    return nested_values(array, _json_string) if array.dtype == object else array.tolist()


def _json_string(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def _values(name: str, values: Any, dtype: str) -> list[Any]:
    """Checks the values of an output, and gives them the precision of their type."""
    if not isinstance(values, list):
        raise TypeError(f"{name} is not a list")
    if dtype == "string":
        return [_strings(name, value) for value in values]
    array = np.array(values)
    if array.size and array.dtype.kind not in {"f": "iuf", "b": "b"}.get(np.dtype(dtype).kind, "iu"):
        raise TypeError(f"{name} is not of type {dtype}")
    return array.astype(dtype).tolist()


def _strings(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_strings(name, item) for item in value]
    if isinstance(value, str):
        return value
    try:
        return text_or_bytes(name, base64.b64decode(value["b64"], validate=True))
    except binascii.Error as error:
        raise ValueError(f"{name} is not base64") from error


def _not_an_answer(error: Exception) -> DataLoss:
    return DataLoss(f"What answers is not TensorFlow Serving: {type(error).__name__}: {error}", status=200)
