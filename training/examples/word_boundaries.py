"""Words that go beyond the pieces of the vocabulary: Chinese ones, or those that spaces in the text mark."""

from collections.abc import Iterable
from itertools import pairwise

from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.unicode_tables import PUNCTUATION, unicode_tables
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..corpus.chinese_words import check_jieba, chinese_words
from .words import CONTINUES, continuing_tokens

PIECES, SPACES, JIEBA = "pieces", "spaces", "jieba"


class MarkingTokenizer:
    """Turns sentences into token ids that are marked by `CONTINUES` where they continue the word before them.

    Pieces of the vocabulary that go on inside a word (`##`) always do. So do tokens of one word of jieba's, or of
    one stretch without white space. A punctuation mark is a word by itself.

    Args:
        tokenizer: gives the ids.
        boundaries: `"jieba"`, `"spaces"`, or `"pieces"`, with which nothing is marked, for the vocabulary says it.

    Raises:
        InputError: if jieba is asked for and is not installed.
    """

    def __init__(self, tokenizer: WordPieceTokenizer, boundaries: str) -> None:
        self.tokenizer = tokenizer
        self.boundaries = boundaries
        if boundaries == JIEBA:
            check_jieba()
        self._stretches = TextNormalizer(lowercase=False, strip_accents=False, split_cjk=False).stretch_matches
        self._continuing = continuing_tokens(tokenizer).tolist()
        flags = unicode_tables().flags
        self._alone = [len(token) == 1 and bool(flags[ord(token)] & PUNCTUATION) for token in tokenizer.vocabulary]

    def __call__(self, sentence: str) -> list[int]:
        """Returns the marked ids of a sentence; special tokens in it are text."""
        if self.boundaries == PIECES:
            return self.tokenizer.encode_ids(sentence, keep_special_tokens=False)
        ids, _, offsets = self.tokenizer.encode(sentence, keep_special_tokens=False)
        word_of = _word_of(len(sentence), self._words(sentence))
        words = [
            -1 if self._alone[token_id] else word_of[start] for token_id, (start, _) in zip(ids, offsets, strict=True)
        ]
        marked = ids[:1]
        for token_id, (before, word) in zip(ids[1:], pairwise(words), strict=True):
            continues = self._continuing[token_id] or before == word >= 0
            marked.append(token_id | CONTINUES if continues else token_id)
        return marked

    def _words(self, sentence: str) -> Iterable[tuple[int, int]]:
        """Returns where words begin and end, in order."""
        if self.boundaries == SPACES:
            return [match.span() for match in self._stretches(sentence)]
        words, start = [], 0
        for word in chinese_words(sentence):
            words.append((start, start + len(word)))
            start += len(word)
        return words


def _word_of(size: int, words: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the number of the word that each character is in, -1 for none."""
    word_of = [-1] * size
    for number, (start, end) in enumerate(words):
        word_of[start:end] = [number] * (end - start)
    return word_of
