import numpy as np
import pytest

from keras_bert_impl.training.examples.unigram import unigram_loss


def test_counts_plus_one_are_the_probabilities():
    loss = unigram_loss(np.array([0, 2, 5]), np.array([[0, 1], [2, 2]]), np.array([[1.0, 1.0], [1.0, 0.0]]))
    assert loss == pytest.approx(-np.mean(np.log([1 / 10, 3 / 10, 6 / 10])))


def test_without_counts_it_is_the_logarithm_of_the_vocabulary():
    labels = np.arange(30522)
    assert unigram_loss(np.zeros(30522, np.int64), labels, np.ones(30522)) == pytest.approx(10.3262, abs=1e-4)
