"""Which rows are in which batch, and what batches hold."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training.distribution import make_strategy
from keras_bert_impl.training.finetuning.batches import BatchPlan, RowBatches, training_batches
from keras_bert_impl.training.finetuning.task import TrainingRows

LENGTHS = [int(length) for length in np.random.default_rng(1).integers(3, 40, 173)]


def plan(seed=1, batch_size=8, lengths=LENGTHS):
    return BatchPlan(lengths, batch_size=batch_size, seed=seed)


def epoch_of(plan, epoch):
    steps = plan.steps_per_epoch
    return [plan.rows_of_step(step).tolist() for step in range(epoch * steps, (epoch + 1) * steps)]


def test_every_epoch_has_every_row_once_and_a_smaller_last_batch():
    for epoch in (0, 1, 5):
        batches = epoch_of(plan(), epoch)
        assert [len(batch) for batch in batches] == [8] * 21 + [5]
        assert sorted(np.concatenate(batches).tolist()) == list(range(173))


def test_the_order_is_a_function_of_seed_and_epoch():
    assert epoch_of(plan(), 1) == epoch_of(plan(), 1) != epoch_of(plan(), 0)
    assert epoch_of(plan(seed=2), 0) != epoch_of(plan(), 0)
    assert plan().rows_of_step(40).tolist() == epoch_of(plan(), 1)[18]


def test_rows_of_a_batch_are_of_like_length_and_batches_are_not_in_the_order_of_it():
    batches = epoch_of(plan(), 0)[:-1]
    widths = [max(LENGTHS[row] for row in batch) for batch in batches]
    padded = sum(len(batch) * width for batch, width in zip(batches, widths, strict=True))
    assert padded / sum(LENGTHS[row] for batch in batches for row in batch) < 1.1
    assert widths != sorted(widths) and widths != sorted(widths, reverse=True)


@pytest.mark.parametrize(("rows", "steps"), [(1, 1), (7, 1), (8, 1), (13, 2)])
def test_few_rows_are_batches_too(rows, steps):
    few = plan(lengths=[4] * rows)
    assert few.steps_per_epoch == steps
    assert sorted(np.concatenate(epoch_of(few, 3)).tolist()) == list(range(rows))


ROWS = TrainingRows(
    token_ids=[np.arange(1, 4), np.arange(1, 11), np.arange(1, 3)],
    segment_ids=[np.array([0, 1, 1]), np.zeros(10, int), np.zeros(2, int)],
    targets={
        "label": [2, 0, 1],
        "weight": np.array([0.5, 1, 2]),
        "holds": np.ones((3, 4), "float32"),
        "tags": [np.array([5, 6, 7]), np.full(10, 8), np.array([1, 1])],
        "tag_weights": [np.ones(3), np.ones(10), np.ones(2)],
    },
)
BATCHES = RowBatches(ROWS, per_token=("tags", "tag_weights"), pad_token_id=9)


def test_a_batch_is_as_wide_as_its_longest_row_rounded_up():
    inputs, targets = BATCHES.batch(np.array([2, 0]))
    assert {name: value.shape for name, value in inputs.items()} == dict.fromkeys(inputs, (2, 8))
    assert inputs["token_ids"].tolist() == [[1, 2, 9, 9, 9, 9, 9, 9], [1, 2, 3, 9, 9, 9, 9, 9]]
    assert inputs["segment_ids"][1].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    assert inputs["padding_mask"].sum(axis=1).tolist() == [2, 3]
    assert targets["label"].tolist() == [1, 2] and targets["weight"].tolist() == [2, 0.5]
    assert targets["holds"].shape == (2, 4)
    assert targets["tags"].tolist() == [[1, 1, 0, 0, 0, 0, 0, 0], [5, 6, 7, 0, 0, 0, 0, 0]]
    assert targets["tag_weights"].sum(axis=1).tolist() == [2, 3]
    assert {name: value.dtype.kind for name, value in targets.items()} == {
        "label": "i",
        "weight": "f",
        "holds": "f",
        "tags": "i",
        "tag_weights": "f",
    }


def test_no_batch_is_wider_than_the_longest_of_all_rows():
    assert BATCHES.batch(np.array([1, 2]))[0]["token_ids"].shape == (2, 10)


def test_a_batch_may_have_no_rows():
    inputs, targets = BATCHES.batch(np.array([], int))
    assert inputs["token_ids"].shape == (0, 8) and targets["tags"].shape == (0, 8) and targets["holds"].shape == (0, 4)


def test_each_replica_gets_its_share_of_the_rows_and_none_of_a_last_row():
    three = BatchPlan([3, 10, 2], batch_size=2, seed=1)
    strategy = make_strategy(2)
    dataset = training_batches(three, BATCHES, first_step=0, num_steps=2, strategy=strategy)
    seen = []
    for inputs, _ in dataset:
        shares = strategy.experimental_local_results(inputs["padding_mask"])
        seen.append([int(tf.reduce_sum(share)) for share in shares])
    lengths = [[len(ROWS.token_ids[row]) for row in three.rows_of_step(step)] for step in (0, 1)]
    assert seen == [lengths[0], [*lengths[1], 0]]


def test_batches_may_be_entered_at_any_step():
    many = plan()
    rows = TrainingRows([np.ones(n) for n in LENGTHS], [np.zeros(n) for n in LENGTHS], {"label": range(173)})
    batches = RowBatches(rows, per_token=(), pad_token_id=0)
    dataset = training_batches(many, batches, first_step=20, num_steps=5, strategy=make_strategy(1))
    found = [targets["label"].numpy().tolist() for _, targets in dataset]
    assert found == [many.rows_of_step(step).tolist() for step in range(20, 25)]
