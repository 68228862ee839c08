"""JSON knows no NaN and no infinity: what is not finite is written as null."""

import math
from typing import Any


def finite_or_none(value: Any) -> Any:
    """Returns a JSON value in which None takes the place of every number that is not finite."""
    if isinstance(value, dict):
        return {name: finite_or_none(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
