"""The two pretraining losses, as sums, so that a step can divide by what the whole batch has."""

from typing import Any

from keras import ops

MLM_EPSILON = 1e-5
"""Added to the sum of the weights, as in the original (run_pretraining.py)."""


def masked_lm_loss_sum(logits: Any, labels: Any, weights: Any) -> Any:
    """Returns the weighted sum of the cross entropies of masked tokens.

    Divided by `ops.sum(weights) + MLM_EPSILON`, taken over the global batch, it is BERT's masked-LM loss.

    Args:
        logits: float tensor, `(batch, predictions, vocab_size)`.
        labels: integer tensor, `(batch, predictions)`.
        weights: float tensor, `(batch, predictions)`; 0 in unused slots.

    Returns:
        A float32 scalar.
    """
    losses = token_losses(logits, labels)
    return ops.sum(losses * ops.cast(weights, losses.dtype))


def next_sentence_loss_sum(logits: Any, labels: Any) -> Any:
    """Returns the sum of the cross entropies of next-sentence labels.

    Args:
        logits: float tensor, `(batch, 2)`.
        labels: integer tensor, `(batch,)`; 1 means a random text, 0 the true successor.

    Returns:
        A float32 scalar.
    """
    return ops.sum(token_losses(logits, labels))


def token_losses(logits: Any, labels: Any) -> Any:
    """Returns the cross entropy of each label: a float32 tensor with the shape of `labels`.

    Args:
        logits: float tensor, `(..., classes)`.
        labels: integer tensor, `(...)`, each in `[0, classes)`.
    """
    return ops.sparse_categorical_crossentropy(labels, ops.cast(logits, "float32"), from_logits=True)
