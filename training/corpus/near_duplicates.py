"""Documents that are nearly the same, found by MinHash (Broder, 1997) in bounded memory.

A document is the set of its runs of eight characters, in small letters and with white space made single; so English
and Chinese are treated alike. Two documents are near-duplicates where these sets share four fifths of what is in
either (Jaccard similarity), as estimated from 120 minima. Each run is hashed once and put into one of 120 bins, and
the least hash of each bin is kept (one permutation hashing, Li, Owen and Zhang, 2012); a bin without a run takes the
value of the next one that has some (Shrivastava and Li, 2014). Documents are compared where six minima in a row are
equal, which at a similarity of 0.8 happens in 99.8 % of the pairs, at 0.3 in 1.4 %. Documents shorter than 64
characters have too few runs for an estimate and are left alone.

No library is used for it: those at hand hash every run of words in Python, some hundred times slower.
"""

import array
import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from ..examples.hashing import as_below, hash_of, mix
from .temporary import temporary_room

RUN = 8
SHORTEST = 64
BANDS, ROWS = 20, 6
BINS = BANDS * ROWS
SIMILARITY = 0.8
_MOST_BYTES = 2**25
# Of a long document only runs with a small hash are sorted. The least of a bin is nearly always among them.
_RUNS_PER_BIN = 16
_EMPTY = np.uint64(2**64 - 1)
_MULTIPLIERS = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))


class NearDuplicateFinder:
    """Takes the minima of documents and tells at the end which are near-duplicates of which.

    Memory: 32 MB of minima while they come, at the end some 60 bytes for each document. The minima are 240 bytes for
    each document; more than the 32 MB go into a temporary file, which vanishes with the finder.
    """

    def __init__(self) -> None:
        self._long_enough = array.array("B")
        self._file: IO[bytes] | None = None
        self._minima = bytearray()
        self._places: np.ndarray | None = None

    def close(self) -> None:
        """Gives the temporary file up."""
        if self._file:
            self._file.close()

    def add(self, minima: np.ndarray, lengths: np.ndarray) -> None:
        """Takes the next documents: their `signatures`, and the lengths of their texts."""
        self._minima += minima.tobytes()
        self._long_enough.frombytes((lengths >= SHORTEST).tobytes())
        if len(self._minima) > _MOST_BYTES:
            self._spill()

    def families(self, among: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
        """Returns for each document the number of the first one of its family, its own number if it is alone.

        Args:
            among: bool per document: which ones can belong to a family.
            places: per document, as the how manieth it came; not given, they came in their order.
        """
        if self._file:
            self._spill()
        self._places = places
        long_enough = np.array(self._long_enough, bool)
        members = np.flatnonzero(among & (long_enough if places is None else long_enough[places]))
        first = np.arange(among.size)
        for band in range(BANDS if members.size else 0):
            for one, other in self._pairs(band, members, first):
                _join(first, one, other)
        return _roots(first, np.arange(among.size))

    def _spill(self) -> None:
        with temporary_room():
            self._file = self._file or tempfile.TemporaryFile(prefix="keras-bert-")  # noqa: SIM115
            self._file.write(self._minima)
            self._file.flush()
        self._minima = bytearray()

    def _pairs(self, band: int, members: np.ndarray, first: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields pairs of documents of different families so far that agree in a band and in enough of the others."""
        keys = np.empty(members.size, np.uint64)
        for start in range(0, members.size, 2**16):
            part = self._signatures(members[start : start + 2**16])[:, band * ROWS : (band + 1) * ROWS]
            keys[start : start + 2**16] = hash_of(*part.T.astype(np.uint64))
        order = np.argsort(keys, kind="stable")
        begins = np.append(True, np.diff(keys[order]) != 0)
        leaders = order[begins][np.cumsum(begins) - 1]
        one, other = members[leaders[~begins]], members[order[~begins]]
        strange = _roots(first, one) != _roots(first, other)
        one, other = one[strange], other[strange]
        for start in range(0, one.size, 2**14):
            a, b = one[start : start + 2**14], other[start : start + 2**14]
            alike = (self._signatures(a) == self._signatures(b)).mean(axis=1) >= SIMILARITY
            yield a[alike], b[alike]

    def _signatures(self, numbers: np.ndarray) -> np.ndarray:
        stored = np.memmap(self._file, np.uint16, "r") if self._file else np.frombuffer(self._minima, np.uint16)
        return stored.reshape(-1, BINS)[numbers if self._places is None else self._places[numbers]]


def signature_key(seed: int) -> np.ndarray:
    """Returns the key of the hash for a seed."""
    return hash_of(seed, 8)


def signatures(texts: list[str], key: np.ndarray) -> np.ndarray:
    """Returns the minima of texts with single white space: uint16, (texts, BINS)."""
    minima = _minima(texts, key, BINS * _RUNS_PER_BIN)
    # A text that says the same again and again has few runs, perhaps none among those looked at.
    if sparse := np.flatnonzero((minima == _EMPTY).mean(axis=1) > 0.5).tolist():
        minima[sparse] = _minima([texts[number] for number in sparse], key, 2**62)
    return _filled(minima)


def _minima(texts: list[str], key: np.ndarray, most_runs: int) -> np.ndarray:
    """Returns the least hash in each bin, `_EMPTY` where there is none; looks at some `most_runs` runs of a text."""
    padded = [text.casefold() for text in texts]
    padded = [text + "\0" * max(0, RUN - len(text)) for text in padded]
    lengths = np.array([len(text) for text in padded])
    points = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    hashes = points
    for step, multiplier in zip((1, 2, 4), _MULTIPLIERS, strict=True):
        hashes = hashes[:-step] * multiplier + hashes[step:]
    hashes = (hashes ^ key) * _MULTIPLIERS[0]
    limits = np.minimum(1.0, most_runs / (lengths - RUN + 1)) * (2**64 - 2**11)
    wanted = hashes <= np.repeat(limits.astype(np.uint64), lengths)[: hashes.size]
    ends = np.cumsum(lengths)[:-1]
    wanted[(ends[:, None] - np.arange(1, RUN)).ravel()] = False  # Runs that reach into the next text.
    places = np.flatnonzero(wanted)
    chosen = hashes[places]
    owners = np.repeat(np.arange(len(texts)), lengths)[places]
    minima = np.full(len(texts) * BINS, _EMPTY, np.uint64)
    np.minimum.at(minima, owners * BINS + as_below(mix(chosen), BINS).astype(np.int64), chosen)
    return minima.reshape(-1, BINS)


def _filled(minima: np.ndarray) -> np.ndarray:
    """Gives every empty bin the value of the next filled one, changed by how far that is away; as uint16."""
    own = np.arange(BINS)
    sources = np.where(minima != _EMPTY, own, 2 * BINS)
    sources = np.concatenate([sources, sources + BINS], axis=1)
    sources = np.minimum.accumulate(sources[:, ::-1], axis=1)[:, ::-1][:, :BINS]
    values = np.take_along_axis(minima, sources % BINS, axis=1)
    return mix(values ^ hash_of((sources - own).ravel()).reshape(sources.shape)).astype(np.uint16)


def _roots(first: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    roots = first[numbers]
    while not np.array_equal(roots, deeper := first[roots]):
        roots = deeper
    return roots


def _join(first: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
    """Unites the families of each pair under the earliest document."""
    one, other = _roots(first, one), _roots(first, other)
    for a, b in zip(one[one != other].tolist(), other[one != other].tolist(), strict=True):
        while first[a] != a:
            a = first[a]
        while first[b] != b:
            b = first[b]
        first[max(a, b)] = min(a, b)
