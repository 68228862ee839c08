"""`Embeddings`: the normalised sum of three tables."""

import numpy as np
import pytest
from harness import arrays, check_layer, small_batch

from keras_bert_impl.layers import Embeddings


def make(**kwargs):
    return Embeddings(37, 12, 16, dropout=0.0, **kwargs)


def inputs():
    batch = small_batch()
    return {"token_ids": batch["token_ids"], "segment_ids": batch["segment_ids"]}


def test_contract():
    check_layer(make, inputs(), (3, 9, 12), num_weights=5)


def test_contract_with_positions():
    positions = np.random.default_rng(1).integers(0, 16, (3, 9)).astype("int32")
    check_layer(make, inputs() | {"position_ids": positions}, (3, 9, 12), num_weights=5)


def test_positions_count_from_0_along_every_row_unless_given():
    layer, batch = make(initializer_range=0.3), inputs()
    positions = np.tile(np.arange(9), (3, 1))
    plain = arrays(layer(**batch))
    np.testing.assert_array_equal(arrays(layer(**batch, position_ids=positions)), plain)
    restarted = arrays(layer(**batch, position_ids=positions % 4))
    np.testing.assert_array_equal(restarted[:, :4], plain[:, :4])
    alone = arrays(layer(batch["token_ids"][:, 4:8], batch["segment_ids"][:, 4:8]))
    np.testing.assert_allclose(restarted[:, 4:8], alone, atol=1e-6)


def test_is_the_normalised_sum_of_the_three_tables():
    layer, batch = make(), inputs()
    outputs = arrays(layer(**batch))
    tokens, segments, positions = (
        arrays(table.table).astype("float64")
        for table in (layer.token_embedding, layer.segment_embedding, layer.position_embedding)
    )
    summed = tokens[batch["token_ids"]] + segments[batch["segment_ids"]] + positions[None, :9]
    centred = summed - summed.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_drops_out_in_training_only():
    layer, batch = Embeddings(37, 12, 16, dropout=0.5), inputs()
    trained = arrays(layer(**batch, training=True))
    plain = arrays(layer(**batch, training=False))
    assert 0.3 < (trained == 0).mean() < 0.7
    kept = trained != 0
    np.testing.assert_allclose(trained[kept], 2 * plain[kept], rtol=1e-5)


def test_refuses_a_sequence_longer_than_its_positions():
    ids = np.zeros((1, 17), dtype="int32")
    with pytest.raises(ValueError, match=r"Received: seq_len=17, max_position_embeddings=16"):
        make()(ids, ids)
