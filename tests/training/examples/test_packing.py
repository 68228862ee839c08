import itertools

import numpy as np
import pytest
from packed_batches import pair_rows

from keras_bert_impl.training.examples.packing import pack_rows, packed_predictions, pairs_per_row, plan_rows


@pytest.mark.parametrize(("length", "pairs"), [(8, 1), (64, 1), (127, 1), (128, 2), (256, 4), (512, 8), (1024, 16)])
def test_a_row_of_512_tokens_holds_up_to_eight_pairs(length: int, pairs: int):
    assert pairs_per_row(length) == pairs


def rows_of(sizes: list[int], length: int) -> list[list[int]]:
    """The numbers of the pairs in each row."""
    order, bounds = plan_rows(sizes, length)
    assert bounds.dtype == np.int64
    return [order[start:end] for start, end in itertools.pairwise(bounds)]


def test_the_longest_come_first_each_into_the_row_that_it_fills_best():
    # 120 opens a row, 70 and 60 one each; 50 fits best beside 70 (10 left), 8 into what 120 left exactly.
    assert rows_of([50, 120, 8, 60, 70], 128) == [[1, 2], [4, 0], [3]]


def test_no_row_has_more_pairs_than_slots():
    assert rows_of([10] * 5, 128) == [[0, 1], [2, 3], [4]]
    assert rows_of([20, 30, 40], 64) == [[2], [1], [0]]


def test_nothing_makes_no_rows():
    order, bounds = plan_rows([], 512)
    assert (order, bounds.tolist(), bounds.dtype) == ([], [0], np.int64)


@pytest.mark.parametrize("length", [16, 128, 512])
@pytest.mark.parametrize("seed", range(5))
def test_every_pair_is_in_one_row_and_no_row_is_too_long(length: int, seed: int):
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.geometric(rng.choice([0.2, 0.02, 0.005]), 3000) + 4, length).tolist()
    rows = rows_of(sizes, length)
    assert sorted(itertools.chain(*rows)) == list(range(len(sizes)))
    assert max(sum(sizes[pair] for pair in row) for row in rows) <= length
    assert max(map(len, rows)) <= pairs_per_row(length)
    # No two rows could be one.
    (smallest, few), (next_smallest, others) = sorted((sum(sizes[pair] for pair in row), len(row)) for row in rows)[:2]
    assert smallest + next_smallest > length or few + others > pairs_per_row(length)


def test_rows_are_nearly_full_where_pairs_are_neither_tiny_nor_large():
    sizes = np.random.default_rng(0).integers(64, 257, 5000).tolist()
    assert sum(sizes) / (512 * len(rows_of(sizes, 512))) > 0.97


@pytest.mark.parametrize("share", [0.01, 0.15, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("length", [8, 64, 128, 200, 512])
def test_the_slots_are_enough_for_the_predictions_of_all_pairs_of_a_row(length: int, share: float):
    most = max(1, round(length * share))
    alone = [0, *(min(max(1, int(np.rint(size * share))), most) for size in range(1, length + 1))]
    # The most predictions that pairs of so many tokens together can have, one pair more at a time.
    together = alone
    for _ in range(pairs_per_row(length) - 1):
        together = [max(together[size - one] + alone[one] for one in range(size + 1)) for size in range(length + 1)]
    assert max(together) <= packed_predictions(length, share)


def test_a_packed_row_written_out():
    rows = {
        "token_ids": np.array([[2, 7, 3, 8, 3, 0, 0, 0], [2, 9, 3, 0, 0, 0, 0, 0], [2, 5, 6, 3, 7, 8, 9, 3]]),
        "segment_ids": np.array([[0, 0, 0, 1, 1, 0, 0, 0], [0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]]),
        "padding_mask": np.array([[1] * 5 + [0] * 3, [1] * 3 + [0] * 5, [1] * 8]),
        "mask_positions": np.array([[1, 3], [1, 0], [2, 4]], np.int32),
        "mask_labels": np.array([[17, 18], [19, 0], [16, 14]], np.int32),
        "mask_weights": np.array([[1, 1], [1, 0], [1, 1]], np.float32),
        "next_sentence_labels": np.array([1, 0, 1], np.int32),
        "next_sentence_weights": np.array([1, 0, 1], np.float32),
    }
    packed = pack_rows(rows, np.array([0, 2, 3]), pairs=3, predictions=4, pad_token_id=99)
    assert {name: values.tolist() for name, values in packed.items()} == {
        "token_ids": [[2, 7, 3, 8, 3, 2, 9, 3], [2, 5, 6, 3, 7, 8, 9, 3]],
        "segment_ids": [[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]],
        "pair_ids": [[1, 1, 1, 1, 1, 2, 2, 2], [1] * 8],
        "cls_positions": [[0, 5, 0], [0, 0, 0]],
        "mask_positions": [[1, 3, 6, 0], [2, 4, 0, 0]],
        "mask_labels": [[17, 18, 19, 0], [16, 14, 0, 0]],
        "mask_weights": [[1, 1, 1, 0], [1, 1, 0, 0]],
        "next_sentence_labels": [[1, 0, 0], [1, 0, 0]],
        "next_sentence_weights": [[1, 0, 0], [1, 0, 0]],
    }
    assert {name: values.dtype.name for name, values in packed.items()} == {
        name: "float32" if name.endswith("_weights") else "int32" for name in packed
    }


def test_what_a_row_does_not_fill_is_padding():
    packed = pack_rows(pair_rows([3, 4], 9), np.array([0, 2]), pairs=4, predictions=6, pad_token_id=33)
    assert packed["token_ids"][0, 7:].tolist() == [33, 33]
    assert packed["pair_ids"].tolist() == [[1, 1, 1, 2, 2, 2, 2, 0, 0]]
    assert packed["segment_ids"][0, 7:].tolist() == [0, 0]


def test_predictions_that_do_not_fit_are_never_dropped():
    with pytest.raises(ValueError, match="cannot assign"):
        pack_rows(pair_rows([4, 4], 8, predictions=3, seed=2), np.array([0, 2]), pairs=2, predictions=1, pad_token_id=0)
