"""Several pairs in one row: which ones share it, and how the row looks then.

Which pairs share a row is planned once, when the data is prepared. Rows are put together when a batch is read,
after masking, so that a pair has the same masks whether it is packed or not. No TensorFlow here.
"""

from collections.abc import Sequence

import numpy as np

from .masking import max_predictions

# Pretraining packs rows from this length on unless a phase says otherwise; shorter ones are nearly full as they are.
PACKED_FROM = 256
# A row of 512 tokens holds up to eight pairs. More would hardly fill it better, and every slot costs a prediction.
_TOKENS_PER_PAIR = 64


def pairs_per_row(length: int) -> int:
    """Returns the most pairs that a packed row holds."""
    return max(1, length // _TOKENS_PER_PAIR)


def packed_predictions(length: int, share: float) -> int:
    """Returns the prediction slots of a packed row: enough for the predictions of all its pairs.

    A pair of n tokens has max(1, round(n * share)) of them, at most n * share + 1; all pairs of a row together at
    most length * share + pairs_per_row(length).
    """
    return max_predictions(length, share) + pairs_per_row(length)


def plan_rows(sizes: Sequence[int], length: int) -> tuple[list[int], np.ndarray]:
    """Decides which pairs share a row: best fit, the longest pairs first.

    Args:
        sizes: tokens of each pair, at most `length`.
        length: tokens of a row.

    Returns:
        The pairs' numbers in the order of the rows, and bounds, int64 (rows + 1,): row r holds those from
        bounds[r] up to bounds[r + 1] in that order.
    """
    most = pairs_per_row(length)
    rows: list[list[int]] = []
    # Rows that may take one more pair, by the room they have; the bits of `rooms` say where there are any.
    open_rows: list[list[int]] = [[] for _ in range(length + 1)]
    rooms = 0
    for pair in sorted(range(len(sizes)), key=lambda pair: -sizes[pair]):
        enough = rooms >> sizes[pair]
        if enough:
            room = sizes[pair] + (enough & -enough).bit_length() - 1
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
        else:
            row, room = len(rows), length
            rows.append([])
        rows[row].append(pair)
        if len(rows[row]) < most:
            open_rows[room - sizes[pair]].append(row)
            rooms |= 1 << (room - sizes[pair])
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    return [pair for row in rows for pair in row], bounds


def pack_rows(
    rows: dict[str, np.ndarray], bounds: np.ndarray, *, pairs: int, predictions: int, pad_token_id: int
) -> dict[str, np.ndarray]:
    """Puts pairs together into rows of the same length.

    Args:
        rows: of the pairs, masked, as `mask_batch` gives them; not changed.
        bounds: int64 (packed rows + 1,); packed row r holds the pairs from bounds[r] up to bounds[r + 1].
        pairs: slots for pairs in a packed row.
        predictions: prediction slots of a packed row.
        pad_token_id: id of padding.

    Returns:
        `token_ids`, `segment_ids`, `pair_ids` (1, 2, … in the row's order, 0 at padding) int32 (packed rows, length);
        `cls_positions`, `next_sentence_labels` int32 and `next_sentence_weights` float32 (packed rows, pairs);
        `mask_positions`, `mask_labels` int32 and `mask_weights` float32 (packed rows, predictions). Slots that are
        not used hold 0.
    """
    count, length = bounds.size - 1, rows["token_ids"].shape[1]
    row = np.repeat(np.arange(count), np.diff(bounds))
    slot = np.arange(row.size) - bounds[row]
    real, used = rows["padding_mask"] > 0, rows["mask_weights"] > 0
    sizes = real.sum(axis=1)
    start, filled = _places(sizes, row, bounds)
    _, predicted = _places(used.sum(axis=1), row, bounds)

    def joined(values: np.ndarray, width: int, per_row: np.ndarray, rest: int = 0) -> np.ndarray:
        # The pairs of a row follow one another, in the values and in the row: no place need be looked up.
        packed = np.full((count, width), rest, values.dtype)
        packed[np.arange(width) < per_row[:, None]] = values
        return packed

    def per_pair(values: np.ndarray) -> np.ndarray:
        return joined(values, pairs, np.diff(bounds))

    positions = (rows["mask_positions"] + start[:, None])[used]
    return {
        "token_ids": joined(rows["token_ids"][real].astype(np.int32), length, filled, pad_token_id),
        "segment_ids": joined(rows["segment_ids"][real].astype(np.int32), length, filled),
        "pair_ids": joined(np.repeat(slot + 1, sizes).astype(np.int32), length, filled),
        "cls_positions": per_pair(start.astype(np.int32)),
        "mask_positions": joined(positions.astype(np.int32), predictions, predicted),
        "mask_labels": joined(rows["mask_labels"][used], predictions, predicted),
        "mask_weights": joined(rows["mask_weights"][used], predictions, predicted),
        "next_sentence_labels": per_pair(rows["next_sentence_labels"]),
        "next_sentence_weights": per_pair(rows["next_sentence_weights"]),
    }


def _places(sizes: np.ndarray, row: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns where each pair of these sizes begins in its row, and how far each row is filled."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    return before[:-1] - before[bounds[row]], before[bounds[1:]] - before[bounds[:-1]]
