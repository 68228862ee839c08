"""The first of two times through a corpus: what is there, what is kept, what is held out."""

import array
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from keras_bert_impl.errors import InputError

from ..examples.hashing import hash_of
from .documents import Document, digest_of_text
from .exclusion import ExcludedFile, Exclusion
from .near_duplicates import NearDuplicateFinder
from .oddities import Oddities
from .readers import Reading, SourceFile, read_documents

TRAIN, HELD_OUT, DUPLICATE, NEAR_DUPLICATE, EXCLUDED = range(5)
_SPLITS = {TRAIN: "train", HELD_OUT: "held_out"}


@dataclasses.dataclass(frozen=True)
class Survey:
    """What is known of a corpus after reading it once.

    Attributes:
        files: the input files with sizes and digests.
        fates: uint8 per document in reading order: `TRAIN`, `HELD_OUT`, `DUPLICATE`, `NEAR_DUPLICATE` or `EXCLUDED`.
        size: characters of all documents.
        reading: how the files are read.
        families: families of near-duplicates with two members or more; None if they were not looked for.
        near_duplicates: documents of these families besides the first of each.
        excluded: the files whose text was kept out.
    """

    files: tuple[SourceFile, ...]
    fates: np.ndarray
    size: int
    reading: Reading = dataclasses.field(default_factory=Reading)
    families: int | None = None
    near_duplicates: int = 0
    excluded: tuple[ExcludedFile, ...] = ()

    def count(self, fate: int) -> int:
        """Returns the number of documents with a fate."""
        return int((self.fates == fate).sum())

    @property
    def oddities(self) -> Oddities:
        """What was odd in the text of all files."""
        return Oddities.sum(file.oddities for file in self.files)

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Reads the corpus once more: yields (split, document) of all that is kept.

        Raises:
            InputError: if a file is not what it was the first time.
        """
        files = [dataclasses.replace(file) for file in self.files]
        fates = iter(self.fates)
        for document in read_documents(files, reading=self.reading):
            fate = int(next(fates, DUPLICATE))
            if fate in _SPLITS:
                yield _SPLITS[fate], document
        for before, now in zip(self.files, files, strict=True):
            if before != now:
                raise InputError(f"`inputs` must not change while they are read. Received: {now.path!r}, which did")


def survey_corpus(
    files: Sequence[SourceFile],
    *,
    seed: int,
    held_out_share: float,
    advance: Callable[[int], object] = lambda size: None,
    reading: Reading | None = None,
    near_duplicates: str = "report",
    exclusion: Exclusion | None = None,
) -> Survey:
    """Reads every document once and decides what becomes of it.

    Memory: nine bytes per document, and what `NearDuplicateFinder` and `Exclusion` say of themselves.

    Args:
        files: from `find_files`.
        seed: seed of the choice of held-out documents.
        held_out_share: share of the documents to hold out.
        advance: called with the number of bytes read; for a progress bar.
        reading: how to read the files.
        near_duplicates: `"off"`: not looked for; `"report"`: counted and kept on one side of training and held-out
            part; `"remove"`: the first one of a family is kept.
        exclusion: what is kept out of both parts.

    Raises:
        InputError: if there is no document, or none is left, or a file cannot be read as text.
    """
    reading = reading or Reading()
    digests, excluded, size = array.array("Q"), array.array("B"), 0
    with contextlib.ExitStack() as stack:
        finder = None if near_duplicates == "off" else stack.enter_context(NearDuplicateFinder(seed))
        for document in read_documents(files, advance, reading):
            text = document.text
            digests.append(digest_of_text(text))
            excluded.append(exclusion is not None and exclusion.excludes(text))
            size += document.size
            if finder:
                finder.add(text)
        if not digests:
            raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
        numbers = np.array(digests, np.uint64)
        kept = first_ones(numbers, np.array(excluded, bool))
        if not kept.any():
            raise InputError(
                f"`exclude` must leave a document. Received: {[file.source.path for file in exclusion.files]}, "  # type: ignore[union-attr]
                f"which share text with all {len(digests):,}"
            )
        families = finder.families(kept) if finder else np.arange(numbers.size)
    fates = fates_of_documents(
        numbers, seed, held_out_share, kept=kept, families=families, keep_near_duplicates=near_duplicates != "remove"
    )
    fates[np.array(excluded, bool)] = EXCLUDED
    later = families != np.arange(numbers.size)
    return Survey(
        files=tuple(files),
        fates=fates,
        size=size,
        reading=reading,
        families=np.unique(families[later]).size if finder else None,
        near_duplicates=int(later.sum()),
        excluded=tuple(exclusion.files) if exclusion else (),
    )


def first_ones(digests: np.ndarray, excluded: np.ndarray) -> np.ndarray:
    """Returns bool per document: the first of equal ones, of those that are not excluded."""
    kept = np.zeros(digests.size, bool)
    candidates = np.flatnonzero(~excluded)
    kept[candidates[np.unique(digests[candidates], return_index=True)[1]]] = True
    return kept


def fates_of_documents(
    digests: np.ndarray,
    seed: int,
    held_out_share: float,
    *,
    kept: np.ndarray | None = None,
    families: np.ndarray | None = None,
    keep_near_duplicates: bool = True,
) -> np.ndarray:
    """Returns what becomes of each document; a family of near-duplicates goes to one side as a whole.

    A family is held out where a hash of (seed, digest of its first document) falls below the share, so other
    documents have no say in it; but from two families on at least one document is held out, from four on two (a
    random second part comes from another document), and at least one family is for training. A family that is larger
    than the share of all documents is for training.

    Args:
        digests: uint64 per document.
        seed: seed of the choice.
        held_out_share: share of the documents to hold out.
        kept: bool per document, from `first_ones`.
        families: per document the number of the first one of its family; everyone alone if not given.
        keep_near_duplicates: False: the first one of a family is kept.
    """
    if kept is None:
        kept = first_ones(digests, np.zeros(digests.size, bool))
    own = np.arange(digests.size)
    families = own if families is None else families
    fates = np.full(digests.size, DUPLICATE, np.uint8)
    fates[kept] = TRAIN
    if not keep_near_duplicates:
        fates[kept & (families != own)] = NEAR_DUPLICATE
    members = np.flatnonzero(fates == TRAIN)
    roots, sizes = np.unique(families[members], return_counts=True)
    if held_out_share == 0 or roots.size == 1:
        return fates
    chances = hash_of(seed, digests[roots])
    small = np.flatnonzero(sizes <= max(1, held_out_share * members.size))
    order = small[np.argsort(chances[small], kind="stable")]
    wanted = int((chances[order] < np.uint64(held_out_share * 2**64)).sum())
    least = 2 if roots.size >= 4 else 1
    enough = int(np.searchsorted(np.cumsum(sizes[order]), least)) + 1
    chosen = roots[order[: min(max(wanted, enough), roots.size - 1)]]
    fates[members[np.isin(families[members], chosen)]] = HELD_OUT
    return fates
