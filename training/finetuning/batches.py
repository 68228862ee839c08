"""Batches for fine-tuning: rows of like length together, in an order that is a function of (seed, epoch) alone.

So training can be entered at any step, and what a batch holds does not depend on what was read before it.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..examples.order import permuted
from .task import TrainingRows

STRETCH = 32
"""So many batches are filled together with rows that are sorted by their length."""

# The order of an epoch's batches is drawn apart from that of its rows.
_OF_BATCHES = 2**32
# Matrices of such widths are fast, and few rows become longer by it.
_WIDTH_STEP = 8
_PREFETCHED = 4

Arrays = dict[str, np.ndarray]
Batch = tuple[Arrays, Arrays]


class BatchPlan:
    """Which rows are in which batch.

    In each epoch the rows are permuted; in stretches of `STRETCH` batches they are sorted by length and cut into
    batches, whose order is then permuted too. The rows that are left for a last, smaller batch are any, not the
    longest.

    Args:
        lengths: tokens of each row.
        batch_size: rows of a batch over all replicas.
        seed: seed of the order.
    """

    def __init__(self, lengths: Sequence[int], *, batch_size: int, seed: int) -> None:
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self._epoch = functools.lru_cache(maxsize=2)(self._batches_of_epoch)

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches that every row is in once."""
        return -(-len(self.lengths) // self.batch_size)

    def rows_of_step(self, step: int) -> np.ndarray:
        """Returns the numbers of the rows in the batch of a step, counted from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        return self._epoch(epoch)[place]

    def _batches_of_epoch(self, epoch: int) -> list[np.ndarray]:
        count, size = len(self.lengths), self.batch_size
        order = permuted(np.arange(count), count, self.seed, epoch)
        whole = count - count % size
        batches: list[np.ndarray] = []
        for start in range(0, whole, STRETCH * size):
            rows = order[start : min(start + STRETCH * size, whole)]
            rows = rows[np.argsort(self.lengths[rows], kind="stable")]
            batches += np.split(rows, len(rows) // size)
        if batches:
            batches = [
                batches[i] for i in permuted(np.arange(len(batches)), len(batches), self.seed, _OF_BATCHES + epoch)
            ]
        return batches + [order[whole:]] * (whole < count)


class RowBatches:
    """Makes padded batches of rows.

    Args:
        rows: the rows.
        per_token: names of targets that have a value for each token; they are filled up with 0.
        pad_token_id: fills rows up.
    """

    def __init__(self, rows: TrainingRows, *, per_token: Sequence[str], pad_token_id: int) -> None:
        self.rows = rows
        self.per_token = tuple(per_token)
        self.pad_token_id = pad_token_id
        self._widest = max(map(len, rows.token_ids))
        self._templates = {name: np.asarray(values[0]) for name, values in rows.targets.items()}

    def batch(self, numbers: np.ndarray) -> Batch:
        """Returns inputs and targets of some rows, of which there may be none.

        Rows are as wide as the longest, rounded up to a multiple of 8; never wider than the longest of all, since a
        model may have no more positions.
        """
        longest = max((len(self.rows.token_ids[i]) for i in numbers), default=1)
        width = min(-(-longest // _WIDTH_STEP) * _WIDTH_STEP, self._widest)
        inputs = {
            "token_ids": self._filled(self.rows.token_ids, numbers, width, self.pad_token_id),
            "segment_ids": self._filled(self.rows.segment_ids, numbers, width, 0),
            "padding_mask": np.zeros((len(numbers), width), np.int32),
        }
        for place, number in enumerate(numbers):
            inputs["padding_mask"][place, : len(self.rows.token_ids[number])] = 1
        return inputs, {name: self._target(name, numbers, width) for name in self.rows.targets}

    def signature(self) -> tuple[Mapping[str, tf.TensorSpec], Mapping[str, tf.TensorSpec]]:
        """Returns the shapes and types of batches, with any number of rows and any width."""
        inputs = {
            name: tf.TensorSpec((None, None), tf.int32, name) for name in ("token_ids", "segment_ids", "padding_mask")
        }
        targets = {}
        for name, value in self._templates.items():
            shape = (None, None, *value.shape[1:]) if name in self.per_token else (None, *value.shape)
            targets[name] = tf.TensorSpec(shape, _type_of(value), name)
        return inputs, targets

    def _filled(self, values: Sequence[Any], numbers: np.ndarray, width: int, fill: int) -> np.ndarray:
        filled = np.full((len(numbers), width), fill, np.int32)
        for place, number in enumerate(numbers):
            filled[place, : len(values[number])] = values[number]
        return filled

    def _target(self, name: str, numbers: np.ndarray, width: int) -> np.ndarray:
        values, template = self.rows.targets[name], self._templates[name]
        if name not in self.per_token:
            target = np.zeros((len(numbers), *template.shape), _type_of(template))
            for place, number in enumerate(numbers):
                target[place] = values[number]
            return target
        target = np.zeros((len(numbers), width, *template.shape[1:]), _type_of(template))
        for place, number in enumerate(numbers):
            target[place, : len(values[number])] = values[number]
        return target


def training_batches(
    plan: BatchPlan, batches: RowBatches, *, first_step: int, num_steps: int, strategy: tf.distribute.Strategy
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`, for `fit` under the strategy.

    Each replica gets its share of a batch's rows, filled up to the longest of the share; none, where the last batch
    of an epoch has fewer rows than there are replicas. The shapes of a step are not fixed: it is traced once.

    Args:
        plan: which rows are in which batch.
        batches: makes them.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches.
        strategy: the strategy that the replicas compute under.
    """
    replicas = strategy.num_replicas_in_sync

    def shares() -> Iterator[Batch]:
        for step in range(first_step, first_step + num_steps):
            for numbers in np.array_split(plan.rows_of_step(step), replicas):
                yield batches.batch(numbers)

    def dataset(context: Any = None) -> tf.data.Dataset:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        made = tf.data.Dataset.from_generator(shares, output_signature=batches.signature())
        return made.prefetch(_PREFETCHED * replicas).with_options(options)

    if replicas == 1:
        return dataset()
    return strategy.distribute_datasets_from_function(dataset)


def _type_of(value: np.ndarray) -> Any:
    return np.float32 if value.dtype.kind == "f" else np.int32
