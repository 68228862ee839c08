import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary_extension import extend_vocabulary_words
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

TEXTS = [
    "Stent the stent, 国 2019!",
    "the STENT 国 2019 unaffable",
    "the 国 Café cafe [MASK] [E1] [E1]",
    "国 [E1] stent",
]


def test_most_frequent_words_that_are_split_or_unknown(tokenizer):
    words = extend_vocabulary_words(tokenizer, TEXTS, 10, 2)
    # "the" is a word of the vocabulary; "[E1]" is "[", "e1", "]".
    assert words == ["stent", "国", "e1", "2019", "cafe"]
    assert extend_vocabulary_words(tokenizer, TEXTS, 2, 2) == words[:2]
    assert "unaffable" in extend_vocabulary_words(tokenizer, TEXTS, 10, 1)
    assert extend_vocabulary_words(tokenizer, TEXTS, 10) == []


def test_words_are_those_that_a_cased_tokenizer_sees(cased_tokenizer):
    assert extend_vocabulary_words(cased_tokenizer, ["Stent Stent stent"], 1, 1) == ["Stent"]


def test_every_word_becomes_one_token_once_added(tokenizer):
    words = extend_vocabulary_words(tokenizer, TEXTS, 100, 1)
    larger = WordPieceTokenizer([*tokenizer.vocabulary, *words], **tokenizer.options)
    assert [larger.tokenize(word) for word in words] == [[word] for word in words]
    assert extend_vocabulary_words(larger, TEXTS, 100, 1) == []


def test_added_tokens_in_the_text_are_no_words(vocabulary):
    tokenizer = WordPieceTokenizer([*vocabulary, "[E1]"], added_tokens=["[E1]"])
    assert "e1" not in extend_vocabulary_words(tokenizer, TEXTS, 10, 1)


def test_words_beyond_the_tokenizers_limit_are_left_out(vocabulary):
    tokenizer = WordPieceTokenizer(vocabulary, max_chars_per_word=4)
    assert extend_vocabulary_words(tokenizer, TEXTS, 10, 2) == ["国", "e1", "2019", "cafe"]


@pytest.mark.parametrize("name", ["count", "min_frequency"])
@pytest.mark.parametrize("value", [0, True, 2.5])
def test_rejects_numbers_that_are_not_positive(tokenizer, name, value):
    with pytest.raises(InputError, match=rf"`{name}` must be a positive whole number. Received: {name}={value!r}"):
        extend_vocabulary_words(tokenizer, TEXTS, **{"count": 5, name: value})
