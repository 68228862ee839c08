"""`TransformerBlock`: two sublayers, each with residual addition and normalisation after it."""

import keras
import numpy as np
from harness import arrays, check_layer, small_batch

from keras_bert_impl.layers import TransformerBlock

MASK = small_batch()["padding_mask"]


def make(**kwargs):
    return TransformerBlock(3, 20, dropout=0.0, attention_dropout=0.0, **kwargs)


def vectors():
    return np.random.default_rng(0).normal(size=(3, 9, 12)).astype("float32")


def test_contract():
    check_layer(make, {"inputs": vectors(), "padding_mask": MASK}, (3, 9, 12), num_weights=16)


def test_an_attention_mask_keeps_positions_apart():
    block, inputs = make(initializer_range=0.5), vectors()
    first = np.arange(9) < 4
    outputs = arrays(block(inputs, attention_mask=np.tile(first[:, None] == first, (3, 1, 1))))
    for part in (slice(0, 4), slice(4, 9)):
        np.testing.assert_allclose(outputs[:, part], arrays(block(inputs[:, part])), atol=1e-5)


def test_normalises_after_each_residual_addition():
    block, inputs = make(initializer_range=0.3), vectors()
    outputs = arrays(block(inputs, padding_mask=MASK))
    attended = block.attention_norm(inputs + block.attention(inputs, padding_mask=MASK))
    np.testing.assert_array_equal(outputs, arrays(block.feed_forward_norm(attended + block.feed_forward(attended))))


def test_has_three_dropouts_each_with_a_stream_of_its_own():
    block = TransformerBlock(3, 20)
    block.build((None, None, 12))
    dropouts = [layer for layer in block._flatten_layers() if isinstance(layer, keras.layers.Dropout)]
    assert len(dropouts) == 3
    assert len({tuple(arrays(dropout.seed_generator.state)) for dropout in dropouts}) == 3


def test_without_dropout_training_changes_nothing():
    block, inputs = make(), vectors()
    # Two forms of the same function: they differ by rounding.
    np.testing.assert_allclose(arrays(block(inputs, training=True)), arrays(block(inputs)), rtol=1e-6, atol=1e-6)
    assert not block.non_trainable_variables


def test_returns_the_probabilities_of_its_attention_and_the_outputs_stay_as_they_were():
    block, inputs = make(initializer_range=0.5), vectors()
    outputs, probabilities = block(inputs, padding_mask=MASK, return_attention=True)
    np.testing.assert_array_equal(arrays(outputs), arrays(block(inputs, padding_mask=MASK)))
    _, expected = block.attention(inputs, padding_mask=MASK, return_attention=True)
    np.testing.assert_array_equal(arrays(probabilities), arrays(expected))


def test_a_symbolic_call_with_attention_knows_both_shapes():
    outputs = make(dtype="mixed_bfloat16")(keras.Input((None, 12)), return_attention=True)
    assert [tensor.shape for tensor in outputs] == [(None, None, 12), (None, 3, None, None)]
    assert {tensor.dtype for tensor in outputs} == {"bfloat16"}
