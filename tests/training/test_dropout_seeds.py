import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training.dropout_seeds import fixed_dropout, seed_states


@pytest.fixture(scope="module")
def model():
    inputs = keras.Input((40,))
    first = keras.layers.Dropout(0.5)(inputs)
    return keras.Model(inputs, [first, keras.layers.Dropout(0.5)(inputs)])


def kept(model, *, seed=1, step=0, replica=0, part=0):
    @tf.function
    def call():
        with fixed_dropout(seed_states(model), seed, tf.constant(step, tf.int64), replica, part):
            return model(tf.ones((1, 40)), training=True)

    return [output.numpy() > 0 for output in call()]


def test_same_numbers_give_the_same_dropout(model):
    np.testing.assert_array_equal(kept(model, step=7), kept(model, step=7))


@pytest.mark.parametrize("change", [{"seed": 2}, {"step": 1}, {"replica": 1}, {"part": 1}], ids=str)
def test_each_number_changes_it_in_every_layer(model, change):
    for before, after in zip(kept(model), kept(model, **change), strict=True):
        assert not np.array_equal(before, after)


def test_layers_differ(model):
    first, second = kept(model)
    assert not np.array_equal(first, second)


def test_generators_are_left_as_they_were(model):
    before = [state.numpy() for state in seed_states(model)]
    kept(model)
    np.testing.assert_array_equal(before, [state.numpy() for state in seed_states(model)])
