import numpy as np
import pytest

from keras_bert_impl.training.batches import BatchPart, RowSource, batches_of_all, batches_of_steps, row_shapes
from keras_bert_impl.training.distribution import make_strategy

BATCH = 12


class Source:
    """Rows that hold their own number; remembers which were read."""

    def __init__(self, count=50):
        self.read = []
        self.rows = RowSource(self.rows_of, count, **row_shapes(4, 1))

    def rows_of(self, numbers, epochs):
        self.read += numbers.tolist()
        tokens = np.broadcast_to(numbers[:, None], (len(numbers), 4)).astype(np.int32)
        slots = np.ones((len(numbers), 1), np.int32)
        labels = np.ones(len(numbers), np.int32)
        return {
            "token_ids": tokens,
            "segment_ids": tokens,
            "padding_mask": tokens,
            "mask_positions": slots,
            "mask_labels": slots,
            "mask_weights": slots.astype(np.float32),
            "next_sentence_labels": labels,
            "next_sentence_weights": labels.astype(np.float32),
        }


def training(source, part):
    return batches_of_steps(source.rows, batch_size=BATCH, seed=3, first_step=2, num_steps=5, part=part)


def evaluation(source, part):
    return batches_of_all(source.rows, batch_size=BATCH, limit=0, seed=3, part=part)[0]


def numbers_of(dataset):
    return [x["token_ids"][:, 0] for x, _ in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("batches", [training, evaluation])
@pytest.mark.parametrize(("machines", "replicas"), [(3, 1), (2, 2)])
def test_the_parts_of_all_machines_are_the_batch(batches, machines, replicas):
    whole = np.stack(numbers_of(batches(Source(), BatchPart())))
    parts = [
        np.stack(numbers_of(batches(Source(), BatchPart(number, machines, replicas)))) for number in range(machines)
    ]
    # In the order of the replicas over all machines.
    by_step = [part.reshape(len(whole), -1) for part in parts]
    np.testing.assert_array_equal(np.concatenate(by_step, axis=1), whole)
    assert {part.shape[1] for part in parts} == {BATCH // machines // replicas}


@pytest.mark.parametrize("batches", [training, evaluation])
def test_a_machine_reads_its_own_rows_only(batches):
    source = Source()
    taken = np.concatenate(numbers_of(batches(source, BatchPart(1, 3))))
    np.testing.assert_array_equal(source.read, taken)


def test_replicas_of_a_machine_take_its_elements_in_their_order():
    strategy = make_strategy(2)
    part = BatchPart(1, 2, replicas=2)
    batches = strategy.distribute_datasets_from_function(lambda context: training(Source(), part))
    whole = numbers_of(training(Source(), BatchPart()))
    for (x, _), rows in zip(batches, whole, strict=True):
        replicas = strategy.experimental_local_results(x["token_ids"])
        np.testing.assert_array_equal(np.concatenate([tokens.numpy()[:, 0] for tokens in replicas]), rows[BATCH // 2 :])


def test_rows_that_fill_up_the_last_batch_count_nowhere():
    weights = [
        sum(float(y["mask_weights"].sum()) for _, y in evaluation(Source(), BatchPart(number, 3)).as_numpy_iterator())
        for number in range(3)
    ]
    assert sum(weights) == 50
