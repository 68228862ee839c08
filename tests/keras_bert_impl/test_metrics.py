"""Metrics weigh tokens, not batches."""

import keras
import numpy as np

from keras_bert_impl.metrics import WeightedMean, correct_sum


def test_the_mean_is_over_weights_not_over_batches():
    metric = WeightedMean()
    metric.update_state(30.0, 10.0)
    metric.update_state(1.0, 1.0)
    assert float(metric.result()) == np.float32(31 / 11)
    metric.reset_state()
    assert float(metric.result()) == 0


def test_round_trip():
    metric = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(WeightedMean(name="loss")))
    assert type(metric) is WeightedMean
    assert metric.name == "loss"


def test_correct_counts_weighted_hits():
    logits = np.array([[[0.0, 1.0], [2.0, 1.0], [0.0, 5.0]]], dtype="float32")
    labels = np.array([[1, 1, 1]])
    assert float(correct_sum(logits, labels, np.array([[1.0, 1.0, 1.0]]))) == 2
    assert float(correct_sum(logits, labels, np.array([[1.0, 1.0, 0.0]]))) == 1
