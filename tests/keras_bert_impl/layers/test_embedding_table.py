"""`EmbeddingTable`: looks up, and has a gradient that stock optimizers treat rightly."""

import keras
import numpy as np
import pytest
from harness import arrays, check_layer

from keras_bert_impl.layers import EmbeddingTable
from keras_bert_impl.layers.embedding_table import lookups_apart


def make(**kwargs):
    return EmbeddingTable(7, 4, **kwargs)


def test_contract():
    ids = np.array([[1, 6, 1], [0, 2, 2]], dtype="int32")
    check_layer(make, {"ids": ids}, (2, 3, 4), num_weights=1, output_dtype="float32")


def test_values_are_cut_off_at_two_deviations():
    table = EmbeddingTable(200, 100, initializer_range=0.5)
    table.build()
    values = arrays(table.table)
    assert np.abs(values).max() <= 1.0
    # A normal cut off at two deviations has 0.88 of its deviation.
    np.testing.assert_allclose(values.std(), 0.88 * 0.5, rtol=0.01)
    assert abs(values.mean()) < 0.01


def test_project_is_the_product_with_every_row():
    table = make()
    table.build()
    vectors = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(table.project(vectors), vectors @ arrays(table.table).T, rtol=1e-5, atol=1e-7)


def test_look_ups_can_be_handed_over():
    table, found = make(), []
    table.build()
    ids = np.array([[3, 3], [5, 0]], dtype="int32")
    with lookups_apart(lambda *lookup: found.append(lookup)):
        outputs = arrays(table(ids))
    table(ids)
    ((variable, flat_ids, rows),) = found
    assert variable is table.table
    np.testing.assert_array_equal(flat_ids, ids.reshape(-1))
    np.testing.assert_array_equal(arrays(rows).reshape(2, 2, 4), outputs)


@pytest.mark.parametrize("jit", [False, True])
def test_stock_adam_treats_ids_that_occur_twice_rightly(jit):
    """Five steps against Adam in NumPy on the summed gradient."""
    ids = np.array([[3, 3, 5, 3]], dtype="int32")
    target = np.random.default_rng(0).normal(size=(1, 4, 4)).astype("float32")
    table = make()
    model = keras.Sequential([keras.Input((4,), dtype="int32"), table])
    values = arrays(table.table).astype("float64")
    model.compile(optimizer=keras.optimizers.Adam(0.01, epsilon=1e-6), loss="mse", jit_compile=jit)

    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, 6):
        model.train_on_batch(ids, target)
        gradient = np.zeros_like(values)
        np.add.at(gradient, ids[0], 2 * (values[ids[0]] - target[0]) / target.size)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = 0.01 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        values -= rate * mean / (np.sqrt(square) + 1e-6)
    np.testing.assert_allclose(arrays(table.table), values, atol=1e-6)


@pytest.mark.parametrize("sizes", [(0, 4), (7, 0)])
def test_refuses_an_empty_table(sizes):
    with pytest.raises(ValueError, match=r"`(input|output)_dim` must be positive. Received: (input|output)_dim=0"):
        EmbeddingTable(*sizes)
