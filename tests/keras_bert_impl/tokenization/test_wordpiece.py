import json
import os
import pickle
import subprocess
import sys
import time

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

# What the original makes of them, with the vocabulary of conftest.py; worked out by hand from its rules.
UNCASED = {
    "": [],
    " \t\r\n\u00a0\u3000\u2028": [],
    "unaffable": ["un", "##aff", "##able"],
    "The sat,the": ["the", "sat", ",", "the"],
    "Naïve NAI\u0308VE": ["naive", "naive"],
    "中文x中": ["中", "文", "x", "中"],
    "ひ中": ["ひ", "中"],
    "ひひ": ["ひ", "##ひ"],
    "ΑΣ": ["ας"],
    "ΑΣΑ": ["α", "##σ", "##α"],
    "ΑΣ.": ["ας", "."],
    "ΑΣ.Α": ["α", "##σ", ".", "α"],
    "Α\u200bΣ\u200b": ["ας"],
    "Α\u0301Σ": ["ας"],
    "Σ ΑΣ": ["σ", "ας"],
    "İ": ["i"],
    "I ı": ["i", "ı"],
    "ß": ["ß"],
    "Ĳ": ["ĳ"],
    "한": ["ᄒ", "##\u1161", "##\u11ab"],
    "t\x00he\ufffd s\u200da\u00adt": ["the", "sat"],
    "th\x0be\x85": ["the"],
    "the\tsat\u2009the\u2029sat": ["the", "sat", "the", "sat"],
    "a\u1fefb": ["a", "`", "b"],
    "a\u037eb": ["a", ";", "b"],
    "\U0001f468\u200d\U0001f469": ["[UNK]"],
    "the \U0001f600": ["the", "[UNK]"],
    "\u0301": [],
    "\U00011f00": ["[UNK]"],
    "a\u302e\U0001d165": ["a", "##\U0001d165", "##\u302e"],
    "a\u302e\u0e31\U0001d165": ["a", "##\u302e", "##\U0001d165"],
    "a" * 200: ["a"] + ["##a"] * 199,
    "a" * 201: ["[UNK]"],
    "the[MASK]sat": ["the", "[MASK]", "sat"],
    "[MASK][SEP] [mask]": ["[MASK]", "[SEP]", "[", "mask", "]"],
    "[MASK": ["[", "mask"],
    "Α[MASK]Σ": ["α", "[MASK]", "σ"],
}
CASED = {
    "The": ["T", "##h", "##e"],
    "naïve nai\u0308ve": ["naïve", "[UNK]"],
    "ΑΣ": ["ΑΣ"],
    "한": ["한"],
    "中文": ["中", "文"],
}


@pytest.mark.parametrize("text", UNCASED)
def test_uncased_golden(tokenizer, text):
    assert tokenizer.tokenize(text) == UNCASED[text]
    assert tokenizer.encode(text).tokens == UNCASED[text]


@pytest.mark.parametrize("text", CASED)
def test_cased_golden(cased_tokenizer, text):
    assert cased_tokenizer.tokenize(text) == CASED[text]


def test_special_tokens_can_be_treated_as_text(tokenizer):
    assert tokenizer.tokenize("[MASK]", keep_special_tokens=False) == ["[", "mask", "]"]
    assert tokenizer.encode("[MASK]", keep_special_tokens=False).offsets == [(0, 1), (1, 5), (5, 6)]


def test_accents_are_stripped_independently_of_case(vocabulary):
    assert WordPieceTokenizer(vocabulary, strip_accents=False).tokenize("NAÏVE İ") == ["naïve", "i", "##\u0307"]
    assert WordPieceTokenizer(vocabulary, lowercase=False, strip_accents=True).tokenize("naïve É") == ["naive", "E"]


def test_cjk_splitting_can_be_switched_off(vocabulary):
    assert WordPieceTokenizer(vocabulary, split_cjk=False).tokenize("中文") == ["中", "##文"]


def test_words_over_the_limit_are_unknown(vocabulary):
    tokenizer = WordPieceTokenizer(vocabulary, max_chars_per_word=3)
    assert tokenizer.tokenize("the hello é\u0301éé éééé") == ["the", "[UNK]", "e", "##e", "##e", "[UNK]"]


def test_offsets_slice_what_each_piece_was_made_from(tokenizer):
    text = " Unaffable\u200b  (İÉ中한)[MASK]"
    encoding = tokenizer.encode(text)
    assert [text[start:end] for start, end in encoding.offsets] == [
        "Un", "aff", "able", "(", "İ", "É", "中", "한", "한", "한", ")", "[MASK]",
    ]  # fmt: skip
    assert encoding.ids == tokenizer.encode_ids(text) == [tokenizer.token_to_id(token) for token in encoding.tokens]


def test_decode_joins_pieces(tokenizer):
    ids = [tokenizer.cls_token_id, *tokenizer.encode_ids("unaffable [MASK], the"), tokenizer.sep_token_id]
    assert tokenizer.decode(ids) == "[CLS] unaffable [MASK] , the [SEP]"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "unaffable , the"


def test_ids_of_special_tokens(tokenizer):
    assert tokenizer.special_token_ids == (0, 1, 2, 3, 4)
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id) == (0, 1, 4)
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id) == (2, 3)


def test_ids_and_tokens_go_both_ways(tokenizer, vocabulary):
    assert tokenizer.vocabulary == tuple(vocabulary)
    assert tokenizer.vocab_size == len(vocabulary)
    assert [tokenizer.id_to_token(tokenizer.token_to_id(token)) for token in vocabulary] == vocabulary
    assert tokenizer.token_to_id("absent") == tokenizer.unk_token_id


