"""Everything that may be wrong in a JSON file, one fault at a time."""

import copy
import json
from collections.abc import Iterator
from typing import Any

_VALUES = [None, True, 0, -1, 3.5, float("inf"), "x", "", [], [1], {}, {"a": 1}, [[]], [{}], "\ud800", 2**70]
_TEXTS = ["", "{", "[" * 100_000, '{"a":' * 5_000, "nul", "NaN", '"x"', "[]", "1"]


def faults_of(content: dict[str, Any]) -> Iterator[str]:
    """Yields texts of the content with a value of every kind in place of each of its own, with each left out, and such
    as are no JSON or no object."""
    yield from _TEXTS
    for path in _paths(content):
        *above, last = path
        for value in [*_VALUES, _paths]:
            changed = copy.deepcopy(content)
            place: Any = changed
            for key in above:
                place = place[key]
            if value is _paths:
                del place[last]
            else:
                place[last] = value
            yield json.dumps(changed)


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from _paths(item, (*above, key))
