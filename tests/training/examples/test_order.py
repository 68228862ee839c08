import numpy as np
import pytest

from keras_bert_impl.training.examples.order import examples_of_steps, permuted


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4096, 4097, 70_000])
def test_the_order_is_a_permutation(size: int):
    for epoch in (0, 1, 2**32):
        assert np.array_equal(np.sort(permuted(np.arange(size), size, 1, epoch)), np.arange(size))


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = {tuple(permuted(np.arange(100), 100, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_every_example_comes_at_every_place_equally_often():
    size, rounds = 10, 1500
    orders = np.array([permuted(np.arange(size), size, 1, epoch) for epoch in range(rounds)])
    for place in range(size):
        counts = np.bincount(orders[:, place], minlength=size)
        assert abs(counts - rounds / size).max() < 6 * np.sqrt(rounds / size)


def test_neighbours_do_not_stay_neighbours():
    order = permuted(np.arange(50_000), 50_000, 1, 0)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.02
    assert (np.abs(np.diff(order)) == 1).sum() < 20


def test_steps_walk_through_every_epoch():
    size, batch_size = 9000, 33  # Over the border of two stretches and of two epochs.
    steps = 3 * size // batch_size
    examples, epochs = examples_of_steps(np.arange(steps), batch_size, size, seed=5)
    assert examples.shape == epochs.shape == (steps * batch_size,)
    for epoch in range(2):
        assert np.array_equal(np.sort(examples[epochs == epoch]), np.arange(size))


def test_a_step_is_the_same_whatever_came_before():
    walked, walked_epochs = examples_of_steps(np.arange(300), 32, 1000, seed=1)
    for step in (0, 31, 32, 299):
        examples, epochs = examples_of_steps(np.array([step]), 32, 1000, seed=1)
        assert np.array_equal(examples, walked[step * 32 : step * 32 + 32])
        assert np.array_equal(epochs, walked_epochs[step * 32 : step * 32 + 32])


def test_a_batch_may_be_larger_than_the_data():
    examples, epochs = examples_of_steps(np.array([0]), 8, 3, seed=1)
    assert epochs.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert sorted(examples[:3]) == sorted(examples[3:6]) == [0, 1, 2]


def test_billions_of_examples_need_no_table():
    size = 5_000_000_000
    examples, _ = examples_of_steps(np.array([10**8]), 4, size, seed=1)
    assert len(set(examples.tolist())) == 4
    assert examples.min() >= 0 and examples.max() < size
