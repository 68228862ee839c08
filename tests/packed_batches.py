"""Pairs of several sizes, each in a row of its own and packed into common rows."""

import numpy as np

from keras_bert_impl.training.examples.packing import pack_rows

INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
PACKED_INPUTS = ("token_ids", "segment_ids", "pair_ids", "cls_positions", "mask_positions")


def pair_rows(sizes, length, *, predictions=3, vocab_size=37, seed=0):
    """Masked rows of one pair each, as the input pipeline has them before packing."""
    rng = np.random.default_rng(seed)
    count, sizes = len(sizes), np.array(sizes)[:, None]
    positions = np.arange(length)[None]
    padding_mask = (positions < sizes).astype("int32")
    used = np.arange(predictions)[None] < rng.integers(1, predictions + 1, (count, 1))
    return {
        "token_ids": rng.integers(1, vocab_size, (count, length)).astype("int32") * padding_mask,
        "segment_ids": (positions >= (sizes + 1) // 2).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": (rng.integers(0, 2**16, (count, predictions)) % sizes * used).astype("int32"),
        "mask_labels": (rng.integers(0, vocab_size, (count, predictions)) * used).astype("int32"),
        "mask_weights": used.astype("float32"),
        "next_sentence_labels": rng.integers(0, 2, count).astype("int32"),
        "next_sentence_weights": np.ones(count, "float32"),
    }


def packed_rows(rows, counts, *, pairs=4, predictions=9):
    """The same pairs with `counts[r]` of them in packed row r."""
    bounds = np.concatenate([[0], np.cumsum(counts)])
    return pack_rows(rows, bounds, pairs=pairs, predictions=predictions, pad_token_id=0)


def inputs_of(rows):
    """Those of the arrays that a pretrainer takes."""
    names = PACKED_INPUTS if "pair_ids" in rows else INPUTS
    return {name: rows[name] for name in names}


def small_packed_batch():
    """Three rows of nine tokens: two pairs and padding, three pairs without, one pair."""
    rows = pair_rows([4, 3, 2, 3, 4, 9], length=9)
    return inputs_of(packed_rows(rows, [2, 3, 1], pairs=3, predictions=9))
