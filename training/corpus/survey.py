"""The first of two times through a corpus: what is there, what is kept, what is held out."""

import array
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np

from keras_bert_impl.errors import InputError

from ..examples.hashing import hash_of
from .documents import Document
from .exclusion import NO_FILE, ExcludedFile, Exclusion
from .facts import Facts, facts_of_documents
from .near_duplicates import NearDuplicateFinder
from .oddities import Oddities
from .readers import Reading, SourceFile, read_documents

TRAIN, HELD_OUT, DUPLICATE, NEAR_DUPLICATE, EXCLUDED = range(5)
SPLIT_OF_FATE = {TRAIN: "train", HELD_OUT: "held_out"}


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
        files = list(map(dataclasses.replace, self.files))
        fates = iter(self.fates)
        for document in read_documents(files, reading=self.reading):
            fate = int(next(fates, DUPLICATE))
            if fate in SPLIT_OF_FATE:
                yield SPLIT_OF_FATE[fate], document
        for before, now in zip(self.files, files, strict=True):
            check_unchanged(before, now)


def check_unchanged(before: SourceFile, now: SourceFile) -> None:
    """Raises `InputError` if a file was not the same in the second reading."""
    if before != now:
        raise InputError(f"`inputs` must not change while they are read. Received: {now.path!r}, which did")


class Decision:
    """Takes the facts of all documents and decides what becomes of each; knows nothing else of the text.

    Memory: nine bytes per document, about a hundred in the moment of deciding, and what `NearDuplicateFinder` says of
    itself.

    Args:
        files: the input files, complete when `survey` is called.
        seed: seed of the choice of held-out documents.
        held_out_share: share of the documents to hold out.
        near_duplicates: as for `survey_corpus`.
        excluded: the files whose text is kept out of both parts.
    """

    def __init__(
        self,
        files: Sequence[SourceFile],
        seed: int,
        held_out_share: float,
        *,
        near_duplicates: str = "report",
        excluded: Sequence[SourceFile] = (),
    ):
        self.files, self.seed, self.held_out_share = files, seed, held_out_share
        self.near_duplicates, self.excluded = near_duplicates, excluded
        self._digests, self._is_excluded, self._size = array.array("Q"), array.array("B"), 0
        self._removed = np.zeros(len(excluded), np.int64)
        self._finder = None if near_duplicates == "off" else NearDuplicateFinder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._finder:
            self._finder.close()

    def add(self, facts: Facts) -> None:
        """Takes the facts of the next documents."""
        self._digests.frombytes(facts.digests.tobytes())
        has_owner = facts.owners != NO_FILE
        self._is_excluded.frombytes(has_owner.tobytes())
        self._removed += np.bincount(facts.owners[has_owner], minlength=self._removed.size)
        self._size += int(facts.sizes.sum())
        if self._finder:
            assert facts.minima is not None
            self._finder.add(facts.minima, facts.lengths)

    def survey(self, reading: Reading, places: np.ndarray | None = None) -> "Survey":
        """Returns what was decided.

        Args:
            reading: how the files were read.
            places: for each document in reading order, as the how manieth it came; not given, they came in this order.

        Raises:
            InputError: if there is no document, or none is left.
        """
        digests, excluded = np.frombuffer(self._digests, np.uint64), np.frombuffer(self._is_excluded, bool)
        if not digests.size:
            raise InputError(
                f"`inputs` must hold text. Received: {[file.path for file in self.files]}, which hold none"
            )
        if places is not None:
            digests, excluded = digests[places], excluded[places]
        kept = first_ones(digests, excluded)
        if not kept.any():
            raise InputError(
                f"`exclude` must leave a document. Received: {[file.path for file in self.excluded]}, "
                f"which share text with all {digests.size:,}"
            )
        own = np.arange(digests.size)
        families = self._finder.families(kept, places) if self._finder else own
        fates = fates_of_documents(
            digests,
            self.seed,
            self.held_out_share,
            kept=kept,
            families=families,
            keep_near_duplicates=self.near_duplicates != "remove",
        )
        fates[excluded] = EXCLUDED
        later = families != own
        return Survey(
            files=tuple(self.files),
            fates=fates,
            size=self._size,
            reading=reading,
            families=np.unique(families[later]).size if self._finder else None,
            near_duplicates=int(later.sum()),
            excluded=tuple(map(ExcludedFile, self.excluded, self._removed.tolist())),
        )


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

    Memory: what `Decision` and `Exclusion` say of themselves, and a batch of text.

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
    excluded = exclusion.files if exclusion else ()
    with Decision(files, seed, held_out_share, near_duplicates=near_duplicates, excluded=excluded) as decision:
        documents = read_documents(files, advance, reading)
        for facts in facts_of_documents(documents, seed, near_duplicates=near_duplicates != "off", exclusion=exclusion):
            decision.add(facts)
        return decision.survey(reading)


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
