"""Every combination of some settings, through Optuna's sampler of grids."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..configs import FinetuneConfig
from .metric_text import words
from .one_run import Bench, DivergedError
from .seeds import SeedResults, discard, run_seeds

Values = dict[str, Any]


def run_grid(bench: Bench, config: FinetuneConfig, folder: Path) -> tuple[SeedResults, list[dict[str, Any]]]:
    """Trains a model for each seed of every combination, and keeps the best of the combination with the best mean.

    Args:
        bench: what all runs share.
        config: the settings, with a grid.
        folder: where runs have their directories.

    A combination of which too many steps were not finite is given up.

    Returns:
        A tuple: the seeds of the best combination, of equal ones the first; and for each combination, in the order they
        were tried, a dict of `values`, `mean`, `deviation` and `seeds`.

    Raises:
        DivergedError: if every combination was given up.
    """
    # Twice the same value is tried once.
    grid = {name: list(dict.fromkeys(values)) for name, values in (config.grid or {}).items()}
    points = math.prod(map(len, grid.values()))
    tried: list[tuple[Values, SeedResults | DivergedError]] = []

    def try_out(values: Values) -> float:
        number = len(tried) + 1
        said = ", ".join(f"{words(name)} {value:g}" for name, value in values.items())
        bench.say(f"Point {number} of {points}: {said}")
        of_point = dataclasses.replace(config, grid=None, **values)
        try:
            found = run_seeds(bench, of_point, folder, f"point-{number:03d}-", f"point {number}")
        except DivergedError as error:
            bench.say(f"Warning: Point {number} is given up. {error}.")
            tried.append((values, error))
            return -math.inf
        if (best := _best(tried)) is not None:
            loser = best if found.mean > best.mean else found
            for place in loser.folders:
                discard(place)
        tried.append((values, found))
        return found.mean

    _visit(grid, points, try_out)
    if (best := _best(tried)) is None:
        raise next(found for _, found in tried if isinstance(found, DivergedError))
    return best, [{"values": values, **_summary(found)} for values, found in tried]


def tell_grid(points: list[dict[str, Any]], metric: str) -> list[str]:
    """Returns the lines of a table of all combinations, the best first."""
    names = list(points[0]["values"])
    measured = ["mean", "deviation"] if any(point["deviation"] is not None for point in points) else ["mean"]
    header = [*map(words, names), words(metric), *measured[1:]]
    rows = [
        [
            *(f"{point['values'][name]:g}" for name in names),
            *("" if point[name] is None else f"{point[name]:.4f}" for name in measured),
        ]
        for point in ranked(points)
    ]
    widths = [max(len(cells[i]) for cells in (header, *rows)) for i in range(len(header))]
    return [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) for cells in (header, *rows)
    ]


def ranked(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the combinations, the best first and those that were given up last."""
    return sorted(points, key=lambda point: -math.inf if point["mean"] is None else point["mean"], reverse=True)


def _summary(found: SeedResults | DivergedError) -> dict[str, Any]:
    if isinstance(found, SeedResults):
        return found.summary()
    return {"mean": None, "deviation": None, "seeds": [], "given_up": str(found)}


def _best(tried: list[tuple[Values, SeedResults | DivergedError]]) -> SeedResults | None:
    """Returns the first of the best points that were not given up."""
    return max(
        (found for _, found in tried if isinstance(found, SeedResults)), key=lambda found: found.mean, default=None
    )


def _visit(grid: dict[str, list[Any]], points: int, try_out: Callable[[Values], float]) -> None:
    """Calls a function with every combination, in the order in which the values are listed."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.GridSampler(grid, seed=0))

    def objective(trial: optuna.Trial) -> float:
        value = try_out({name: trial.suggest_categorical(name, values) for name, values in grid.items()})
        return value if math.isfinite(value) else -1e30

    for values in itertools.product(*grid.values()):
        study.enqueue_trial(dict(zip(grid, values, strict=True)))
    study.optimize(objective, n_trials=points)
