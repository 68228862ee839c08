"""Learning rate by step."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError

SHAPES = ("linear", "polynomial", "cosine", "constant")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly from 0, then falls from `peak` to `end` on a line, a power, half a cosine, or not at all.

    Args:
        peak: float. The rate that the warm-up heads for.
        warmup_steps: int. Steps of warm-up; 0 for none.
        total_steps: int. Steps until the rate is `end`, where it stays.
        shape: string. Of what is left of the fall, where `left` falls from 1 to 0: `"linear"`: `left`;
            `"polynomial"`: `left ** power`; `"cosine"`: `(1 - cos(pi * left)) / 2`; `"constant"`: 1.
        power: float. For `"polynomial"`.
        end: float. The rate that the fall ends at.
        decay_from: string. `"start"`: the fall is counted from step 0, as in the original, so that the rate drops
            a little below its line at the end of the warm-up; `"warmup"`: from the end of the warm-up, at `peak`.
        name: string.

    Raises:
        InputError: if a number or a word is not one of those, or the warm-up is longer than the whole.

    Reference:
        optimization.py of google-research/bert, `create_optimizer`; schedulers.py of NVIDIA's BERT for PyTorch,
        `PolyWarmUpScheduler`; [Loshchilov & Hutter, 2016](https://arxiv.org/abs/1608.03983), equation 5.
    """

    def __init__(
        self,
        peak: float,
        warmup_steps: int,
        total_steps: int,
        shape: str = "linear",
        power: float = 1.0,
        end: float = 0.0,
        decay_from: str = "start",
        name: str = "warmup_decay",
    ) -> None:
        super().__init__()
        if not peak > 0:
            raise InputError(f"`peak` must be positive. Received: peak={peak!r}")
        if not 0 <= warmup_steps <= total_steps or total_steps < 1:
            raise InputError(
                "`warmup_steps` must be at least 0 and at most `total_steps`, which must be at least 1. "
                f"Received: warmup_steps={warmup_steps!r}, total_steps={total_steps!r}"
            )
        if shape not in SHAPES:
            raise InputError(f"`shape` must be {', '.join(SHAPES[:-1])} or {SHAPES[-1]}. Received: shape={shape!r}")
        if not power > 0:
            raise InputError(f"`power` must be positive. Received: power={power!r}")
        if not 0 <= end <= peak:
            raise InputError(f"`end` must be at least 0 and at most `peak`, {peak}. Received: end={end!r}")
        if decay_from not in ("start", "warmup"):
            raise InputError(f"`decay_from` must be start or warmup. Received: decay_from={decay_from!r}")
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.shape = shape
        self.power = power
        self.end = end
        self.decay_from = decay_from
        self.name = name

    def __call__(self, step: Any) -> Any:
        """Returns the rate of the update that follows `step` finished ones: a float32 scalar."""
        step = ops.cast(step, "float32")
        first = self.warmup_steps if self.decay_from == "warmup" else 0
        done = ops.maximum(ops.minimum(step, float(self.total_steps)) - first, 0.0)
        left = 1.0 - done / max(self.total_steps - first, 1)
        rate = self.end + (self.peak - self.end) * self._share(left)
        if self.warmup_steps:
            rate = ops.where(step < self.warmup_steps, self.peak * step / self.warmup_steps, rate)
        return rate

    def _share(self, left: Any) -> Any:
        if self.shape == "polynomial":
            return ops.power(left, self.power)
        if self.shape == "cosine":
            return (1.0 - ops.cos(math.pi * left)) / 2
        return left if self.shape == "linear" else ops.ones_like(left)

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "shape": self.shape,
            "power": self.power,
            "end": self.end,
            "decay_from": self.decay_from,
            "name": self.name,
        }


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LinearWarmupDecay(WarmupDecay):
    """Rises linearly from 0, then falls linearly to 0, as in the original.

    The fall is counted from step 0, not from the end of the warm-up: the rate drops slightly below
    its line at `warmup_steps`, and is 0 from `total_steps` on.

    Args:
        peak: float. The rate that the warm-up heads for.
        warmup_steps: int. Steps of warm-up; 0 for none.
        total_steps: int. Steps until the rate is 0.
        name: string.

    Raises:
        InputError: if the peak is not positive or the warm-up is longer than the whole.

    Reference:
        optimization.py of google-research/bert, `create_optimizer`.
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int, name: str = "linear_warmup_decay") -> None:
        super().__init__(peak, warmup_steps, total_steps, name=name)

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {name: getattr(self, name) for name in ("peak", "warmup_steps", "total_steps", "name")}


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PhasedSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Schedules one after the other, each counting its own steps from 0.

    Args:
        schedules: list of `LearningRateSchedule`, one for each phase.
        last_steps: list of ints, rising: the step that each phase ends with. After the last one, the last
            schedule goes on.
        name: string.

    Raises:
        InputError: if there are no phases, or not as many steps as schedules, or these do not rise.
    """

    def __init__(self, schedules: Sequence[Any], last_steps: Sequence[int], name: str = "phased_schedule") -> None:
        super().__init__()
        if not schedules:
            raise InputError("`schedules` must be one or more. Received: schedules=[]")
        if len(schedules) != len(last_steps):
            raise InputError(
                f"`last_steps` must be as many as the schedules, {len(schedules)}. "
                f"Received: last_steps={list(last_steps)}"
            )
        if any(first >= last for first, last in itertools.pairwise([0, *last_steps])):
            raise InputError(f"`last_steps` must be positive and rise. Received: last_steps={list(last_steps)}")
        self.schedules = list(schedules)
        self.last_steps = list(last_steps)
        self.name = name

    def __call__(self, step: Any) -> Any:
        """Returns the rate of the update that follows `step` finished ones: a float32 scalar."""
        step = ops.cast(step, "float32")
        rate: Any = None
        # From behind: an earlier phase takes the place of the later ones up to where it ends.
        for schedule, first, last in reversed(
            list(zip(self.schedules, [0, *self.last_steps[:-1]], self.last_steps, strict=True))
        ):
            of_phase = schedule(ops.maximum(step - first, 0.0))
            rate = of_phase if rate is None else ops.where(step < last, of_phase, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        serialize = keras.optimizers.schedules.serialize
        return {
            "schedules": [serialize(schedule) for schedule in self.schedules],
            "last_steps": self.last_steps,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PhasedSchedule":
        """Builds the schedule from what `get_config` returned."""
        schedules = [keras.optimizers.schedules.deserialize(schedule) for schedule in config["schedules"]]
        return cls(**{**config, "schedules": schedules})
