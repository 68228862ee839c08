"""A small client of TensorFlow Serving's REST interface, with nothing but the standard library."""

import http.client
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from keras_bert_impl.errors import InputError


class ServingError(Exception):
    """The server refused a request or failed at it.

    Attributes:
        status: HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def predict(
    url: str, instances: Sequence[Any], *, signature_name: str = "serving_default", timeout: float = 60.0
) -> list[Any]:
    """Returns the server's predictions, one for each instance.

    Args:
        url: address of the model, `http://HOST:PORT/v1/models/NAME[/versions/VERSION]`.
        instances: texts, or dictionaries of the signature's inputs.
        signature_name: which of the model's signatures answers.
        timeout: seconds to wait for the connection and for each part of the answer.

    Raises:
        InputError: if `url` is not such an address, or nobody answers there.
        ServingError: with the server's own words, if it answers with an error.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or not parts.path.startswith("/v1/models/"):
        raise InputError(f"`url` must have the form http://HOST:PORT/v1/models/NAME. Received: url={url!r}")
    body = json.dumps({"signature_name": signature_name, "instances": list(instances)}).encode("utf-8")
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)
    try:
        connection.request("POST", f"{parts.path}:predict", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise InputError(f"`url` must be the address of a running server; {error}. Received: url={url!r}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise ServingError(_error_text(answer), response.status)
    return json.loads(answer)["predictions"]


def _error_text(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return answer.decode("utf-8", errors="replace")
