"""Counting the words of a corpus of any size in bounded memory."""

from collections import Counter
from collections.abc import Callable, Iterable

from keras_bert_impl.tokenization.text_normalizer import TextNormalizer

# Bounds of memory. Raw text is gathered first, since most of it repeats and needs no second normalisation.
MOST_WORDS = 1 << 20
_MOST_STRETCHES = 1 << 18
_MOST_CHARACTERS = 1 << 24
LONGEST_WORD = 100


def count_words(
    texts: Iterable[str],
    normalizer: TextNormalizer,
    *,
    most_words: int = MOST_WORDS,
    say: Callable[[str], None] = lambda line: None,
) -> Counter[str]:
    """Counts normalised words; those of over 100 characters are left out.

    Counts are exact as long as there are at most `most_words` different words. Whenever there are more, those seen
    once since they were last forgotten go, then those seen at most 2, 4, 8, … times, until there is room. So what
    is left is never counted too often, and too rarely by the sum of these limits at most. The same texts in the
    same order give the same counts.

    Args:
        texts: iterable of strings, read once. Each must fit into memory by itself.
        normalizer: finds the words.
        most_words: int. Number of different words to be remembered.
        say: called with a line if words had to be forgotten.
    """
    words = _BoundedCounts(most_words)
    stretches: Counter[str] = Counter()
    characters = 0
    for text in texts:
        stretches.update(normalizer.stretches(text))
        characters += len(text)
        if len(stretches) > _MOST_STRETCHES or characters > _MOST_CHARACTERS:
            words.add(stretches, normalizer)
            stretches.clear()
            characters = 0
    words.add(stretches, normalizer)
    if words.lost:
        total = words.lost + words.counts.total()
        say(
            f"more than {most_words:,} different words: the rarest were forgotten on the way ({words.lost / total:.2%} "
            f"of all words), so that counts may be short by up to {words.shortfall}"
        )
    return words.counts


class _BoundedCounts:
    """Counts of words, without the rarest where there are too many.

    Attributes:
        counts: the words that are left.
        lost: int, sum of the counts that were forgotten.
        shortfall: int, by how much a count may be too small.
    """

    def __init__(self, most_words: int) -> None:
        self.counts: Counter[str] = Counter()
        self.lost = 0
        self.shortfall = 0
        self._most_words = most_words

    def add(self, stretches: Counter[str], normalizer: TextNormalizer) -> None:
        """Adds the words of raw stretches of text, each as often as it was seen."""
        counts = self.counts
        for stretch, count in stretches.items():
            for word in normalizer.word_texts(stretch):
                if len(word) <= LONGEST_WORD:
                    counts[word] += count
            if len(counts) > self._most_words:
                self._forget_the_rarest()
                counts = self.counts

    def _forget_the_rarest(self) -> None:
        limit = 1
        while len(self.counts) > self._most_words:
            before = self.counts.total()
            # A new dict: one that words are deleted from keeps its size.
            self.counts = Counter({word: count for word, count in self.counts.items() if count > limit})
            self.lost += before - self.counts.total()
            self.shortfall += limit
            limit *= 2
