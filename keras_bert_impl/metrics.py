"""Means and accuracies that stay right over batches and replicas of different weight."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WeightedMean(keras.metrics.Metric):
    """Sum of everything seen, divided by the sum of its weights.

    A mean of batch means is not the mean: batches and replicas hold different numbers of masked
    tokens. Both sums are kept, and under a strategy they are summed over replicas when read.

    Args:
        name: string.
        dtype: string or `keras.DTypePolicy`.
    """

    def __init__(self, name: str = "weighted_mean", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def update_state(self, total: Any, weight: Any) -> None:
        """Adds a sum of weighted values and the sum of their weights."""
        self.total.assign_add(ops.cast(total, self.dtype))
        self.weight.assign_add(ops.cast(weight, self.dtype))

    def result(self) -> Any:
        """Returns the mean so far; 0 where nothing had weight."""
        return ops.divide_no_nan(self.total, self.weight)


def correct_sum(logits: Any, labels: Any, weights: Any) -> Any:
    """Returns the weighted number of labels that have the largest logit, a float32 scalar.

    Args:
        logits: float tensor, `(..., classes)`.
        labels: integer tensor, `(...)`.
        weights: float tensor, `(...)`.
    """
    correct = ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), ops.cast(labels, "int32"))
    return ops.sum(ops.cast(correct, "float32") * ops.cast(weights, "float32"))
