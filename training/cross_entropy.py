"""Cross entropy and correctness of a choice among many, in as few passes over the logits as possible."""

from collections.abc import Callable

import tensorflow as tf


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor, *, by_class: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cross entropy of each row's label, and 1.0 where no logit is larger than the label's.

    With a vocabulary of thousands the logits are the largest tensor of a step. TensorFlow's own operation
    takes exponentials one by one, twice; here they are taken once, vectorised, and kept for the gradient.

    Args:
        logits: float32, `(rows, classes)`.
        labels: int32, `(rows,)`.
        by_class: whether to work on the transpose of `logits`: for those that are one of a transpose already.
    """
    row = tf.range(tf.shape(labels)[0])
    if by_class:
        return _cross_entropy(tf.transpose(logits), tf.stack([labels, row], axis=1), 0)
    return _cross_entropy(logits, tf.stack([row, labels], axis=1), 1)


def _cross_entropy(logits: tf.Tensor, places: tf.Tensor, axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Does it with the classes along `axis`, and each label at one of `places`."""

    @tf.custom_gradient
    def of(logits: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable]:
        largest = tf.reduce_max(logits, axis=axis)
        exponentials = tf.exp(logits - tf.expand_dims(largest, axis))
        total = tf.reduce_sum(exponentials, axis=axis)
        of_label = tf.gather_nd(logits, places)

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            probabilities = exponentials * tf.expand_dims(upstream / total, axis)
            # XLA knows the other one alone; this one does not copy.
            if axis == 0:
                return tf.raw_ops.ScatterNdNonAliasingAdd(input=probabilities, indices=places, updates=-upstream)
            return tf.tensor_scatter_nd_sub(probabilities, places, upstream)

        losses = tf.math.log(total) + largest - of_label
        return (losses, tf.cast(of_label >= largest, tf.float32)), gradient

    return of(logits)
