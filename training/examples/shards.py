"""The files that examples lie in: two plain arrays per shard, opened by memory mapping.

`NNNNN.tokens.npy` holds the token ids of all rows one after the other, without padding;
`NNNNN.examples.npy` says for each row where it starts and what it is.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .hashing import mix
from .pairs import SPECIAL_TOKENS, Pair

SPLITS = ("train", "held_out")
FORMAT_NAME = "keras_bert_impl prepared data"
FORMAT_VERSION = 1
EXAMPLE = np.dtype(
    [
        ("start", np.int64),
        ("length", np.uint16),
        ("second", np.uint16),
        ("next_sentence_label", np.uint8),
        ("id", np.uint64),
    ]
)


def shard_paths(directory: Path, split: str, length: int, number: int) -> tuple[Path, Path]:
    """Returns the paths of a shard's tokens and examples."""
    stem = directory / split / str(length) / f"{number:05d}"
    return stem.with_suffix(".tokens.npy"), stem.with_suffix(".examples.npy")


def example_ids(seed: int, split: str, length: int, block: int, count: int) -> np.ndarray:
    """Returns the ids of a shard's examples, unlike those of any other shard of the same seed."""
    place = (SPLITS.index(split) << 63) | (length << 47) | (block << 24)
    return mix((np.arange(count, dtype=np.uint64) + np.uint64(place)) ^ mix(np.array([seed % 2**64], np.uint64)))


def rows_of_pairs(
    pairs: Sequence[Pair], ids: np.ndarray, *, cls_token_id: int, sep_token_id: int, vocab_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the shard's arrays: every row is `[CLS] first [SEP] second [SEP]`."""
    examples = np.zeros(len(pairs), EXAMPLE)
    examples["length"] = [len(pair.first) + len(pair.second) + SPECIAL_TOKENS for pair in pairs]
    examples["start"] = np.cumsum(examples["length"], dtype=np.int64) - examples["length"]
    examples["second"] = [len(pair.first) + 2 for pair in pairs]
    examples["next_sentence_label"] = [pair.next_sentence_label for pair in pairs]
    examples["id"] = ids
    row: list[int] = []
    for pair in pairs:
        row.append(cls_token_id)
        row += pair.first
        row.append(sep_token_id)
        row += pair.second
        row.append(sep_token_id)
    return np.array(row, token_dtype(vocab_size)), examples


def token_dtype(vocab_size: int) -> type:
    """Returns the smallest type that token ids are kept in."""
    return np.uint16 if vocab_size <= 2**16 else np.int32


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes a `.npy` file; a full disk raises the system's own `OSError` (`np.save` hides its cause)."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(buffer.getbuffer())
