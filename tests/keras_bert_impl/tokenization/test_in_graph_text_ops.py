import random

import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ODD_TOKENS = [
    [], ["#", "##", "###"], ["a b", "don't", "\ta", "a\t"], ["##.", ".", "\u2028"], ["é", "##é", "##" + "a" * 250],
]  # fmt: skip


@pytest.fixture(scope="module")
def text_ops(tokenizer):
    return TextOpsWordPiece(tokenizer)


@pytest.mark.parametrize("odd", ODD_TOKENS, ids=range(len(ODD_TOKENS)))
def test_equals_the_python_form_with_odd_vocabularies(odd):
    choose = random.Random(len(odd))
    letters = "aBc#.'é"
    pieces = ["".join(choose.choices(letters, k=choose.randint(1, 4))) for _ in range(25)]
    prefixed = [choose.choice(["", "##"]) + piece for piece in pieces]
    tokenizer = WordPieceTokenizer(
        list(dict.fromkeys([*SPECIAL_TOKENS, *"aBb", *prefixed, *odd])),
        lowercase=choose.random() < 0.5,
        max_chars_per_word=choose.choice([3, 200]),
    )
    texts = ["".join(choose.choices("aaBb" + letters + "   \t", k=choose.randint(0, 14))) for _ in range(1000)]
    texts += ["##", "a##b", "a" * 200, "a" * 201]
    assert TextOpsWordPiece(tokenizer)(texts).to_list() == [tokenizer.encode_ids(text) for text in texts]


@pytest.mark.parametrize("texts", [[], [""], ["é"], ["", "the", "é", "", "[MASK] a", "the\x7f sat"], ["the sat"]])
@pytest.mark.parametrize("keep_special_tokens", [True, False])
def test_plain_and_other_texts_keep_their_order(text_ops, tokenizer, texts, keep_special_tokens):
    ids = text_ops(tf.constant(texts, tf.string), keep_special_tokens)
    assert (ids.dtype, ids.row_splits.dtype) == (tf.int32, tf.int64)
    assert ids.to_list() == [tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens) for text in texts]


def test_invalid_utf8_vanishes_without_separating_words(text_ops, tokenizer):
    assert text_ops(tf.constant([b"t\xffhe sat", b"sat"])).to_list() == [
        tokenizer.encode_ids("the sat"),
        tokenizer.encode_ids("sat"),
    ]


def test_works_inside_a_dataset(text_ops, tokenizer):
    texts = ["the sat", "naïve", "", "[MASK] un"] * 5
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(7).map(text_ops, num_parallel_calls=2)
    assert [ids for batch in dataset for ids in batch.to_list()] == [tokenizer.encode_ids(text) for text in texts]


def test_a_vocabulary_without_plain_words_leaves_them_unknown():
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "中"])
    assert TextOpsWordPiece(tokenizer)(["the", "中"]).to_list() == [[1], [5]]


def test_rejects_pieces_that_the_operation_cannot_hold(vocabulary):
    tokenizer = WordPieceTokenizer([*vocabulary, "a" * 257], max_chars_per_word=300)
    with pytest.raises(InputError, match=r"`tokenizer` must have no piece of over 256 letters. Received: one of 257"):
        TextOpsWordPiece(tokenizer)
