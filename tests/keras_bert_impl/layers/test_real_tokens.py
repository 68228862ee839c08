"""`RealTokens`, `InRows`, `RealPredictions`: away from padded rows and back."""

import keras
import numpy as np
import pytest
from harness import arrays

from keras_bert_impl.layers import InRows, RealPredictions, RealTokens
from keras_bert_impl.layers.gathering import take_with_inverse

MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]], "int32")
FIRST_TRUE = MASK.astype(bool) | (np.arange(4) == 0)


def test_numbers_the_tokens_row_by_row_and_counts_every_first_position():
    mask, places, numbers = RealTokens()(MASK)
    np.testing.assert_array_equal(mask, FIRST_TRUE)
    np.testing.assert_array_equal(places, [0, 1, 4, 5, 6, 7, 8, 12, 14])
    np.testing.assert_array_equal(numbers, [[0, 1, 1, 1], [2, 3, 4, 5], [6, 6, 6, 6], [7, 7, 8, 8]])


def test_bool_masks_are_the_same():
    for one, other in zip(RealTokens()(MASK), RealTokens()(MASK.astype(bool)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_tokens_return_to_where_they_stood():
    rows = np.random.default_rng(0).normal(size=(4, 4, 3)).astype("float32")
    found = arrays(InRows()(rows[FIRST_TRUE], *RealTokens()(MASK)))
    np.testing.assert_array_equal(found, np.where(FIRST_TRUE[..., None], rows, 0))


def test_used_slots_point_at_the_numbers_of_their_tokens():
    _, _, numbers = RealTokens()(MASK)
    positions = np.array([[1, 0], [3, 1], [0, 0], [2, 0]], "int32")
    weights = np.array([[1, 0], [1, 1], [0, 0], [1, 0]], "float32")
    np.testing.assert_array_equal(RealPredictions()(positions, weights, numbers), [1, 5, 3, 8])


@pytest.mark.parametrize("layer", [RealTokens, InRows, RealPredictions])
def test_layers_come_back_from_their_config(layer):
    made = layer(name="a_name", dtype="mixed_bfloat16")
    assert layer.from_config(made.get_config()).get_config() == made.get_config()


def test_symbolic_calls_know_their_shapes():
    mask = keras.Input((None,), dtype="int32")
    real_tokens = RealTokens()(mask)
    assert [(tensor.shape, tensor.dtype) for tensor in real_tokens] == [
        ((None, None), "bool"),
        ((None,), "int32"),
        ((None, None), "int32"),
    ]
    vectors = keras.KerasTensor((None, 5), "float32")
    assert InRows()(vectors, *real_tokens).shape == (None, None, 5)


def test_a_look_up_that_names_every_input_has_the_gradient_of_one_that_adds_up():
    """Through a layer and a step of SGD, which every backend has."""
    values = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    upstream = np.random.default_rng(1).normal(size=(2, 3, 3)).astype("float32")
    indices, inverse = np.array([[3, 1, 1], [0, 2, 0]]), np.array([3, 1, 4, 0])
    upstream[0, 2] = upstream[1, 2] = 0  # places of padding

    class Taken(keras.layers.Layer):
        def build(self, _):
            self.table = self.add_weight(shape=(4, 3), initializer="zeros")
            self.table.assign(values)

        def call(self, inputs):
            taken = take_with_inverse(self.table * 1.0, indices, inverse)
            return keras.ops.expand_dims(taken, 0) * keras.ops.reshape(inputs, (1, 1, 1, 1))

    layer = Taken()
    model = keras.Sequential([keras.Input((1,)), layer])
    model.compile(keras.optimizers.SGD(1.0), loss=lambda of, found: keras.ops.sum(of * found), run_eagerly=True)
    model.train_on_batch(np.ones((1, 1), "float32"), upstream[None])
    expected = np.zeros_like(values)
    np.add.at(expected, indices.ravel(), upstream.reshape(-1, 3))
    np.testing.assert_allclose(values - arrays(layer.table), expected, atol=1e-6)
