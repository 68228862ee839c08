"""What all optimizers do alike: clip, scale, skip, refuse, and come back from files."""

import json

import keras
import numpy as np
import pytest
from harness import arrays
from numpy_updates import gradients, variables

from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.schedules import LinearWarmupDecay

both = pytest.mark.parametrize("optimizer", [BertAdamW, BertLamb])


def tensors(values):
    return [keras.ops.convert_to_tensor(value) for value in values]


def check_equal(one, other, **tolerance):
    for first, second in zip(one, other, strict=True):
        np.testing.assert_allclose(arrays(first), arrays(second), **{"rtol": 0, "atol": 0, **tolerance})


@both
def test_small_gradients_are_not_clipped_and_large_ones_to_the_norm(optimizer):
    for size, clipped in ((1e-3, False), (1e3, True)):
        plain, clip = variables(), variables()
        given = gradients(0, size)
        norm = np.sqrt(sum((g**2).sum() for g in given))
        optimizer(0.1, global_clipnorm=None).apply(tensors(g / norm if clipped else g for g in given), plain)
        optimizer(0.1).apply(tensors(given), clip)
        check_equal(plain, clip, rtol=1e-5)


@both
def test_apply_reduced_neither_clips_nor_takes_out_the_loss_scale(optimizer):
    reduced, plain = variables(), variables()
    given = tensors(gradients(0, 1e3))
    optimizer(0.1, global_clipnorm=1e-6, loss_scale_factor=8.0).apply_reduced(given, reduced)
    optimizer(0.1, global_clipnorm=None).apply(given, plain)
    check_equal(reduced, plain)


@both
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_apply_reduced_multiplies_by_the_scale(optimizer, scale):
    scaled, plain = variables(), variables()
    optimizer(0.1).apply_reduced(tensors(gradients(0)), scaled, scale=scale)
    optimizer(0.1).apply_reduced(tensors(g * np.float32(scale) for g in gradients(0)), plain)
    check_equal(scaled, plain)


@both
def test_the_loss_scale_is_taken_out_of_the_gradients(optimizer):
    for clip in (None, 1.0):
        scaled, plain = variables(), variables()
        optimizer(0.1, loss_scale_factor=8.0, global_clipnorm=clip).apply(
            tensors(g * np.float32(8) for g in gradients(0)), scaled
        )
        optimizer(0.1, global_clipnorm=clip).apply(tensors(gradients(0)), plain)
        check_equal(scaled, plain, rtol=1e-6)


@both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_scale_of_zero_keeps_every_bit_and_counts_the_step(optimizer, dtype):
    ours = variables(dtype)
    ours[0].assign(-0.0 * ours[0])
    made = optimizer(0.1, bias_correction=True)
    made.apply_reduced(tensors(gradients(0)), ours, scale=1.0)
    state = [v for v in made.variables if v.path.split("/")[-1] not in ("iteration", "skipped")] + ours
    before = [arrays(variable).tobytes() for variable in state]
    for poison in (np.nan, np.inf):
        made.apply_reduced(tensors(np.full_like(g, poison) for g in gradients(1)), ours, scale=0.0)
    assert [arrays(variable).tobytes() for variable in state] == before
    assert (int(made.iterations.numpy()), int(made.skipped.numpy())) == (3, 2)


@both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bias_correction_goes_by_the_steps_that_were_taken(optimizer, dtype):
    with_gap, without = variables(dtype), variables(dtype)
    one, other = optimizer(0.1, bias_correction=True), optimizer(0.1, bias_correction=True)
    for step, scale in enumerate((0.0, 0.5, 0.0, 0.0, 1.0, 0.5)):
        one.apply_reduced(tensors(gradients(step)), with_gap, scale=scale)
        if scale:
            other.apply_reduced(tensors(gradients(step)), without, scale=scale)
    check_equal(with_gap, without)


@both
def test_the_learning_rate_goes_on_over_a_step_that_is_not_taken(optimizer):
    skipping, constant = variables(), variables()
    schedule = LinearWarmupDecay(0.1, 0, 4)
    one = optimizer(schedule)
    one.apply_reduced(tensors(gradients(0)), skipping, scale=0.0)
    one.apply_reduced(tensors(gradients(1)), skipping, scale=1.0)
    optimizer(float(schedule(1))).apply_reduced(tensors(gradients(1)), constant, scale=1.0)
    check_equal(skipping, constant, rtol=1e-6)


@both
def test_gradients_that_are_not_finite_are_not_skipped_in_silence(optimizer):
    for poison in (np.nan, np.inf):
        ours = variables()
        made = optimizer(0.1)
        made.apply(tensors(np.full_like(g, poison) for g in gradients(0)), ours)
        assert np.isnan(arrays(ours[0])).all()
        assert int(made.skipped.numpy()) == 0


@both
def test_survives_a_round_trip_with_its_schedule_and_inside_a_saved_model(optimizer, tmp_path):
    made = optimizer(
        LinearWarmupDecay(1e-3, 2, 9), weight_decay=0.1, beta_2=0.98, bias_correction=True, not_decayed=("bias",)
    )
    config = json.loads(json.dumps(keras.optimizers.serialize(made)))
    restored = keras.optimizers.deserialize(config)
    assert type(restored) is optimizer
    assert restored.get_config() == made.get_config()

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer=made, loss="mse")
    data = np.ones((4, 3)), np.ones((4, 2))
    model.train_on_batch(*data)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for one in (model, again):
        one.train_on_batch(*data)
    np.testing.assert_array_equal(arrays(again.layers[0].kernel), arrays(model.layers[0].kernel))
    assert int(again.optimizer.iterations) == 2


@both
@pytest.mark.parametrize(
    "arguments,message",
    [
        ({"weight_decay": -1}, r"`weight_decay` must be at least 0 and less than inf. Received: weight_decay=-1"),
        ({"beta_1": 1.0}, r"`beta_1` must be at least 0 and less than 1. Received: beta_1=1.0"),
        ({"beta_2": -0.1}, r"`beta_2` must be at least 0 and less than 1. Received: beta_2=-0.1"),
        ({"epsilon": 0}, r"`epsilon` must be positive. Received: epsilon=0"),
        ({"global_clipnorm": 0}, r"`global_clipnorm` must be positive. Received: global_clipnorm=0"),
        ({"layer_decay": 0}, r"`layer_decay` must be more than 0 and at most 1. Received: layer_decay=0"),
        ({"not_decayed": "bias"}, r"`not_decayed` must be a list of bias, layer_norm, embedding. Received: .*'bias'"),
        ({"not_decayed": ["gamma"]}, r"`not_decayed` must be a list of .*\. Received: not_decayed=\['gamma'\]"),
    ],
)
def test_refuses_arguments_out_of_range(optimizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        optimizer(1e-3, **arguments)
