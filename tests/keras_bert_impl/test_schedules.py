"""`LinearWarmupDecay` against the original's two lines."""

import json

import keras
import numpy as np
import pytest

from keras_bert_impl.schedules import LinearWarmupDecay


def original(step, peak, warmup, total):
    rate = peak * (1 - min(step, total) / total)
    return peak * step / warmup if step < warmup else rate


@pytest.mark.parametrize("warmup,total", [(0, 10), (4, 10), (10, 10), (1, 1000)])
def test_every_step_is_the_originals(warmup, total):
    schedule = LinearWarmupDecay(2e-4, warmup, total)
    ours = [float(schedule(step)) for step in range(0, total + 3, max(1, total // 50))]
    expected = [original(step, 2e-4, warmup, total) for step in range(0, total + 3, max(1, total // 50))]
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-10)


def test_starts_at_nothing_drops_at_the_end_of_warmup_and_ends_at_nothing():
    schedule = LinearWarmupDecay(1.0, 4, 10)
    rates = [float(schedule(step)) for step in range(12)]
    np.testing.assert_allclose(rates, [0, 0.25, 0.5, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0, 0], atol=1e-6)


def test_a_million_steps_are_told_apart():
    schedule = LinearWarmupDecay(1e-4, 10_000, 1_000_000)
    assert float(schedule(999_998)) > float(schedule(999_999)) > 0


def test_round_trip():
    schedule = LinearWarmupDecay(1e-4, 4, 10)
    config = json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    restored = keras.optimizers.schedules.deserialize(config)
    assert type(restored) is LinearWarmupDecay
    assert restored.get_config() == schedule.get_config()


def test_refuses_bad_arguments():
    with pytest.raises(ValueError, match=r"`peak` must be positive. Received: peak=0"):
        LinearWarmupDecay(0, 1, 2)
    for warmup, total in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match=rf"Received: warmup_steps={warmup}, total_steps={total}"):
            LinearWarmupDecay(1e-4, warmup, total)
