"""Which words are masked: whole words, or runs of them, within the budget of each row.

All rows of a batch are worked on together. What is gone through one by one is the candidates of each row in their
random order: the first candidates of all rows, then the second ones, and so on.
"""

import math
from typing import NamedTuple

import numpy as np

from .hashing import as_below, mix

_POSITION = np.uint64(0xFFFF)  # Rows have at most 65,535 tokens.
_LAST = np.uint64(2**64 - 1)
_RUN, _RUN_STEP = np.uint64(0xC3C3C3C3C3C3C3C3), np.uint64(0x9E3779B97F4A7C15)


class Runs(NamedTuple):
    """Runs of words that are masked, in the order in which each row took them; int64 arrays (runs,).

    Attributes:
        rows: the row of each run.
        starts: its first position.
        ends: the position after its last one.
        words: how many words it has.
    """

    rows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    words: np.ndarray

    def painted(self, shape: tuple[int, int]) -> np.ndarray:
        """Returns which positions lie in a run, bool of the shape of the rows."""
        count, length = shape
        edges = np.zeros((count, length + 1), np.int8)
        # No two runs of a row begin or end at one place, but one may begin where another ends.
        edges[self.rows, self.starts] = 1
        edges[self.rows, self.ends] -= 1
        return np.cumsum(edges, axis=1, dtype=np.int8)[:, :length].astype(bool)


def run_lengths(of_row: np.ndarray, count: int, max_ngram: int) -> np.ndarray:
    """Returns how many words the first `count` runs of rows shall have, int64 (rows, count).

    Each is drawn for itself, n from 1 to `max_ngram` with a probability in proportion to 1/n.

    Args:
        of_row: a hash for each row.
        count: number of runs.
        max_ngram: most words of a run.

    Reference:
        [Lan et al., 2019](https://arxiv.org/abs/1909.11942), section 4.1.
    """
    parts = math.lcm(*range(1, max_ngram + 1))
    limits = np.cumsum([parts // words for words in range(1, max_ngram + 1)])
    of_run = np.arange(count, dtype=np.uint64) * _RUN_STEP
    drawn = as_below(mix(mix(of_row ^ _RUN)[:, None] + of_run), int(limits[-1]))
    return 1 + np.searchsorted(limits, drawn, side="right")


def draw_runs(
    numbers: np.ndarray, ordinary: np.ndarray, continues: np.ndarray, budgets: np.ndarray, lengths: np.ndarray
) -> Runs:
    """Chooses runs of whole words until the budget of each row is used up.

    The words of a row come in the order of the numbers of their first positions. The next run begins with the
    first word from which it has room: all its words lie in one part, none is taken already, and together they
    do not overrun the budget. A word from which it has no room is passed over. Of a run that is longer than what
    is left of the budget only so many words are wanted. Where runs of the lengths drawn have no room any more,
    single words fill the rest.

    Args:
        numbers: uint64 (rows, length), random ones.
        ordinary: bool (rows, length), the tokens that may be chosen.
        continues: bool (rows, length), tokens that continue the word of the token before them.
        budgets: int64 (rows,), most tokens to choose.
        lengths: int64 (rows, at least the largest budget), words of each row's runs.
    """
    return _Drawing(numbers, ordinary, continues, budgets).runs(lengths)


class _Drawing:
    """One batch: its words, and what is left of them and of the budgets.

    Every array of positions has one place more than the rows, where nothing stands, and is flat, since the
    loops gather from it at single positions.
    """

    def __init__(self, numbers: np.ndarray, ordinary: np.ndarray, continues: np.ndarray, budgets: np.ndarray) -> None:
        count, length = ordinary.shape
        self.width = length + 1
        after = np.full((count, self.width), length, np.int32)
        beginnings = np.where(continues, np.int32(length), np.arange(length, dtype=np.int32))
        after[:, :-2] = np.minimum.accumulate(beginnings[:, :0:-1], axis=1)[:, ::-1]
        tokens_before = np.zeros((count, self.width), np.int32)
        np.cumsum(ordinary, axis=1, out=tokens_before[:, 1:])
        free = np.zeros((count, self.width), bool)
        free[:, :-1] = ~continues & (np.take_along_axis(tokens_before, after, axis=1) > tokens_before)[:, :-1]

        # The position in the last bits: sorting numbers is far quicker than sorting an index by them.
        keys = np.where(free[:, :-1], (numbers & ~_POSITION) | np.arange(length, dtype=np.uint64), _LAST)
        keys.sort(axis=1)
        self.order = (keys & _POSITION).astype(np.int64)
        self.words = free.sum(axis=1)
        self.after, self.tokens_before, self.free = after.ravel(), tokens_before.ravel(), free.ravel()
        self.left = budgets.astype(np.int64)
        self.drawn: list[Runs] = []

    def runs(self, lengths: np.ndarray) -> Runs:
        self._sweep(lengths)
        if lengths.size and lengths.max() > 1:
            self._sweep(np.ones_like(lengths))
        if not self.drawn:
            return Runs(*np.zeros((4, 0), np.int64))
        return Runs(*map(np.concatenate, zip(*self.drawn, strict=True)))

    def _sweep(self, lengths: np.ndarray) -> None:
        """Offers every word to its row once."""
        number_of_runs = np.zeros(self.left.size, np.int64)
        rows = np.arange(self.left.size)
        for rank in range(self.order.shape[1]):
            rows = rows[(self.left[rows] > 0) & (self.words[rows] > rank)]
            if not rows.size:
                break
            found = self._fitting(rows, self.order[rows, rank], lengths[rows, number_of_runs[rows]])
            if found.rows.size:
                self.drawn.append(found)
                self.left[found.rows] -= self._tokens(found.rows, found.starts, found.ends)
                number_of_runs[found.rows] += 1
                self._take(found)

    def _fitting(self, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Runs:
        """Returns the runs of those rows that have room for one from `starts` on."""
        words = np.minimum(lengths, self.left[rows])
        fits = np.ones(rows.size, bool)
        ends = starts.copy()
        for number in range(int(words.max())):
            wanted = words > number
            places = rows * self.width + ends
            fits &= self.free[places] | ~wanted
            ends = np.where(wanted, self.after[places], ends)
        fits &= self._tokens(rows, starts, ends) <= self.left[rows]
        return Runs(rows[fits], starts[fits], ends[fits], words[fits])

    def _take(self, found: Runs) -> None:
        starts = found.starts
        for number in range(int(found.words.max())):
            places = found.rows * self.width + starts
            self.free[places[found.words > number]] = False
            starts = self.after[places]

    def _tokens(self, rows: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        base = rows * self.width
        return self.tokens_before[base + ends] - self.tokens_before[base + starts]
