"""Arrays of strings as nested lists."""

from collections.abc import Callable
from typing import Any

import numpy as np


def nested_values(array: np.ndarray, value_of: Callable[[bytes], Any]) -> Any:
    """Returns what `value_of` makes of each string of an array of objects, in lists as deep as its shape."""
    values = np.empty(array.size, object)
    values[:] = [value_of(string) for string in array.ravel()]
    return values.reshape(array.shape).tolist()
