"""The names of a classifier's outputs."""

from collections.abc import Sequence
from typing import Any

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, are_plain_labels
from keras_bert_impl.errors import InputError


def checked_labels(labels: Any) -> tuple[str, ...]:
    """Returns the labels as a tuple; raises `InputError` unless they are different, non-empty names."""
    names = tuple(labels) if isinstance(labels, Sequence) and not isinstance(labels, str) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InputError(f"`labels` must be a list of one or more different names. Received: labels={labels!r}")
    return names


def chosen_labels(checkpoint: Checkpoint, labels: Any) -> tuple[str, ...]:
    """Returns the labels that a classifier read from a checkpoint is to have.

    Args:
        checkpoint: what it is read from.
        labels: those that the user gave, or None.

    Raises:
        InputError: if there are neither, or those given are not the checkpoint's.
    """
    if labels is None:
        if not checkpoint.labels:
            raise InputError(
                f"`labels` must be given for a checkpoint without classifier. Received: {checkpoint.source!r}"
            )
        return checkpoint.labels
    names = checked_labels(labels)
    # Numbered ones may be given their names; a head of other labels would answer with the wrong words.
    if len(names) == len(checkpoint.labels) and not are_plain_labels(checkpoint.labels) and names != checkpoint.labels:
        raise InputError(
            "`labels` must be those of the checkpoint's classifier, in its order. "
            f"Received: labels={list(names)!r}, {checkpoint.source!r} has {list(checkpoint.labels)!r}"
        )
    return names
