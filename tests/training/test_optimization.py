"""From settings to schedule and optimizer."""

import dataclasses

import keras
import numpy as np
import pytest
from pretraining_runs import assert_same_run, lines_of, small_config
from stopping import Stop

from keras_bert_impl.errors import InputError
from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.schedules import LinearWarmupDecay
from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.optimization import make_optimizer, make_schedule, with_learning_rates
from keras_bert_impl.training.pretrain import pretrain


def config_of(**settings):
    return with_learning_rates(small_config("data", "run", **settings))


def rates_of(**settings):
    config = config_of(**settings)
    return keras.ops.convert_to_numpy(make_schedule(config)(np.arange(config.total_steps)))


TWO = ({"length": 16, "steps": 6}, {"length": 32, "steps": 4})


def phases(*settings):
    return tuple(PhaseConfig(**{**phase, **more}) for phase, more in zip(TWO, settings or ({}, {}), strict=True))


def test_without_more_said_the_schedule_is_the_originals():
    expected = LinearWarmupDecay(1e-3, 4, 40)(np.arange(40))
    np.testing.assert_array_equal(rates_of(learning_rate=1e-3, warmup_steps=4, steps=40), expected)


def test_warmup_is_a_hundredth_of_the_steps_when_not_given():
    assert config_of(warmup_steps=None, steps=1000).warmup_steps == 10


def test_a_run_has_one_schedule_over_all_phases():
    rates = rates_of(
        learning_rate=1.0, warmup_steps=2, steps=None, phases=phases(), schedule="cosine", decay_from="warmup"
    )
    assert rates[2] == 1 and rates[6] == pytest.approx(0.5)
    assert (np.diff(rates[2:]) < 0).all()


def test_each_phase_has_a_schedule_of_its_own_if_so_said():
    rates = rates_of(
        learning_rate=1.0,
        warmup_steps=2,
        steps=None,
        schedule_span="phase",
        phases=phases({}, {"learning_rate": 0.5, "warmup_steps": 1}),
        end_learning_rate=0.25,
        schedule="polynomial",
        schedule_power=0.5,
    )
    left = [1 - step / 6 for step in range(2, 6)], [1 - step / 4 for step in range(1, 4)]
    expected = [0, 0.5, *(0.25 + 0.75 * np.sqrt(left[0])), 0, *(0.25 + 0.25 * np.sqrt(left[1]))]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def test_a_phase_without_a_warmup_takes_the_run_s_else_a_hundredth_of_its_own_steps():
    long = phases({"steps": 600}, {"steps": 400, "warmup_steps": 0})
    settings = {"steps": None, "schedule_span": "phase", "phases": long}
    assert [phase.warmup_steps for phase in config_of(warmup_steps=9, **settings).phases] == [9, 0]
    assert [phase.warmup_steps for phase in config_of(warmup_steps=None, **settings).phases] == [6, 0]
    assert [phase.learning_rate for phase in config_of(learning_rate=0.5, **settings).phases] == [0.5, 0.5]


def test_what_is_decided_stays_decided():
    once = config_of(warmup_steps=None, steps=None, schedule_span="phase", phases=phases())
    assert with_learning_rates(once) == once


def test_the_optimizer_has_every_setting():
    settings = {
        "weight_decay": 0.2,
        "beta_1": 0.7,
        "beta_2": 0.97,
        "epsilon": 1e-5,
        "bias_correction": True,
        "not_decayed": ("bias",),
        "layer_decay": 0.8,
    }
    made = make_optimizer(config_of(clip_norm=2.0, **settings), LinearWarmupDecay(1.0, 1, 2))
    assert type(made) is BertAdamW
    kept = made.get_config()
    assert {name: kept[name] for name in settings} == {**settings, "not_decayed": ["bias"]}
    assert kept["global_clipnorm"] == 2.0
    lamb = config_of(optimizer="lamb", clip_norm=0, **settings)
    for trust_ratio in (None, "all"):
        made = make_optimizer(dataclasses.replace(lamb, trust_ratio=trust_ratio), LinearWarmupDecay(1.0, 1, 2))
        assert type(made) is BertLamb
        assert {name: made.get_config()[name] for name in settings} == {**settings, "not_decayed": ["bias"]}
        assert (made.trust_ratio, made.global_clipnorm) == (trust_ratio or "decayed", None)


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"warmup_steps": 13}, r"`warmup_steps` must be at most the steps of the run, 12\. Received: warmup_steps=13"),
        (
            {"schedule_span": "phase", "steps": None, "phases": phases({}, {"warmup_steps": 5})},
            r"`warmup_steps` must be at most the steps of phase 2, 4\. Received: warmup_steps=5",
        ),
        (
            {
                "schedule_span": "phase",
                "steps": None,
                "learning_rate": 1.0,
                "end_learning_rate": 0.5,
                "phases": phases({}, {"learning_rate": 0.25}),
            },
            r"`end_learning_rate` must not be more than the learning rate of phase 2, 0.25\. Received: .*=0.5",
        ),
    ],
)
def test_a_schedule_that_does_not_fit_its_steps_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        config_of(**settings)


@pytest.mark.slow
def test_a_run_with_lamb_follows_the_schedule_of_each_phase_and_goes_on_in_the_middle(prepared, tmp_path):
    def config(run):
        return small_config(
            prepared,
            tmp_path / run,
            optimizer="lamb",
            trust_ratio="all",
            bias_correction=True,
            layer_decay=0.9,
            not_decayed=(),
            schedule="cosine",
            schedule_span="phase",
            decay_from="warmup",
            warmup_steps=None,
            steps=None,
            phases=(
                PhaseConfig(length=16, steps=7, warmup_steps=2),
                PhaseConfig(length=32, steps=5, batch_size=4, learning_rate=2e-3),
            ),
        )

    pretrain(config("whole"))
    lines = lines_of(tmp_path / "whole")
    expected = [0, 2.5e-3]
    for peak, falling in ((5e-3, 5), (2e-3, 5)):
        expected += list(peak * (1 + np.cos(np.pi * np.arange(falling) / falling)) / 2)
    np.testing.assert_allclose([line["learning_rate"] for line in lines], expected, rtol=1e-5)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config("stopped"), callbacks=[Stop(5)])
    pretrain(config("stopped"))
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
