"""One line of the table, and the clock behind it."""

import dataclasses
import random
import statistics
import time
from collections.abc import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Row:
    """A figure of ours beside a peer's, and the bound that their ratio must keep.

    Args:
        what: what was done.
        unit: unit of both figures.
        ours: our figure.
        peer: whose figure stands beside it.
        theirs: that figure; None when there is but a bound.
        bound: largest (or, with `more_is_better`, smallest) ratio ours / theirs, or figure when there is no peer.
        more_is_better: whether the figures are rates rather than times.
    """

    what: str
    unit: str
    ours: float
    peer: str = ""
    theirs: float | None = None
    bound: float | None = None
    more_is_better: bool = False

    @property
    def ratio(self) -> float:
        """Ours over theirs; ours itself without a peer."""
        return self.ours / self.theirs if self.theirs else self.ours

    @property
    def verdict(self) -> str:
        """Whether the bound is kept, in a word."""
        if self.bound is None:
            return ""
        kept = self.ratio >= self.bound if self.more_is_better else self.ratio <= self.bound
        return "kept" if kept else "MISSED"


def interleaved(contenders: Sequence[Callable[[], object]], rounds: int = 7) -> list[float]:
    """Returns each contender's median seconds over rounds in which they take turns; the first round warms up.

    Every round has another order: what one leaves in the caches, the next finds there.
    """
    seconds: list[list[float]] = [[] for _ in contenders]
    order, choose = list(range(len(contenders))), random.Random(1)
    for round_ in range(rounds + 1):
        choose.shuffle(order)
        for number in order:
            started = time.perf_counter()
            contenders[number]()
            if round_:
                seconds[number].append(time.perf_counter() - started)
    return [statistics.median(measured) for measured in seconds]
