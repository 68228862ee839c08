"""`Dropout`: drops its rate of the values, scales up the others, and is a function of its generator's state."""

import keras
import numpy as np
import pytest
from harness import arrays

from keras_bert_impl.layers.dropout import Dropout


def dropped(layer, shape, times=1):
    """Flags of the values that calls in training have set to 0."""
    return np.stack([arrays(layer(np.ones(shape, "float32"), training=True)) == 0 for _ in range(times)])


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.003, 0.97])
def test_drops_its_rate_and_scales_up_the_others(rate):
    outputs = arrays(Dropout(rate, seed=1)(np.ones((1000, 1024), "float32"), training=True))
    kept = outputs[outputs > 0]
    deviation = (rate * (1 - rate) / outputs.size) ** 0.5
    assert abs((outputs == 0).mean() - rate) < 6 * deviation + 2**-17
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=3e-4)
    assert len(np.unique(kept)) == 1


@pytest.mark.parametrize("rate", [0.1, 0.3, 1 / 3, 0.25])
def test_the_rate_is_exact_to_sixteen_bits(rate):
    assert abs((1 - 1 / Dropout(rate).scale) - rate) <= 2**-17


def test_every_value_has_the_same_chance_and_neighbours_are_independent():
    flags = dropped(Dropout(0.1, seed=2), (64,), times=4000)[:, :]
    assert np.abs(flags.mean(0) - 0.1).max() < 5 * (0.09 / 4000) ** 0.5
    correlation = np.corrcoef(flags.T)[~np.eye(64, dtype=bool)]
    assert np.abs(correlation).max() < 6 / 4000**0.5


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (2, 64), (5, 63), (2, 3, 4, 5)])
def test_any_shape_will_do(shape):
    inputs = np.full(shape, 2.0, "float32")
    outputs = arrays(Dropout(0.5, seed=3)(inputs, training=True))
    assert outputs.shape == shape and set(np.unique(outputs)) <= {0.0, 4.0}


def test_a_state_of_the_generator_gives_the_same_values_again_and_the_next_gives_others():
    layer = Dropout(0.5, seed=4)
    state = keras.ops.convert_to_numpy(layer.seed_generator.state)
    first, second = dropped(layer, (16, 64), times=2)
    layer.seed_generator.state.assign(state)
    np.testing.assert_array_equal(dropped(layer, (16, 64))[0], first)
    assert (first != second).mean() > 0.3


def test_changes_nothing_outside_of_training_or_with_a_rate_of_zero():
    inputs = np.arange(6.0, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(Dropout(0.5)(inputs), inputs)
    np.testing.assert_array_equal(Dropout(0.0)(inputs, training=True), inputs)


def test_keeps_half_precision():
    outputs = Dropout(0.1, dtype="mixed_bfloat16")(np.ones((4, 4), "float32"), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
