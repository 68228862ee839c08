"""`FeedForward`: widens, applies the nonlinearity, projects back, position by position."""

import math

import numpy as np
import pytest
from harness import arrays, check_layer

from keras_bert_impl.layers import FeedForward
from keras_bert_impl.layers.activations import get_activation


def make(**kwargs):
    return FeedForward(20, **kwargs)


def vectors():
    return np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")


def test_contract():
    check_layer(make, {"inputs": vectors()}, (2, 5, 12), num_weights=4)


def test_is_position_wise():
    layer, inputs = make(), vectors()
    np.testing.assert_allclose(arrays(layer(inputs))[:, :2], arrays(layer(inputs[:, :2])), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name,function",
    [
        ("gelu", lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2))),
        ("gelu_new", lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("gelu_pytorch_tanh", lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("relu", lambda x: max(x, 0.0)),
    ],
)
def test_activation_is_the_one_named(name, function):
    x = np.linspace(-8, 8, 321).astype("float32")
    expected = [function(float(value)) for value in x]
    np.testing.assert_allclose(arrays(get_activation(name)(x)), expected, atol=1e-6)


def test_refuses_bad_arguments():
    with pytest.raises(ValueError, match=r"`intermediate_size` must be positive. Received: intermediate_size=0"):
        FeedForward(0)
    with pytest.raises(ValueError, match=r"`activation` must be one of gelu, .* Received: activation='swish'"):
        FeedForward(4, activation="swish")
