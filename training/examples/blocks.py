"""A corpus cut into blocks: the unit of work, of a shard, and of where a random second part comes from.

Blocks depend on the corpus alone, never on the number of workers, and so do the results.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from ..corpus.documents import Document

SMALLEST, LARGEST, BLOCKS = 2**18, 2**22, 64


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


class _Builder:
    def __init__(self, split: str, size: int):
        self.split, self.size = split, size
        self.waiting: list[Document] = []
        self.current: list[Document] = []
        self.current_size = 0
        self.number = 0

    def add(self, document: Document) -> Iterator[Block]:
        self.current.append(document)
        self.current_size += document.size
        if self.current_size >= self.size and len(self.current) >= 2:
            yield from self._release()
            self.waiting, self.current, self.current_size = self.current, [], 0

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
