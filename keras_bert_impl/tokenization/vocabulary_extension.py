"""Finding the words that a vocabulary lacks."""

from collections.abc import Callable, Iterable, Iterator

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.word_counts import count_words
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


def extend_vocabulary_words(
    tokenizer: WordPieceTokenizer,
    texts: Iterable[str],
    count: int,
    min_frequency: int = 5,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Returns the corpus' most frequent words that the tokenizer cuts into several pieces or does not know.

    They are words as the tokenizer sees them: lower-cased if it lower-cases, without white space and punctuation,
    numbers and single characters among them, and none longer than 100 characters or the tokenizer's limit. Special
    and added tokens in the text are no words. The most frequent come first, equally frequent ones in order of
    their characters; the same texts give the same list. Memory is bounded as in `count_words`.

    Hand the list to `keras_bert_impl.checkpoints.surgery.extend_vocabulary`.

    Args:
        tokenizer: the tokenizer with the vocabulary to be extended.
        texts: iterable of strings, for example lines. Read once.
        count: int. Number of words to find at most.
        min_frequency: int. Rarer words are left out.
        say: called with a line if there were too many different words to count them all.

    Raises:
        InputError: if `count` or `min_frequency` is not positive.
    """
    for name, value in (("count", count), ("min_frequency", min_frequency)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"`{name}` must be a positive whole number. Received: {name}={value!r}")
    counts = count_words(_without_kept_tokens(tokenizer, texts), tokenizer.normalizer, say=say)
    lacking = [
        word
        for word, times in counts.items()
        if times >= min_frequency and word not in tokenizer.start_pieces and len(word) <= tokenizer.max_chars_per_word
    ]
    return sorted(lacking, key=lambda word: (-counts[word], word))[:count]


def _without_kept_tokens(tokenizer: WordPieceTokenizer, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for part, _, token_id in tokenizer.parts(text):
            if token_id is None:
                yield part
