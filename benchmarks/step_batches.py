"""Batches of random ids in the shapes of pretraining."""

import numpy as np

from keras_bert_impl.training.examples.packing import pack_rows

VOCABULARY = 30522
MASKED = 0.15


def padded_batch(lengths, length, predictions, seed=0):
    """Returns `(x, y)` with rows of the given numbers of tokens, padded to `length`."""
    rng = np.random.default_rng(seed)
    rows, sizes = len(lengths), np.array(lengths)[:, None]
    padding_mask = (np.arange(length) < sizes).astype("int32")
    used = np.arange(predictions) < np.minimum(np.round(sizes * MASKED), predictions)
    positions = np.argsort(rng.random((rows, length)) + (padding_mask == 0), axis=1)[:, :predictions]
    x = {
        "token_ids": rng.integers(5, VOCABULARY, (rows, length)).astype("int32") * padding_mask,
        "segment_ids": (np.arange(length) >= sizes // 2).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": (np.sort(np.where(used, positions, length)) % length * used).astype("int32"),
    }
    y = {
        "mask_labels": (rng.integers(5, VOCABULARY, (rows, predictions)) * used).astype("int32"),
        "mask_weights": used.astype("float32"),
        "next_sentence_labels": rng.integers(0, 2, rows).astype("int32"),
        "next_sentence_weights": np.ones(rows, "float32"),
    }
    return x, y


def packed_batch(lengths, per_row, length, predictions, seed=0):
    """Returns `(x, y)` with `per_row` of these rows together in each row of `length`."""
    x, y = padded_batch(lengths, length, predictions, seed)
    bounds = np.arange(0, len(lengths) + 1, per_row)
    rows = pack_rows({**x, **y}, bounds, pairs=per_row, predictions=predictions, pad_token_id=0)
    targets = {name: rows.pop(name) for name in y}
    return rows, targets


def real_tokens(x):
    """Returns where a batch has tokens."""
    return x["pair_ids" if "pair_ids" in x else "padding_mask"] > 0
