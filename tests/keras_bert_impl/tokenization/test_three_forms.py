import os
import subprocess
import sys
from pathlib import Path

import code_point_checksum
import numpy as np
import pytest
import tensorflow as tf
from code_point_checksum import CODE_POINTS, checksum, words_of_code_points
from unicode_texts import unicode_texts

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.answer_windows import QuestionCutter
from keras_bert_impl.tasks.text_words import text_words
from keras_bert_impl.tokenization.graph_normalizer import SYMBOL_CODE, SYMBOL_SPACE, GraphNormalizer
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

# What every Python version must give under every locale; seen with 3.11, 3.12 and 3.13.
CHECKSUMS = {True: "22d61b9081fa9a13", False: "8abb58bb7abfde15"}

# Opens neither Keras nor TensorFlow.
PRINT_CHECKSUMS = """
import contextlib, locale
import keras_bert_console
with contextlib.suppress(locale.Error): locale.setlocale(locale.LC_ALL, "")
from code_point_checksum import checksum, words_of_code_points
print(checksum(words_of_code_points(True)), checksum(words_of_code_points(False)))
"""

# All three forms on odd texts, in a process with another locale.
OTHER_LOCALE = """
import contextlib, locale
import tensorflow as tf
with contextlib.suppress(locale.Error): locale.setlocale(locale.LC_ALL, "")
from unicode_texts import unicode_texts
from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "i", "##i", "ı", "##ı", "title", "I"])
texts = ["I İ ı i TITLE II ıI", "TITLE", "I", "TİTLE", *unicode_texts(300, 5)]
expected = [tokenizer.encode_ids(text) for text in texts]
assert InGraphWordPiece(tokenizer)(texts).to_list() == expected
assert TextOpsWordPiece(tokenizer)(texts).to_list() == expected
print(expected[:4])
"""


def rich_vocabulary(vocabulary, texts):
    """Returns the vocabulary with most characters of the texts, at the start of words and inside."""
    normalizers = [TextNormalizer(lowercase=low, strip_accents=low, split_cjk=True) for low in (True, False)]
    characters = {
        char
        for text in texts
        for normalizer in normalizers
        for stretch in normalizer.stretches(text)
        for word in normalizer.word_texts(stretch)
        for char in word
        if ord(char) % 16  # some are unknown
    }
    both = [token for char in sorted(characters) for token in (char, "##" + char)]
    return list(dict.fromkeys([*vocabulary, *both, "ab", "##cd", "##bcd", "abcde", "[E]", "ce"]))


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def forms(request, vocabulary):
    rich = rich_vocabulary(vocabulary, unicode_texts(3000, 1))
    tokenizer = WordPieceTokenizer(rich, lowercase=request.param, added_tokens=["[E]", "ce"])
    return tokenizer, InGraphWordPiece(tokenizer), TextOpsWordPiece(tokenizer)


def assert_forms_agree(forms, texts, keep_special_tokens=True):
    tokenizer, *in_graph = forms
    expected = [tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens) for text in texts]
    for form in in_graph:
        assert form(tf.constant(texts), keep_special_tokens).to_list() == expected


def assert_offsets_slice_in_order(tokenizer, text):
    encoding = tokenizer.encode(text)
    assert encoding.ids == tokenizer.encode_ids(text)
    previous = (0, 0)
    for start, end in encoding.offsets:
        assert 0 <= start < end <= len(text)
        assert start >= previous[1] or (start, end) == previous  # or made from the same character
        previous = (start, end)


@pytest.mark.parametrize("keep_special_tokens", [True, False])
def test_forms_agree_on_generated_texts(forms, keep_special_tokens):
    texts = list(unicode_texts(3000, 2))
    assert_forms_agree(forms, texts, keep_special_tokens)
    for text in texts[:30]:
        assert_forms_agree(forms, [text], keep_special_tokens)


@pytest.mark.slow
def test_forms_agree_on_a_hundred_thousand_generated_texts(forms):
    for seed in range(100):
        texts = list(unicode_texts(1000, 1000 + seed))
        assert_forms_agree(forms, texts)
        for text in texts:
            assert_offsets_slice_in_order(forms[0], text)


def test_offsets_of_generated_texts_slice_them_in_order(forms):
    for text in unicode_texts(3000, 3):
        assert_offsets_slice_in_order(forms[0], text)


