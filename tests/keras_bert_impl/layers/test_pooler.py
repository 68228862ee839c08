"""`Pooler`: dense layer and tanh on the first position, or on that of every pair."""

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


POSITIONS = np.array([[0, 3, 0], [2, 1, 4]], "int32")


def test_contract_with_positions():
    check_layer(Pooler, {"inputs": vectors(), "positions": POSITIONS}, (2, 3, 12), num_weights=2)


def test_pools_each_of_the_positions_as_if_it_came_first():
    pooler, inputs = Pooler(initializer_range=0.3), vectors()
    outputs = arrays(pooler(inputs, positions=POSITIONS))
    for row, slot in np.ndindex(*POSITIONS.shape):
        alone = arrays(pooler(inputs[row : row + 1, POSITIONS[row, slot] :]))[0]
        np.testing.assert_allclose(outputs[row, slot], alone, atol=1e-6)
