"""Masked language modelling, drawn when a batch is read: the same for the same (seed, epoch, example id)."""

import math
from collections.abc import Sequence

import numpy as np

from keras_bert_impl.errors import InputError

from ..configs import MASKING_KINDS
from .hashing import as_below, hash_of, mix
from .word_masking import draw_runs, run_lengths
from .words import continues_word

TOKEN, WHOLE_WORD, NGRAM = MASKING_KINDS
MASK, KEEP, RANDOM = 0, 1, 2
MASKED_SHARE = 0.15  # unless told otherwise
_POSITION_STEP = np.uint64(0x9E3779B97F4A7C15)
_KIND, _TOKEN = np.uint64(0xA5A5A5A5A5A5A5A5), np.uint64(0x3C3C3C3C3C3C3C3C)


def max_predictions(length: int, share: float) -> int:
    """Returns the prediction slots of a row: 20 at length 128 and 77 at 512, as in the original."""
    return math.ceil(length * share)


def wanted_predictions(lengths: np.ndarray, most: int, share: float) -> np.ndarray:
    """Returns how many tokens of rows of these lengths, special ones counted, are to be predicted."""
    return np.clip(np.rint(lengths * share).astype(np.int64), 1, most)


def mask_batch(
    rows: dict[str, np.ndarray],
    *,
    vocab_size: int,
    special_token_ids: Sequence[int],
    mask_token_id: int,
    max_predictions: int,
    masked_share: float,
    seed: int,
    epoch: int | np.ndarray,
    masking: str = TOKEN,
    max_ngram: int = 3,
    continuing_tokens: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Chooses positions to predict and hides their tokens.

    A row of n tokens, special ones counted, has max(1, round(n * masked_share)) predictions, at most
    `max_predictions` and at most its ordinary tokens. Whole words, and runs of up to `max_ngram` of them (n words
    with a probability in proportion to 1/n), are chosen while they do not overrun that number; so there may be
    fewer predictions where only longer words are left. Of the chosen tokens 80 % become `[MASK]`, 10 % stay
    and 10 % become any token of the whole vocabulary, drawn for each by itself.

    Args:
        rows: from `ExampleSet.rows`; not changed.
        vocab_size: number of tokens that a random one is drawn from.
        special_token_ids: ids that are never chosen.
        mask_token_id: id of `[MASK]`.
        max_predictions: prediction slots of a row.
        masked_share: share of the tokens to predict.
        seed: seed of the run.
        epoch: which time round; one number, or one per row.
        masking: `"token"`, `"whole-word"` or `"n-gram"`.
        max_ngram: most words of a run, for `"n-gram"`.
        continuing_tokens: from `words.continuing_tokens`; needed for words, unless the rows have `continues_word`.

    Returns:
        The rows with new `token_ids` and, in addition, `mask_positions` and `mask_labels` (int32) and
        `mask_weights` (float32), each of shape (rows, max_predictions). Slots that are not used hold 0.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1 and appendix A.1.
    """
    if masking not in MASKING_KINDS:
        raise InputError(f"`masking` must be one of {', '.join(MASKING_KINDS)}. Received: masking={masking!r}")
    token_ids = rows["token_ids"]
    count, length = token_ids.shape
    lengths = rows["padding_mask"].sum(axis=1)
    ordinary = rows["padding_mask"].astype(bool)
    for special in special_token_ids:
        ordinary &= token_ids != special
    wanted = np.minimum(wanted_predictions(lengths, max_predictions, masked_share), ordinary.sum(axis=1))

    of_row = hash_of(seed, epoch, rows["example_ids"])
    of_position = np.arange(1, length + 1, dtype=np.uint64) * _POSITION_STEP
    numbers = mix(of_row[:, None] + of_position)
    if masking == TOKEN:
        chosen = _chosen_tokens(numbers, ordinary, wanted)
    else:
        continues = continues_word(rows, ordinary, continuing_tokens)
        lengths_of_runs = run_lengths(of_row, int(wanted.max(initial=0)), max_ngram if masking == NGRAM else 1)
        chosen = ordinary & draw_runs(numbers, ordinary, continues, wanted, lengths_of_runs).painted(ordinary.shape)

    row, position = np.nonzero(chosen)
    before = np.cumsum(chosen.sum(axis=1))
    slot = np.arange(row.size) - np.concatenate([[0], before])[row]
    number = numbers[row, position]
    labels = token_ids[row, position]
    kinds = _kinds(mix(number ^ _KIND))
    hidden = np.where(kinds == MASK, mask_token_id, labels)
    hidden = np.where(kinds == RANDOM, as_below(mix(number ^ _TOKEN), vocab_size), hidden)

    masked = token_ids.copy()
    masked[row, position] = hidden
    mask_positions = np.zeros((count, max_predictions), np.int32)
    mask_labels = np.zeros((count, max_predictions), np.int32)
    mask_weights = np.zeros((count, max_predictions), np.float32)
    mask_positions[row, slot] = position
    mask_labels[row, slot] = labels
    mask_weights[row, slot] = 1
    return rows | {
        "token_ids": masked,
        "mask_positions": mask_positions,
        "mask_labels": mask_labels,
        "mask_weights": mask_weights,
    }


def _chosen_tokens(numbers: np.ndarray, ordinary: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Chooses the positions with the smallest numbers; within a row no two are equal, for `mix` is one-to-one."""
    ranked = np.sort(np.where(ordinary, numbers, np.uint64(2**64 - 1)), axis=1)
    highest = ranked[np.arange(wanted.size), np.maximum(wanted, 1) - 1]
    return ordinary & (numbers <= highest[:, None]) & (wanted > 0)[:, None]


def _kinds(hashes: np.ndarray) -> np.ndarray:
    tenth = as_below(hashes, 10)
    return np.where(tenth < 8, MASK, np.where(tenth == 8, KEEP, RANDOM))
