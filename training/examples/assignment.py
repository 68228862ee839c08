"""Which block each document of a file goes to: what is needed to cut the files of a corpus apart from one another."""

import dataclasses
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from ..corpus.documents import Document
from ..corpus.input_files import SourceFile
from ..corpus.survey import DUPLICATE, SPLIT_OF_FATE, Survey
from .blocks import block_size, block_starts


@dataclasses.dataclass(frozen=True)
class Assignment:
    """The part of a file in all blocks; about a tenth of a byte for each document.

    Attributes:
        file: the file, as it was when it was read first.
        first: number of its first document in the corpus.
        fates: zlib of uint8 (documents,): their fates in a `Survey`.
        starts: per split, the number of the block that is open at the beginning (-1: none yet) and the numbers in the
            corpus of the documents that begin another one.
    """

    file: SourceFile
    first: int
    fates: bytes
    starts: dict[str, tuple[int, np.ndarray]]

    def blocks(self, documents: Iterable[Document]) -> Iterator[tuple[str, int, int, Document]]:
        """Yields (split, number of the block, number in the corpus, document) of all that is kept of the file."""
        fates = iter(zlib.decompress(self.fates))
        current = {split: number for split, (number, _) in self.starts.items()}
        ahead = {split: iter(starts.tolist()) for split, (_, starts) in self.starts.items()}
        upcoming = {split: next(starts, None) for split, starts in ahead.items()}
        for number, document in enumerate(documents, start=self.first):
            split = SPLIT_OF_FATE.get(next(fates, DUPLICATE))
            if split is None:
                continue
            if upcoming[split] == number:
                current[split] += 1
                upcoming[split] = next(ahead[split], None)
            yield split, current[split], number, document


def assignments(survey: Survey, sizes: np.ndarray) -> Iterator[Assignment]:
    """Yields the assignment of each file; together they make the blocks of `blocks_of_documents`.

    Args:
        survey: what was decided.
        sizes: characters of each document in reading order, (documents,).
    """
    size = block_size(survey.size)
    begin: dict[str, np.ndarray] = {}
    for fate, split in SPLIT_OF_FATE.items():
        numbers = np.flatnonzero(survey.fates == fate)
        begin[split] = numbers[block_starts(sizes[numbers], size)]
    first = 0
    for file in survey.files:
        end = first + file.documents
        bounds = {split: np.searchsorted(starts, [first, end]) for split, starts in begin.items()}
        yield Assignment(
            file=file,
            first=first,
            fates=zlib.compress(survey.fates[first:end].tobytes(), 1),
            starts={split: (int(low) - 1, begin[split][low:high]) for split, (low, high) in bounds.items()},
        )
        first = end
