"""What has to be known of each document to decide what becomes of it: a few bytes, found without the other ones."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from .documents import Document, digest_of_text
from .exclusion import NO_FILE, Exclusion
from .near_duplicates import signature_key, signatures

_BATCH = 2**16


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is known of some documents that follow one another.

    Attributes:
        digests: uint64 (documents,): of the texts.
        sizes: uint32 (documents,): characters.
        owners: int32 (documents,): number of the excluded file that a document is left out for, or `NO_FILE`.
        lengths: uint32 (documents,): characters of the texts whose white space is single.
        minima: uint16 (documents, BINS): `signatures` for the search for near-duplicates; None without it.
    """

    digests: np.ndarray
    sizes: np.ndarray
    owners: np.ndarray
    lengths: np.ndarray
    minima: np.ndarray | None


def facts_of_documents(
    documents: Iterable[Document], seed: int, *, near_duplicates: bool, exclusion: Exclusion | None = None
) -> Iterator[Facts]:
    """Yields the facts of documents in their order, of some 65,000 characters at a time.

    Args:
        documents: the documents.
        seed: seed of the hash that near-duplicates are found by.
        near_duplicates: whether they will be looked for.
        exclusion: what is kept out of the corpus.
    """
    key = signature_key(seed) if near_duplicates else None
    texts: list[str] = []
    sizes: list[int] = []
    length = 0
    for document in documents:
        texts.append(document.text)
        sizes.append(document.size)
        length += len(texts[-1])
        if length >= _BATCH:
            yield _facts(texts, sizes, key, exclusion)
            texts, sizes, length = [], [], 0
    if texts:
        yield _facts(texts, sizes, key, exclusion)


def _facts(texts: list[str], sizes: list[int], key: np.ndarray | None, exclusion: Exclusion | None) -> Facts:
    owners = [NO_FILE if exclusion is None else exclusion.owner(text) for text in texts]
    return Facts(
        digests=np.array([digest_of_text(text) for text in texts], np.uint64),
        sizes=np.array(sizes, np.uint32),
        owners=np.array(owners, np.int32),
        lengths=np.array([len(text) for text in texts], np.uint32),
        minima=None if key is None else signatures(texts, key),
    )
