"""`LayerNorm`: mean 0, variance 1, in float32 at least."""

import numpy as np
import pytest
from harness import arrays, check_layer

from keras_bert_impl.layers import LayerNorm


def vectors(shape=(2, 3, 8), scale=1.0, offset=0.0):
    return (np.random.default_rng(0).normal(size=shape) * scale + offset).astype("float32")


def make(seed=None, **kwargs):
    return LayerNorm(**kwargs)


def test_contract():
    check_layer(make, {"inputs": vectors()}, (2, 3, 8), num_weights=2)


@pytest.mark.parametrize("scale,offset", [(1.0, 0.0), (1e-4, 0.0), (1.0, 100.0)])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-5])
def test_agrees_with_float64(scale, offset, epsilon):
    inputs = vectors((4, 64), scale, offset)
    layer = LayerNorm(epsilon)
    layer.build(inputs.shape)
    layer.gamma.assign(vectors((64,)))
    layer.beta.assign(vectors((64,), 0.5))
    exact = inputs.astype("float64")
    exact -= exact.mean(-1, keepdims=True)
    exact /= np.sqrt((exact**2).mean(-1, keepdims=True) + epsilon)
    exact = exact * arrays(layer.gamma) + arrays(layer.beta)
    # What float32 cannot tell apart in the inputs cannot be right in the outputs.
    tolerance = 2e-6 + 4 * np.abs(inputs).max() * 2**-24 / inputs.std()
    np.testing.assert_allclose(arrays(layer(inputs)), exact, atol=tolerance)


def test_float16_inputs_do_not_overflow():
    inputs = vectors((2, 64), 1e4).astype("float16")
    outputs = arrays(LayerNorm(dtype="mixed_float16")(inputs))
    np.testing.assert_allclose(outputs.std(-1), 1, atol=1e-2)


def test_refuses_an_epsilon_of_zero():
    with pytest.raises(ValueError, match=r"`epsilon` must be positive. Received: epsilon=0"):
        LayerNorm(0)
