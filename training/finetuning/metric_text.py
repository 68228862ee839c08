"""Metrics in words: a sentence of numbers, and a table for those that each class has."""

import math
from collections.abc import Mapping
from typing import Any

from ..corpus.wording import shown

_HUGE = 1e6


def metric_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Returns the lines that say metrics: first the numbers, then a table for each metric of classes.

    Args:
        metrics: by name, numbers (None where one is not defined) or dicts of numbers, or of dicts of them, by class.
    """
    numbers = {name: value for name, value in metrics.items() if not isinstance(value, Mapping)}
    lines = [", ".join(f"{words(name)} {number_text(value)}" for name, value in numbers.items())] if numbers else []
    for name, values in metrics.items():
        if isinstance(values, Mapping) and values:
            lines += [f"{words(name).capitalize()}:", *_table(values)]
    return lines


def number_text(value: Any) -> str:
    """Returns a number with four decimals, or five digits of a huge one; a whole one as it is.

    None is "not defined".
    """
    if value is None:
        return "not defined"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "not finite"
        return f"{value:.4f}" if abs(value) < _HUGE else f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def metric_columns(values: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Returns the names of the columns of a metric of classes, and the name and cells of each row."""
    rows = {str(name): value if isinstance(value, Mapping) else {"value": value} for name, value in values.items()}
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    return (
        [words(column) for column in columns],
        [(shown(name), [number_text(row[c]) if c in row else "–" for c in columns]) for name, row in rows.items()],
    )


def _table(values: Mapping[str, Any]) -> list[str]:
    columns, rows = metric_columns(values)
    first = max(len(name) for name, _ in rows)
    widths = [max(len(cells[i]) for cells in (columns, *(cells for _, cells in rows))) for i in range(len(columns))]
    return [
        "  ".join([f"  {name:<{first}}", *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))])
        for name, cells in (("", columns), *rows)
    ]


def words(name: str) -> str:
    """Returns the name of a metric or a setting in words."""
    return name.replace("_", " ")
