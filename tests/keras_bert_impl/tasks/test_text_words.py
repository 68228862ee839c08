"""Words as slices of a text."""

import pytest
from task_models import toy_tokenizer
from unicode_texts import unicode_texts

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.text_words import text_words


@pytest.fixture(scope="module")
def tokenizer():
    return toy_tokenizer()


def test_words_are_separate_at_spaces_and_around_punctuation(tokenizer):
    text = "  Don't  stop, U.S. film!"
    assert text_words(tokenizer, text)[:4] == [("Don", 2, 5), ("'", 5, 6), ("t", 6, 7), ("stop", 9, 13)]
    assert [word.text for word in text_words(tokenizer, text)[4:]] == [",", "U", ".", "S", ".", "film", "!"]


def test_ideographs_are_words_only_where_the_tokenizer_splits_them(tokenizer):
    assert [word.text for word in text_words(tokenizer, "a北京b")] == ["a", "北", "京", "b"]
    assert [word.text for word in text_words(toy_tokenizer(split_cjk=False), "a北京b")] == ["a北京b"]


def test_a_word_keeps_the_accents_and_the_emoji_its_selector(tokenizer):
    text = "cafe\u0301, \u2764\ufe0f İstanbul ΟΔΟΣ 👩\u200d🚀"
    words = text_words(tokenizer, text)
    assert [word.text for word in words] == ["cafe\u0301", ",", "\u2764\ufe0f", "İstanbul", "ΟΔΟΣ", "👩\u200d🚀"]


def test_special_tokens_are_words_and_dropped_characters_are_in_none(tokenizer):
    assert [word.text for word in text_words(tokenizer, "a[MASK]b\x00 \u200b c\u200b")] == ["a", "[MASK]", "b", "c"]
    assert text_words(tokenizer, "") == text_words(tokenizer, " \n ") == []


@pytest.mark.parametrize("options", [{}, {"lowercase": False}, {"strip_accents": False, "split_cjk": False}])
def test_words_hold_what_the_text_holds(options):
    """In order, without overlap, and cut into the pieces that the text is cut into."""
    tokenizer = toy_tokenizer(**options)
    for text in unicode_texts(400, seed=3):
        words = text_words(tokenizer, text)
        assert all(text[start:end] == word for word, start, end in words)
        edges = [edge for word in words for edge in (word.start, word.end)]
        assert edges == sorted(edges) and all(word.text for word in words)
        if "Σ" not in text:  # Whether one is final may be seen from the next word.
            assert [piece for word in words for piece in tokenizer.encode_ids(word.text)] == tokenizer.encode_ids(text)


def test_what_is_no_text_is_refused(tokenizer):
    with pytest.raises(InputError, match=r"`text` must be a string. Received: int"):
        text_words(tokenizer, 7)
    with pytest.raises(InputError, match="must not contain a lone surrogate"):
        text_words(tokenizer, "a\ud800")
