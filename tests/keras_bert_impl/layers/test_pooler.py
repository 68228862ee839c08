"""`Pooler`: dense layer and tanh on the first position."""

import numpy as np
from harness import arrays, check_layer

from keras_bert_impl.layers import Pooler


def vectors():
    return np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")


def test_contract():
    check_layer(Pooler, {"inputs": vectors()}, (2, 12), num_weights=2)


def test_sees_the_first_position_only():
    pooler, inputs = Pooler(initializer_range=0.3), vectors()
    outputs = arrays(pooler(inputs))
    np.testing.assert_allclose(outputs, np.tanh(inputs[:, 0] @ arrays(pooler.dense.kernel)), atol=1e-5)
