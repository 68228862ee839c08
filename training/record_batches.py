"""From TFRecord files to batches for the trainer, for use without a data directory."""

import os
from collections.abc import Sequence

import tensorflow as tf

from .examples.tfrecord import TFRecordExamples
from .input_pipeline import training_batches


def read_tfrecords(
    paths: Sequence[str | os.PathLike[str]],
    batch_size: int,
    *,
    vocab_size: int,
    seed: int = 1,
    first_step: int = 0,
    num_steps: int | None = None,
) -> tf.data.Dataset:
    """Returns batches of TFRecord files, in a new order every epoch; see `input_pipeline.training_batches`.

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
    return training_batches(
        examples,
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=-(-len(examples) // batch_size) if num_steps is None else num_steps,
    )
