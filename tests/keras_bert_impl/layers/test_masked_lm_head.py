"""`MaskedLMHead`: gathers positions, transforms, and scores with the tied token table."""

import numpy as np
import pytest
from harness import arrays, check_layer

from keras_bert_impl.layers import EmbeddingTable, MaskedLMHead

POSITIONS = np.array([[4, 0, 4], [1, 2, 3]], dtype="int32")


def make(seed=0, dtype=None, **kwargs):
    return MaskedLMHead(EmbeddingTable(37, 12, seed=seed + 1, dtype=dtype), seed=seed, dtype=dtype, **kwargs)


def vectors():
    return np.random.default_rng(0).normal(size=(2, 5, 12)).astype("float32")


def test_contract():
    inputs = {"inputs": vectors(), "mask_positions": POSITIONS}
    check_layer(make, inputs, (2, 3, 37), num_weights=6, output_dtype="float32")


def test_scores_the_positions_asked_for():
    head, inputs = make(initializer_range=0.3), vectors()
    outputs = arrays(head(inputs, POSITIONS))
    head.bias.assign(np.arange(37.0))
    gathered = np.take_along_axis(inputs, POSITIONS[:, :, None], axis=1)
    transformed = arrays(head.layer_norm(head.dense(gathered)))
    np.testing.assert_allclose(outputs, transformed @ arrays(head.token_embedding.table).T, atol=1e-5)
    np.testing.assert_allclose(
        arrays(head(inputs, POSITIONS)) - outputs, np.broadcast_to(np.arange(37), (2, 3, 37)), atol=1e-4
    )


def test_in_training_vectors_of_real_tokens_get_the_same_scores():
    head, inputs = make(initializer_range=0.3), vectors().reshape(10, 12)
    head(inputs, POSITIONS)
    head.bias.assign(np.arange(37.0))
    expected, found = (arrays(head(inputs, POSITIONS.reshape(-1), training=training)) for training in (False, True))
    assert found.shape == (6, 37)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_shares_the_table():
    head = make()
    before = arrays(head(vectors(), POSITIONS))
    head.token_embedding.table.assign(head.token_embedding.table * 2)
    np.testing.assert_allclose(arrays(head(vectors(), POSITIONS)), 2 * before, rtol=1e-5)


def test_refuses_an_unknown_activation():
    with pytest.raises(ValueError, match=r"Received: activation='swish'"):
        MaskedLMHead(EmbeddingTable(37, 12), activation="swish")
