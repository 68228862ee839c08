"""Learning rate by step."""

from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
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
        super().__init__()
        if not peak > 0:
            raise InputError(f"`peak` must be positive. Received: peak={peak!r}")
        if not 0 <= warmup_steps <= total_steps or total_steps < 1:
            raise InputError(
                "`warmup_steps` must be at least 0 and at most `total_steps`, which must be at least 1. "
                f"Received: warmup_steps={warmup_steps!r}, total_steps={total_steps!r}"
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.name = name

    def __call__(self, step: Any) -> Any:
        """Returns the rate of the update that follows `step` finished ones: a float32 scalar."""
        step = ops.cast(step, "float32")
        rate = self.peak * (1.0 - ops.minimum(step, float(self.total_steps)) / self.total_steps)
        if self.warmup_steps:
            rate = ops.where(step < self.warmup_steps, self.peak * step / self.warmup_steps, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
            "name": self.name,
        }
