"""Rows with static masks written as TFRecord files: the form that the original BERT writes and reads.

For other programs. For training here the prepared form is smaller, and draws new masks in every epoch.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.atomic import atomic_path
from keras_bert_impl.errors import InputError

from .order import permuted
from .prepared_data import ExampleSet
from .record_schema import ROWS_AT_ONCE, Rows, encode_rows
from .reference_instances import ReferenceInstance, ReferenceSettings


def write_tfrecords(batches: Iterable[Rows], paths: Sequence[str | os.PathLike[str]]) -> int:
    """Writes rows as TFRecord files; returns the number of records.

    No file appears, or replaces an old one, before all rows are written. Row n goes to file n modulo the number
    of files, as in the original, so that the files are of one size and each is a fair sample. The same rows give
    the same bytes.

    Args:
        batches: from `rows_of_instances` or `static_rows`; see `record_schema.encode_rows`.
        paths: the files to write.

    Raises:
        InputError: if `paths` is a single name, is empty or names a file twice, or a path is no regular file.
        OSError: if a file cannot be written.
    """
    if isinstance(paths, str | bytes | os.PathLike) or not paths:
        raise InputError(f"`paths` must be a list of files. Received: paths={paths!r}")
    targets = [Path(path) for path in paths]
    if len({path.resolve() for path in targets}) < len(targets):
        raise InputError(f"`paths` must name every file once. Received: paths={list(map(str, targets))}")
    count = 0
    with contextlib.ExitStack() as finished:
        temporaries = [finished.enter_context(atomic_path(path)) for path in targets]
        with contextlib.ExitStack() as open_files:
            with _system_errors():
                writers = [open_files.enter_context(tf.io.TFRecordWriter(str(path))) for path in temporaries]
            for rows in batches:
                with _system_errors():
                    for record in encode_rows(rows):
                        writers[count % len(writers)].write(record)
                        count += 1
            with _system_errors():
                open_files.close()
    return count


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Turns what TensorFlow makes of the system's errors back into an `OSError`; only its text has the cause."""
    try:
        yield
    except tf.errors.OpError as error:
        place, _, cause = error.message.rpartition("; ")
        number = next((number for number in errno.errorcode if os.strerror(number) == cause), errno.EIO)
        raise OSError(number, cause, place) from error


def rows_of_instances(instances: Sequence[ReferenceInstance], settings: ReferenceSettings) -> Iterator[Rows]:
    """Yields the reference mode's instances as rows for `write_tfrecords`, in their order."""
    for start in range(0, len(instances), ROWS_AT_ONCE):
        stretch = instances[start : start + ROWS_AT_ONCE]
        yield {
            "token_ids": _filled([row.token_ids for row in stretch], settings.length, np.int32),
            "segment_ids": _filled([row.segment_ids for row in stretch], settings.length, np.int32),
            "padding_mask": _filled([[1] * len(row.token_ids) for row in stretch], settings.length, np.int32),
            "mask_positions": _filled([row.mask_positions for row in stretch], settings.max_predictions, np.int32),
            "mask_labels": _filled([row.mask_labels for row in stretch], settings.max_predictions, np.int32),
            "mask_weights": _filled(
                [[1] * len(row.mask_positions) for row in stretch], settings.max_predictions, np.float32
            ),
            "next_sentence_labels": np.array([row.next_sentence_label for row in stretch], np.int32),
        }


def static_rows(
    examples: ExampleSet, mask: Callable[..., Rows], *, seed: int, epochs: Iterable[int] = range(10)
) -> Iterator[Rows]:
    """Yields prepared examples with the masks of some epochs, as rows for `write_tfrecords`.

    They come in the order and with the masks that training with this seed would meet in these epochs. The default
    of ten epochs is the original's `dupe_factor`.

    Args:
        examples: unmasked examples.
        mask: `masking.mask_batch` with all but `rows` and `epoch` given.
        seed: seed of the order; training gives the same one to the masks.
        epochs: which times round, each giving every example once.
    """
    for epoch in epochs:
        for start in range(0, len(examples), ROWS_AT_ONCE):
            places = np.arange(start, min(start + ROWS_AT_ONCE, len(examples)))
            yield mask(examples.rows(permuted(places, len(examples), seed, epoch)), epoch=epoch)


def _filled(lists: Sequence[Sequence[int]], size: int, dtype: type) -> np.ndarray:
    rows: np.ndarray = np.zeros((len(lists), size), dtype)
    for row, values in zip(rows, lists, strict=True):
        row[: len(values)] = values
    return rows
