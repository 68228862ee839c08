"""Whether the small arrays of a shard fit one another; its tokens are looked at when they are read."""

import numpy as np

from .packing import pairs_per_row
from .shards import EXAMPLE

# `[CLS]`, a token, `[SEP]`.
_SHORTEST = 3


def are_whole_examples(examples: np.ndarray, count: int, length: int) -> bool:
    """Whether an array says of `count` examples, one after the other, how they fill rows of `length` tokens."""
    if (examples.dtype, examples.shape) != (EXAMPLE, (count,)):
        return False
    sizes, seconds = examples["length"], examples["second"]
    ends = np.cumsum(sizes, dtype=np.int64)
    return bool(
        np.array_equal(examples["start"], ends - sizes)
        and sizes.max(initial=0) <= length
        and seconds.min(initial=_SHORTEST) >= _SHORTEST
        and (seconds <= sizes).all()
        and examples["next_sentence_label"].max(initial=0) <= 1
    )


def are_whole_rows(bounds: np.ndarray, examples: np.ndarray, length: int) -> bool:
    """Whether bounds put all examples of a shard into packed rows, none of which holds too many of them or of tokens.

    Args:
        bounds: of the packed rows.
        examples: that `are_whole_examples` has found to be so.
        length: tokens of a row.
    """
    if bounds.dtype != np.int64 or bounds.ndim != 1 or not bounds.size:
        return False
    if (bounds[0], bounds[-1]) != (0, examples.size):
        return False
    counts = np.diff(bounds)
    if not counts.size:
        return True
    if counts.min() < 1 or counts.max() > pairs_per_row(length):
        return False
    return bool(np.add.reduceat(examples["length"], bounds[:-1], dtype=np.int64).max() <= length)
