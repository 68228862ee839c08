"""Gradients written out by hand are those that the backend works out."""

import keras
import numpy as np
import pytest
from harness import arrays

from keras_bert_impl.layers import FeedForward, LayerNorm, MaskedLMHead, SelfAttention, TransformerBlock
from keras_bert_impl.layers.activations import ACTIVATIONS, in_training
from keras_bert_impl.layers.embedding_table import EmbeddingTable

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(3, 9, 12)).astype("float32")
MASK = (np.arange(9) < np.array([[5], [9], [3]])).astype("int32")
BLOCKS = np.array([[1, 1, 1, 1, 2, 2, 2, 2, 0], [1] * 9, [1, 2, 2, 3, 3, 3, 0, 0, 0]])


class _Called(keras.layers.Layer):
    """Calls a layer with `training` as it is told, on a trainable copy of the inputs."""

    def __init__(self, layer, training, arguments):
        super().__init__()
        self.layer, self.as_in_training, self.arguments = layer, training, arguments

    def build(self, _):
        self.vectors = self.add_weight(name="inputs", shape=INPUTS.shape, initializer="zeros")
        self.vectors.assign(INPUTS)
        self.layer.build(INPUTS.shape)

    def call(self, ones):
        return self.layer(self.vectors * ones, training=self.as_in_training, **self.arguments)

    def compute_output_shape(self, _):
        return INPUTS.shape


def outputs_and_gradients(make, training, **arguments):
    """Outputs, and what a step of SGD with rate 1 takes off inputs and weights for a loss of random weights."""
    called = _Called(make(), training, arguments)
    model = keras.Sequential([keras.Input((1, 1)), called])
    for variable in called.layer.trainable_variables:
        variable.assign(variable + np.random.default_rng(1).normal(size=variable.shape) * 0.1)
    upstream = np.random.default_rng(2).normal(size=INPUTS.shape).astype("float32")
    model.compile(keras.optimizers.SGD(1.0), loss=lambda of, found: keras.ops.sum(of * found), run_eagerly=True)
    ones = np.ones((3, 1, 1), "float32")
    outputs = arrays(model(ones))
    before = [arrays(variable) for variable in model.trainable_variables]
    model.train_on_batch(ones, upstream)
    return outputs, {
        variable.path: old - arrays(variable) for variable, old in zip(model.trainable_variables, before, strict=True)
    }


def check(make, **arguments):
    expected, expected_gradients = outputs_and_gradients(make, False, **arguments)
    found, gradients = outputs_and_gradients(make, True, **arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert len(gradients) == len(expected_gradients) > 1
    for (path, gradient), other in zip(gradients.items(), expected_gradients.values(), strict=True):
        largest = max(np.abs(other).max(), 1)
        # Keys have no gradient through their bias: what there is, is what rounding leaves of large sums.
        close = 1e-5 if path.endswith("key/bias") else 2e-6
        np.testing.assert_allclose(gradient / largest, other / largest, rtol=1e-6, atol=close, err_msg=path)


def test_layer_norm():
    check(LayerNorm)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward(activation):
    check(lambda: FeedForward(20, activation=activation, initializer_range=0.5))


@pytest.mark.parametrize(
    "masks",
    [{}, {"padding_mask": MASK}, {"attention_mask": BLOCKS[:, :, None] == BLOCKS[:, None]}],
    ids=["without", "padding", "blocks"],
)
def test_self_attention(masks):
    check(lambda: SelfAttention(3, dropout=0.0, initializer_range=0.5), **masks)


def test_a_block():
    check(lambda: TransformerBlock(3, 20, dropout=0.0, attention_dropout=0.0), padding_mask=MASK)


@pytest.mark.parametrize("name", ["gelu", "gelu_new"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_activations_in_training_stay_finite_and_agree_far_from_zero(name, dtype):
    x = np.array([-300, -60, -9, -5, -1, -1e-3, 0, 1e-3, 1, 5, 9, 60, 300], dtype)
    found, expected = (
        arrays(form(keras.ops.convert_to_tensor(x))) for form in (in_training(ACTIVATIONS[name]), ACTIVATIONS[name])
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_dropped_attention_probabilities_have_the_gradient_of_those_that_are_kept():
    """The same draws through the written-out form and through single operations."""
    layer = SelfAttention(3, dropout=0.5, initializer_range=0.5)
    layer.build(INPUTS.shape)
    state = keras.ops.convert_to_numpy(layer.probability_dropout.seed_generator.state)
    found = arrays(layer(INPUTS, padding_mask=MASK, training=True))
    layer.probability_dropout.seed_generator.state.assign(state)
    expected = arrays(layer(INPUTS, padding_mask=MASK, return_attention=True, training=True)[0])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_vocabulary_product_and_its_table():
    values, vectors = RNG.normal(size=(7, 4)), RNG.normal(size=(1, 5, 4)).astype("float32")
    upstream = RNG.normal(size=(1, 5, 7)).astype("float32")
    table = EmbeddingTable(7, 4)
    head = MaskedLMHead(table)
    positions = keras.Input((None,), dtype="int32")
    inputs = keras.Input((None, 4))
    model = keras.Model([inputs, positions], head(inputs, positions))
    table.table.assign(values)
    model.compile(keras.optimizers.SGD(1.0), loss=lambda of, found: keras.ops.sum(of * found), run_eagerly=True)
    given = [vectors, np.arange(5)[None]]
    transformed = arrays(head.layer_norm(head.dense(vectors[0])))
    model.train_on_batch(given, upstream)
    np.testing.assert_allclose(values - arrays(table.table), upstream[0].T @ transformed, rtol=1e-5, atol=1e-5)
