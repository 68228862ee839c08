import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training import batches
from keras_bert_impl.training.batches import EVALUATION_EPOCH, batches_of_all, batches_of_steps
from keras_bert_impl.training.examples.order import permuted

COUNT, LENGTH, PREDICTIONS = 20, 4, 2
SETTINGS = {"count": COUNT, "length": LENGTH, "predictions": PREDICTIONS}


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
    }


def told(dataset: tf.data.Dataset) -> list[tuple[list[int], list[int]]]:
    """The examples' numbers and the epochs of each batch."""
    return [(x["token_ids"][:, 0].tolist(), x["segment_ids"][:, 0].tolist()) for x, _ in dataset.as_numpy_iterator()]


def test_a_batch_at_the_seam_holds_examples_of_both_epochs():
    found = told(batches_of_steps(telling_rows, batch_size=8, seed=3, first_step=1, num_steps=3, **SETTINGS))
    assert [epochs for _, epochs in found] == [[0] * 8, [0] * 4 + [1] * 4, [1] * 8]
    first, second = (permuted(np.arange(COUNT), COUNT, 3, epoch).tolist() for epoch in (0, 1))
    assert [number for numbers, _ in found for number in numbers] == first[8:] + second[:12]


@pytest.mark.parametrize("rows_per_call", [1, 16, 1000])
def test_the_order_holds_however_many_rows_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch, rows_per_call: int):
    def found():
        return told(batches_of_steps(telling_rows, batch_size=4, seed=1, first_step=0, num_steps=60, **SETTINGS))

    expected = found()
    monkeypatch.setattr(batches, "ROWS_PER_CALL", rows_per_call)
    assert found() == expected


def test_evaluation_takes_chosen_examples_in_the_order_of_their_numbers():
    dataset, number = batches_of_all(telling_rows, batch_size=4, limit=6, seed=1, **SETTINGS)
    (numbers, epochs), (last, _) = told(dataset)
    chosen = sorted(permuted(np.arange(6), COUNT, 1, EVALUATION_EPOCH).tolist())
    assert (number, numbers + last) == (2, [*chosen, chosen[-1], chosen[-1]])
    assert set(epochs) == {EVALUATION_EPOCH % 2**31}
    weights = [
        (y["example_weights"].tolist(), y["mask_weights"][:, 0].tolist()) for _, y in dataset.as_numpy_iterator()
    ]
    assert weights == [([1] * 4, [1] * 4), ([1, 1, 0, 0], [1, 1, 0, 0])]
