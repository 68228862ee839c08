import numpy as np
import pytest

from keras_bert_impl.training.examples.buckets import Buckets
from keras_bert_impl.training.examples.order import examples_of_steps

COUNT, LENGTH, BATCH = 1003, 128, 8
LENGTHS = np.random.default_rng(0).integers(5, LENGTH + 1, COUNT).astype(np.uint16)
STEPS = 2 * COUNT // BATCH


def buckets(batch_size: int = BATCH, seed: int = 1) -> Buckets:
    return Buckets(LENGTHS, length=LENGTH, batch_size=batch_size, seed=seed)


def test_every_epoch_has_every_row_once():
    rows, epochs, _ = buckets().of_steps(np.arange(STEPS))
    plain, plain_epochs = examples_of_steps(np.arange(STEPS), BATCH, COUNT, 1)
    np.testing.assert_array_equal(epochs, plain_epochs)
    assert sorted(rows[:COUNT]) == list(range(COUNT))
    assert sorted(rows[COUNT : 2 * COUNT]) == sorted(plain[COUNT : 2 * COUNT])
    assert rows[:COUNT].tolist() != rows[COUNT : 2 * COUNT].tolist()


def test_a_batch_is_as_wide_as_its_longest_row_up_to_a_multiple_of_sixteen():
    rows, _, widths = buckets().of_steps(np.arange(STEPS))
    longest = LENGTHS[rows].reshape(STEPS, BATCH).max(axis=1)
    assert ((widths >= longest) & (widths - longest < 16) & (widths % 16 == 0)).all()
    odd = Buckets(np.array([3, 9, 10]), length=10, batch_size=1, seed=1)
    assert sorted(odd.of_steps(np.arange(3))[2]) == [10, 10, 10]


def test_less_is_padding_than_in_the_order_of_the_epoch():
    rows, _, widths = buckets().of_steps(np.arange(COUNT // BATCH))
    real = LENGTHS[rows].sum()
    assert real / (widths.sum() * BATCH) > 0.83
    assert real / (rows.size * LENGTH) < 0.55
    assert buckets().mean_width() == widths.mean()


def test_a_batch_does_not_depend_on_what_was_asked_before():
    rows, epochs, widths = buckets().of_steps(np.arange(STEPS))
    for step in (0, 5, 40, 124, 125, 126, STEPS - 1):
        one = buckets().of_steps(np.array([step]))
        for found, whole in zip(one, (rows, epochs, widths), strict=True):
            np.testing.assert_array_equal(found, whole.reshape(STEPS, -1)[step])


def test_batches_come_in_no_order_of_their_length():
    _, _, widths = buckets().of_steps(np.arange(32))
    assert abs(np.corrcoef(widths, np.arange(32))[0, 1]) < 0.5


def test_another_seed_gives_other_batches():
    one, other = (buckets(seed=seed).of_steps(np.arange(4))[0] for seed in (1, 2))
    assert one.tolist() != other.tolist()


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_every_replica_has_its_share_of_the_longer_rows(replicas: int):
    rows, _, _ = buckets(batch_size=64).of_steps(np.arange(COUNT // 64))
    tokens = LENGTHS[rows].reshape(-1, replicas, 64 // replicas).sum(axis=2, dtype=np.int64)
    by_length = np.sort(LENGTHS[rows].reshape(-1, 64), axis=1).reshape(-1, replicas, 64 // replicas)
    spread = tokens.max(axis=1) - tokens.min(axis=1)
    spread_in_order = by_length.sum(axis=2, dtype=np.int64)[:, -1] - by_length.sum(axis=2, dtype=np.int64)[:, 0]
    assert spread.mean() < 0.35 * spread_in_order.mean()


def test_epochs_shorter_than_a_batch_are_left_as_they_are():
    few = Buckets(LENGTHS[:5], length=LENGTH, batch_size=BATCH, seed=1)
    rows, epochs, _ = few.of_steps(np.arange(4))
    for found, expected in zip((rows, epochs), examples_of_steps(np.arange(4), BATCH, 5, 1), strict=True):
        np.testing.assert_array_equal(found, expected)
