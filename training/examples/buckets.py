"""Rows of similar length in one batch, so that little of it is padding. No TensorFlow here.

The order of an epoch is cut into windows of some batches. Inside a window the rows are sorted by length and cut into
batches, which come in shuffled order. So a batch still is a function of (seed, its number), and an epoch still has
every row once. A batch that holds rows of two epochs is left as it is.
"""

import functools

import numpy as np

from .hashing import hash_of
from .order import examples_of_steps

# Longer windows leave less padding; shorter ones stay closer to the order of rows that are not sorted.
_STEPS = 32
# Few different widths, and ones that matrix products work fast with.
_MULTIPLE = 16
_SHUFFLE = 0xB0C4E7
_GOLDEN = (5**0.5 - 1) / 2
_STEPS_LOOKED_AT = 1024


class Buckets:
    """Which rows share a batch, and how wide it is.

    Args:
        lengths: real tokens of each row.
        length: tokens of a row, padding counted.
        batch_size: rows per batch.
        seed: seed of the order.
    """

    def __init__(self, lengths: np.ndarray, *, length: int, batch_size: int, seed: int):
        self._lengths, self._length = lengths, length
        self._batch_size, self._seed = batch_size, seed
        self._window = functools.lru_cache(maxsize=8)(self._sorted_window)
        # Sorted rows by their places in the batch: every stretch of a batch, and so every replica, has its share of
        # longer and of shorter ones.
        self._dealt = np.argsort(np.argsort(np.arange(batch_size) * _GOLDEN % 1))

    def of_steps(self, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns rows and epochs of the steps' batches, one batch after the other, and the width of each batch."""
        rows, epochs, widths = zip(*(self._batch(int(step)) for step in steps), strict=True)
        return np.concatenate(rows), np.concatenate(epochs), np.array(widths, np.int32)

    def mean_width(self) -> float:
        """Returns the mean width of the batches of the first epoch, or of its first thousand."""
        steps = max(1, min(len(self._lengths) // self._batch_size, _STEPS_LOOKED_AT))
        return float(self.of_steps(np.arange(steps))[2].mean())

    def _batch(self, step: int) -> tuple[np.ndarray, np.ndarray, int]:
        first, steps = self._place(step)
        rows, epochs = self._window(first, steps)
        here = slice((step - first) * self._batch_size, (step - first + 1) * self._batch_size)
        longest = int(self._lengths[rows[here]].max())
        return rows[here], epochs[here], min(-(-longest // _MULTIPLE) * _MULTIPLE, self._length)

    def _place(self, step: int) -> tuple[int, int]:
        """Returns the first step of the window that a step belongs to, and its number of steps."""
        size, batch_size = len(self._lengths), self._batch_size
        epoch = step * batch_size // size
        if (step + 1) * batch_size > (epoch + 1) * size:
            return step, 1
        start, end = -(-epoch * size // batch_size), (epoch + 1) * size // batch_size
        first = step - (step - start) % _STEPS
        return first, min(_STEPS, end - first)

    def _sorted_window(self, first: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows of a window's batches and their epochs, in the order in which they come."""
        size, batch_size, seed = len(self._lengths), self._batch_size, self._seed
        rows, epochs = examples_of_steps(np.arange(first, first + steps), batch_size, size, seed)
        if epochs[0] != epochs[-1]:
            return rows, epochs
        by_length = rows[np.argsort(self._lengths[rows], kind="stable")].reshape(steps, batch_size)
        shuffled = np.argsort(hash_of(seed, _SHUFFLE, first, np.arange(steps, dtype=np.uint64)), kind="stable")
        return by_length[shuffled][:, self._dealt].ravel(), epochs
