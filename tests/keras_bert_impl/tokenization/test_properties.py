import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

# Whole Unicode now and then; mostly what meets in words, breaks them, vanishes, changes form or changes place.
TELLING = (
    "abAB0 \t\u00a0\u2028.,[-$éÉïİIıßΣσςΑα\u00ad\u200d\ufeff\x00\x0b\ufffd中文\uf900\U0002f800한글ひン"
    "\u0301\u0307\u0323\u0345\u302e\u302f\u0e31\u1b44\U0001d165\U0001d16e\U0001d15f\u1fef\u037e\u212b\u0958ʼ’:"
    "\U0001f468\U0001f3fd\u05d0\u0627\u0651\u064b\ue000\U00011f00\U0010ffff"
)
characters = st.one_of(st.sampled_from(TELLING), st.characters(exclude_categories=["Cs"]))
words = st.sampled_from(["unaffable", "[MASK]", "[CLS]", "[MAS", "the", "ΑΣ", "a" * 199, "naïve"])
texts = st.lists(st.one_of(words, st.text(characters, max_size=12)), max_size=6).map("".join)
several = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def in_graph(tokenizer):
    return InGraphWordPiece(tokenizer)


@pytest.fixture(scope="module")
def cased_in_graph(cased_tokenizer):
    return InGraphWordPiece(cased_tokenizer)


@several
@given(st.lists(texts, max_size=4), st.booleans())
def test_in_graph_equals_python(in_graph, tokenizer, batch, keep_special_tokens):
    ids = in_graph(tf.constant(batch, tf.string), keep_special_tokens)
    assert ids.to_list() == [tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens) for text in batch]


@several
@given(st.lists(texts, max_size=4))
def test_cased_in_graph_equals_python(cased_in_graph, cased_tokenizer, batch):
    assert cased_in_graph(tf.constant(batch, tf.string)).to_list() == [
        cased_tokenizer.encode_ids(text) for text in batch
    ]


@several
@given(st.lists(st.binary(max_size=30), max_size=4))
def test_invalid_utf8_reads_as_replacement_characters(in_graph, tokenizer, batch):
    decoded = [data.decode("utf-8", errors="replace") for data in batch]
    assert in_graph(tf.constant(batch, tf.string)).to_list() == [tokenizer.encode_ids(text) for text in decoded]


@several
@given(texts, st.booleans())
def test_offsets_slice_the_text_in_order(tokenizer, text, keep_special_tokens):
    encoding = tokenizer.encode(text, keep_special_tokens=keep_special_tokens)
    assert encoding.ids == tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens)
    assert encoding.tokens == [tokenizer.id_to_token(token_id) for token_id in encoding.ids]
    previous = (0, 0)
    for start, end in encoding.offsets:
        assert 0 <= start < end <= len(text)
        assert start >= previous[1] or (start, end) == previous  # or made from the same character
        previous = (start, end)


@several
@given(texts)
def test_each_slice_by_itself_gives_its_piece(tokenizer, text):
    encoding = tokenizer.encode(text)
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        whole_character = encoding.offsets.count((start, end)) == 1
        plain = text[start:end].isascii() and token not in tokenizer.special_tokens
        if plain and whole_character:
            assert text[start:end].lower() == token.removeprefix("##")


@several
@given(st.lists(st.text("abcdeft", min_size=1, max_size=20), max_size=8))
def test_decode_gives_plain_words_back(tokenizer, plain_words):
    text = " ".join(plain_words)
    assert tokenizer.decode(tokenizer.encode_ids(text)) == text


@several
@given(texts, texts)
def test_texts_apart_by_a_space_do_not_influence_one_another(tokenizer, one, other):
    together = tokenizer.encode_ids(f"{one} {other}")
    assert together == tokenizer.encode_ids(one) + tokenizer.encode_ids(other)
