"""Probabilities of scores, in NumPy."""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the probabilities of logits along the last axis, in their dtype."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
