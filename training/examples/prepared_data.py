"""A prepared directory, opened by memory mapping."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .shards import EXAMPLE, FORMAT_NAME, FORMAT_VERSION, SPLITS, shard_paths, token_dtype

MANIFEST = "manifest.json"
TOKEN_COUNTS = "token_counts.npy"


class PreparedData:
    """What `prepare` wrote: its manifest, its tokenizer and its examples.

    Args:
        directory: the prepared directory.

    Raises:
        InputError: if it is not one, or was written in a newer format.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory)
        self.manifest = self._read_manifest()
        self.lengths: tuple[int, ...] = tuple(self.manifest["settings"]["lengths"])

    @cached_property
    def tokenizer(self) -> WordPieceTokenizer:
        """The tokenizer that the examples were made with."""
        return WordPieceTokenizer.from_pretrained(self.directory)

    @cached_property
    def token_counts(self) -> np.ndarray:
        """Occurrences of each token in the training documents, int64 (vocab_size,)."""
        return _open_array(self.directory / TOKEN_COUNTS)

    @cached_property
    def digest(self) -> str:
        """A digest of the manifest, which lists what the data holds."""
        return hashlib.sha256((self.directory / MANIFEST).read_bytes()).hexdigest()

    @contextlib.contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Does nothing: opening the data has found what there is to be found; see `RecordData.plain_errors`."""
        yield

    def count(self, split: str, length: int) -> int:
        """Returns the number of examples of a split, `"train"` or `"held_out"`, at a length."""
        return int(self._facts(split, length)["examples"])

    def examples(self, split: str, length: int) -> "ExampleSet":
        """Opens the examples of a split at a length; none at all raise `InputError`."""
        facts = self._facts(split, length)
        if not facts["examples"]:
            raise InputError(
                f"`data` must have {split.replace('_', '-')} examples of length {length}. "
                f"Received: {str(self.directory)!r}, which has none"
            )
        return ExampleSet(
            self.directory,
            split=split,
            length=length,
            counts=facts["shards"],
            dtype=np.dtype(token_dtype(self.manifest["vocabulary"]["size"])),
            pad_token_id=self.tokenizer.pad_token_id,
        )

    def _facts(self, split: str, length: int) -> dict[str, Any]:
        if split not in SPLITS:
            raise InputError(f"`split` must be one of {', '.join(SPLITS)}. Received: split={split!r}")
        if length not in self.lengths:
            raise InputError(
                f"`length` must be one that the data was prepared for: {', '.join(map(str, self.lengths))}. "
                f"Received: length={length}, data={str(self.directory)!r}"
            )
        return self.manifest["examples"][split][str(length)]

    def _read_manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads((self.directory / MANIFEST).read_text(encoding="utf-8"))
            format_name = manifest["format"]
        except (OSError, ValueError, TypeError, KeyError):
            format_name = None
        if format_name != FORMAT_NAME:
            raise InputError(
                f"`data` must be a directory that `keras-bert prepare` wrote. Received: {str(self.directory)!r}, "
                f"which has no {MANIFEST} of one"
            )
        if manifest["format_version"] > FORMAT_VERSION:
            raise InputError(
                f"`data` must be of format {FORMAT_VERSION} or older; a newer keras_bert_impl wrote this one. "
                f"Received: {str(self.directory)!r} of format {manifest['format_version']}"
            )
        return manifest


class ExampleSet:
    """Examples of one split and one length, unmasked, opened by number.

    Raises:
        InputError: if a shard is missing or was cut short.
    """

    def __init__(
        self,
        directory: Path,
        *,
        split: str,
        length: int,
        counts: list[int],
        dtype: np.dtype,
        pad_token_id: int,
    ):
        self.directory, self.split, self.length = directory, split, length
        self.pad_token_id = pad_token_id
        self._ends = np.cumsum(counts)
        self._tokens, self._examples = [], []
        for number, count in enumerate(counts):
            tokens_path, examples_path = shard_paths(directory, split, length, number)
            tokens, examples = _open_array(tokens_path), _open_array(examples_path)
            if (examples.dtype, examples.shape) != (EXAMPLE, (count,)):
                raise _damaged(examples_path)
            size = int(examples[-1]["start"]) + int(examples[-1]["length"]) if count else 0
            if (tokens.dtype, tokens.shape) != (dtype, (size,)):
                raise _damaged(tokens_path)
            self._tokens.append(tokens)
            self._examples.append(examples)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def rows(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the examples at `indices`, filled up to the length.

        Returns:
            `token_ids`, `segment_ids`, `padding_mask` (1 = real), int32 (rows, length);
            `next_sentence_labels` int32 (rows,); `example_ids` uint64 (rows,).
        """
        indices = np.asarray(indices, np.int64)
        count = indices.size
        examples = np.empty(count, EXAMPLE)
        shards = np.searchsorted(self._ends, indices, side="right")
        token_ids = np.full((count, self.length), self.pad_token_id, np.int32)
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            first = self._ends[shard] - self._examples[shard].size
            found = self._examples[shard][indices[places] - first]
            examples[places] = found
            tokens = self._tokens[shard]
            for place, start, size in zip(places, found["start"].tolist(), found["length"].tolist(), strict=True):
                token_ids[place, :size] = tokens[start : start + size]
        positions = np.arange(self.length)
        real = positions < examples["length"][:, None]
        return {
            "token_ids": token_ids,
            "segment_ids": (real & (positions >= examples["second"][:, None])).astype(np.int32),
            "padding_mask": real.astype(np.int32),
            "next_sentence_labels": examples["next_sentence_label"].astype(np.int32),
            "example_ids": examples["id"],
        }


def _open_array(path: Path) -> np.ndarray:
    try:
        # A plain view: slices of `numpy.memmap` objects cost ten times as much.
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        raise _damaged(path) from None


def _damaged(path: Path) -> InputError:
    return InputError(f"`data` must be whole; prepare it anew. Received: {str(path)!r}, which is missing or cut short")
