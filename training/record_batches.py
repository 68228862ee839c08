"""From TFRecord files to batches for the trainer: what `input_pipeline` is to prepared data."""

import os
from collections.abc import Sequence

import tensorflow as tf

from .batches import batches_of_all, batches_of_steps
from .examples.tfrecord import TFRecordExamples


def read_tfrecords(
    paths: Sequence[str | os.PathLike[str]],
    batch_size: int,
    *,
    vocab_size: int,
    seed: int = 1,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Returns batches of TFRecord files, in a new order every epoch; see `record_training_batches`.

    Args:
        paths: files or patterns.
        batch_size: examples per batch, over all replicas.
        vocab_size: ids in the files must be below.
        seed: seed of the order.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches; as many as hold every example once when not given.

    Raises:
        InputError: if a file cannot be used; what comes to light while reading is a
            `tf.errors.InvalidArgumentError` with the same text.
    """
    examples = TFRecordExamples(paths, vocab_size=vocab_size)
    return record_training_batches(
        examples,
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=-(-len(examples) // batch_size) if num_steps is None else num_steps,
    )


def record_training_batches(
    examples: TFRecordExamples, *, batch_size: int, seed: int, first_step: int, num_steps: int
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`; see `batches.batches_of_steps`."""
    return batches_of_steps(
        lambda indices, epochs: examples.rows(indices),
        count=len(examples),
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=num_steps,
        length=examples.length,
        predictions=examples.predictions,
    )


def record_evaluation_batches(
    examples: TFRecordExamples, *, batch_size: int, limit: int = 0, seed: int = 1
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches), the same every time; see `batches.batches_of_all`."""
    return batches_of_all(
        lambda indices, epochs: examples.rows(indices),
        count=len(examples),
        batch_size=batch_size,
        limit=limit,
        seed=seed,
        length=examples.length,
        predictions=examples.predictions,
    )
