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

from .manifest_check import manifest_fault
from .open_files import make_room_for_files
from .shard_check import are_whole_examples, are_whole_rows
from .shards import EXAMPLE, FORMAT_NAME, FORMAT_VERSION, SPLITS, continued_path, rows_path, shard_paths, token_dtype
from .word_boundaries import PIECES

MANIFEST = "manifest.json"
TOKEN_COUNTS = "token_counts.npy"


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
        counts = _open_array(path)
        if (counts.dtype, counts.shape) != (np.int64, (self._vocab_size,)) or counts.min() < 0:
            raise _damaged(path)
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
        self._ends = np.cumsum(counts)
        make_room_for_files(4 * len(counts))
        self._tokens, self._examples, self._bounds = [], [], []
        self._continued: list[np.ndarray] | None = [] if with_boundaries else None
        for number, count in enumerate(counts):
            tokens_path, examples_path = shard_paths(directory, split, length, number)
            tokens, examples = _open_array(tokens_path), _open_array(examples_path)
            if not are_whole_examples(examples, count, length):
                raise _damaged(examples_path)
            size = int(examples[-1]["start"]) + int(examples[-1]["length"]) if count else 0
            if (tokens.dtype, tokens.shape) != (token_dtype(vocab_size), (size,)):
                raise _damaged(tokens_path)
            self._tokens.append(tokens)
            self._examples.append(examples)
            bounds_path = rows_path(directory, split, length, number)
            bounds = _open_array(bounds_path)
            if not are_whole_rows(bounds, examples, length):
                raise _damaged(bounds_path)
            self._bounds.append(bounds)
            path = continued_path(directory, split, length, number)
            if self._continued is not None:
                continued = _open_array(path)
                if (continued.dtype, continued.shape) != (np.bool_, (size,)):
                    raise _damaged(path)
                self._continued.append(continued)
            elif path.exists():
                raise _damaged(path, f"settings.word_boundaries={PIECES!r} does not go with")
        self._row_ends = np.cumsum([bounds.size - 1 for bounds in self._bounds])
        if self._row_ends[-1] != packed_rows:
            raise _damaged(rows_path(directory, split, length, len(counts) - 1))

    def __len__(self) -> int:
        return int(self._ends[-1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Real tokens of each example, uint16."""
        return np.concatenate([examples["length"] for examples in self._examples])

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
            bounds = self._bounds[shard]
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
        for shard in np.unique(shards):
            places = np.flatnonzero(shards == shard)
            first = self._ends[shard] - self._examples[shard].size
            found = self._examples[shard][indices[places] - first]
            examples[places] = found
            _copy_rows(self._tokens[shard], found, token_ids, places)
            if self._continued is not None:
                _copy_rows(self._continued[shard], found, continues_word, places)
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
        return rows if self._continued is None else rows | {"continues_word": continues_word}

    def _odd_token(self, token_ids: np.ndarray, shards: np.ndarray) -> InputError:
        """Returns what to say of the first token that is not in the vocabulary."""
        row, position = np.argwhere(token_ids.view(np.uint32) >= self.vocab_size)[0]
        path, _ = shard_paths(self.directory, self.split, self.length, int(shards[row]))
        return _damaged(
            path, f"has the token id {token_ids[row, position]} for a vocabulary of {self.vocab_size:,} tokens"
        )


def _copy_rows(source: np.ndarray, found: np.ndarray, rows: np.ndarray, places: np.ndarray) -> None:
    """Copies what a shard holds for the examples `found` into the rows at `places`."""
    for place, start, size in zip(places, found["start"].tolist(), found["length"].tolist(), strict=True):
        rows[place, :size] = source[start : start + size]


def _open_array(path: Path) -> np.ndarray:
    try:
        # A plain view: slices of `numpy.memmap` objects cost ten times as much.
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, ValueError, EOFError):
        raise _damaged(path) from None


def _damaged(path: Path, what: str = "is missing, cut short or altered") -> InputError:
    return InputError(f"`data` must be whole; prepare it anew. Received: {str(path)!r}, which {what}")
