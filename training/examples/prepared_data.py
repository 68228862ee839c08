"""A prepared directory, opened by memory mapping."""

import contextlib
import functools
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

from .manifest_check import manifest_fault
from .open_files import make_room_for_files
from .open_shard import ARRAYS, Shard, damaged, open_array, open_shard
from .shards import EXAMPLE, FORMAT_NAME, FORMAT_VERSION, SPLITS, rows_path, shard_paths
from .word_boundaries import PIECES

MANIFEST = "manifest.json"
TOKEN_COUNTS = "token_counts.npy"

# Of each split and length; others take their places. Linux allows a process 65,530 mapped files unless told otherwise.
MOST_OPEN_SHARDS = 3000


class PreparedData:
    """What `prepare` wrote: its manifest, its tokenizer and its examples.

    Args:
        directory: the prepared directory.

    Raises:
        InputError: if it is not one, or was written in another format.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory)
        self.manifest = self._read_manifest()
        self.lengths: tuple[int, ...] = tuple(self.manifest["settings"]["lengths"])
        self._examples: dict[tuple[str, int], ExampleSet] = {}

    @cached_property
    def tokenizer(self) -> WordPieceTokenizer:
        """The tokenizer that the examples were made with; one of another size raises `InputError`."""
        tokenizer = WordPieceTokenizer.from_pretrained(self.directory)
        if tokenizer.vocab_size != self._vocab_size:
            raise InputError(
                "`data` must have the vocabulary that it was prepared with; prepare it anew. "
                f"Received: {str(self.directory)!r}, with {tokenizer.vocab_size:,} tokens in vocab.txt and "
                f"{self._vocab_size:,} in {MANIFEST}"
            )
        return tokenizer

    @cached_property
    def token_counts(self) -> np.ndarray:
        """Occurrences of each token in the training documents, int64 (vocab_size,)."""
        path = self.directory / TOKEN_COUNTS
        counts = open_array(path)
        if (counts.dtype, counts.shape) != (np.int64, (self._vocab_size,)) or counts.min() < 0:
            raise damaged(path)
        return counts

    @cached_property
    def digest(self) -> str:
        """A digest of the manifest, which lists what the data holds."""
        return hashlib.sha256((self.directory / MANIFEST).read_bytes()).hexdigest()

    @property
    def _vocab_size(self) -> int:
        return self.manifest["vocabulary"]["size"]

    @property
    def next_sentence(self) -> bool:
        """Whether the examples have next-sentence labels."""
        return self.manifest["next_sentence"]

    @contextlib.contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Lets what went wrong inside tf.data over these examples come out as the `InputError` it was."""
        try:
            yield
        except Exception:
            for examples in self._examples.values():
                if examples.failure:
                    raise examples.failure from None
            raise

    def count(self, split: str, length: int) -> int:
        """Returns the number of examples of a split, `"train"` or `"held_out"`, at a length."""
        return int(self._facts(split, length)["examples"])

    def packed_rows(self, split: str, length: int) -> int:
        """Returns the number of packed rows that the examples of a split at a length fit into."""
        return int(self._facts(split, length)["packed_rows"])

    def examples(self, split: str, length: int) -> "ExampleSet":
        """Opens the examples of a split at a length, once; none at all raise `InputError`."""
        if (split, length) not in self._examples:
            self._examples[split, length] = self._opened(split, length)
        return self._examples[split, length]

    def _opened(self, split: str, length: int) -> "ExampleSet":
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
            packed_rows=facts["packed_rows"],
            next_sentence=self.next_sentence,
            vocab_size=self._vocab_size,
            pad_token_id=self.tokenizer.pad_token_id,
            with_boundaries=self.manifest["settings"]["word_boundaries"] != PIECES,
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
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            format_name = None
        if format_name != FORMAT_NAME:
            raise InputError(
                f"`data` must be a directory that `keras-bert prepare` wrote. Received: {str(self.directory)!r}, "
                f"which has no {MANIFEST} of one"
            )
        version = manifest.get("format_version")
        if type(version) is not int or version != FORMAT_VERSION:
            raise InputError(
                f"`data` must be of format {FORMAT_VERSION}, the one of this keras_bert_impl; prepare it anew. "
                f"Received: {str(self.directory)!r} of format {version!r}"
            )
        if fault := manifest_fault(manifest):
            raise InputError(
                f"`data` must have a whole {MANIFEST}; prepare it anew. Received: {str(self.directory)!r}, with {fault}"
            )
        return manifest


