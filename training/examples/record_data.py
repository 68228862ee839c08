"""TFRecord files with static masks, laid out so that they can be trained on like prepared data.

```
DATA/vocab.txt                        and tokenizer_config.json, if the text was not lower-cased
DATA/train/128/*.tfrecord             records of this length
DATA/held_out/128/*.tfrecord          optional
```
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .shards import SPLITS
from .tfrecord import TFRecordExamples

PATTERN = "*.tfrecord*"


def holds_records(directory: str | os.PathLike[str]) -> bool:
    """Whether a directory has TFRecord files laid out as `RecordData` expects them."""
    return any(Path(directory).glob(f"train/*/{PATTERN}"))


class RecordData:
    """What `PreparedData` is to prepared data, for records: the original's, the Model Garden's or our own.

    Args:
        directory: the directory.

    Raises:
        InputError: if its vocabulary is missing or damaged, or a folder of records is not named by their length.
    """

    # Every record has a label.
    next_sentence = True

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory)
        self.tokenizer = WordPieceTokenizer.from_pretrained(self.directory)
        self._examples: dict[tuple[str, int], TFRecordExamples] = {}
        folders = [path for path in self.directory.glob("train/*") if any(path.glob(PATTERN))]
        if odd := [path.name for path in folders if not path.name.isascii() or not path.name.isdigit()]:
            raise InputError(
                "`data` must have its records in folders that are named by their length. "
                f"Received: {str(self.directory)!r}, with train/{odd[0]}"
            )
        self.lengths: tuple[int, ...] = tuple(sorted(int(path.name) for path in folders))

    @cached_property
    def token_counts(self) -> np.ndarray:
        """Occurrences of each token in the training records of the first length, int64; reads every one of them."""
        return self.examples("train", self.lengths[0]).token_counts(self.tokenizer)

    @cached_property
    def digest(self) -> str:
        """A digest of the names and sizes of all files."""
        files = sorted(path for path in self.directory.rglob("*") if path.is_file())
        listing = "".join(f"{path.relative_to(self.directory)} {path.stat().st_size}\n" for path in files)
        return hashlib.sha256(listing.encode()).hexdigest()

    def count(self, split: str, length: int) -> int:
        """Returns the number of examples of a split, `"train"` or `"held_out"`, at a length."""
        if split not in SPLITS:
            raise InputError(f"`split` must be one of {', '.join(SPLITS)}. Received: split={split!r}")
        return len(self.examples(split, length)) if any(self._folder(split, length).glob(PATTERN)) else 0

    def packed_rows(self, split: str, length: int) -> int:
        """Returns 0: which examples share a row is planned for prepared data alone."""
        return 0

    def examples(self, split: str, length: int) -> TFRecordExamples:
        """Opens the examples of a split at a length; none at all, or of another length, raise `InputError`."""
        if (split, length) not in self._examples:
            folder = self._folder(split, length)
            if not any(folder.glob(PATTERN)):
                raise InputError(
                    f"`data` must have {split.replace('_', '-')} examples of length {length}. "
                    f"Received: {str(self.directory)!r}, which has none"
                )
            examples = TFRecordExamples(
                [folder / PATTERN], vocab_size=self.tokenizer.vocab_size, pad_token_id=self.tokenizer.pad_token_id
            )
            if examples.length != length:
                raise InputError(
                    f"`data` must have records of the length that their folder is named by. "
                    f"Received: {str(folder)!r}, with records of length {examples.length}"
                )
            self._examples[split, length] = examples
        return self._examples[split, length]

    @contextlib.contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Lets what went wrong inside tf.data over these examples come out as the `InputError` it was."""
        with contextlib.ExitStack() as stack:
            for examples in self._examples.values():
                stack.enter_context(examples.plain_errors())
            yield

    def _folder(self, split: str, length: int) -> Path:
        return self.directory / split / str(length)
