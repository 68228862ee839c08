"""TensorFlow Serving's REST form of `tf.Example`s, with its error texts.

`{"context": {...}, "examples": [{...}, ...]}`, an object of features each: numbers, strings, `{"b64": ...}`, or lists
of them. Answered by `{"results": [[["label", 0.5], ...], ...]}` or `{"results": [0.5, ...]}`.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from tensorflow.core.example.example_pb2 import Example
from tensorflow.core.example.feature_pb2 import Feature
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from ..request_error import RequestError
from .json_values import decode_base64, echo, is_base64, shortest_decimals, type_name

_KINDS = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def read_examples(document: Mapping[str, Any]) -> Input:
    """Returns the request's examples.

    Raises:
        RequestError: if it has none, or they are not of this form.
    """
    examples = Input()
    if "context" in document:
        examples.example_list_with_context.context.CopyFrom(_example(document["context"]))
    if "examples" not in document:
        raise RequestError(
            f"JSON Value: {echo(document)} When method is classify, key 'examples' is expected and was not found"
        )
    rows = document["examples"]
    if not isinstance(rows, list):
        raise RequestError(f"JSON Value: {echo(document)} Expecting 'examples' value to be an list/array")
    if not rows:
        raise RequestError(f"JSON Value: {echo(document)} 'examples' value is an empty array")
    kind = examples.example_list_with_context if "context" in document else examples.example_list
    kind.examples.extend(_example(row) for row in rows)
    return examples


def write_classifications(result: ClassificationResult) -> bytes:
    """Returns the answer's JSON: for each example a list of labels with their scores."""
    scores = _decimals([[found.score for found in row.classes] for row in result.classifications])
    rows = [
        [[found.label, score] for found, score in zip(row.classes, row_scores, strict=True)]
        for row, row_scores in zip(result.classifications, scores, strict=True)
    ]
    return json.dumps({"results": rows}, ensure_ascii=False).encode("utf-8")


def write_regressions(result: RegressionResult) -> bytes:
    """Returns the answer's JSON: a number for each example."""
    return json.dumps({"results": _decimals([row.value for row in result.regressions])}).encode("utf-8")


def _decimals(values: list[Any]) -> Any:
    return shortest_decimals(np.array(values, np.float32)).tolist()


def _example(value: Any) -> Example:
    if not isinstance(value, dict):
        raise RequestError(f"Example must be JSON object but got JSON {type_name(value)}")
    example = Example()
    for name, content in value.items():
        _utf8(name)
        feature = example.features.feature[name]
        for element in content if isinstance(content, list) else [content]:
            _add(feature, name, element)
    return example


def _add(feature: Feature, name: str, value: Any) -> None:
    element: bytes | float
    if isinstance(value, str) or is_base64(value):
        kind, element = "bytes_list", _utf8(value) if isinstance(value, str) else decode_base64(value)
    elif isinstance(value, bool) or _is_int64(value):
        kind, element = "int64_list", int(value)
    elif isinstance(value, int) and 0 < value < 2**64:
        raise RequestError(f"Feature: {name} has uint64 element. Only int64 is supported.")
    elif isinstance(value, int | float):
        kind, element = "float_list", _float(value)
    else:
        raise RequestError(f"Feature: {name} has element with unexpected JSON type: {type_name(value)}")
    known = feature.WhichOneof("kind")
    if known not in (None, kind):
        raise RequestError(f"Unexpected element type in feature: {name} expecting type: {_KINDS[known]}")
    getattr(feature, kind).value.append(element)


def _is_int64(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _float(value: float) -> float:
    if abs(value) > _LARGEST_FLOAT and abs(value) != float("inf"):
        raise RequestError(f"Cannot convert JSON value: {echo(value)} to float without loss of precision.")
    return float(value)


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError("JSON Parse error: The surrogate pair in string is invalid.") from None
