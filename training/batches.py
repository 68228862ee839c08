"""Batches for the trainer from anything that gives rows by their number.

Batch n is a function of (seed, n) alone: the order is computed. So training can be entered at any step, and a
batch is the same whatever was read before it.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import TypedDict

import numpy as np
import tensorflow as tf

from .examples.buckets import Buckets
from .examples.order import examples_of_steps, permuted

# An epoch that no training reaches: what evaluation draws is never met there.
EVALUATION_EPOCH = 2**32

PARALLEL_CALLS = 2
ROWS_PER_CALL = 1024

_TOKENS = ("token_ids", "segment_ids", "padding_mask")
_SLOTS = ("mask_positions", "mask_labels", "mask_weights")

Rows = dict[str, np.ndarray]
Shapes = dict[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class RowSource:
    """Rows that batches are made of, opened by number.

    Attributes:
        rows_of: from the rows' numbers and the epochs, one for each, to all that a batch of them holds.
        count: number of rows.
        inputs: what the model takes, with the shape of one row.
        targets: what it learns, likewise; names that end in `_weights` are float32, all others int32.
        slots: from the width that rows are cut to, to the number of prediction slots that they can use; None: all.
    """

    rows_of: Callable[[np.ndarray, np.ndarray], Rows]
    count: int
    inputs: Shapes
    targets: Shapes
    slots: Callable[[int], int] | None = None


@dataclasses.dataclass(frozen=True)
class BatchPart:
    """The rows of every batch that one of several machines reads: one stretch of each, on all the same size.

    Attributes:
        number: which machine, from 0.
        machines: how many there are.
        replicas: how many elements its rows of a batch are dealt out to, one for each of its replicas.
    """

    number: int = 0
    machines: int = 1
    replicas: int = 1

    def rows(self, values: np.ndarray, batch_size: int) -> np.ndarray:
        """Returns the machine's values out of one for each row of some batches."""
        size = batch_size // self.machines
        return values.reshape(-1, batch_size)[:, self.number * size : (self.number + 1) * size].ravel()

    def element_size(self, batch_size: int) -> int:
        """Returns the number of rows in an element of the dataset."""
        return batch_size // self.machines // self.replicas


WHOLE = BatchPart()


class RowShapes(TypedDict):
    """The shapes of one row's inputs and targets."""

    inputs: Shapes
    targets: Shapes


def row_shapes(length: int, predictions: int, pairs: int | None = None) -> RowShapes:
    """Returns the `inputs` and `targets` of rows of one example each, or of packed rows with slots for `pairs`.

    Args:
        length: tokens of a row.
        predictions: prediction slots of a row.
        pairs: slots for pairs in a packed row; None for rows that are not packed.
    """
    tokens, slots, examples = (length,), (predictions,), () if pairs is None else (pairs,)
    layout = {"padding_mask": tokens} if pairs is None else {"pair_ids": tokens, "cls_positions": examples}
    return {
        "inputs": {"token_ids": tokens, "segment_ids": tokens, **layout, "mask_positions": slots},
        "targets": {
            "mask_labels": slots,
            "mask_weights": slots,
            "next_sentence_labels": examples,
            "next_sentence_weights": examples,
        },
    }


