"""The order of the examples: a permutation per epoch that can be entered anywhere."""

import functools

import numpy as np

from .hashing import hash_of, mix

_ROUNDS = 6
_STRETCH = 4096


def permuted(positions: np.ndarray, size: int, seed: int, epoch: int) -> np.ndarray:
    """Returns which example stands at each of `positions` in the order of (seed, epoch).

    A Feistel network over the next larger power of four, walked until the number falls below `size`
    (Black and Rogaway, 2002): a one-to-one map of [0, size) that takes no memory and no start-up.

    Args:
        positions: whole numbers in [0, size).
        size: number of examples.
        seed: seed of the run.
        epoch: which time round.
    """
    half = max(2, (int(size - 1).bit_length() + 1) // 2)
    shift, mask = np.uint64(half), np.uint64(2**half - 1)
    keys = hash_of(seed, epoch, np.arange(_ROUNDS, dtype=np.uint64))
    numbers = np.asarray(positions).astype(np.uint64)
    walking = np.ones(numbers.shape, bool)
    while walking.any():
        left, right = numbers[walking] >> shift, numbers[walking] & mask
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) & mask)
        numbers[walking] = (left << shift) | right
        walking = numbers >= np.uint64(size)
    return numbers.astype(np.int64)


def examples_of_steps(steps: np.ndarray, batch_size: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (examples, epochs) of the steps' batches in a row; a batch may hold examples of two epochs."""
    places = (np.asarray(steps, np.int64)[:, None] * batch_size + np.arange(batch_size)).ravel()
    epochs, positions = np.divmod(places, size)
    examples = np.empty_like(places)
    stretches = epochs * (size // _STRETCH + 1) + positions // _STRETCH
    for stretch in np.unique(stretches):
        now = np.flatnonzero(stretches == stretch)
        start = int(positions[now[0]]) // _STRETCH * _STRETCH
        examples[now] = _stretch(start, size, seed, int(epochs[now[0]]))[positions[now] - start]
    return examples, epochs


@functools.lru_cache(maxsize=16)
def _stretch(start: int, size: int, seed: int, epoch: int) -> np.ndarray:
    """A stretch of the order at once: for a few positions the calls cost more than the arithmetic."""
    return permuted(np.arange(start, min(start + _STRETCH, size)), size, seed, epoch)
