"""Which words and characters of the text a vocabulary does not know."""

import collections

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

# Of each block only the commonest unknown words are kept, so that memory does not grow with the text.
MOST_WORDS = 200
_SHOWN = 40


class UnknownWords:
    """Counts unknown words and characters of sentences.

    A character is unknown if the vocabulary has it neither at the start of a word nor inside one.

    Args:
        tokenizer: the vocabulary.

    Attributes:
        words: unknown words, as the tokenizer sees them.
        characters: unknown characters in them.
    """

    def __init__(self, tokenizer: WordPieceTokenizer):
        self._tokenizer = tokenizer
        self.words: collections.Counter[str] = collections.Counter()
        self.characters: collections.Counter[str] = collections.Counter()

    def add(self, sentence: str) -> None:
        """Adds the unknown words of a sentence; special tokens in it are text."""
        known, inside = self._tokenizer.start_pieces, self._tokenizer.continuation_pieces
        words = self._tokenizer.unknown_words(sentence, keep_special_tokens=False)
        self.words.update(words)
        for word in words:
            self.characters.update(char for char in word if char not in known and char not in inside)


def beginning(word: str) -> str:
    """Returns a word as it is named: the first characters and an ellipsis of a long one."""
    return word if len(word) <= _SHOWN else f"{word[:_SHOWN]}…"


def commonest(counts: collections.Counter[str], number: int) -> collections.Counter[str]:
    """Returns the commonest ones, of equally common ones the first by code points."""
    chosen = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]
    return collections.Counter(dict(chosen))
