"""The first of two times through a corpus: what is there, what is kept, what is held out."""

import array
import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from keras_bert_impl.errors import InputError

from ..examples.hashing import hash_of
from .documents import Document
from .readers import SourceFile, read_documents

TRAIN, HELD_OUT, DUPLICATE = 0, 1, 2
_SPLITS = {TRAIN: "train", HELD_OUT: "held_out"}


@dataclasses.dataclass(frozen=True)
class Survey:
    """What is known of a corpus after reading it once.

    Attributes:
        files: the input files with sizes and digests.
        fates: uint8 per document in reading order: `TRAIN`, `HELD_OUT` or `DUPLICATE`.
        size: characters of all documents.
    """

    files: tuple[SourceFile, ...]
    fates: np.ndarray
    size: int

    def count(self, fate: int) -> int:
        """Returns the number of documents with a fate."""
        return int((self.fates == fate).sum())

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Reads the corpus once more: yields (split, document) of all that is kept.

        Raises:
            InputError: if a file is not what it was the first time.
        """
        files = [dataclasses.replace(file) for file in self.files]
        fates = iter(self.fates)
        for document in read_documents(files):
            fate = int(next(fates, DUPLICATE))
            if fate != DUPLICATE:
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
) -> Survey:
    """Reads every document once and decides what becomes of it. Memory: eight bytes per document.

    Args:
        files: from `find_files`.
        seed: seed of the choice of held-out documents.
        held_out_share: share of the documents to hold out.
        advance: called with the number of bytes read; for a progress bar.

    Raises:
        InputError: if there is no document, or a file cannot be read as text.
    """
    digests, size = array.array("Q"), 0
    for document in read_documents(files, advance):
        digests.append(document.digest)
        size += document.size
    if not digests:
        raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
    return Survey(tuple(files), fates_of_documents(np.array(digests, np.uint64), seed, held_out_share), size)


def fates_of_documents(digests: np.ndarray, seed: int, held_out_share: float) -> np.ndarray:
    """Returns what becomes of each document: the first of equal ones is kept, for training or evaluation.

    A document is held out where a hash of (seed, digest) falls below the share, so other documents have no say in
    it; but from two documents on at least one is held out, from four on two (a random second part
    comes from another document), and at least one is for training. A single document is.
    """
    fates = np.full(digests.size, DUPLICATE, np.uint8)
    kept = np.sort(np.unique(digests, return_index=True)[1])
    fates[kept] = TRAIN
    if held_out_share == 0 or kept.size == 1:
        return fates
    chances = hash_of(seed, digests[kept])
    least = 2 if kept.size >= 4 else 1
    wanted = int((chances < np.uint64(held_out_share * 2**64)).sum())
    held_out = np.argsort(chances, kind="stable")[: min(max(wanted, least), kept.size - 1)]
    fates[kept[held_out]] = HELD_OUT
    return fates
