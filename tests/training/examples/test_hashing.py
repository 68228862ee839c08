import numpy as np

from keras_bert_impl.training.examples.hashing import as_below, hash_of, mix


def test_mix_is_the_finaliser_of_splitmix64():
    # The first outputs of splitmix64 with the seed 1234567, as published.
    seeds = np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert mix(seeds).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_every_part_and_their_order_count():
    values = {int(hash_of(*parts)[0]) for parts in [(), (0,), (0, 0), (1, 0), (0, 1), (1, 2), (2, 1), (-1,)]}
    assert len(values) == 8


def test_arrays_and_numbers_give_the_same():
    assert hash_of(3, np.arange(5, dtype=np.uint64), 7).tolist() == [int(hash_of(3, n, 7)[0]) for n in range(5)]


def test_numbers_below_a_limit_are_equally_frequent():
    drawn = as_below(hash_of(1, np.arange(100_000, dtype=np.uint64)), 7)
    counts = np.bincount(drawn.astype(np.int64), minlength=7)
    assert counts.size == 7
    assert abs(counts / 100_000 - 1 / 7).max() < 0.004
