import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.losses import token_losses
from keras_bert_impl.training.cross_entropy import cross_entropy


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("scale", [1.0, 80.0])
def test_losses_and_gradients_are_those_of_the_plain_form(scale, by_class):
    random = np.random.default_rng(0)
    logits = tf.constant(random.normal(size=(20, 7)).astype("float32") * scale)
    labels = tf.constant(random.integers(0, 7, 20).astype("int32"))
    weights = tf.constant(random.uniform(size=20).astype("float32"))

    def with_gradient(losses_of):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = losses_of(logits)
            total = tf.reduce_sum(losses * weights)
        return losses, tape.gradient(total, logits)

    ours = with_gradient(lambda x: cross_entropy(x, labels, by_class=by_class)[0])
    plain = with_gradient(lambda x: token_losses(x, labels))
    np.testing.assert_allclose(ours[0], plain[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours[1], plain[1], atol=1e-6)
    correct = cross_entropy(logits, labels, by_class=by_class)[1]
    np.testing.assert_array_equal(correct, np.argmax(logits, -1) == labels.numpy())


def test_a_logit_that_is_not_finite_shows_in_the_loss():
    for bad in (np.inf, np.nan):
        losses, _ = cross_entropy(tf.constant([[0.0, bad], [0.0, 1.0]]), tf.constant([0, 0]))
        assert np.isfinite(losses.numpy()).tolist() == [False, True]
