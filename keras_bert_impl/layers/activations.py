"""The nonlinearities that `hidden_act` can name."""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_bert_impl.errors import InputError


def gelu_erf(x: Any) -> Any:
    """Exact GELU. Written with `erf`: the built-in form's `erfc` has no ONNX counterpart."""
    return 0.5 * x * (1.0 + ops.erf(x * 0.5**0.5))


def gelu_tanh(x: Any) -> Any:
    """GELU by its tanh approximation, as in the released BERT."""
    return ops.gelu(x, approximate=True)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": gelu_erf,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": ops.relu,
}


def get_activation(name: str) -> Callable[[Any], Any]:
    """Returns the function that a `hidden_act` value names.

    Raises:
        InputError: if the name is unknown.
    """
    if name not in ACTIVATIONS:
        raise InputError(f"`activation` must be one of {', '.join(ACTIVATIONS)}. Received: activation={name!r}")
    return ACTIVATIONS[name]
