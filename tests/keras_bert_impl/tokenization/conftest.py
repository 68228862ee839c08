"""A vocabulary that has something of every script, for tests that run without the shared data."""

import pytest

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "sat", "un", "##aff", "##able", "mask", "hello", "##llo", "ας", "##ας", "ΑΣ", "naive", "naïve", "中"]
CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789[]().,;`'!-éïßαςσΣΑıĳ한글ᄀᄒ中文ひ"
MARKS = "\u0301\u0307\u0323\u1161\u11ab\u302e\U0001d165\U0001d16e\u0e31"


@pytest.fixture(scope="session")
def vocabulary() -> list[str]:
    """Special tokens, a few words, and single characters at the start and inside of words."""
    characters = sorted(set(CHARACTERS + MARKS))
    return list(dict.fromkeys([*SPECIAL_TOKENS, *WORDS, *characters, *(f"##{char}" for char in characters)]))


@pytest.fixture(scope="session")
def tokenizer(vocabulary: list[str]) -> WordPieceTokenizer:
    """The uncased tokenizer of that vocabulary."""
    return WordPieceTokenizer(vocabulary)


@pytest.fixture(scope="session")
def cased_tokenizer(vocabulary: list[str]) -> WordPieceTokenizer:
    """The cased tokenizer of that vocabulary."""
    return WordPieceTokenizer(vocabulary, lowercase=False)
