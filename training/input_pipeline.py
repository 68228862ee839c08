"""From examples to batches for the trainer: where they are unmasked, the masks are drawn here, when they are read."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .batches import WHOLE, BatchPart, Rows, RowSource, batches_of_all, batches_of_steps, row_shapes
from .configs import check_seed
from .examples.buckets import Buckets
from .examples.masking import TOKEN, mask_batch, max_predictions
from .examples.packing import pack_rows, packed_predictions, pairs_per_row
from .examples.prepared_data import ExampleSet
from .examples.tfrecord import TFRecordExamples
from .examples.words import continuing_tokens


def training_batches(
    examples: ExampleSet | TFRecordExamples,
    *,
    batch_size: int,
    seed: int,
    num_steps: int,
    first_step: int = 0,
    tokenizer: WordPieceTokenizer | None = None,
    masked_share: float = 0.15,
    masking: str = TOKEN,
    max_ngram: int = 3,
    packed: bool = False,
    bucketed: bool = False,
    part: BatchPart = WHOLE,
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`; see `batches.batches_of_steps`.

    Every epoch has its own order and its own masks. In an epoch an example has the same masks packed or not.

    Args:
        examples: what to train on.
        batch_size: rows per batch, over all replicas.
        seed: seed of order and masks.
        num_steps: number of batches.
        first_step: number of the first batch, counted from 0.
        tokenizer: the one that prepared data was made with. TFRecord files need none, having their masks already; the
            next three are for prepared data only, too.
        masked_share: share of the tokens to predict.
        masking: `"token"`, `"whole-word"` or `"n-gram"`; see `mask_batch`.
        max_ngram: most words of a run, for `"n-gram"`.
        packed: whether a row holds several examples, as planned when the data was prepared; prepared data only.
        bucketed: whether rows of similar length share a batch, which is cut to the longest of them: `Buckets` says
            how. Not with `packed`.
        part: what one of several machines reads of each batch.
    """
    source = _source(examples, tokenizer, masked_share, masking, max_ngram, seed, packed)
    if packed and bucketed:
        raise InputError("`bucketed` must be False for packed rows, which have next to no padding. Received: True")
    return batches_of_steps(
        source,
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=num_steps,
        part=part,
        buckets=buckets_of(examples, batch_size=batch_size, seed=seed) if bucketed else None,
    )


def buckets_of(examples: ExampleSet | TFRecordExamples, *, batch_size: int, seed: int) -> Buckets:
    """Returns which examples share a batch if those of similar length do; arguments as for `training_batches`."""
    return Buckets(examples.lengths, length=examples.length, batch_size=batch_size, seed=seed)


def evaluation_batches(
    examples: ExampleSet | TFRecordExamples,
    *,
    batch_size: int,
    limit: int = 0,
    seed: int = 1,
    tokenizer: WordPieceTokenizer | None = None,
    masked_share: float = 0.15,
    masking: str = TOKEN,
    max_ngram: int = 3,
    part: BatchPart = WHOLE,
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches): the same examples and masks every time; see `batches.batches_of_all`.

    Args:
        examples: what to evaluate on.
        batch_size: examples per batch, over all replicas.
        limit: examples taken, chosen by the seed; 0 for all.
        seed: seed of choice and masks.
        tokenizer, masked_share, masking, max_ngram, part: as for `training_batches`.
    """
    source = _source(examples, tokenizer, masked_share, masking, max_ngram, seed)
    return batches_of_all(source, batch_size=batch_size, limit=limit, seed=seed, part=part)


def _source(
    examples: ExampleSet | TFRecordExamples,
    tokenizer: WordPieceTokenizer | None,
    masked_share: float,
    masking: str,
    max_ngram: int,
    seed: int,
    packed: bool = False,
) -> RowSource:
    """Returns what gives rows with masks."""
    check_seed(seed)
    if isinstance(examples, TFRecordExamples):
        if packed:
            raise InputError("`packed` must be False for TFRecord files, which hold one example a row. Received: True")
        shapes = row_shapes(examples.length, examples.predictions)
        return RowSource(lambda numbers, _: _weighted(examples.rows(numbers), True), len(examples), **shapes)
    if tokenizer is None:
        raise InputError("`tokenizer` must be given for prepared data, to draw its masks. Received: None")
    length, predictions = examples.length, max_predictions(examples.length, masked_share)
    mask = mask_function(
        tokenizer,
        max_predictions=predictions,
        masked_share=masked_share,
        masking=masking,
        max_ngram=max_ngram,
        seed=seed,
    )

    def masked(numbers: np.ndarray, epochs: np.ndarray) -> Rows:
        return _weighted(mask(examples.rows(numbers), epoch=epochs), examples.next_sentence)

    if not packed:
        slots = functools.partial(max_predictions, share=masked_share)
        return RowSource(masked, len(examples), slots=slots, **row_shapes(length, predictions))
    pairs, predictions = pairs_per_row(length), packed_predictions(length, masked_share)

    def packed_rows(numbers: np.ndarray, epochs: np.ndarray) -> Rows:
        numbers, bounds = examples.examples_of_rows(numbers)
        rows = masked(numbers, np.repeat(epochs, np.diff(bounds)))
        return pack_rows(rows, bounds, pairs=pairs, predictions=predictions, pad_token_id=examples.pad_token_id)

    return RowSource(packed_rows, examples.packed_rows, **row_shapes(length, predictions, pairs))


def mask_function(tokenizer: WordPieceTokenizer, **settings: Any) -> Callable[..., Rows]:
    """Returns `mask_batch` for a tokenizer and settings: what is left to give are rows and `epoch`."""
    return functools.partial(
        mask_batch,
        vocab_size=tokenizer.vocab_size,
        special_token_ids=tokenizer.special_token_ids,
        mask_token_id=tokenizer.mask_token_id,
        continuing_tokens=continuing_tokens(tokenizer),
        **settings,
    )


def _weighted(rows: Rows, next_sentence: bool) -> Rows:
    """Adds the weights of the next-sentence labels: 0 where they are no labels to learn."""
    return rows | {"next_sentence_weights": np.full(rows["next_sentence_labels"].shape, next_sentence, np.float32)}
