"""`SelfAttention`: scaled dot products over the positions that are not padding."""

import keras
import numpy as np
import pytest
from harness import arrays, check_layer, small_batch

from keras_bert_impl.layers import SelfAttention

MASK = small_batch()["padding_mask"]


def make(**kwargs):
    return SelfAttention(3, dropout=0.0, initializer_range=0.5, **kwargs)


def vectors(seed=0):
    return np.random.default_rng(seed).normal(size=(3, 9, 12)).astype("float32")


def test_contract():
    check_layer(make, {"inputs": vectors(), "padding_mask": MASK}, (3, 9, 12), num_weights=8)


# Positions 0 to 3 and 4 to 7 of the first row are of one kind each, and so on.
BLOCKS = np.array([[1, 1, 1, 1, 2, 2, 2, 2, 0], [1] * 9, [1, 2, 2, 3, 3, 3, 0, 0, 0]])
BLOCK_DIAGONAL = BLOCKS[:, :, None] == BLOCKS[:, None]


def test_contract_with_an_attention_mask():
    check_layer(make, {"inputs": vectors(), "attention_mask": BLOCK_DIAGONAL}, (3, 9, 12), num_weights=8)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_a_block_diagonal_mask_is_attention_inside_each_block_alone(dtype):
    layer, inputs = make(dtype=dtype), vectors()
    outputs = arrays(layer(inputs, attention_mask=BLOCK_DIAGONAL))
    for row, column in ((0, slice(0, 4)), (0, slice(4, 8)), (2, slice(1, 3)), (2, slice(3, 6))):
        alone = arrays(layer(inputs[row : row + 1, column]))[0]
        np.testing.assert_allclose(outputs[row, column], alone, atol=1e-5 if dtype == "float32" else 5e-2)
        other = vectors(1) * 50
        other[row, column] = inputs[row, column]
        again = arrays(layer(other, attention_mask=BLOCK_DIAGONAL))
        np.testing.assert_array_equal(again[row, column], outputs[row, column])


def test_where_both_masks_are_given_both_must_be_true():
    layer, inputs = make(), vectors()
    both = BLOCK_DIAGONAL & MASK.astype(bool)[:, None]
    real = MASK.astype(bool)
    outputs, probabilities = layer(inputs, padding_mask=MASK, attention_mask=BLOCK_DIAGONAL, return_attention=True)
    np.testing.assert_array_equal(arrays(outputs)[real], arrays(layer(inputs, attention_mask=both))[real])
    assert (arrays(probabilities).transpose(0, 2, 1, 3)[real].transpose(1, 0, 2)[:, ~both[real]] == 0).all()
    np.testing.assert_array_equal(outputs, layer(inputs, padding_mask=MASK, attention_mask=BLOCK_DIAGONAL.astype(int)))


def by_definition(layer, inputs, mask):
    """Outputs and probabilities, one head and one query at a time, in float64."""

    def project(name):
        dense = getattr(layer, name)
        return inputs.astype("float64") @ arrays(dense.kernel) + arrays(dense.bias)

    query, key, value = project("query"), project("key"), project("value")
    gathered, probabilities = np.zeros_like(query), np.zeros((len(inputs), 3, *2 * inputs.shape[1:2]))
    for row, head, position in np.ndindex(len(inputs), 3, inputs.shape[1]):
        part = slice(4 * head, 4 * head + 4)
        scores = key[row, mask[row], part] @ query[row, position, part] / np.sqrt(4)
        weights = np.exp(scores - scores.max())
        probabilities[row, head, position, mask[row]] = weights / weights.sum()
        gathered[row, position, part] = probabilities[row, head, position, mask[row]] @ value[row, mask[row], part]
    outputs = gathered @ arrays(layer.output_projection.kernel) + arrays(layer.output_projection.bias)
    return outputs, probabilities


