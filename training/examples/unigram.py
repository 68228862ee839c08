"""The loss of a model that knows no more than how often each token occurs: the first plateau of a run."""

import numpy as np


def unigram_loss(token_counts: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Returns the mean negative log likelihood, in nats, of the labels under the counts plus one.

    Args:
        token_counts: occurrences of each token in the training documents, (vocab_size,).
        labels: token ids of any shape.
        weights: of the same shape; 0 for a slot that holds no prediction.
    """
    counts = np.asarray(token_counts, np.float64) + 1
    surprise = np.log(counts.sum()) - np.log(counts)
    weights = np.asarray(weights, np.float64)
    return float((surprise[labels] * weights).sum() / weights.sum())
