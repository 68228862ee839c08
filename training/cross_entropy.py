"""Cross entropy and correctness of a choice among many, in as few passes over the logits as possible."""

from collections.abc import Callable

import tensorflow as tf


@tf.custom_gradient
def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable]:
    """Returns the cross entropy of each row's label, and 1.0 where no logit is larger than the label's.

    With a vocabulary of thousands the logits are the largest tensor of a step. TensorFlow's own operation
    takes exponentials one by one, twice; here they are taken once, vectorised, and kept for the gradient.

    Args:
        logits: float32, `(rows, classes)`.
        labels: int32, `(rows,)`.
    """
    largest = tf.reduce_max(logits, axis=-1)
    exponentials = tf.exp(logits - largest[:, None])
    total = tf.reduce_sum(exponentials, axis=-1)
    places = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
    of_label = tf.gather_nd(logits, places)

    def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, None]:
        probabilities = exponentials * (upstream / total)[:, None]
        return tf.tensor_scatter_nd_sub(probabilities, places, upstream), None

    losses = tf.math.log(total) + largest - of_label
    return (losses, tf.cast(of_label >= largest, tf.float32)), gradient
