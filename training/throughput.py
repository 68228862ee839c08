"""How fast a run is: examples and tokens a second, the share of time spent waiting, and of the devices' peak."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from .step_function import InputClock

Counts = Mapping[str, float]

RATES = ("examples_per_second", "tokens_per_second", "input_wait_share", "model_flops_utilisation")
"""The names of the figures, as in `metrics.jsonl`."""


class Throughput:
    """Takes the time of stretches of steps.

    The clock stands still until `start`, so that a compilation, an evaluation or a checkpoint before it is left out.

    Args:
        input_clock: what the steps' waiting is measured by.
        flops: from the counts of some steps to the floating-point operations they need.
        peak: floating-point operations a second of all replicas at most.
    """

    def __init__(self, input_clock: InputClock, flops: Callable[[Counts], float], peak: float) -> None:
        self.input_clock = input_clock
        self.flops = flops
        self.peak = peak
        self._start: tuple[float, int] | None = None

    @property
    def runs(self) -> bool:
        """Whether the clock has been started."""
        return self._start is not None

    def start(self, step: int) -> None:
        """Starts anew after a step."""
        self.input_clock.reset()
        self._start = time.perf_counter(), step

    def rates(self, step: int, counts: Counts, steps: int) -> dict[str, Any]:
        """Returns the figures from the start up to a step, each None if no step was made since.

        Args:
            step: steps done.
            counts: `tokens`, `examples` and `mlm_weight` of the last steps.
            steps: how many steps the counts are of; they may have begun before the clock.
        """
        since, at = self._start or (0.0, step)
        if step <= at:
            return dict.fromkeys(RATES)
        seconds = time.perf_counter() - since
        timed = (step - at) / steps / seconds
        rates = (
            counts["examples"] * timed,
            counts["tokens"] * timed,
            min(1.0, self.input_clock.seconds() / seconds),
            self.flops(counts) * timed / self.peak,
        )
        return dict(zip(RATES, rates, strict=True))
