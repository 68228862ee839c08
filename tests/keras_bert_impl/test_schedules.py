"""The schedules against the same in NumPy."""

import json

import keras
import numpy as np
import pytest

from keras_bert_impl.schedules import LinearWarmupDecay, PhasedSchedule, WarmupDecay


def original(step, peak, warmup, total):
    rate = peak * (1 - min(step, total) / total)
    return peak * step / warmup if step < warmup else rate


def written_out(step, peak, warmup, total, shape, power, end, decay_from):
    """In float64, for each shape by itself."""
    if step < warmup:
        return peak * step / warmup
    first = warmup if decay_from == "warmup" else 0
    done = (min(step, total) - first) / max(total - first, 1)
    if shape == "constant":
        return peak
    if shape == "cosine":
        return end + (peak - end) * 0.5 * (1 + np.cos(np.pi * done))
    return end + (peak - end) * (1 - done) ** (power if shape == "polynomial" else 1)


@pytest.mark.parametrize("warmup,total", [(0, 10), (4, 10), (10, 10), (1, 1000)])
def test_every_step_is_the_originals(warmup, total):
    schedule = LinearWarmupDecay(2e-4, warmup, total)
    ours = [float(schedule(step)) for step in range(0, total + 3, max(1, total // 50))]
    expected = [original(step, 2e-4, warmup, total) for step in range(0, total + 3, max(1, total // 50))]
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("decay_from", ["start", "warmup"])
@pytest.mark.parametrize("end", [0.0, 1e-5])
@pytest.mark.parametrize(
    "shape,power", [("linear", 1), ("polynomial", 0.5), ("polynomial", 2), ("cosine", 1), ("constant", 1)]
)
@pytest.mark.parametrize("warmup,total", [(0, 10), (4, 10), (10, 10)])
def test_every_shape_is_what_is_written_out(warmup, total, shape, power, end, decay_from):
    schedule = WarmupDecay(2e-4, warmup, total, shape, power, end, decay_from)
    steps = np.arange(total + 3)
    expected = [written_out(step, 2e-4, warmup, total, shape, power, end, decay_from) for step in steps]
    np.testing.assert_allclose(keras.ops.convert_to_numpy(schedule(steps)), expected, rtol=1e-5, atol=1e-10)


def test_the_linear_shape_is_the_original_to_the_last_bit():
    steps = np.arange(1003)
    one, other = LinearWarmupDecay(1e-4, 10, 1000), WarmupDecay(1e-4, 10, 1000)
    np.testing.assert_array_equal(*(keras.ops.convert_to_numpy(schedule(steps)) for schedule in (one, other)))


def test_starts_at_nothing_drops_at_the_end_of_warmup_and_ends_at_nothing():
    schedule = LinearWarmupDecay(1.0, 4, 10)
    rates = [float(schedule(step)) for step in range(12)]
    np.testing.assert_allclose(rates, [0, 0.25, 0.5, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0, 0], atol=1e-6)


def test_counted_from_the_warmup_the_fall_begins_at_the_peak():
    schedule = WarmupDecay(1.0, 4, 10, decay_from="warmup", end=0.4)
    rates = [float(schedule(step)) for step in range(12)]
    np.testing.assert_allclose(rates, [0, 0.25, 0.5, 0.75, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.4], atol=1e-6)


def test_a_million_steps_are_told_apart():
    schedule = LinearWarmupDecay(1e-4, 10_000, 1_000_000)
    assert float(schedule(999_998)) > float(schedule(999_999)) > 0


def phased():
    return PhasedSchedule([LinearWarmupDecay(1.0, 2, 4), WarmupDecay(0.5, 1, 3, "constant")], [4, 7])


def test_each_phase_counts_its_own_steps():
    rates = [float(phased()(step)) for step in range(9)]
    np.testing.assert_allclose(rates, [0, 0.5, 0.5, 0.25, 0, 0.5, 0.5, 0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize(
    "schedule", [LinearWarmupDecay(1e-4, 4, 10), WarmupDecay(1e-4, 4, 10, "polynomial", 0.5, 1e-6, "warmup"), phased()]
)
def test_round_trip(schedule):
    config = json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    restored = keras.optimizers.schedules.deserialize(config)
    assert type(restored) is type(schedule)
    assert restored.get_config() == schedule.get_config()
    assert float(restored(3)) == float(schedule(3))


def test_refuses_bad_arguments():
    with pytest.raises(ValueError, match=r"`peak` must be positive. Received: peak=0"):
        LinearWarmupDecay(0, 1, 2)
    for warmup, total in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=rf"Received: warmup_steps={warmup}, total_steps={total}"):
            LinearWarmupDecay(1e-4, warmup, total)


@pytest.mark.parametrize(
    "arguments,message",
    [
        ({"shape": "step"}, r"`shape` must be linear, polynomial, cosine or constant\. Received: shape='step'"),
        ({"power": 0}, r"`power` must be positive\. Received: power=0"),
        ({"end": 2}, r"`end` must be at least 0 and at most `peak`, 1\. Received: end=2"),
        ({"decay_from": "end"}, r"`decay_from` must be start or warmup\. Received: decay_from='end'"),
    ],
)
def test_refuses_shapes_it_does_not_know(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupDecay(1, 1, 2, **arguments)


@pytest.mark.parametrize(
    "schedules,last_steps,message",
    [
        ([], [], r"`schedules` must be one or more\. Received: schedules=\[\]"),
        ([None], [1, 2], r"`last_steps` must be as many as the schedules, 1\. Received: last_steps=\[1, 2\]"),
        ([None, None], [2, 2], r"`last_steps` must be positive and rise\. Received: last_steps=\[2, 2\]"),
        ([None], [0], r"`last_steps` must be positive and rise\. Received: last_steps=\[0\]"),
    ],
)
def test_refuses_phases_that_do_not_follow_one_another(schedules, last_steps, message):
    with pytest.raises(ValueError, match=message):
        PhasedSchedule(schedules, last_steps)
