"""Examples with static masks in TFRecord files, as the original BERT and the Model Garden write them."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .record_file import RecordFile
from .record_schema import ROWS_AT_ONCE, RecordSchema, Rows


class TFRecordExamples:
    """Examples with static masks, opened by number over all files.

    Opening goes through the files once to find the records (`RecordFile`); the features' names and sizes are those
    of the first record. Everything else is checked when a row is read.

    Args:
        paths: uncompressed files, or patterns in the last part of a path (`"shards/*.tfrecord"`), sorted.
        vocab_size: ids in the files must be below.
        type_vocab_size: segment ids must be below.
        pad_token_id: the id that padding gets, whatever stands there in the file.

    Attributes:
        length: tokens of a row, padding counted.
        predictions: prediction slots of a row.
        failure: the last `InputError` that reading a row raised.

    Raises:
        InputError: if there is no record, or a file cannot be read, is damaged, or is not of this form.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        vocab_size: int,
        type_vocab_size: int = 2,
        pad_token_id: int = 0,
    ):
        self.files = [RecordFile(path) for path in _found(paths)]
        self.vocab_size = vocab_size
        self.type_vocab_size = type_vocab_size
        self.pad_token_id = pad_token_id
        self.failure: InputError | None = None
        self._ends = np.cumsum([len(file) for file in self.files])
        if not sum(map(len, self.files)):
            raise InputError(f"`paths` must name files that hold records. Received: {[str(path) for path in paths]!r}")
        first = next(file for file in self.files if len(file))
        schema = RecordSchema.of_record(first.read([0])[0])
        if isinstance(schema, str):
            raise first.damaged(0, schema)
        self._schema = schema
        self.length, self.predictions = schema.length, schema.predictions

    def __len__(self) -> int:
        return int(self._ends[-1])

    def rows(self, indices: np.ndarray) -> Rows:
        """Returns the examples at `indices`.

        Returns:
            `token_ids`, `segment_ids`, `padding_mask` int32 (rows, length); `mask_positions`, `mask_labels` int32
            and `mask_weights` float32 (rows, predictions), 0 in slots without weight; `next_sentence_labels`
            int32 (rows,).

        Raises:
            InputError: if a record is damaged or does not fit; it names file and record.
        """
        try:
            return self._rows(np.asarray(indices, np.int64))
        except InputError as error:
            self.failure = error
            raise

    @contextlib.contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Lets what went wrong inside a tf.data pipeline over these examples come out as the `InputError` it was."""
        try:
            yield
        except tf.errors.OpError:
            if self.failure:
                raise self.failure from None
            raise

    def check(self) -> None:
        """Reads every record; the first one that is damaged or does not fit raises `InputError`."""
        for indices in self._stretches():
            self.rows(indices)

    def token_counts(self, tokenizer: WordPieceTokenizer) -> np.ndarray:
        """Returns how often each token stands in the rows before they were masked, int64 (vocab_size,).

        `[CLS]` and `[SEP]`, which are no text, are not counted; for the unigram model. Reads every record.
        """
        counts = np.zeros(self.vocab_size, np.int64)
        for indices in self._stretches():
            rows = self.rows(indices)
            row, slot = np.nonzero(rows["mask_weights"])
            rows["token_ids"][row, rows["mask_positions"][row, slot]] = rows["mask_labels"][row, slot]
            counts += np.bincount(rows["token_ids"][rows["padding_mask"] > 0], minlength=self.vocab_size)
        counts[[tokenizer.cls_token_id, tokenizer.sep_token_id]] = 0
        return counts

    @cached_property
    def lengths(self) -> np.ndarray:
        """Real tokens of each example, int64; reads every record."""
        return np.concatenate([self.rows(indices)["padding_mask"].sum(axis=1) for indices in self._stretches()])

    def _stretches(self) -> Iterator[np.ndarray]:
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield np.arange(start, min(start + ROWS_AT_ONCE, len(self)))

    def _rows(self, indices: np.ndarray) -> Rows:
        records: list[bytes] = [b""] * indices.size
        file_numbers = np.searchsorted(self._ends, indices, side="right")
        numbers = indices - (self._ends - [len(file) for file in self.files])[file_numbers]
        for file_number in np.unique(file_numbers):
            places = np.flatnonzero(file_numbers == file_number)
            for place, record in zip(places.tolist(), self.files[file_number].read(numbers[places]), strict=True):
                records[place] = record

        def damaged(place: int, what: str) -> InputError:
            return self.files[file_numbers[place]].damaged(int(numbers[place]), what)

        try:
            values = self._schema.parse(records)
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # The latter if the text of the former is none.
            for place, record in enumerate(records):
                if what := self._schema.fault_of(record):
                    raise damaged(place, what) from None
            raise
        if fault := self._schema.value_fault(values, self._limits):
            raise damaged(*fault)
        return self._clean(values)

    @property
    def _limits(self) -> dict[str, tuple[float, str]]:
        vocabulary = (self.vocab_size, "the size of the vocabulary")
        return {
            "token_ids": vocabulary,
            "mask_labels": vocabulary,
            "segment_ids": (self.type_vocab_size, "the number of segments"),
            "mask_positions": (self.length, "the length of the row"),
            "padding_mask": (2, "for it says yes or no"),
            "next_sentence_labels": (2, "for it says yes or no"),
            "mask_weights": (np.inf, "for it is a weight"),
        }

    def _clean(self, values: Rows) -> Rows:
        """Gives padding and unused slots what our own batches have there; which those are, mask and weights say."""
        rows = {name: value if name == "mask_weights" else value.astype(np.int32) for name, value in values.items()}
        real, used = rows["padding_mask"] > 0, rows["mask_weights"] > 0
        rows["token_ids"][~real] = self.pad_token_id
        rows["segment_ids"][~real] = 0
        for name in ("mask_positions", "mask_labels"):
            rows[name] *= used
        return rows | {"next_sentence_labels": rows["next_sentence_labels"][:, 0]}


def _found(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Returns the files, with patterns replaced by what they match."""
    if isinstance(paths, str | bytes | os.PathLike):
        raise InputError(f"`paths` must be a list of files, not a single name. Received: paths={paths!r}")
    found: list[Path] = []
    for path in map(Path, paths):
        if path.exists() or not any(sign in path.name for sign in "*?["):
            found.append(path)
        elif matches := sorted(path.parent.glob(path.name)):
            found += matches
        else:
            raise InputError(f"`paths` must name files that exist. Received: {str(path)!r}, which nothing matches")
    return found
