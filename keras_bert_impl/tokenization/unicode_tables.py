"""The Unicode data that tokenization rests on, frozen at version 14.0.0.

Python's `unicodedata` changes with the Python version, ICU's and RE2's with the TensorFlow build, and
lower-casing in C with the locale. So the package carries its own tables, and every form of the tokenizer
reads these and nothing else. `make_unicode_tables.py` wrote them.
"""

import functools
from pathlib import Path

import numpy as np

UNICODE_VERSION = "14.0.0"
CODE_POINTS = 0x110000
TABLES_FILE = Path(__file__).with_name("unicode_14.npz")

# One byte of flags for every code point.
DROPPED = 1  # NUL, U+FFFD, control and format characters
SPACE = 2
CJK = 4  # ideographs that stand alone as words
PUNCTUATION = 8
MARK = 16  # non-spacing marks (Mn): the accents that are stripped
CASED = 32  # cased and not case-ignorable
CASE_IGNORABLE = 64

CAPITAL_SIGMA = 0x3A3
FINAL_SIGMA = 0x3C2

HANGUL_BASE, HANGUL_COUNT = 0xAC00, 11172
_LEAD_BASE, _VOWEL_BASE, _TRAIL_BASE = 0x1100, 0x1161, 0x11A7
_VOWEL_COUNT, _TRAIL_COUNT = 21, 28


class UnicodeTables:
    """Properties and mappings of code points.

    Attributes:
        flags: uint8 array, `(0x110000,)`, of the flags above.
        lower: dict from a code point to the code points of its full lower case, where that differs. The
            capital sigma has its ordinary form here; the final form depends on its neighbours.
        combining_class: dict from a code point to its canonical combining class, where that is not 0.
    """

    def __init__(self) -> None:
        with np.load(TABLES_FILE, allow_pickle=False) as tables:
            arrays = {name: tables[name] for name in tables.files}
        self.flags: np.ndarray = arrays["flags"]
        self.lower = _sequences(arrays, "lower")
        self.combining_class: dict[int, int] = dict(
            zip(arrays["combining_keys"].tolist(), arrays["combining_classes"].tolist(), strict=True)
        )
        self._decomposition = _sequences(arrays, "decomposition")

    def decompose(self, code_point: int) -> tuple[int, ...]:
        """Returns the full canonical decomposition of one code point (the code point itself if it has none)."""
        index = code_point - HANGUL_BASE
        if 0 <= index < HANGUL_COUNT:
            lead, rest = divmod(index, _VOWEL_COUNT * _TRAIL_COUNT)
            vowel, trail = divmod(rest, _TRAIL_COUNT)
            syllable = (_LEAD_BASE + lead, _VOWEL_BASE + vowel)
            return (*syllable, _TRAIL_BASE + trail) if trail else syllable
        return self._decomposition.get(code_point, (code_point,))

    def decomposable(self) -> list[int]:
        """Returns the code points that `decompose` changes."""
        return [*self._decomposition, *range(HANGUL_BASE, HANGUL_BASE + HANGUL_COUNT)]


@functools.cache
def unicode_tables() -> UnicodeTables:
    """Returns the tables, read once."""
    return UnicodeTables()


def _sequences(arrays: dict[str, np.ndarray], name: str) -> dict[int, tuple[int, ...]]:
    values = arrays[f"{name}_values"].tolist()
    sequences = {}
    start = 0
    for key, length in zip(arrays[f"{name}_keys"].tolist(), arrays[f"{name}_lengths"].tolist(), strict=True):
        sequences[key] = tuple(values[start : start + length])
        start += length
    return sequences