def batches_of_steps(
    source: RowSource,
    *,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
    part: BatchPart = WHOLE,
    buckets: Buckets | None = None,
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`, as (inputs, targets).

    Every epoch has its own order; a batch at the seam holds rows of both epochs.

    Args:
        source: the rows.
        batch_size: rows per batch, over all replicas.
        seed: seed of the order.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches.
        part: what this machine reads of each; nothing else is read.
        buckets: which rows share a batch and how wide it is; in the order of the epoch, and of full width, if None.

    Returns:
        A dataset of pairs of dicts, int32 but for the weights, which are float32. Inputs: `token_ids`, `segment_ids`,
        `padding_mask` (batch, length) and `mask_positions` (batch, predictions). Targets: `mask_labels` and
        `mask_weights` (batch, predictions), `next_sentence_labels` and `next_sentence_weights` (batch,).
        Packed rows have `pair_ids` (batch, length) and `cls_positions` (batch, pairs) in place of the mask, and
        next-sentence targets of shape (batch, pairs). Weights are 1 where there is something to learn, else 0.
    """

    slots = source.slots or (lambda width: source.inputs["mask_positions"][0])

    def make(steps: np.ndarray) -> Rows:
        if buckets is None:
            numbers, epochs = examples_of_steps(steps, batch_size, source.count, seed)
            sizes = {}
        else:
            numbers, epochs, widths = buckets.of_steps(steps)
            ends = np.array([(width, slots(width)) for width in widths.tolist()], np.int32)
            sizes = {"ends": np.repeat(ends, part.replicas, axis=0)}
        return source.rows_of(part.rows(numbers, batch_size), part.rows(epochs, batch_size)) | sizes

    steps = tf.data.Dataset.range(first_step, first_step + num_steps)
    dataset = _by_number(steps, make, source, part.element_size(batch_size), cut=buckets is not None)
    # So that Keras need not find out by running into the end.
    return dataset.apply(tf.data.experimental.assert_cardinality(num_steps)) if part == WHOLE else dataset


def batches_of_all(
    source: RowSource, *, batch_size: int, limit: int, seed: int, part: BatchPart = WHOLE
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches): the same rows every time, in the order of their numbers.

    The last batch is filled up with rows all of whose weights are 0. Arguments not named here, and the structure,
    are those of `batches_of_steps`.

    Args:
        limit: rows taken, chosen by the seed; 0 for all.
        seed: seed of the choice.
    """
    taken = rows_taken(source.count, limit)
    chosen = np.sort(permuted(np.arange(taken), source.count, seed, EVALUATION_EPOCH))

    def make(numbers: np.ndarray) -> Rows:
        places = part.rows(numbers[:, None] * batch_size + np.arange(batch_size), batch_size)
        rows = source.rows_of(chosen[np.minimum(places, taken - 1)], np.full(places.size, EVALUATION_EPOCH))
        counts = (places < taken).astype(np.float32)
        weights = [name for name in source.targets if name.endswith("_weights")]
        return rows | {name: (rows[name].T * counts).T for name in weights}

    number_of_batches = -(-taken // batch_size)
    numbers = tf.data.Dataset.range(number_of_batches)
    return _by_number(numbers, make, source, part.element_size(batch_size)), number_of_batches


def rows_taken(count: int, limit: int) -> int:
    """Returns how many of `count` rows `batches_of_all` takes; `limit` is 0 for all."""
    return min(limit, count) if limit else count


def _by_number(
    numbers: tf.data.Dataset,
    make: Callable[[np.ndarray], Rows],
    source: RowSource,
    batch_size: int,
    *,
    cut: bool = False,
) -> tf.data.Dataset:
    """Maps batch numbers to (inputs, targets), in order.

    Python makes the rows of several batches at a time: fewer and larger array operations, and fewer turns
    at Python's lock, which for one batch of 32 at a time cost ten times the work itself.

    Args:
        numbers: the batches' numbers.
        make: from numbers to the rows of their batches; with `cut` also to `ends`, int32 (batches, 2): how many
            tokens and prediction slots of a batch are used.
        source: what the rows hold.
        batch_size: rows per batch.
        cut: whether to cut off what is not used.
    """
    shapes = {name: (batch_size, *shape) for name, shape in (source.inputs | source.targets).items()}
    types = {name: tf.float32 if name.endswith("_weights") else tf.int32 for name in shapes}
    if cut:
        shapes, types = {**shapes, "ends": (2,)}, {**types, "ends": tf.int32}

    def load(numbers: tf.Tensor) -> dict[str, tf.Tensor]:
        # Not stateful: otherwise tf.data would make one call after the other when determinism is asked for.
        tensors = tf.numpy_function(
            lambda numbers: _in_order(make(numbers), types), [numbers], list(types.values()), stateful=False
        )
        batches = zip(shapes.items(), tensors, strict=True)
        return {name: tf.reshape(tensor, (-1, *shape)) for (name, shape), tensor in batches}

    def divided(batch: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        if cut:
            tokens, slots = tf.unstack(batch["ends"])
            batch = batch | {name: batch[name][:, :tokens] for name in _TOKENS}
            batch = batch | {name: batch[name][:, :slots] for name in _SLOTS}
        return {name: batch[name] for name in source.inputs}, {name: batch[name] for name in source.targets}

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.deterministic = True
    return (
        numbers.batch(max(1, ROWS_PER_CALL // batch_size))
        .map(load, num_parallel_calls=PARALLEL_CALLS, deterministic=True)
        .prefetch(1)
        .unbatch()
        .map(divided)
        .prefetch(PARALLEL_CALLS)
        .with_options(options)
    )


def _in_order(rows: Rows, names: Iterable[str]) -> list[np.ndarray]:
    return [rows[name] for name in names]
