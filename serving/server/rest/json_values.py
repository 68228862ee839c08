"""JSON values as TensorFlow Serving reads, names and shows them.

NaN and Infinity are allowed both ways. One difference from the real server: a body that is not UTF-8 is refused.
"""

import base64
import binascii
import json
from typing import Any

import numpy as np

from ..request_error import RequestError

_LONGEST_ECHO = 300


def parse_json(body: bytes) -> dict[str, Any]:
    """Returns the request's object; raises `RequestError` for anything else."""
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RequestError(f"JSON Parse error: The document is not UTF-8 at offset: {error.start}") from None
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise RequestError(f"JSON Parse error: {what} at offset: {error.pos}") from None
    except RecursionError:
        raise RequestError("JSON Parse error: The document is nested too deeply") from None
    except ValueError:
        raise RequestError("JSON Parse error: A number has too many digits") from None
    if not isinstance(document, dict):
        raise RequestError(f"JSON Value: {echo(document)} Is not object")
    return document


def decode_base64(value: dict[str, Any]) -> bytes:
    """Returns the bytes of `{"b64": "..."}`; raises `RequestError` for other objects."""
    if not is_base64(value):
        raise RequestError(f"JSON Value: {echo(value)} not formatted correctly for base64 data")
    text = value["b64"].rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RequestError("Unable to base64 decode") from None


def is_base64(value: Any) -> bool:
    """Whether a value is bytes, written as `{"b64": "..."}`."""
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def shortest_decimals(array: np.ndarray) -> np.ndarray:
    """Returns float64 values that print with six digits, or nine where six do not give the float32 back."""
    exact = array.astype(np.float64)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log10(np.abs(exact)))
        result = exact
        for digits in (9, 6):
            scale = 10.0 ** (digits - 1 - exponent)
            rounded = np.round(exact * scale) / scale
            result = np.where(rounded.astype(np.float32) == array, rounded, result)
    return result


def type_name(value: Any) -> str:
    """The type of a JSON value, as the real server names it."""
    if value is None or isinstance(value, bool):
        return {None: "Null", False: "False", True: "True"}[value]
    names: dict[type, str] = {dict: "Object", list: "Array", str: "String"}
    return names.get(type(value), "Number")


def echo(value: Any) -> str:
    """The value as JSON for an error text, cut where it is long."""
    # Long lists are cut before they are written: the text must stay cheap for a body of many megabytes.
    pieces = json.JSONEncoder(ensure_ascii=False, indent=4).iterencode(value)
    text = ""
    for piece in pieces:
        text += piece
        if len(text) > _LONGEST_ECHO:
            return text[:_LONGEST_ECHO] + "…"
    return text
