"""`BertAdamW` against the same optimizer in NumPy."""

import keras
import numpy as np
import pytest
from harness import arrays
from numpy_updates import SHAPES, NumpyUpdates, gradients, variables

from keras_bert_impl.layers import Embeddings
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.schedules import LinearWarmupDecay

DECAYED = [not path.endswith(("bias", "gamma")) for path in SHAPES]


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])  # fused and by single operations
def test_five_steps_equal_numpy(correct, decay, clip, dtype):
    ours = variables(dtype)
    reference = NumpyUpdates([arrays(v) for v in ours], DECAYED, decay=decay, clip=clip, correct=correct)
    schedule = LinearWarmupDecay(0.05, 2, 10)
    optimizer = BertAdamW(schedule, weight_decay=decay, bias_correction=correct, global_clipnorm=clip)
    for step in range(5):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], ours)
        reference.apply(gradients(step), float(schedule(step)))
    for variable, expected in zip(ours, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_decay_and_roles_equal_numpy(dtype):
    ours = variables(dtype)
    reference = NumpyUpdates(
        [arrays(v) for v in ours],
        [False, True, True, True, False, True],
        factors=[0.5**3, 0.5**2, 0.5, 0.5, 0.5, 1.0],
        betas=(0.8, 0.98),
        epsilon=1e-4,
        decay=0.1,
        correct=True,
    )
    optimizer = BertAdamW(0.02, 0.1, 0.8, 0.98, 1e-4, True, not_decayed=["layer_norm", "embedding"], layer_decay=0.5)
    for step in range(5):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], ours)
        reference.apply(gradients(step), 0.02)
    for variable, expected in zip(ours, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=1e-6, err_msg=variable.path)


def test_bias_correction_makes_the_first_step_as_long_as_the_rate():
    for correct, length in ((True, 0.01), (False, 0.01 * 0.1 / np.sqrt(0.001))):
        variable = keras.Variable(np.zeros((2,), "float32"), name="kernel")
        optimizer = BertAdamW(0.01, weight_decay=0.0, bias_correction=correct, epsilon=1e-12)
        optimizer.apply([keras.ops.convert_to_tensor([0.3, -0.2])], [variable])
        np.testing.assert_allclose(arrays(variable), [-length, length], rtol=1e-4)


def test_half_precision_variables_move_too():
    variable = keras.Variable(np.ones((2,)), dtype="bfloat16", name="kernel")
    optimizer = BertAdamW(0.1)
    for _ in range(3):
        optimizer.apply([keras.ops.convert_to_tensor([0.3, -0.2])], [variable])
    values = arrays(variable)
    assert values[0] < 0.7
    assert values[1] > 1.3


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_token_ids_that_occur_twice_under_fit_equal_numpy(jit):
    """An encoder's embeddings under stock `fit`; the gradients are those of one step in float64."""
    embeddings = Embeddings(7, 4, 8, dropout=0.0, initializer_range=0.5)
    inputs = {name: keras.Input((4,), dtype="int32", name=name) for name in ("token_ids", "segment_ids")}
    model = keras.Model(inputs, embeddings(**inputs))
    batch = {
        "token_ids": np.array([[3, 3, 5, 3], [3, 1, 1, 0]], dtype="int32"),
        "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 1]], dtype="int32"),
    }
    target = np.random.default_rng(0).normal(size=(2, 4, 4)).astype("float32")
    model.compile(optimizer=BertAdamW(0.01), loss="mse", jit_compile=jit)
    weights = [v.path.split("/", 1)[1] for v in model.trainable_variables]
    assert weights == [
        "token_embedding/table",
        "segment_embedding/table",
        "position_embedding/table",
        "layer_norm/gamma",
        "layer_norm/beta",
    ]
    reference = NumpyUpdates([arrays(v) for v in model.trainable_variables], [True, True, True, False, False])
    for _ in range(5):
        model.train_on_batch(batch, target)
        reference.apply(embedding_gradients(reference.values, batch, target), 0.01)
    for variable, expected in zip(model.trainable_variables, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=1e-6, err_msg=variable.path)


def embedding_gradients(values, batch, target):
    """Of the mean squared error of normalised embedding sums, by hand."""
    tokens, segments, positions, gamma, beta = values
    summed = tokens[batch["token_ids"]] + segments[batch["segment_ids"]] + positions[None, :4]
    centred = summed - summed.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    normal = centred / deviation
    error = 2 * (normal * gamma + beta - target) / target.size
    through = error * gamma
    through = through - through.mean(-1, keepdims=True) - normal * (through * normal).mean(-1, keepdims=True)
    through = through / deviation
    token_gradient, segment_gradient = np.zeros_like(tokens), np.zeros_like(segments)
    np.add.at(token_gradient, batch["token_ids"], through)
    np.add.at(segment_gradient, batch["segment_ids"], through)
    position_gradient = np.zeros_like(positions)
    position_gradient[:4] = through.sum(0)
    return [token_gradient, segment_gradient, position_gradient, (error * normal).sum((0, 1)), error.sum((0, 1))]