class ExampleSet:
    """Examples of one split and one length, unmasked, opened by number.

    Attributes:
        length: tokens of a row, padding counted.
        packed_rows: number of packed rows that hold all examples.
        next_sentence: whether there is a next-sentence label to learn.
        failure: the last `InputError` that reading rows raised.

    Raises:
        InputError: if a shard is missing or cut short, or its numbers do not fit one another.
    """

    def __init__(
        self,
        directory: Path,
        *,
        split: str,
        length: int,
        counts: list[int],
        packed_rows: int,
        next_sentence: bool,
        vocab_size: int,
        pad_token_id: int,
        with_boundaries: bool = False,
    ):
        self.directory, self.split, self.length = directory, split, length
        self.vocab_size, self.pad_token_id = vocab_size, pad_token_id
        self.failure: InputError | None = None
        self.packed_rows, self.next_sentence = packed_rows, next_sentence
        self._counts, self._ends = counts, np.cumsum(counts)
        self._with_boundaries = with_boundaries
        make_room_for_files(ARRAYS * min(len(counts), MOST_OPEN_SHARDS))
        self._shard = functools.lru_cache(maxsize=MOST_OPEN_SHARDS)(self._opened_shard)
        # All of them are opened, and so checked, before any is used.
        self._row_ends = np.cumsum([self._shard(number).bounds.size - 1 for number in range(len(counts))])
        if self._row_ends[-1] != packed_rows:
            raise damaged(rows_path(directory, split, length, len(counts) - 1))

    def _opened_shard(self, number: int) -> Shard:
        try:
            return open_shard(
                self.directory,
                self.split,
                self.length,
                number,
                count=self._counts[number],
                vocab_size=self.vocab_size,
                with_boundaries=self._with_boundaries,
            )
        except InputError as error:
            self.failure = error
            raise

    def __len__(self) -> int:
        return int(self._ends[-1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Real tokens of each example, uint16."""
        return np.concatenate([self._shard(number).examples["length"] for number in range(len(self._counts))])

    def examples_of_rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the examples in the packed rows of these numbers, one row after the other.

        Returns:
            The examples' numbers, and bounds, int64 (rows + 1,): those of the r-th row asked for lie from bounds[r] up
            to bounds[r + 1].
        """
        numbers = np.asarray(numbers, np.int64)
        starts, counts = np.empty(numbers.size, np.int64), np.empty(numbers.size, np.int64)
        shards = np.searchsorted(self._row_ends, numbers, side="right")
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            bounds = self._shard(int(shard)).bounds
            local = numbers[places] - (self._row_ends[shard] - (bounds.size - 1))
            starts[places] = bounds[local] + (self._ends[shard] - bounds[-1])
            counts[places] = bounds[local + 1] - bounds[local]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], counts), bounds

    def rows(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the examples at `indices`, filled up to the length.

        Returns:
            `token_ids`, `segment_ids`, `padding_mask` (1 = real), int32 (rows, length);
            `next_sentence_labels` int32 (rows,); `example_ids` uint64 (rows,). Where word boundaries were stored,
            `continues_word` bool (rows, length): tokens that continue the word of the token before them.

        Raises:
            InputError: if a token is not in the vocabulary.
        """
        indices = np.asarray(indices, np.int64)
        count = indices.size
        examples = np.empty(count, EXAMPLE)
        shards = np.searchsorted(self._ends, indices, side="right")
        token_ids = np.full((count, self.length), self.pad_token_id, np.int32)
        continues_word = np.zeros(token_ids.shape, bool)
        for number in np.unique(shards).tolist():
            shard, places = self._shard(number), np.flatnonzero(shards == number)
            found = shard.examples[indices[places] - (self._ends[number] - shard.examples.size)]
            examples[places] = found
            _copy_rows(shard.tokens, found, token_ids, places)
            if shard.continued is not None:
                _copy_rows(shard.continued, found, continues_word, places)
        # Without a sign, so that one comparison finds negative ids as well.
        if token_ids.view(np.uint32).max(initial=0) >= self.vocab_size:
            self.failure = self._odd_token(token_ids, shards)
            raise self.failure
        positions = np.arange(self.length)
        real = positions < examples["length"][:, None]
        rows = {
            "token_ids": token_ids,
            "segment_ids": (real & (positions >= examples["second"][:, None])).astype(np.int32),
            "padding_mask": real.astype(np.int32),
            "next_sentence_labels": examples["next_sentence_label"].astype(np.int32),
            "example_ids": examples["id"],
        }
        return rows | {"continues_word": continues_word} if self._with_boundaries else rows

    def _odd_token(self, token_ids: np.ndarray, shards: np.ndarray) -> InputError:
        """Returns what to say of the first token that is not in the vocabulary."""
        row, position = np.argwhere(token_ids.view(np.uint32) >= self.vocab_size)[0]
        path, _ = shard_paths(self.directory, self.split, self.length, int(shards[row]))
        return damaged(
            path, f"has the token id {token_ids[row, position]} for a vocabulary of {self.vocab_size:,} tokens"
        )


def _copy_rows(source: np.ndarray, found: np.ndarray, rows: np.ndarray, places: np.ndarray) -> None:
    """Copies what a shard holds for the examples `found` into the rows at `places`."""
    for place, start, size in zip(places, found["start"].tolist(), found["length"].tolist(), strict=True):
        rows[place, :size] = source[start : start + size]
