"""The optimizer and the learning rate that a run's settings describe."""

import dataclasses
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.optimizers.bert_optimizer import BertOptimizer
from keras_bert_impl.schedules import PhasedSchedule, WarmupDecay

from .configs import PretrainConfig
from .phases import plan_phases

Schedule = WarmupDecay | PhasedSchedule


def with_learning_rates(config: PretrainConfig) -> PretrainConfig:
    """Returns the configuration with every warm-up and, where each phase has a schedule, its learning rate.

    A phase takes the run's where it has none; a warm-up that neither has is 1 % of the steps.

    Raises:
        InputError: if a warm-up is longer than what it warms up for, or a phase's rate less than the last one.
    """
    share_of_run = config.total_steps // 100 if config.warmup_steps is None else config.warmup_steps
    if config.schedule_span == "run":
        _check_warmup(share_of_run, config.total_steps, "the run")
        return dataclasses.replace(config, warmup_steps=share_of_run)
    phases = []
    for planned, phase in zip(plan_phases(config), config.phases, strict=True):
        steps = planned.last_step - planned.first_step
        of_run = steps // 100 if config.warmup_steps is None else config.warmup_steps
        warmup_steps = of_run if phase.warmup_steps is None else phase.warmup_steps
        _check_warmup(warmup_steps, steps, f"phase {planned.number}")
        rate = phase.learning_rate or config.learning_rate
        if rate < config.end_learning_rate:
            raise InputError(
                f"`end_learning_rate` must not be more than the learning rate of phase {planned.number}, {rate}. "
                f"Received: end_learning_rate={config.end_learning_rate}"
            )
        phases.append(dataclasses.replace(phase, learning_rate=rate, warmup_steps=warmup_steps))
    return dataclasses.replace(config, warmup_steps=share_of_run, phases=tuple(phases))


def make_schedule(config: PretrainConfig) -> Schedule:
    """Returns the learning rate by step that the settings describe.

    Args:
        config: the settings, of `with_learning_rates`.
    """
    if config.schedule_span == "run":
        return _schedule(config, config.learning_rate, config.warmup_steps or 0, config.total_steps)
    phases = plan_phases(config)
    schedules = [
        _schedule(config, phase.learning_rate or 0, phase.warmup_steps or 0, planned.last_step - planned.first_step)
        for planned, phase in zip(phases, config.phases, strict=True)
    ]
    return PhasedSchedule(schedules, [planned.last_step for planned in phases])


def make_optimizer(config: PretrainConfig, learning_rate: Schedule) -> BertOptimizer:
    """Returns the optimizer that the settings describe."""
    settings: dict[str, Any] = {
        "weight_decay": config.weight_decay,
        "beta_1": config.beta_1,
        "beta_2": config.beta_2,
        "epsilon": config.epsilon,
        "bias_correction": config.bias_correction,
        "global_clipnorm": config.clip_norm or None,
        "not_decayed": config.not_decayed,
        "layer_decay": config.layer_decay,
    }
    if config.optimizer == "lamb":
        return BertLamb(learning_rate, trust_ratio=config.trust_ratio or "decayed", **settings)
    return BertAdamW(learning_rate, **settings)


def _schedule(config: PretrainConfig, peak: float, warmup_steps: int, steps: int) -> WarmupDecay:
    return WarmupDecay(
        peak,
        warmup_steps,
        steps,
        shape=config.schedule,
        power=config.schedule_power,
        end=config.end_learning_rate,
        decay_from=config.decay_from,
    )


def _check_warmup(warmup_steps: int, steps: int, what: str) -> None:
    if warmup_steps > steps:
        raise InputError(
            f"`warmup_steps` must be at most the steps of {what}, {steps}. Received: warmup_steps={warmup_steps}"
        )
