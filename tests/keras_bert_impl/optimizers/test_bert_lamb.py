"""`BertLamb` against the same optimizer in NumPy."""

import keras
import numpy as np
import pytest
from harness import arrays
from numpy_updates import SHAPES, NumpyUpdates, gradients, variables

from keras_bert_impl.optimizers import BertLamb
from keras_bert_impl.schedules import LinearWarmupDecay

DECAYED = [not path.endswith(("bias", "gamma")) for path in SHAPES]


@pytest.mark.parametrize("trust_ratio", ["decayed", "all"])
@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_five_steps_equal_numpy(trust_ratio, correct, decay, clip):
    ours = variables()
    adapted = [True] * len(ours) if trust_ratio == "all" else DECAYED
    reference = NumpyUpdates(
        [arrays(v) for v in ours], DECAYED, adapted=adapted, decay=decay, clip=clip, correct=correct
    )
    schedule = LinearWarmupDecay(0.05, 2, 10)
    optimizer = BertLamb(
        schedule, weight_decay=decay, trust_ratio=trust_ratio, bias_correction=correct, global_clipnorm=clip
    )
    for step in range(5):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], ours)
        reference.apply(gradients(step), float(schedule(step)))
    for variable, expected in zip(ours, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=2e-6)


def test_layer_decay_and_roles_equal_numpy():
    ours = variables()
    decayed = [False, True, True, True, False, True]
    reference = NumpyUpdates(
        [arrays(v) for v in ours], decayed, adapted=decayed, factors=[0.5**3, 0.5**2, 0.5, 0.5, 0.5, 1.0], decay=0.1
    )
    optimizer = BertLamb(0.02, weight_decay=0.1, not_decayed=["layer_norm", "embedding"], layer_decay=0.5)
    for step in range(5):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], ours)
        reference.apply(gradients(step), 0.02)
    for variable, expected in zip(ours, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=2e-6, err_msg=variable.path)


def test_the_first_step_is_a_share_of_the_variable_s_own_length():
    (variable,) = [v for v in variables() if v.path == "block_0/kernel"]
    before = arrays(variable)
    BertLamb(0.01).apply([keras.ops.convert_to_tensor(gradients(0)[1])], [variable])
    step = np.linalg.norm(arrays(variable) - before)
    assert step == pytest.approx(0.01 * np.linalg.norm(before), rel=1e-4)


def test_a_variable_of_zeros_leaves_zero():
    variable = keras.Variable(np.zeros((3,)), dtype="float32", name="kernel")
    BertLamb(0.01, weight_decay=0.0, bias_correction=True).apply(
        [keras.ops.convert_to_tensor(np.array([1.0, 0.0, -1.0], "float32"))], [variable]
    )
    np.testing.assert_allclose(arrays(variable), [-0.01, 0, 0.01], rtol=1e-4)


def test_refuses_another_trust_ratio():
    with pytest.raises(ValueError, match=r"`trust_ratio` must be decayed or all\. Received: trust_ratio='none'"):
        BertLamb(1e-3, trust_ratio="none")