def test_is_attention_by_its_definition():
    layer, inputs = make(), vectors()
    outputs = arrays(layer(inputs, padding_mask=MASK))
    np.testing.assert_allclose(outputs, by_definition(layer, inputs, MASK.astype(bool))[0], atol=1e-5)


def test_probabilities_are_those_of_the_definition_and_the_outputs_stay_as_they_were():
    layer, inputs = make(), vectors()
    outputs, probabilities = layer(inputs, padding_mask=MASK, return_attention=True)
    np.testing.assert_array_equal(arrays(outputs), arrays(layer(inputs, padding_mask=MASK)))
    expected = by_definition(layer, inputs, MASK.astype(bool))[1]
    np.testing.assert_allclose(arrays(probabilities), expected, atol=1e-6)


@pytest.mark.parametrize(
    "dtype,compute,rounding",
    [("float32", "float32", 1e-6), ("mixed_float16", "float16", 2e-3), ("mixed_bfloat16", "bfloat16", 1e-2)],
)
def test_probabilities_are_in_the_compute_dtype_sum_to_one_and_are_none_at_padding(dtype, compute, rounding):
    _, probabilities = make(dtype=dtype)(vectors(), padding_mask=MASK, return_attention=True)
    assert keras.backend.standardize_dtype(probabilities.dtype) == compute
    at_padding = np.broadcast_to(MASK[:, None, None] == 0, probabilities.shape)
    assert (arrays(probabilities)[at_padding] == 0).all()
    np.testing.assert_allclose(arrays(probabilities).sum(-1), 1, atol=rounding)


def test_probabilities_are_those_before_dropout():
    layer = SelfAttention(3, dropout=0.5)
    inputs = vectors()
    _, plain = layer(inputs, return_attention=True)
    _, in_training = layer(inputs, return_attention=True, training=True)
    np.testing.assert_array_equal(arrays(in_training), arrays(plain))


def test_symbolic_calls_with_attention_can_be_saved(tmp_path):
    inputs, mask = keras.Input((None, 12)), keras.Input((None,), dtype="int32")
    outputs = make()(inputs, padding_mask=mask, return_attention=True)
    assert [tensor.shape for tensor in outputs] == [(None, None, 12), (None, 3, None, None)]
    model = keras.Model([inputs, mask], outputs)
    model.save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    given = [vectors(), MASK]
    for one, other in zip(arrays(restored(given)), arrays(model(given)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_bool_and_integer_masks_are_the_same_and_none_means_no_padding():
    layer, inputs = make(), vectors()
    np.testing.assert_array_equal(layer(inputs, padding_mask=MASK), layer(inputs, padding_mask=MASK.astype(bool)))
    np.testing.assert_allclose(layer(inputs), layer(inputs, padding_mask=np.ones_like(MASK)), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_padding_has_no_influence(dtype):
    layer, inputs = make(dtype=dtype), vectors()
    other = np.where(MASK[:, :, None], inputs, vectors(1) * 50)
    real = MASK.astype(bool)
    outputs = arrays(layer(inputs, padding_mask=MASK))
    np.testing.assert_array_equal(outputs[real], arrays(layer(other, padding_mask=MASK))[real])


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_a_row_of_padding_only_stays_finite(dtype):
    outputs = arrays(make(dtype=dtype)(vectors() * 4, padding_mask=MASK * 0))
    assert np.isfinite(outputs).all()


def test_drops_probabilities_in_training_only():
    layer = SelfAttention(3, dropout=0.5)
    inputs = vectors()
    plain = arrays(layer(inputs, training=False))
    assert not np.allclose(arrays(layer(inputs, training=True)), plain)
    np.testing.assert_array_equal(arrays(layer(inputs, training=False)), plain)


def test_refuses_heads_that_do_not_divide_the_width():
    with pytest.raises(ValueError, match=r"Received: hidden_size=12, num_heads=5"):
        SelfAttention(5)(vectors())
    with pytest.raises(ValueError, match=r"`num_heads` must be positive. Received: num_heads=0"):
        SelfAttention(0)
