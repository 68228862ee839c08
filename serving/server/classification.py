"""Classification and regression of `tf.Example`s, for SavedModels whose signatures ask for them.

Such a signature has one input, `inputs`, of serialized examples, and as outputs `classes`, `scores` or both, or
`outputs`. As in TensorFlow Serving with its usual settings, this is what counts, not the signature's method name.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from .models.loaded_version import LoadedVersion
from .models.signature import Signature
from .predictor import Predictor
from .request_error import RequestError

_INPUT = "inputs"


def classify(predictor: Predictor, servable: LoadedVersion, signature: str, examples: Input) -> ClassificationResult:
    """Returns labels and scores for each example.

    Args:
        predictor: runs the signature.
        servable: a leased version.
        signature: the signature's name.
        examples: at least one.

    Raises:
        RequestError: if the signature is none of classification, there are no examples, or the model refuses them.
    """
    check_classification(_signature(servable, signature))
    serialized = serialized_examples(examples)
    wanted = servable.signatures[signature].outputs.keys() & {"classes", "scores"}
    outputs = predictor.run(servable, signature, {_INPUT: serialized}, wanted)
    return _classification_result(outputs, len(serialized))


def regress(predictor: Predictor, servable: LoadedVersion, signature: str, examples: Input) -> RegressionResult:
    """Returns a number for each example. See `classify`."""
    check_regression(_signature(servable, signature))
    serialized = serialized_examples(examples)
    outputs = predictor.run(servable, signature, {_INPUT: serialized}, {"outputs"})
    return _regression_result(outputs["outputs"], len(serialized))


def check_classification(signature: Signature) -> None:
    """Raises `RequestError` if a signature is none of classification."""
    _check_input(signature, "classification")
    if len(signature.outputs) not in (1, 2):
        raise RequestError(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    if not signature.outputs.keys() & {"classes", "scores"}:
        raise RequestError(
            'Expected classification signature outputs to contain at least one of "classes" or "scores". '
            f"Signature was: {signature.definition}"
        )


def check_regression(signature: Signature) -> None:
    """Raises `RequestError` if a signature is none of regression."""
    _check_input(signature, "regression")
    if len(signature.outputs) != 1:
        raise RequestError("Expected one output Tensor.")
    if "outputs" not in signature.outputs:
        raise RequestError(f"No regression outputs found in SignatureDef: {signature.definition}")


def serialized_examples(examples: Input) -> np.ndarray:
    """Returns the examples as they are fed: serialized, (examples,), each with the context's features if there is one.

    Raises:
        RequestError: if there are none.
    """
    with_context = examples.example_list_with_context
    context = with_context.context.SerializeToString()
    rows = [example.SerializeToString() for example in examples.example_list.examples]
    # One message after another reads as one message of both; where both have a feature, the example's holds.
    rows += [context + example.SerializeToString() for example in with_context.examples]
    if not rows:
        raise RequestError("Input is empty.")
    array = np.empty(len(rows), object)
    array[:] = rows
    return array


def _signature(servable: LoadedVersion, name: str) -> Signature:
    if name not in servable.signatures:
        raise RequestError(f"No signature was found with the name: {name}")
    return servable.signatures[name]


def _check_input(signature: Signature, kind: str) -> None:
    # The real server first counts; but which input is missing says more of a signature made for something else.
    if _INPUT not in signature.inputs:
        raise RequestError(f"No {kind} inputs found in SignatureDef: {signature.definition}")
    if len(signature.inputs) != 1:
        raise RequestError("Expected one input Tensor.")


def _classification_result(outputs: Mapping[str, np.ndarray], rows: int) -> ClassificationResult:
    dtypes = {"classes": types_pb2.DT_STRING, "scores": types_pb2.DT_FLOAT}
    for name, array in sorted(outputs.items()):
        if array.ndim != 2:
            raise RequestError(f"Expected Tensor shape: [batch_size num_classes] but got {_text(array.shape)}")
        _check_dtype(f"{name} Tensor", array, dtypes[name])
        if len(array) != rows:
            raise RequestError(f"Expected {name} output batch size of {rows}. Got: {len(array)}")
    widths = [array.shape[1] for _, array in sorted(outputs.items())]
    if len(set(widths)) > 1:
        raise RequestError(f"Tensors class and score should match in dim_size(1). Got {widths[0]} vs. {widths[1]}")
    result = ClassificationResult()
    for row in range(rows):
        classes = result.classifications.add().classes
        for column in range(widths[0]):
            found = classes.add()
            if "classes" in outputs:
                found.label = outputs["classes"][row, column].decode("utf-8", errors="replace")
            if "scores" in outputs:
                found.score = outputs["scores"][row, column]
    return result


def _regression_result(values: np.ndarray, rows: int) -> RegressionResult:
    if values.ndim != 1 and values.shape[1:] != (1,):
        raise RequestError(
            f"Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got {_text(values.shape)}"
        )
    if len(values) != rows:
        raise RequestError(f"Input batch size did not match output batch size: {rows} vs. {len(values)}")
    _check_dtype("output Tensor", values, types_pb2.DT_FLOAT)
    result = RegressionResult()
    for value in values.ravel().tolist():
        result.regressions.add(value=value)
    return result


def _check_dtype(what: str, array: np.ndarray, expected: int) -> None:
    got = tf.as_dtype(array.dtype).as_datatype_enum
    if got != expected:
        name = types_pb2.DataType.Name
        raise RequestError(f"Expected {what} of {name(expected)}. Got: {name(got)}")


def _text(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
