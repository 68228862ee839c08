"""Batches for the trainer from anything that gives examples by their number.

Batch n is a function of (seed, n) alone: the order is computed. So training can be entered at any step, and a
batch is the same whatever was read before it.
"""

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from .examples.order import examples_of_steps, permuted

# An epoch that no training reaches: what evaluation draws is never met there.
EVALUATION_EPOCH = 2**32

PARALLEL_CALLS = 2
ROWS_PER_CALL = 1024
INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
TARGETS = ("mask_labels", "mask_weights", "next_sentence_labels", "example_weights")

Rows = dict[str, np.ndarray]
# From the examples' numbers and the epochs, one for each, to all that a batch holds but `example_weights`.
RowsOf = Callable[[np.ndarray, np.ndarray], Rows]


def batches_of_steps(
    rows_of: RowsOf,
    *,
    count: int,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
    length: int,
    predictions: int,
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`, as (inputs, targets).

    Every epoch has its own order; a batch at the seam holds examples of both epochs.

    Args:
        rows_of: gives the rows of examples.
        count: number of examples.
        batch_size: examples per batch, over all replicas.
        seed: seed of the order.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches.
        length: tokens of a row.
        predictions: prediction slots of a row.

    Returns:
        A dataset of pairs of dicts. Inputs, int32: `token_ids`, `segment_ids`, `padding_mask` (batch, length)
        and `mask_positions` (batch, predictions). Targets: `mask_labels` int32 and `mask_weights` float32
        (batch, predictions), `next_sentence_labels` int32 and `example_weights` float32 (batch,).
    """

    def make(steps: np.ndarray) -> Rows:
        indices, epochs = examples_of_steps(steps, batch_size, count, seed)
        return rows_of(indices, epochs) | {"example_weights": np.ones(indices.size, np.float32)}

    steps = tf.data.Dataset.range(first_step, first_step + num_steps)
    return _by_number(steps, make, batch_size, length, predictions)


def batches_of_all(
    rows_of: RowsOf, *, count: int, batch_size: int, limit: int, seed: int, length: int, predictions: int
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches): the same examples every time, in the order of their numbers.

    The last batch is filled up with rows whose `example_weights` and `mask_weights` are 0. Arguments not named
    here, and the structure, are those of `batches_of_steps`.

    Args:
        limit: examples taken, chosen by the seed; 0 for all.
        seed: seed of the choice.
    """
    taken = min(limit, count) if limit else count
    chosen = np.sort(permuted(np.arange(taken), count, seed, EVALUATION_EPOCH))

    def make(numbers: np.ndarray) -> Rows:
        places = (numbers[:, None] * batch_size + np.arange(batch_size)).ravel()
        rows = rows_of(chosen[np.minimum(places, taken - 1)], np.full(places.size, EVALUATION_EPOCH))
        weights = (places < taken).astype(np.float32)
        return rows | {"mask_weights": rows["mask_weights"] * weights[:, None], "example_weights": weights}

    number_of_batches = -(-taken // batch_size)
    numbers = tf.data.Dataset.range(number_of_batches)
    return _by_number(numbers, make, batch_size, length, predictions), number_of_batches


def _by_number(
    numbers: tf.data.Dataset, make: Callable[[np.ndarray], Rows], batch_size: int, length: int, predictions: int
) -> tf.data.Dataset:
    """Maps batch numbers to (inputs, targets), in order.

    Python makes the rows of several batches at a time: fewer and larger array operations, and fewer turns
    at Python's lock, which for one batch of 32 at a time cost ten times the work itself.
    """
    shapes = {
        **dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), (batch_size, length)),
        **dict.fromkeys(("mask_positions", "mask_labels", "mask_weights"), (batch_size, predictions)),
        **dict.fromkeys(("next_sentence_labels", "example_weights"), (batch_size,)),
    }
    types = {name: tf.float32 if name.endswith("_weights") else tf.int32 for name in shapes}

    def load(numbers: tf.Tensor) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        # Not stateful: otherwise tf.data would make one call after the other when determinism is asked for.
        tensors = tf.numpy_function(
            lambda numbers: _in_order(make(numbers), shapes), [numbers], list(types.values()), stateful=False
        )
        batches = {
            name: tf.reshape(tensor, (-1, *shape))
            for (name, shape), tensor in zip(shapes.items(), tensors, strict=True)
        }
        return {name: batches[name] for name in INPUTS}, {name: batches[name] for name in TARGETS}

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.deterministic = True
    return (
        numbers.batch(max(1, ROWS_PER_CALL // batch_size))
        .map(load, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
        .prefetch(1)
        .unbatch()
        .prefetch(PARALLEL_CALLS)
        .with_options(options)
    )


def _in_order(rows: Rows, names: Iterable[str]) -> list[np.ndarray]:
    return [rows[name] for name in names]
