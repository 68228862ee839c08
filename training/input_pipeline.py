"""From prepared examples to batches for the trainer.

Rows n is a function of (seed, n) alone: the order is computed, the masks are hashed. So training can be
entered at any step, and a batch is the same whatever was read before it.
"""

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .examples.masking import mask_batch, max_predictions
from .examples.order import examples_of_steps, permuted
from .examples.prepared_data import ExampleSet

EVALUATION_EPOCH = 2**32
PARALLEL_CALLS = 2
ROWS_PER_CALL = 1024
INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
TARGETS = ("mask_labels", "mask_weights", "next_sentence_labels", "example_weights")

Rows = dict[str, np.ndarray]


def training_batches(
    examples: ExampleSet,
    *,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
    tokenizer: WordPieceTokenizer,
    masked_share: float = 0.15,
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`, as (inputs, targets).

    Every epoch has its own order and its own masks; a batch at the seam holds examples of both epochs.

    Args:
        examples: what to train on.
        batch_size: examples per batch, over all replicas.
        seed: seed of order and masks.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches.
        tokenizer: the one that the examples were made with.
        masked_share: share of the tokens to predict.

    Returns:
        A dataset of pairs of dicts. Inputs, int32: `token_ids`, `segment_ids`, `padding_mask` (batch, length)
        and `mask_positions` (batch, predictions). Targets: `mask_labels` int32 and `mask_weights` float32
        (batch, predictions), `next_sentence_labels` int32 and `example_weights` float32 (batch,).
    """

    def rows_of_steps(steps: np.ndarray) -> Rows:
        indices, epochs = examples_of_steps(steps, batch_size, len(examples), seed)
        rows = _masked(examples.rows(indices), tokenizer, masked_share, seed, epochs)
        return rows | {"example_weights": np.ones(indices.size, np.float32)}

    steps = tf.data.Dataset.range(first_step, first_step + num_steps)
    return _batches(steps, rows_of_steps, batch_size, examples.length, masked_share)


def evaluation_batches(
    examples: ExampleSet,
    *,
    batch_size: int,
    limit: int = 0,
    seed: int = 1,
    tokenizer: WordPieceTokenizer,
    masked_share: float = 0.15,
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches): the same examples and masks every time.

    The last batch is filled up with rows whose `example_weights` and `mask_weights` are 0.

    Args:
        examples: what to evaluate on.
        batch_size: examples per batch, over all replicas.
        limit: examples taken, chosen by the seed; 0 for all.
        seed: seed of choice and masks.
        tokenizer: the one that the examples were made with.
        masked_share: share of the tokens to predict.
    """
    size = len(examples)
    taken = min(limit, size) if limit else size
    chosen = np.sort(permuted(np.arange(taken), size, seed, EVALUATION_EPOCH))

    def rows_of_numbers(numbers: np.ndarray) -> Rows:
        places = (numbers[:, None] * batch_size + np.arange(batch_size)).ravel()
        rows = _masked(
            examples.rows(chosen[np.minimum(places, taken - 1)]), tokenizer, masked_share, seed, EVALUATION_EPOCH
        )
        weights = (places < taken).astype(np.float32)
        rows["mask_weights"] *= weights[:, None]
        return rows | {"example_weights": weights}

    number_of_batches = -(-taken // batch_size)
    numbers = tf.data.Dataset.range(number_of_batches)
    return _batches(numbers, rows_of_numbers, batch_size, examples.length, masked_share), number_of_batches


def _masked(rows: Rows, tokenizer: WordPieceTokenizer, masked_share: float, seed: int, epoch: int | np.ndarray) -> Rows:
    return mask_batch(
        rows,
        vocab_size=tokenizer.vocab_size,
        special_token_ids=tokenizer.special_token_ids,
        mask_token_id=tokenizer.mask_token_id,
        max_predictions=max_predictions(rows["token_ids"].shape[1], masked_share),
        masked_share=masked_share,
        seed=seed,
        epoch=epoch,
    )


def _batches(
    numbers: tf.data.Dataset, make: Callable[[np.ndarray], Rows], batch_size: int, length: int, masked_share: float
) -> tf.data.Dataset:
    """Maps batch numbers to (inputs, targets), in order.

    Python makes the rows of several batches at a time: fewer and larger array operations, and fewer turns
    at Python's lock, which for one batch of 32 at a time cost ten times the work itself.
    """
    predictions = max_predictions(length, masked_share)
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
