"""Several models from several seeds: how they differ, and the best of them."""

import dataclasses
import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..configs import FinetuneConfig
from ..corpus.wording import counted
from .metric_text import words
from .one_run import EVALUATION, MODEL, Bench, as_score, run
from .tasks.warning_text import may_help

# A deviation of more than this share of the mean is luck rather than learning.
_WILD_SHARE = 0.1


@dataclasses.dataclass(frozen=True)
class SeedResults:
    """What came of the seeds of some settings.

    Attributes:
        config: the settings.
        results: what `run` returned, for each seed.
        folders: where each run lies.
    """

    config: FinetuneConfig
    results: tuple[dict[str, Any], ...]
    folders: tuple[Path, ...]

    @property
    def scores(self) -> list[float]:
        """The metric that the best model is chosen by, of each seed."""
        return [as_score(result["metrics"].get(self.config.main_metric)) for result in self.results]

    @property
    def best(self) -> int:
        """The place of the best seed; of equal ones the first."""
        return max(range(len(self.results)), key=lambda place: self.scores[place])

    @property
    def mean(self) -> float:
        """The mean of the scores; minus infinity if one is not defined."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float | None:
        """The sample deviation of the scores; None of a single one, or if one is not defined."""
        defined = all(score > -float("inf") for score in self.scores)
        return statistics.stdev(self.scores) if defined and len(self.scores) > 1 else None

    def keep_best(self) -> None:
        """Takes the models away that are not the best."""
        for place in range(len(self.results)):
            if place != self.best:
                discard(self.folders[place])

    def summary(self) -> dict[str, Any]:
        """Returns mean and deviation, and what came of each seed, as JSON values."""
        mean = None if self.mean == -float("inf") else self.mean
        return {"mean": mean, "deviation": self.deviation, "seeds": list(self.results)}


def run_seeds(bench: Bench, config: FinetuneConfig, folder: Path, prefix: str = "", title: str = "") -> SeedResults:
    """Trains one model for each seed and keeps the best.

    Args:
        bench: what all runs share.
        config: the settings, those of this point of a grid.
        folder: where runs have their directories.
        prefix: of the names of these directories.
        title: what the narration calls these settings; empty without a grid.
    """
    several = len(config.seeds) > 1
    names = [", ".join(filter(None, (title, f"seed {seed}" if several else ""))) for seed in config.seeds]
    results: list[dict[str, Any]] = []
    folders = [folder / f"{prefix}seed-{seed}" for seed in config.seeds]
    for seed, place, name in zip(config.seeds, folders, names, strict=True):
        results.append(run(bench, config, seed, place, name[:1].upper() + name[1:]))
        so_far = SeedResults(config, tuple(results), tuple(folders[: len(results)]))
        so_far.keep_best()
    return so_far


def tell_seeds(found: SeedResults, dev: Sequence[Any]) -> list[str]:
    """Returns the lines that tell what came of several seeds: a table, mean and deviation, warnings."""
    if len(found.results) < 2:
        return []
    if not dev:
        first = found.results[0]["seed"]
        return [f"Without dev examples no seed is better than another; the model of seed {first} is kept."]
    main = words(found.config.main_metric)
    width = max(len(main), 10)
    lines = [f"{'seed':>6}  {main:>{width}}  best epoch"]
    for result, score in zip(found.results, found.scores, strict=True):
        shown = f"{score:.4f}" if score > -float("inf") else "not defined"
        odd = "  (see the warnings)" if result["warnings"] else ""
        lines.append(f"{result['seed']:>6}  {shown:>{width}}  {result['best_epoch']:>10g}{odd}")
    if found.deviation is not None:
        lines.append(f"{'mean':>6}  {found.mean:>{width}.4f}  deviation {found.deviation:.4f}")
    return lines


def seed_warnings(found: SeedResults) -> list[str]:
    """Returns sentences on seeds that went wrong, or differ so much that it is luck which is the best."""
    warnings = []
    odd = [str(result["seed"]) for result in found.results if result["warnings"]]
    if odd and len(found.results) > 1:
        warnings.append(
            f"{counted(len(odd), 'seed')} of {len(found.results)} ended with a model that is odd: {', '.join(odd)}. "
            + may_help("a longer warm-up")
        )
    if found.deviation is not None and found.deviation > _WILD_SHARE * abs(found.mean):
        warnings.append(
            f"The seeds differ much: {words(found.config.main_metric)} from {min(found.scores):.4f} to "
            f"{max(found.scores):.4f}. Which is the best is more luck than merit; more examples or epochs help."
        )
    return warnings


def discard(folder: Path) -> None:
    """Takes the model of a finished run away; what came of it stays."""
    shutil.rmtree(folder / MODEL, ignore_errors=True)
    (folder / EVALUATION).unlink(missing_ok=True)
