"""Text that must not be trained on, such as test sets: documents that share a long run of words with it.

A word is a run of letters and digits in small letters; a Chinese character or a kana is one by itself.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ..examples.hashing import mix
from .readers import Reading, SourceFile, read_documents

_ONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_ONE}]|[^\W_{_ONE}]+")
_MULTIPLIER = 0x9E3779B97F4A7C15
_MOST_WORDS = 2**18
NO_FILE = -1


@dataclasses.dataclass(frozen=True)
class ExcludedFile:
    """A file whose text is kept out, and how many documents of the corpus were left out for it."""

    source: SourceFile
    removed: int


class Exclusion:
    """What is kept out. Memory: twelve bytes for each word of the files, and a table of at most 64 MB.

    A document is left out if it shares a run of `words` words with a file, or if it is shorter than that and equals
    a document or a line of it, punctuation and upper case aside. The first such file is the one it is counted for.

    Args:
        files: from `find_files`.
        words: length of the runs.
        reading: how the files are read.

    Raises:
        InputError: if a file cannot be read; messages speak of `exclude`.
    """

    def __init__(self, files: Sequence[SourceFile], words: int, reading: Reading):
        self.files = tuple(files)
        self._hasher = _RunHasher(words)
        runs: list[np.ndarray] = []
        owners: list[np.ndarray] = []
        for number, file in enumerate(files):
            runs.append(np.concatenate([np.empty(0, np.uint64), *self._runs_of_file(file, reading)]))
            owners.append(np.full(runs[-1].size, number, np.uint32))
        # The first of equal runs is kept, which is the one of the first file.
        self._runs, first = np.unique(np.concatenate([np.empty(0, np.uint64), *runs]), return_index=True)
        self._owners = np.concatenate([np.empty(0, np.uint32), *owners])[first]
        # Most runs of a corpus are in no file; a look at a table of their upper bits is enough to know.
        bits = min(26, 4 + self._runs.size.bit_length())
        self._shift = np.uint64(64 - bits)
        self._perhaps = np.zeros(2**bits, bool)
        self._perhaps[self._runs >> self._shift] = True

    def owner(self, text: str) -> int:
        """Returns the number of the file that a document of the corpus is left out for, or `NO_FILE`."""
        runs = self._hasher.runs(text)
        runs = runs[self._perhaps[runs >> self._shift]]
        places = np.searchsorted(self._runs, runs)
        inside = places < self._runs.size
        runs, places = runs[inside], places[inside]
        owners = self._owners[places[self._runs[places] == runs]]
        return int(owners.min()) if owners.size else NO_FILE

    def _runs_of_file(self, file: SourceFile, reading: Reading) -> Iterator[np.ndarray]:
        for document in read_documents([file], reading=reading, argument="exclude"):
            yield self._hasher.runs(document.text)
            for line in document.lines:
                # A question or an answer of a test set, which may be all that a document consists of.
                yield self._hasher.runs(line, short=True)


class _RunHasher:
    """Turns text into hashes of its runs of words."""

    def __init__(self, words: int):
        self.words = words
        self._numbers = _WordNumbers()
        self._powers = np.array([pow(_MULTIPLIER, power, 2**64) for power in range(words)], np.uint64)

    def runs(self, text: str, *, short: bool = False) -> np.ndarray:
        """Returns one hash for each run of words; of a shorter text, one for all of it; of one without words, none.

        Args:
            text: any text.
            short: return none for a text that is longer than a run.
        """
        words = _WORD.findall(text.casefold())
        count = min(self.words, len(words))
        if not count or (short and len(words) > count):
            return np.empty(0, np.uint64)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.uint64, len(words))
        result = np.zeros(numbers.size - count + 1, np.uint64)
        for place in range(count):
            result += numbers[place : place + result.size] * self._powers[place]
        return mix(result ^ np.uint64(count))


class _WordNumbers(dict[str, int]):
    """The hash of every word that is asked for; the frequent ones are remembered."""

    def __missing__(self, word: str) -> int:
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        if len(self) >= _MOST_WORDS:
            self.clear()
        self[word] = number
        return number
