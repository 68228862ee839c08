"""One shard's arrays, opened by memory mapping and checked."""

import dataclasses
from pathlib import Path

import numpy as np

from keras_bert_impl.errors import InputError

from .shard_check import are_whole_examples, are_whole_rows
from .shards import continued_path, rows_path, shard_paths, token_dtype
from .word_boundaries import PIECES

ARRAYS = 4
"""Most files of a shard."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """The arrays of a shard, as `shards` describes them; `continued` only where word boundaries were stored."""

    tokens: np.ndarray
    examples: np.ndarray
    bounds: np.ndarray
    continued: np.ndarray | None


def open_shard(
    directory: Path, split: str, length: int, number: int, *, count: int, vocab_size: int, with_boundaries: bool
) -> Shard:
    """Opens a shard of prepared data.

    Args:
        directory: the prepared directory.
        split, length, number: which shard.
        count: examples that it must hold.
        vocab_size: tokens of the vocabulary.
        with_boundaries: whether word boundaries must have been stored.

    Raises:
        InputError: if a file is missing or cut short, or its numbers do not fit the others.
    """
    tokens_path, examples_path = shard_paths(directory, split, length, number)
    tokens, examples = open_array(tokens_path), open_array(examples_path)
    if not are_whole_examples(examples, count, length):
        raise damaged(examples_path)
    size = int(examples[-1]["start"]) + int(examples[-1]["length"]) if count else 0
    if (tokens.dtype, tokens.shape) != (token_dtype(vocab_size), (size,)):
        raise damaged(tokens_path)
    bounds_path = rows_path(directory, split, length, number)
    bounds = open_array(bounds_path)
    if not are_whole_rows(bounds, examples, length):
        raise damaged(bounds_path)
    path = continued_path(directory, split, length, number)
    if not with_boundaries:
        if path.exists():
            raise damaged(path, f"settings.word_boundaries={PIECES!r} does not go with")
        return Shard(tokens, examples, bounds, None)
    continued = open_array(path)
    if (continued.dtype, continued.shape) != (np.bool_, (size,)):
        raise damaged(path)
    return Shard(tokens, examples, bounds, continued)


def open_array(path: Path) -> np.ndarray:
    """Maps a `.npy` file; one that cannot be used raises `InputError`."""
    try:
        # A plain view: slices of `numpy.memmap` objects cost ten times as much.
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        raise damaged(path) from None


def damaged(path: Path, what: str = "is missing, cut short or altered") -> InputError:
    """Returns the error about a file of prepared data."""
    return InputError(f"`data` must be whole; prepare it anew. Received: {str(path)!r}, which {what}")
