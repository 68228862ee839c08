"""Keys and their numbers as a double array, the trie that tensorflow-text's operators read."""

from collections.abc import Mapping

import numpy as np

_HAS_LEAF, _LEAF = 1 << 8, 1 << 31
_OFFSET_SHIFT = 10
_MOST_UNITS = 1 << 21
_LABELS = 256
_MANY = 4


def double_array(values: Mapping[bytes, int]) -> np.ndarray:
    """Returns a trie in one array of units, in which every byte of a key is one look-up.

    Unit `n` has the label of the edge that leads to it in its lowest 8 bits; then whether a key ends there; and above
    bit 10 a number that gives, with `n`, by exclusive or the place of its children: there, by exclusive or with their
    labels, they stand, and at the place itself is the number of the key that ends.

    Args:
        values: by key, not empty and without zero bytes, a number less than 2**31.

    Returns:
        uint32, `(units,)`; a multiple of 256.

    Raises:
        ValueError: if a key or a number cannot be stored, or there are too many of them.

    Reference:
        [Aoe, 1989](https://doi.org/10.1109/32.31365).
    """
    for key, value in values.items():
        if not key or 0 in key or not 0 <= value < _LEAF:
            raise ValueError(f"`values` must be of keys without zero bytes. Received: {key!r}: {value!r}")
    layout = _Layout()
    children: dict[bytes, list[int]] = {b"": []}
    for key in sorted(values):
        for end in range(1, len(key) + 1):
            if key[:end] not in children:
                children[key[:end]] = []
                children[key[: end - 1]].append(key[end - 1])
    places = {b"": 0}
    # Parents come before their children, and those with many children before those with few.
    for prefix in sorted(children, key=lambda prefix: (len(prefix), -len(children[prefix]), prefix)):
        number = values.get(prefix)
        labels = children[prefix]
        if number is not None or labels:
            base = layout.place(labels, number)
            layout.connect(places[prefix], base, number is not None)
        for label in labels:
            places[prefix + bytes([label])] = base ^ label
            layout.units[base ^ label] |= label
    return layout.array()


class _Layout:
    """Units, and which of them are taken."""

    def __init__(self) -> None:
        self.units = [0] * _LABELS
        self._taken = [False] * _LABELS
        self._taken[0] = True
        self._bases: set[int] = set()
        self._leaves: dict[int, int] = {}
        self._next = self._next_for_many = 1

    def place(self, labels: list[int], value: int | None) -> int:
        """Takes the places of a unit's children, which no other unit's may seem to be; returns their base."""
        if not labels and value in self._leaves:
            return self._leaves[value]
        wanted = [*([0] if value is not None else []), *labels]
        # Where many found no room before, they would find none again.
        first = self._next_for_many if len(wanted) > _MANY else self._first_free()
        for taken_first in range(first, _MOST_UNITS):
            base = taken_first ^ wanted[0]
            while (taken_first | _LABELS - 1) >= len(self.units):
                self.units += [0] * _LABELS
                self._taken += [False] * _LABELS
            if base not in self._bases and not any(self._taken[base ^ label] for label in wanted):
                break
        else:
            raise ValueError(f"`values` must fit into {_MOST_UNITS:,} units. Received: more")
        for label in (0, *wanted):
            self._taken[base ^ label] = True
        self._bases.add(base)
        if len(wanted) > _MANY:
            self._next_for_many = taken_first
        if value is not None:
            self.units[base] = _LEAF | value
            if not labels:
                self._leaves[value] = base
        return base

    def connect(self, unit: int, base: int, has_leaf: bool) -> None:
        """Says in a unit where its children are."""
        self.units[unit] |= (unit ^ base) << _OFFSET_SHIFT | (_HAS_LEAF if has_leaf else 0)

    def array(self) -> np.ndarray:
        return np.array(self.units, np.uint32)

    def _first_free(self) -> int:
        while self._next < len(self._taken) and self._taken[self._next]:
            self._next += 1
        return self._next
