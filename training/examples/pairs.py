"""Sentence pairs for next-sentence prediction, made as the original makes them.

Where the original is at fault (a pair of one document's own sentences labelled random) ours is not.
"""

import dataclasses
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

TRUE_NEXT, RANDOM_NEXT = 0, 1
SPECIAL_TOKENS = 3
_REDRAWS = 10

Sentence = Sequence[int]


class Pair(NamedTuple):
    """Two parts of a row, as token ids without the special ones; label 1 means that the second is random."""

    first: list[int]
    second: list[int]
    next_sentence_label: int


@dataclasses.dataclass
class PairCounts:
    """What became of a block's sentences and tokens.

    Every token has one place of its own, in a first part or in a true second one. There it is kept or cut off,
    or its sentence is left out; a random second part borrows tokens that have their place elsewhere.

    Attributes:
        kept_tokens: tokens that stand in their own place.
        truncated_tokens: tokens cut off there because the pair was longer than the row.
        unpaired_sentences: single sentences that found no partner.
        unpaired_tokens: tokens of these.
        single_sentence_chunks: pairs whose second part had to be random, for the chunk was a single sentence.
    """

    kept_tokens: int = 0
    truncated_tokens: int = 0
    unpaired_sentences: int = 0
    unpaired_tokens: int = 0
    single_sentence_chunks: int = 0

    def __iadd__(self, other: "PairCounts") -> "PairCounts":
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self


@dataclasses.dataclass(frozen=True)
class PairMaker:
    """Cuts documents into sentence pairs.

    Sentences are gathered until they fill the target length. The first part takes some of them; the second
    is the rest, or starts anywhere in another document, and then the rest goes back. Every document draws
    one target length: the full one, or with `short_seq_prob` any length from 2.

    Args:
        length: tokens of a row, [CLS] and two [SEP] included.
        short_seq_prob: share of the documents with a shorter target.
        next_sentence_prob: share of the pairs whose second part is random, among those made of two or more
            sentences; a chunk of a single sentence always takes a random one. At 0 no pair does.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), appendix A.2.
    """

    length: int
    short_seq_prob: float = 0.1
    next_sentence_prob: float = 0.5

    def pairs_of_block(
        self, documents: Sequence[Sequence[Sentence]], rng: np.random.Generator
    ) -> tuple[list[Pair], PairCounts]:
        """Returns the pairs of all documents, and what became of their tokens.

        Args:
            documents: each a list of sentences, each a list of token ids; none of them empty, no two
                documents the same. With fewer than two documents every pair is a true successor.
            rng: source of every choice.
        """
        pairs: list[Pair] = []
        counts = PairCounts()
        for index in range(len(documents)):
            self._pairs_of_document(documents, index, rng, pairs, counts)
        return pairs, counts

    def _pairs_of_document(
        self,
        documents: Sequence[Sequence[Sentence]],
        index: int,
        rng: np.random.Generator,
        pairs: list[Pair],
        counts: PairCounts,
    ) -> None:
        document = documents[index]
        most = self.length - SPECIAL_TOKENS
        target = most
        if rng.random() < self.short_seq_prob:
            target = int(rng.integers(2, most + 1))
        may_be_random = len(documents) > 1 and self.next_sentence_prob > 0
        start = 0
        while start < len(document):
            end, size = start, 0
            # Without random parts a single sentence has no partner but the next one.
            while end < len(document) and (size < target or (end - start == 1 and not may_be_random)):
                size += len(document[end])
                end += 1
            middle = start + 1 if end - start == 1 else start + int(rng.integers(1, end - start))
            first = list(chain.from_iterable(document[start:middle]))
            second = None
            if may_be_random and (middle == end or rng.random() < self.next_sentence_prob):
                second = self._random_part(documents, index, middle, target - len(first), rng)
            if second is not None:
                pairs.append(_truncated(first, second, RANDOM_NEXT, most, rng))
                kept, own = len(pairs[-1].first), len(first)
                counts.single_sentence_chunks += middle == end
                start = middle
            elif middle < end:
                second = list(chain.from_iterable(document[middle:end]))
                pairs.append(_truncated(first, second, TRUE_NEXT, most, rng))
                kept, own = len(pairs[-1].first) + len(pairs[-1].second), len(first) + len(second)
                start = end
            else:
                counts.unpaired_sentences += 1
                counts.unpaired_tokens += len(first)
                kept, own = 0, 0
                start = end
            counts.kept_tokens += kept
            counts.truncated_tokens += own - kept

    @staticmethod
    def _random_part(
        documents: Sequence[Sequence[Sentence]], index: int, successor: int, wanted: int, rng: np.random.Generator
    ) -> list[int] | None:
        """Returns sentences of another document that do not begin as the true successor does, if found."""
        document = documents[index]
        true_next = list(document[successor]) if successor < len(document) else None
        for _ in range(_REDRAWS):
            other = int(rng.integers(len(documents) - 1))
            source = documents[other + (other >= index)]
            start = int(rng.integers(len(source)))
            if true_next is not None and list(source[start]) == true_next:
                continue
            part: list[int] = []
            for sentence in source[start:]:
                part.extend(sentence)
                if len(part) >= wanted:
                    break
            return part
        return None


def _truncated(first: list[int], second: list[int], label: int, most: int, rng: np.random.Generator) -> Pair:
    """Drops tokens one by one from the longer part (the second when equal), from its front or its back."""
    excess = len(first) + len(second) - most
    if excess > 0:
        level = abs(len(first) - len(second))
        alternating = max(0, excess - level)
        from_longer = min(excess, level)
        from_first = alternating // 2 + (from_longer if len(first) > len(second) else 0)
        from_second = alternating - alternating // 2 + (from_longer if len(second) > len(first) else 0)
        first = _shortened(first, from_first, rng)
        second = _shortened(second, from_second, rng)
    return Pair(first, second, label)


def _shortened(part: list[int], excess: int, rng: np.random.Generator) -> list[int]:
    if not excess:
        return part
    front = int(rng.binomial(excess, 0.5))
    return part[front : len(part) - (excess - front)]
