"""The pretraining losses against their definition."""

import keras
import numpy as np
import pytest
from harness import arrays

from keras_bert_impl.losses import masked_lm_loss_sum, next_sentence_loss_sum, token_losses


def cross_entropies(logits, labels):
    logits = logits.astype("float64")
    log_sums = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
    return log_sums - np.take_along_axis(logits, labels[..., None], -1)[..., 0]


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    logits = (rng.normal(size=(3, 4, 7)) * 5).astype("float32")
    labels = rng.integers(0, 7, (3, 4)).astype("int32")
    weights = (rng.random((3, 4)) < 0.6).astype("float32")
    return logits, labels, weights


def test_masked_lm_loss_is_the_weighted_sum_of_cross_entropies(case):
    logits, labels, weights = case
    expected = (cross_entropies(logits, labels) * weights).sum()
    np.testing.assert_allclose(float(masked_lm_loss_sum(*case)), expected, rtol=1e-6)


def test_what_stands_in_unused_slots_has_no_influence(case):
    logits, labels, weights = case
    unused = weights == 0
    other_logits = np.where(unused[..., None], 99.0, logits).astype("float32")
    other_labels = np.where(unused, 0, labels)
    expected = float(masked_lm_loss_sum(logits, labels, weights))
    assert float(masked_lm_loss_sum(other_logits, other_labels, weights)) == expected


def test_parts_of_a_batch_add_up(case):
    parts = [float(masked_lm_loss_sum(*(array[part] for array in case))) for part in (slice(0, 1), slice(1, 3))]
    np.testing.assert_allclose(sum(parts), float(masked_lm_loss_sum(*case)), rtol=1e-6)


def test_next_sentence_loss_is_the_sum_of_cross_entropies():
    logits = np.random.default_rng(1).normal(size=(5, 2)).astype("float32")
    labels = np.array([0, 1, 1, 0, 1], dtype="int32")
    expected = cross_entropies(logits, labels).sum()
    np.testing.assert_allclose(float(next_sentence_loss_sum(logits, labels)), expected, rtol=1e-6)


def test_half_precision_logits_are_widened_and_large_ones_stay_finite():
    logits = np.array([[3e4, -3e4], [-3e4, 3e4]], dtype="float16")
    losses = token_losses(keras.ops.convert_to_tensor(logits), np.array([0, 0]))
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    np.testing.assert_allclose(arrays(losses), [0, 6e4], rtol=1e-3)
