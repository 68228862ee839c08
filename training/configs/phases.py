"""Settings of the stretches that a run consists of."""

import dataclasses
from typing import Any

from keras_bert_impl.errors import InputError

from .settings import Settings, setting

# TensorFlow counts both in 32 bits.
MOST_STEPS = 2_000_000_000
MOST_ROWS = 2**24


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseConfig(Settings):
    """One stretch of pretraining at one sequence length."""

    length: int = setting(help="sequence length, in tokens")
    share: float | None = setting(None, help="share of all steps; in every phase, or `steps` in every phase")
    steps: int | None = setting(None, help="its number of steps")
    batch_size: int | None = setting(None, help="rows per step over all replicas; the run's when not given")
    learning_rate: float | None = setting(
        None, help="highest learning rate; the run's when not given. Needs a `schedule_span` of phase"
    )
    warmup_steps: int | None = setting(
        None, help="steps of its warm-up; the run's when not given. Needs a `schedule_span` of phase"
    )
    packed: bool | None = setting(
        None, help="whether a row holds several examples; when not given, from length 256 on, save for TFRecord files"
    )
    bucketed: bool = setting(
        False, help="whether examples of similar length share a batch, cut to its longest; not with packed"
    )

    def __post_init__(self) -> None:
        for name in ("length", "steps", "batch_size"):
            value = getattr(self, name)
            if (name == "length" or value is not None) and (type(value) is not int or value < 1):
                raise InputError(f"`phases` must have a whole number from 1 on as {name}. Received: {name}={value!r}")
        if self.warmup_steps is not None and (type(self.warmup_steps) is not int or self.warmup_steps < 0):
            raise InputError(
                "`phases` must have a whole number from 0 on as warmup_steps. "
                f"Received: warmup_steps={self.warmup_steps!r}"
            )
        for name in ("share", "learning_rate"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not 0 < value < float("inf")):
                raise InputError(f"`phases` must have a positive number as {name}. Received: {name}={value!r}")
        if (self.share is None) == (self.steps is None):
            raise InputError(
                f"`phases` must have either share or steps. Received: share={self.share!r}, steps={self.steps!r}"
            )
        if self.packed not in (None, True, False) or self.bucketed not in (True, False):
            name = "packed" if self.packed not in (None, True, False) else "bucketed"
            raise InputError(f"`phases` must have true or false as {name}. Received: {name}={getattr(self, name)!r}")
        if self.packed and self.bucketed:
            raise InputError("`phases` must not be both packed and bucketed. Received: packed=True, bucketed=True")
        for name, most in (("steps", MOST_STEPS), ("warmup_steps", MOST_STEPS), ("batch_size", MOST_ROWS)):
            if (getattr(self, name) or 0) > most:
                raise InputError(
                    f"`phases` must have at most {most} as {name}. Received: {name}={getattr(self, name)!r}"
                )


DEFAULT_PHASES = (PhaseConfig(length=128, share=0.9), PhaseConfig(length=512, share=0.1))


def to_phase(value: Any) -> PhaseConfig:
    """Returns the phase that a mapping describes."""
    if isinstance(value, PhaseConfig):
        return value
    if not isinstance(value, dict):
        known = ", ".join(field.name for field in dataclasses.fields(PhaseConfig))
        raise InputError(f"`phases` must be a list of {{{known}}}. Received: {value!r}")
    return PhaseConfig.from_dict(value, name="phases")


def check_phases(phases: tuple[PhaseConfig, ...], steps: int | None) -> None:
    """Raises `InputError` unless the phases divide the run: shares that add up to 1, or each its steps."""
    if not phases:
        raise InputError("`phases` must be one or more. Received: phases=()")
    given = [phase.steps for phase in phases]
    if all(count is None for count in given):
        shares = [phase.share for phase in phases]
        if abs(sum(share or 0 for share in shares) - 1) > 1e-6:
            raise InputError(f"`phases` must have shares that add up to 1. Received: shares={shares}")
    elif any(count is None for count in given):
        raise InputError(f"`phases` must all have steps, or all have share. Received: steps={given}")
    elif sum(count or 0 for count in given) > MOST_STEPS:
        raise InputError(f"`phases` must have at most {MOST_STEPS} steps in all. Received: steps={given}")
    elif steps is not None and steps != sum(count or 0 for count in given):
        raise InputError(
            f"`steps` must be the sum of those of the phases, {given}: give `phases` with other steps, or null as "
            f"`steps`, `--steps null`, for their sum. Received: steps={steps}"
        )
