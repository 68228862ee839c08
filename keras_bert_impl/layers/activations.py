"""The nonlinearities that `hidden_act` can name."""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError


def gelu_erf(x: Any) -> Any:
    """Exact GELU. Written with `erf`: the built-in form's `erfc` has no ONNX counterpart."""
    return 0.5 * x * (1.0 + ops.erf(x * 0.5**0.5))


def gelu_tanh(x: Any) -> Any:
    """GELU by its tanh approximation, as in the released BERT."""
    return ops.gelu(x, approximate=True)


@ops.custom_gradient
def _gelu_erf_in_training(x: Any) -> Any:
    share = ops.erf(x * 0.5**0.5) * 0.5 + 0.5

    def gradient(upstream: Any) -> Any:
        density = ops.exp(ops.square(x) * -0.5) * (2 * math.pi) ** -0.5
        return (density * x + share) * upstream

    return x * share, gradient


@ops.custom_gradient
def _gelu_tanh_in_training(x: Any) -> Any:
    # (1 + tanh(z)) / 2 is sigmoid(2 z).
    linear, cubic = (8 / math.pi) ** 0.5, 0.044715 * (8 / math.pi) ** 0.5
    square = ops.square(x)
    share = ops.sigmoid(x * (square * cubic + linear))
    outputs = x * share

    def gradient(upstream: Any) -> Any:
        return ((1.0 - share) * outputs * (square * (3 * cubic) + linear) + share) * upstream

    return outputs, gradient


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": gelu_erf,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": ops.relu,
}


_IN_TRAINING: dict[Callable[[Any], Any], Callable[[Any], Any]] = {
    gelu_erf: _gelu_erf_in_training,
    gelu_tanh: _gelu_tanh_in_training,
}


def in_training(activation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the same function with a gradient that takes fewer passes over memory, where there is one.

    Its form is its own, so that graphs for inference keep the one that exporters know.
    """
    fast = _IN_TRAINING.get(activation)
    if fast is None:
        return activation
    # The square of a large number overflows in the half precisions.
    return lambda x: fast(x) if keras.backend.standardize_dtype(x.dtype) in ("float32", "float64") else activation(x)


def get_activation(name: str) -> Callable[[Any], Any]:
    """Returns the function that a `hidden_act` value names.

    Raises:
        InputError: if the name is unknown.
    """
    if name not in ACTIVATIONS:
        raise InputError(f"`activation` must be one of {', '.join(ACTIVATIONS)}. Received: activation={name!r}")
    return ACTIVATIONS[name]
