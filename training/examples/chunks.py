"""Chunks of documents, without next-sentence prediction: full sentences, as RoBERTa has them."""

import dataclasses
from collections.abc import Iterator, Sequence

from .pairs import TRUE_NEXT, Pair, Sentence

SPECIAL_TOKENS = 2


@dataclasses.dataclass
class ChunkCounts:
    """What became of a block's sentences.

    Attributes:
        kept_tokens: tokens of all chunks, the special ones not counted; every token of the text is among them.
        cut_sentences: sentences longer than a row, which go on in the next chunk.
    """

    kept_tokens: int = 0
    cut_sentences: int = 0


@dataclasses.dataclass(frozen=True)
class ChunkMaker:
    """Cuts documents into chunks of whole sentences, each as many as a row has room for.

    No chunk holds text of two documents. Only a sentence that is longer than a row is cut: it fills one row after
    the other, and what is left of it is followed by the next sentences.

    Args:
        length: tokens of a row, `[CLS]` and `[SEP]` included.

    Reference:
        [Liu et al., 2019](https://arxiv.org/abs/1907.11692), section 4.2 (DOC-SENTENCES).
    """

    length: int

    def chunks_of_block(self, documents: Sequence[Sequence[Sentence]]) -> tuple[list[Pair], ChunkCounts]:
        """Returns the chunks of all documents, as pairs without a second part, and what became of their tokens.

        Args:
            documents: each a list of sentences, each a list of token ids; none of them empty.
        """
        most = self.length - SPECIAL_TOKENS
        chunks = [Pair(chunk, [], TRUE_NEXT) for document in documents for chunk in _chunks(document, most)]
        counts = ChunkCounts(
            kept_tokens=sum(len(chunk.first) for chunk in chunks),
            cut_sentences=sum(len(sentence) > most for document in documents for sentence in document),
        )
        return chunks, counts


def _chunks(document: Sequence[Sentence], most: int) -> Iterator[list[int]]:
    chunk: list[int] = []
    for sentence in document:
        if chunk and len(chunk) + len(sentence) > most:
            yield chunk
            chunk = []
        chunk += sentence
        while len(chunk) > most:
            yield chunk[:most]
            chunk = chunk[most:]
    if chunk:
        yield chunk
