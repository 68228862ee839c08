"""A corpus cut into blocks: the unit of work, of a shard, and of where a random second part comes from.

Blocks depend on the corpus alone, never on the number of workers, and so do the results.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from ..corpus.documents import Document

# The largest decides how much memory a corpus of 100 MB or more takes: that of one of 100 MB, whatever its size.
SMALLEST, LARGEST, BLOCKS = 2**18, 3 * 2**19, 64


@dataclasses.dataclass(frozen=True)
class Block:
    """Documents that are worked on together.

    Attributes:
        split: `"train"` or `"held_out"`.
        number: counts the blocks of a split from 0.
        documents: two or more, or the only one of its split.
    """

    split: str
    number: int
    documents: tuple[Document, ...]


def block_size(corpus_size: int) -> int:
    """Returns the characters of a block: some 64 blocks of a small corpus, bounded memory for a large one."""
    return min(LARGEST, max(SMALLEST, corpus_size // BLOCKS))


def blocks_of_documents(documents: Iterable[tuple[str, Document]], size: int) -> Iterator[Block]:
    """Cuts a stream of (split, document) into blocks of at least `size` characters and two documents.

    A last block of one document is joined to the one before it, which is why one block per split waits.
    """
    builders: dict[str, _Builder] = {}
    for split, document in documents:
        builder = builders.setdefault(split, _Builder(split, size))
        yield from builder.add(document)
    for split in sorted(builders):
        yield from builders[split].finish()


def block_starts(sizes: Iterable[int], size: int) -> list[int]:
    """Returns the number of the first document of each block that `blocks_of_documents` makes of a split.

    Args:
        sizes: of the documents of the split.
        size: of the blocks.
    """
    measure = _Measure(size)
    starts, number = [], 0
    fresh = True
    for number, document in enumerate(sizes):
        if fresh:
            starts.append(number)
        fresh = measure.fills(document)
    if len(starts) > 1 and starts[-1] == number:
        starts.pop()
    return starts


class _Measure:
    """Says with which document a block is full."""

    def __init__(self, size: int):
        self.size = size
        self.current_size = self.documents = 0

    def fills(self, document: int) -> bool:
        """Takes the size of the next document; True: with it the block is full, and another one begins."""
        self.current_size += document
        self.documents += 1
        if self.current_size < self.size or self.documents < 2:
            return False
        self.current_size = self.documents = 0
        return True


class _Builder:
    def __init__(self, split: str, size: int):
        self.split, self.measure = split, _Measure(size)
        self.waiting: list[Document] = []
        self.current: list[Document] = []
        self.number = 0

    def add(self, document: Document) -> Iterator[Block]:
        self.current.append(document)
        if self.measure.fills(document.size):
            yield from self._release()
            self.waiting, self.current = self.current, []

    def finish(self) -> Iterator[Block]:
        if len(self.current) == 1:
            self.waiting += self.current
        else:
            yield from self._release()
            self.waiting = self.current
        yield from self._release()

    def _release(self) -> Iterator[Block]:
        if self.waiting:
            yield Block(self.split, self.number, tuple(self.waiting))
            self.number += 1
