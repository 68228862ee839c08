"""From examples to batches for the trainer: where they are unmasked, the masks are drawn here, when they are read."""

import functools

import tensorflow as tf

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .batches import RowsOf, batches_of_all, batches_of_steps
from .examples.masking import mask_batch, max_predictions
from .examples.prepared_data import ExampleSet
from .examples.tfrecord import TFRecordExamples


def training_batches(
    examples: ExampleSet | TFRecordExamples,
    *,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
    tokenizer: WordPieceTokenizer,
    masked_share: float = 0.15,
) -> tf.data.Dataset:
    """Returns the batches of steps `first_step` to `first_step + num_steps - 1`; see `batches.batches_of_steps`.

    Every epoch has its own order and its own masks.

    Args:
        examples: what to train on.
        batch_size: examples per batch, over all replicas.
        seed: seed of order and masks.
        first_step: number of the first batch, counted from 0.
        num_steps: number of batches.
        tokenizer: the one that the examples were made with.
        masked_share: share of the tokens to predict; TFRecord files have their masks already.
    """
    rows_of, predictions = _rows_of(examples, tokenizer, masked_share, seed)
    return batches_of_steps(
        rows_of,
        count=len(examples),
        batch_size=batch_size,
        seed=seed,
        first_step=first_step,
        num_steps=num_steps,
        length=examples.length,
        predictions=predictions,
    )


def evaluation_batches(
    examples: ExampleSet | TFRecordExamples,
    *,
    batch_size: int,
    limit: int = 0,
    seed: int = 1,
    tokenizer: WordPieceTokenizer,
    masked_share: float = 0.15,
) -> tuple[tf.data.Dataset, int]:
    """Returns (dataset, number of batches): the same examples and masks every time; see `batches.batches_of_all`.

    Args:
        examples: what to evaluate on.
        batch_size: examples per batch, over all replicas.
        limit: examples taken, chosen by the seed; 0 for all.
        seed: seed of choice and masks.
        tokenizer: the one that the examples were made with.
        masked_share: share of the tokens to predict; TFRecord files have their masks already.
    """
    rows_of, predictions = _rows_of(examples, tokenizer, masked_share, seed)
    return batches_of_all(
        rows_of,
        count=len(examples),
        batch_size=batch_size,
        limit=limit,
        seed=seed,
        length=examples.length,
        predictions=predictions,
    )


def _rows_of(
    examples: ExampleSet | TFRecordExamples, tokenizer: WordPieceTokenizer, masked_share: float, seed: int
) -> tuple[RowsOf, int]:
    """Returns what gives rows with masks, and how many prediction slots they have."""
    if isinstance(examples, TFRecordExamples):
        return lambda indices, epochs: examples.rows(indices), examples.predictions
    predictions = max_predictions(examples.length, masked_share)
    mask = functools.partial(
        mask_batch,
        vocab_size=tokenizer.vocab_size,
        special_token_ids=tokenizer.special_token_ids,
        mask_token_id=tokenizer.mask_token_id,
        max_predictions=predictions,
        masked_share=masked_share,
        seed=seed,
    )
    return lambda indices, epochs: mask(examples.rows(indices), epoch=epochs), predictions