def test_save_and_load_keep_vocabulary_and_options(tmp_path, vocabulary):
    tokenizer = WordPieceTokenizer(
        vocabulary, lowercase=False, strip_accents=True, split_cjk=False, max_chars_per_word=7, mask_token="the"
    )
    tokenizer.save_pretrained(tmp_path / "model")
    restored = WordPieceTokenizer.from_pretrained(tmp_path / "model")
    assert restored.vocabulary == tokenizer.vocabulary
    assert restored.options == tokenizer.options
    assert WordPieceTokenizer.from_pretrained(tmp_path / "model", lowercase=True).lowercase


def test_saved_options_have_the_names_that_others_read(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "BertTokenizer"
    assert config["do_lower_case"] is True
    assert config["strip_accents"] is None
    assert config["tokenize_chinese_chars"] is True
    assert config["mask_token"] == "[MASK]"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer_config.json", "vocab.txt"]


def test_options_of_a_fast_tokenizer_are_read(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": {"content": "the"}, "do_lower_case": false}')
    normalizer = {"lowercase": True, "strip_accents": False, "handle_chinese_chars": False}
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"normalizer": normalizer, "model": {"max_input_chars_per_word": 100, "unk_token": "[UNK]"}})
    )
    options = WordPieceTokenizer.from_pretrained(tmp_path).options
    assert options["mask_token"] == "the"
    assert options["lowercase"] is False
    assert options["strip_accents"] is False
    assert options["split_cjk"] is False
    assert options["max_chars_per_word"] == 100


@pytest.mark.parametrize("content, message", [("{", "must be JSON"), ("[]", "must hold a JSON object")])
def test_rejects_a_broken_options_file(tmp_path, tokenizer, content, message):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(InputError, match=rf"`tokenizer_config.json` {message}. Received: '.*tokenizer_config.json'"):
        WordPieceTokenizer.from_pretrained(tmp_path)


def test_pickled_tokenizer_gives_the_same(tokenizer):
    restored = pickle.loads(pickle.dumps(tokenizer))
    assert restored.encode("Unaffable [MASK]") == tokenizer.encode("Unaffable [MASK]")
    assert restored.options == tokenizer.options


@pytest.mark.parametrize("limit", [0, True, "200", 1.5])
def test_rejects_a_word_limit_that_is_not_positive(vocabulary, limit):
    with pytest.raises(InputError, match=rf"`max_chars_per_word` must be a positive whole number.*={limit!r}"):
        WordPieceTokenizer(vocabulary, max_chars_per_word=limit)


def test_rejects_a_vocabulary_without_a_special_token(vocabulary):
    with pytest.raises(InputError, match=r"`vocabulary` must contain the special token '\[MASK\]'"):
        WordPieceTokenizer([token for token in vocabulary if token != "[MASK]"])


def test_rejects_a_token_twice(vocabulary):
    with pytest.raises(InputError, match=r"`vocabulary` must not have a token twice. Received: 'the'"):
        WordPieceTokenizer([*vocabulary, "the"])


def test_rejects_an_id_outside_the_vocabulary(tokenizer):
    with pytest.raises(InputError, match=r"`token_id` must be at least 0 and less than \d+. Received: token_id=-1"):
        tokenizer.id_to_token(-1)


def test_rejects_a_text_that_is_no_string(tokenizer):
    with pytest.raises(InputError, match=r"`text` must be a string. Received: bytes"):
        tokenizer.encode_ids(b"the")


@pytest.mark.parametrize("method", ["tokenize", "encode", "encode_ids"])
def test_rejects_a_lone_surrogate(tokenizer, method):
    for _ in range(2):  # the second time from whatever was remembered
        with pytest.raises(InputError, match=r"`text` must not contain a lone surrogate. Received: U\+D83D"):
            getattr(tokenizer, method)("the s\ud83dat")


def test_no_text_makes_it_crawl(tokenizer):
    started = time.process_time()
    words = ["".join("abcdefghijklmnopqrstuvwxyz"[(n * 7 + k * k) % 26] for k in range(200)) for n in range(600)]
    assert len(tokenizer.encode_ids(" ".join(words))) == 600 * 200
    tokenizer.encode_ids("x" * 1_000_000)
    tokenizer.encode_ids("." * 100_000)
    assert time.process_time() - started < 5


def test_agrees_with_the_tokenizers_library(tokenizer, vocabulary):
    other = Tokenizer(
        models.WordPiece(
            {token: index for index, token in enumerate(vocabulary)},
            unk_token="[UNK]",
            max_input_chars_per_word=200,
        )
    )
    other.normalizer = normalizers.BertNormalizer()
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    text = "The unaffable (naïve) 中文 sat, NAÏVE-hello! \U0001f600 x"
    ours, theirs = tokenizer.encode(text), other.encode(text)
    assert ours.tokens == theirs.tokens
    assert ours.offsets == theirs.offsets


def test_result_depends_on_neither_locale_nor_tensorflow():
    code = (
        "import keras_bert_console, locale, sys\n"
        "from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer\n"
        "try: locale.setlocale(locale.LC_ALL, '')\n"
        "except locale.Error: pass\n"
        "t = WordPieceTokenizer(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'i', '##i', 'ı', '##ı'])\n"
        "print(ascii(t.tokenize('II İI ıI')), 'tensorflow' in sys.modules, 'unicodedata' in sys.modules)"
    )
    environment = {**os.environ, "LC_ALL": "tr_TR.UTF-8"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == r"['i', '##i', 'i', '##i', '\u0131', '##i'] False False"
