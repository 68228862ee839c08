import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training import batches
from keras_bert_impl.training.batches import (
    EVALUATION_EPOCH,
    RowSource,
    batches_of_all,
    batches_of_steps,
    row_shapes,
    rows_taken,
)
from keras_bert_impl.training.examples.order import permuted

COUNT, LENGTH, PREDICTIONS = 20, 4, 2


def telling_rows(indices: np.ndarray, epochs: np.ndarray) -> dict[str, np.ndarray]:
    """Rows whose tokens are the example's number and whose segments are the epoch."""
    size = indices.size
    return {
        "token_ids": np.repeat(indices, LENGTH).reshape(size, LENGTH).astype(np.int32),
        "segment_ids": np.repeat(epochs % 2**31, LENGTH).reshape(size, LENGTH).astype(np.int32),
        "padding_mask": np.ones((size, LENGTH), np.int32),
        "mask_positions": np.zeros((size, PREDICTIONS), np.int32),
        "mask_labels": np.zeros((size, PREDICTIONS), np.int32),
        "mask_weights": np.ones((size, PREDICTIONS), np.float32),
        "next_sentence_labels": np.zeros(size, np.int32),
        "next_sentence_weights": np.ones(size, np.float32),
    }


SOURCE = RowSource(telling_rows, COUNT, **row_shapes(LENGTH, PREDICTIONS))


def told(dataset: tf.data.Dataset) -> list[tuple[list[int], list[int]]]:
    """The examples' numbers and the epochs of each batch."""
    return [(x["token_ids"][:, 0].tolist(), x["segment_ids"][:, 0].tolist()) for x, _ in dataset.as_numpy_iterator()]


def test_a_batch_at_the_seam_holds_examples_of_both_epochs():
    found = told(batches_of_steps(SOURCE, batch_size=8, seed=3, first_step=1, num_steps=3))
    assert [epochs for _, epochs in found] == [[0] * 8, [0] * 4 + [1] * 4, [1] * 8]
    first, second = (permuted(np.arange(COUNT), COUNT, 3, epoch).tolist() for epoch in (0, 1))
    assert [number for numbers, _ in found for number in numbers] == first[8:] + second[:12]


def test_the_number_of_batches_is_known():
    dataset = batches_of_steps(SOURCE, batch_size=8, seed=3, first_step=1, num_steps=3)
    assert len(dataset) == 3 == len(list(dataset))


@pytest.mark.parametrize("rows_per_call", [1, 16, 1000])
def test_the_order_holds_however_many_rows_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch, rows_per_call: int):
    def found():
        return told(batches_of_steps(SOURCE, batch_size=4, seed=1, first_step=0, num_steps=60))

    expected = found()
    monkeypatch.setattr(batches, "ROWS_PER_CALL", rows_per_call)
    assert found() == expected


def test_evaluation_takes_chosen_examples_in_the_order_of_their_numbers():
    dataset, number = batches_of_all(SOURCE, batch_size=4, limit=6, seed=1)
    (numbers, epochs), (last, _) = told(dataset)
    chosen = sorted(permuted(np.arange(6), COUNT, 1, EVALUATION_EPOCH).tolist())
    assert (number, numbers + last) == (2, [*chosen, chosen[-1], chosen[-1]])
    assert set(epochs) == {EVALUATION_EPOCH % 2**31}
    weights = [
        (y["next_sentence_weights"].tolist(), y["mask_weights"][:, 0].tolist()) for _, y in dataset.as_numpy_iterator()
    ]
    assert weights == [([1] * 4, [1] * 4), ([1, 1, 0, 0], [1, 1, 0, 0])]


def test_a_weight_of_0_stays_0_where_nothing_is_filled_up():
    def rows_of(numbers: np.ndarray, epochs: np.ndarray) -> dict[str, np.ndarray]:
        return telling_rows(numbers, epochs) | {"next_sentence_weights": np.zeros(numbers.size, np.float32)}

    source = RowSource(rows_of, COUNT, **row_shapes(LENGTH, PREDICTIONS))
    dataset, _ = batches_of_all(source, batch_size=8, limit=0, seed=1)
    assert not any(y["next_sentence_weights"].any() for _, y in dataset.as_numpy_iterator())
    assert sum(y["mask_weights"].sum() for _, y in dataset.as_numpy_iterator()) == COUNT * PREDICTIONS


@pytest.mark.parametrize(("limit", "taken"), [(0, 20), (6, 6), (21, 20)])
def test_a_limit_takes_at_most_what_there_is(limit: int, taken: int):
    assert rows_taken(COUNT, limit) == taken


def test_packed_rows_have_a_layout_and_labels_of_several_pairs():
    plain, packed = row_shapes(LENGTH, PREDICTIONS), row_shapes(LENGTH, PREDICTIONS, pairs=3)
    assert plain["inputs"].keys() - packed["inputs"].keys() == {"padding_mask"}
    assert {name: packed["inputs"][name] for name in ("pair_ids", "cls_positions")} == {
        "pair_ids": (LENGTH,),
        "cls_positions": (3,),
    }
    assert [packed["targets"][f"next_sentence_{name}"] for name in ("labels", "weights")] == [(3,), (3,)]
