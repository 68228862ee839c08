"""A vocabulary's pieces as a double-array trie: every step is two array look-ups."""

import itertools
from collections.abc import Mapping

import numpy as np


class PieceTrie:
    """A trie over words' first pieces and one over their continuations, in the same arrays.

    From `state`, the character with code `code` leads to `target = bases[state] + code`, provided that
    `parents[target] == state`. A piece ends at a state where `piece_ids` is not -1.

    Args:
        starts: dict from the pieces that may start a word to their ids.
        continuations: dict from those that may go on inside a word, without their prefix, to their ids.

    Attributes:
        start_root, continuation_root: ints, the states that walks begin in.
        codes: dict from character to code, counted from 1; code 0 leads nowhere.
        bases, parents, piece_ids, depths: int32 arrays, one entry per state; the depth of a state is the number of
            characters walked to reach it.
    """

    start_root = 0
    continuation_root = 1

    def __init__(self, starts: Mapping[str, int], continuations: Mapping[str, int]) -> None:
        characters = sorted({char for pieces in (starts, continuations) for piece in pieces for char in piece})
        self.codes = {char: code for code, char in enumerate(characters, start=1)}
        children, ids = self._nodes(starts, continuations)
        self._place(children, ids)

    def _nodes(
        self, starts: Mapping[str, int], continuations: Mapping[str, int]
    ) -> tuple[list[dict[int, int]], list[int]]:
        """Returns, for each node, its children by code and the id of the piece that ends there (or -1)."""
        children: list[dict[int, int]] = [{}, {}]
        ids = [-1, -1]
        for root, pieces in ((self.start_root, starts), (self.continuation_root, continuations)):
            for piece, piece_id in pieces.items():
                node = root
                for char in piece:
                    code = self.codes[char]
                    if code not in children[node]:
                        children[node][code] = len(children)
                        children.append({})
                        ids.append(-1)
                    node = children[node][code]
                if node != root:
                    ids[node] = piece_id
        return children, ids

    def _place(self, children: list[dict[int, int]], ids: list[int]) -> None:
        """Gives every node a place in the arrays, so that siblings lie `base + code` apart from one base."""
        width = len(self.codes) + 1
        taken = bytearray(len(children) + width)
        taken[self.start_root] = taken[self.continuation_root] = 1
        place = {self.start_root: self.start_root, self.continuation_root: self.continuation_root}
        base_of: dict[int, int] = {}
        # The widest nodes first, while there is room; those with one child fill the gaps. Nodes of one width are
        # placed in a single sweep: what one did not fit into is not tried again for the next.
        parents_by_width = sorted(
            (node for node in range(len(children)) if children[node]), key=lambda n: -len(children[n])
        )
        for _, nodes in itertools.groupby(parents_by_width, key=lambda node: len(children[node])):
            spot = 2
            for node in nodes:
                first, *others = sorted(children[node])
                while True:
                    spot = taken.find(0, max(spot, first))
                    if not any(taken[spot - first + code] for code in others):
                        break
                    spot += 1
                base_of[node] = base = spot - first
                for code, child in children[node].items():
                    taken[base + code] = 1
                    place[child] = base + code
                spot += 1
                taken.extend(bytes(max(0, base + 2 * width - len(taken))))
        used = max(place.values()) + width  # so that base + code is always inside
        bases, parents, piece_ids = (np.full(used, fill, np.int32) for fill in (0, -1, -1))
        depths = np.zeros(used, np.int32)
        for node, base in sorted(base_of.items()):  # parents have lower numbers than their children
            bases[place[node]] = base
            for child in children[node].values():
                parents[place[child]] = place[node]
                depths[place[child]] = depths[place[node]] + 1
        for node, piece_id in enumerate(ids):
            piece_ids[place[node]] = piece_id
        self.bases, self.parents, self.piece_ids, self.depths = bases, parents, piece_ids, depths
