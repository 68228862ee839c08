"""The words of a text, as slices of it."""

from typing import NamedTuple

from keras_bert_impl.tokenization.unicode_tables import MARK, unicode_tables
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class TextWord(NamedTuple):
    """A word of a text: `text[start:end]`."""

    text: str
    start: int
    end: int


def text_words(tokenizer: WordPieceTokenizer, text: str) -> list[TextWord]:
    """Returns the words that the tokenizer finds in a text before it cuts them into pieces.

    White space separates words; every punctuation mark is a word by itself, and so is every CJK ideograph if the
    tokenizer splits them, and a special or added token that is written in the text. A word keeps the accents that
    combine with its last letter, though the tokenizer may strip them. Characters that the tokenizer drops (control
    and format characters) are in no word unless they stand inside one.

    Raises:
        InputError: if `text` is not a string or holds a lone surrogate.
    """
    words: list[TextWord] = []
    for part, begin, special_id in tokenizer.parts(text):
        if special_id is not None:
            words.append(TextWord(part, begin, begin + len(part)))
            continue
        places = [
            (word.sources[0] + match.start(), word.sources[-1] + 1 + match.start())
            for match in tokenizer.normalizer.stretch_matches(part)
            for word in tokenizer.normalizer.words(match[0])
        ]
        limits = [*(start for start, _ in places), len(part)][1:]  # none where there is no word
        for (start, end), limit in zip(places, limits, strict=True):
            end = _with_marks(part, end, limit)
            words.append(TextWord(part[start:end], start + begin, end + begin))
    return words


def _with_marks(text: str, end: int, limit: int) -> int:
    """Returns the end of a word with the marks that follow it, which combine with its last letter."""
    flags = unicode_tables().flags
    while end < limit and flags[ord(text[end])] & MARK:
        end += 1
    return end
