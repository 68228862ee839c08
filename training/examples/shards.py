"""The files that examples lie in: plain arrays, a few per shard, opened by memory mapping.

`NNNNN.tokens.npy` holds the token ids of all rows one after the other, without padding;
`NNNNN.examples.npy` says for each row where it starts and what it is;
`NNNNN.rows.npy` says which of them share a packed row: row r holds those from its number r up to its number r + 1.
"""

import io
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from .hashing import mix
from .pairs import Pair
from .words import unmarked

SPLITS = ("train", "held_out")
FORMAT_NAME = "keras_bert_impl prepared data"
FORMAT_VERSION = 2
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


def continued_path(directory: Path, split: str, length: int, number: int) -> Path:
    """Returns the path of what is stored beside a shard's tokens if words are not those of the vocabulary."""
    return directory / split / str(length) / f"{number:05d}.continued.npy"


def rows_path(directory: Path, split: str, length: int, number: int) -> Path:
    """Returns the path of the bounds of a shard's packed rows."""
    return directory / split / str(length) / f"{number:05d}.rows.npy"


def example_ids(seed: int, split: str, length: int, block: int, count: int) -> np.ndarray:
    """Returns the ids of a shard's examples, unlike those of any other shard of the same seed."""
    place = (SPLITS.index(split) << 63) | (length << 47) | (block << 24)
    return mix((np.arange(count, dtype=np.uint64) + np.uint64(place)) ^ mix(np.array([seed % 2**64], np.uint64)))


def row_size(pair: Pair) -> int:
    """Returns the tokens of a pair's row, the special ones counted."""
    return len(pair.first) + len(pair.second) + (3 if pair.second else 2)


def rows_of_pairs(
    pairs: Sequence[Pair], ids: np.ndarray, *, cls_token_id: int, sep_token_id: int, vocab_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the shard's arrays: every row is `[CLS] first [SEP] second [SEP]`, or `[CLS] first [SEP]`.

    Marks of the token ids are taken off.
    """
    examples = np.zeros(len(pairs), EXAMPLE)
    examples["length"] = [row_size(pair) for pair in pairs]
    examples["start"] = np.cumsum(examples["length"], dtype=np.int64) - examples["length"]
    examples["second"] = [len(pair.first) + 2 for pair in pairs]
    examples["next_sentence_label"] = [pair.next_sentence_label for pair in pairs]
    examples["id"] = ids
    row: list[int] = []
    for pair in pairs:
        row.append(cls_token_id)
        row += pair.first
        row.append(sep_token_id)
        if pair.second:
            row += pair.second
            row.append(sep_token_id)
    token_ids, _ = unmarked(row)
    return token_ids.astype(token_dtype(vocab_size)), examples


def continued_of_pairs(pairs: Sequence[Pair], examples: np.ndarray) -> np.ndarray:
    """Returns which of the shard's tokens continue the word of the token before them, bool, like the tokens.

    A part begins with a word, also where truncation left the rest of one.

    Args:
        pairs: of token ids that `CONTINUES` marks.
        examples: what `rows_of_pairs` made of them.
    """
    starts, seconds = examples["start"], examples["start"] + examples["second"]
    ends = starts + examples["length"]
    continued = np.zeros(int(examples["length"].sum(dtype=np.int64)), bool)
    of_text = np.ones_like(continued)
    for special in (starts, seconds - 1, ends - 1):
        of_text[special] = False
    continued[of_text] = unmarked(list(chain.from_iterable(chain(*pair[:2]) for pair in pairs)))[1]
    continued[starts + 1] = False
    continued[seconds[seconds < ends]] = False
    return continued


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
