"""From text to words: cleaning, lower-casing, accents, and splitting, as the original BERT does them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.unicode_tables import (
    CAPITAL_SIGMA,
    CASE_IGNORABLE,
    CASED,
    CJK,
    DROPPED,
    FINAL_SIGMA,
    MARK,
    PUNCTUATION,
    SPACE,
    unicode_tables,
)

_ASCII_WORDS = re.compile("[0-9A-Za-z]+|[^0-9A-Za-z]")
_CACHED_CHARACTERS = 1 << 16


class Word(NamedTuple):
    """A normalised word and, for each of its characters, the index of the character it came from."""

    text: str
    sources: Sequence[int]


class TextNormalizer:
    """Cuts text into words that WordPiece then cuts into pieces.

    Control and format characters, NUL and U+FFFD vanish without a trace (they do not separate words). White space
    separates words; so do CJK ideographs and punctuation, each of which is a word by itself. All of it rests on
    the package's frozen Unicode 14 tables, so it depends on neither the Python version nor the locale.

    Args:
        lowercase: bool. Full lower-casing as `str.lower` has it: final sigma, and `İ` gives `i` with a dot above.
        strip_accents: bool. Decompose canonically (NFD), then remove the non-spacing marks.
        split_cjk: bool. Whether every CJK ideograph is a word by itself.
    """

    def __init__(self, *, lowercase: bool, strip_accents: bool, split_cjk: bool) -> None:
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_cjk = split_cjk
        tables = unicode_tables()
        self._flags = tables.flags.tobytes()
        spaces = _character_class(tables.flags & SPACE)
        ideographs = _character_class(tables.flags & CJK)
        # A stretch of text that nothing outside it has any influence on.
        self._stretches = re.compile(f"[^{spaces}{ideographs}]+|[{ideographs}]" if split_cjk else f"[^{spaces}]+")
        self._expansions = _Expansions(self)
        self._moving_marks = frozenset(
            chr(code_point) for code_point in tables.combining_class if not self._flags[code_point] & MARK
        )
        self.stretch_matches = self._stretches.finditer

    def stretches(self, text: str) -> list[str]:
        """Returns the parts of the text that can be normalised one by one; what is between them is white space."""
        if text.isascii() and text.isprintable():
            return text.split()  # the only white space in it is U+0020
        return self._stretches.findall(text)

    def word_texts(self, stretch: str) -> list[str]:
        """Returns the words of one stretch, without their sources."""
        if stretch.isascii() and stretch.isprintable():
            return _ASCII_WORDS.findall(stretch.lower() if self.lowercase else stretch)
        return [word.text for word in self.words(stretch)]

    def words(self, stretch: str) -> list[Word]:
        """Returns the words of one stretch. The sources are indices into the stretch."""
        if stretch.isascii() and stretch.isprintable():
            text = stretch.lower() if self.lowercase else stretch
            return [Word(match[0], range(*match.span())) for match in _ASCII_WORDS.finditer(text)]
        return self._split(*self._normalize(stretch))

    def expand(self, code_point: int) -> tuple[int, ...]:
        """Returns what one kept character becomes, out of context and with its marks."""
        tables = unicode_tables()
        lowered = tables.lower.get(code_point, (code_point,)) if self.lowercase else (code_point,)
        if not self.strip_accents:
            return lowered
        return tuple(part for char in lowered for part in tables.decompose(char))

    def _normalize(self, stretch: str) -> tuple[list[str], list[int]]:
        if self.lowercase and chr(CAPITAL_SIGMA) in stretch:
            stretch = self._with_final_sigmas(stretch)
        chars: list[str] = []
        sources: list[int] = []
        for index, char in enumerate(stretch):
            for part in self._expansions[char]:
                chars.append(part)
                sources.append(index)
        if self.strip_accents and not self._moving_marks.isdisjoint(chars):
            return self._in_canonical_order(stretch)
        return chars, sources

    def _with_final_sigmas(self, stretch: str) -> str:
        """Puts ς for every Σ that ends a word: after a cased letter and before none, case-ignorable ones apart."""
        chars = list(stretch)
        telling = [index for index, char in enumerate(chars) if not self._flags[ord(char)] & (DROPPED | CASE_IGNORABLE)]
        cased = [bool(self._flags[ord(chars[index])] & CASED) for index in telling]
        for place, index in enumerate(telling):
            after_letter = place > 0 and cased[place - 1]
            before_letter = place + 1 < len(telling) and cased[place + 1]
            if chars[index] == chr(CAPITAL_SIGMA) and after_letter and not before_letter:
                chars[index] = chr(FINAL_SIGMA)
        return "".join(chars)

    def _in_canonical_order(self, stretch: str) -> tuple[list[str], list[int]]:
        """Does what `_normalize` does, where marks that stay (spacing ones) may change places."""
        classes = unicode_tables().combining_class
        run = 0
        parts = []
        for index, char in enumerate(stretch):
            if self._flags[ord(char)] & DROPPED:
                continue
            for code_point in self.expand(ord(char)):
                combining_class = classes.get(code_point, 0)
                run += combining_class == 0
                parts.append((run, combining_class, code_point, index))
        in_order = sorted(parts, key=lambda part: part[:2])
        kept = [(code_point, index) for _, _, code_point, index in in_order if not self._flags[code_point] & MARK]
        # Sources stay in order even where characters changed places, so that offsets never run backwards.
        return [chr(code_point) for code_point, _ in kept], sorted(index for _, index in kept)

    def _split(self, chars: list[str], sources: list[int]) -> list[Word]:
        words = []
        start = 0
        for index, char in enumerate(chars):
            if self._flags[ord(char)] & PUNCTUATION:
                if start < index:
                    words.append(Word("".join(chars[start:index]), sources[start:index]))
                words.append(Word(char, sources[index : index + 1]))
                start = index + 1
        if start < len(chars):
            words.append(Word("".join(chars[start:]), sources[start:]))
        return words


class _Expansions(dict[str, str]):
    """What each character becomes, without the marks that are stripped; empty for a dropped one."""

    def __init__(self, normalizer: TextNormalizer) -> None:
        super().__init__()
        self._normalizer = normalizer
        self._flags = unicode_tables().flags
        self._stripped = MARK if normalizer.strip_accents else 0

    def __missing__(self, char: str) -> str:
        if "\ud800" <= char <= "\udfff":
            raise InputError(f"`text` must not contain a lone surrogate. Received: U+{ord(char):04X} in the text")
        if len(self) >= _CACHED_CHARACTERS:
            self.clear()
        parts = () if self._flags[ord(char)] & DROPPED else self._normalizer.expand(ord(char))
        self[char] = expansion = "".join(chr(part) for part in parts if not self._flags[part] & self._stripped)
        return expansion


def _character_class(selected: np.ndarray) -> str:
    """Returns the ranges of the selected code points as the inside of a regular expression's brackets."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], selected != 0, [0]]).astype(np.int8)))
    return "".join(f"\\U{low:08x}-\\U{high - 1:08x}" for low, high in edges.reshape(-1, 2).tolist())