@pytest.mark.slow
def test_offsets_in_the_graph_are_those_of_python(forms):
    tokenizer, *in_graph = forms
    texts = [
        "",
        "the sat",
        "unaffable, the",
        *unicode_texts(3000, 6),
        "a\u302e\u0e31\U0001d165 \u302e",
        "x[MASK]ce[E]한",
        "",
    ]
    for form in in_graph:
        with_offsets = tf.function(form.with_offsets)
        for keep_special_tokens in (True, False):
            encodings = [tokenizer.encode(text, keep_special_tokens=keep_special_tokens) for text in texts]
            ids, starts, ends = with_offsets(tf.constant(texts), keep_special_tokens)
            assert ids.to_list() == [encoding.ids for encoding in encodings]
            assert starts.to_list() == [[start for start, _ in encoding.offsets] for encoding in encodings]
            assert ends.to_list() == [[end for _, end in encoding.offsets] for encoding in encodings]


@pytest.mark.slow
def test_words_of_the_graph_are_slices_of_the_text(forms):
    odd = ["", "e\u0301\u0301 a-\u0301b [MASK]\u0301 x", "\u0301", "\x00", "\u845b\ufe00\u845b ce[E]\ud55c", "ΟΔΟΣ'Α "]
    texts = [*odd, *unicode_texts(3000, 7)]
    starts, ends = tf.function(forms[1].word_offsets)(tf.constant(texts))
    words = [text_words(forms[0], text) for text in texts]
    assert starts.to_list() == [[word.start for word in of_text] for of_text in words]
    assert ends.to_list() == [[word.end for word in of_text] for of_text in words]


@pytest.mark.slow
def test_pieces_end_after_the_marks_that_follow_where_that_is_wanted(forms):
    tokenizer, in_graph, _ = forms
    texts = ["e\u0301\u0301", "e\u0301\u200b\u0301", "a", "\u0301a", *unicode_texts(1000, 9)]
    tokenize = tf.function(lambda texts: in_graph.with_offsets(texts, keep_special_tokens=False, include_marks=True))
    _, starts, ends = tokenize(tf.constant(texts))
    cutter = QuestionCutter(tokenizer, max_length=1 << 20)
    cut = [cutter("", text) for text in texts]
    assert starts.to_list() == [of_text.starts.tolist() for of_text in cut]
    assert ends.to_list() == [of_text.ends.tolist() for of_text in cut]


def test_lone_surrogates_are_refused_wherever_they_stand(forms):
    for text in unicode_texts(100, 4):
        with pytest.raises(InputError, match=r"`text` must not contain a lone surrogate. Received: U\+DC80"):
            forms[0].encode_ids(f"{text} x\udc80 {text}")


@pytest.mark.parametrize("end", [0x3000, pytest.param(0x110000, marks=pytest.mark.slow)])
def test_forms_agree_on_every_code_point_alone(forms, end):
    size = 1 << 17
    tokenizer, *in_graph = forms
    code_points = [code_point for code_point in CODE_POINTS if code_point < end]
    for start in range(0, len(code_points), size):
        texts = [chr(code_point) for code_point in code_points[start : start + size]]
        expected = [tokenizer.encode_ids(text) for text in texts]
        for form in in_graph:
            ids = form(tf.constant(texts))
            np.testing.assert_array_equal(ids.row_lengths(), [len(row) for row in expected])
            np.testing.assert_array_equal(ids.values, [token_id for row in expected for token_id in row])


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_code_point_is_normalised_alike_in_python_and_in_the_graph_and_as_it_always_was(lowercase):
    words = list(words_of_code_points(lowercase))
    assert checksum(words) == CHECKSUMS[lowercase]

    normalizer = TextNormalizer(lowercase=lowercase, strip_accents=lowercase, split_cjk=True)
    in_graph = GraphNormalizer(normalizer, [], [], {chr(code_point): code_point for code_point in CODE_POINTS[1:]})
    symbols = in_graph(tf.constant([chr(code_point) for code_point in CODE_POINTS]), False)
    values = symbols.values.numpy()
    is_space = values & SYMBOL_SPACE > 0
    lengths = np.diff(np.concatenate([[0], np.cumsum(~is_space)])[symbols.row_splits])
    joined = ["".join(parts) for parts in words]
    np.testing.assert_array_equal(lengths, [len(word) for word in joined])
    np.testing.assert_array_equal(values[~is_space] & SYMBOL_CODE, [ord(char) for word in joined for char in word])


def run_under(locale, code):
    helpers = str(Path(code_point_checksum.__file__).parent)
    environment = {**os.environ, "LC_ALL": locale, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # Helpers last: their folder has folders of the same names as the packages.
    code = f"import sys\nsys.path.append({helpers!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["tr_TR.UTF-8", "C"])
def test_no_locale_changes_what_a_code_point_gives(locale):
    assert run_under(locale, PRINT_CHECKSUMS) == f"{CHECKSUMS[True]} {CHECKSUMS[False]}"


@pytest.mark.slow
def test_all_forms_agree_under_a_turkish_locale():
    assert run_under("tr_TR.UTF-8", OTHER_LOCALE) == "[[5, 5, 7, 5, 9, 5, 6, 7, 6], [9], [5], [9]]"
