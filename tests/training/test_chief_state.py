import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training import chief_state
from keras_bert_impl.training.chief_state import take_from_chief
from keras_bert_impl.training.cluster import Cluster
from keras_bert_impl.training.team import Team

FIRST, SECOND = (Cluster(("127.0.0.1:1", "127.0.0.1:2"), number) for number in (0, 1))


@pytest.mark.parametrize(
    "value",
    [
        tf.constant([0.0, -0.0, 1e-42, np.nan, np.inf, 1 / 3], tf.float32),
        tf.constant([0.0, -0.0, 1 / 3], tf.float64),
        tf.constant([0.0, -0.0, 1 / 3], tf.float16),
        tf.constant([0.0, -0.0, 1 / 3], tf.bfloat16),
        tf.constant([-(2**40), 7], tf.int64),
        tf.constant([-3, 7], tf.int32),
        tf.constant([3, 2**32 - 1], tf.uint32),
        tf.constant([True, False]),
    ],
    ids=lambda value: value.dtype.name,
)
def test_every_bit_of_a_value_survives_the_sum_with_zeros(value):
    bits = chief_state._to_bits(value)
    assert bits.dtype in (tf.int32, tf.int64)
    back = chief_state._from_bits(bits + tf.zeros_like(bits), value.dtype)
    assert back.dtype == value.dtype
    assert back.numpy().tobytes() == value.numpy().tobytes()


def test_large_states_are_taken_in_portions(monkeypatch):
    monkeypatch.setattr(chief_state, "_BYTES_AT_ONCE", 40)
    variables = [tf.Variable(tf.zeros(6)) for _ in range(5)]
    portions = list(chief_state._portions(variables))
    assert [len(portion) for portion in portions] == [2, 2, 1]
    assert [variable for portion in portions for variable in portion] == variables


def test_what_the_first_replica_has_is_what_all_get():
    state = {"weights": [keras.Variable([1.5, -0.0])], "optimizer": [tf.Variable(7, dtype=tf.int64)]}
    take_from_chief(Team(SECOND), tf.distribute.get_strategy(), state)
    np.testing.assert_array_equal(state["weights"][0].numpy(), [1.5, -0.0])
    assert int(state["optimizer"][0]) == 7


def test_the_chief_itself_is_left_alone():
    variable = tf.Variable([1.0])
    variable.assign = None
    take_from_chief(Team(FIRST), tf.distribute.get_strategy(), {"weights": [variable]})
    take_from_chief(Team(), tf.distribute.get_strategy(), {"weights": [variable]})
