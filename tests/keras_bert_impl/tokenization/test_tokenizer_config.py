import json

import pytest
from json_faults import faults_of

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


@pytest.mark.parametrize(
    "key, value, rule",
    [
        ("do_lower_case", "maybe", "true, false or null"),
        ("do_lower_case", "true", "true, false or null"),
        ("do_lower_case", 1, "true, false or null"),
        ("strip_accents", [], "true, false or null"),
        ("tokenize_chinese_chars", "no", "true, false or null"),
        ("max_input_chars_per_word", "200", "a positive whole number"),
        ("max_input_chars_per_word", 200.0, "a positive whole number"),
        ("max_input_chars_per_word", True, "a positive whole number"),
        ("max_input_chars_per_word", 0, "a positive whole number"),
        ("mask_token", 4, "a token, that is, text that is not empty"),
        ("unk_token", "", "a token, that is, text that is not empty"),
        ("pad_token", {"content": 7}, "a token, that is, text that is not empty"),
        ("cls_token", {}, "a token, that is, text that is not empty"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_file_and_key(tmp_path, tokenizer, key, value, rule):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({key: value}))
    with pytest.raises(InputError, match=rf"^`{key}` must be {rule}\. Received: .*, in '.*tokenizer_config\.json'$"):
        WordPieceTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "content, message",
    [
        ({"normalizer": {"lowercase": "maybe"}}, r"`normalizer.lowercase` must be true, false or null"),
        ({"normalizer": "BertNormalizer"}, r"`normalizer` must be a JSON object. Received: 'BertNormalizer', in "),
        ({"model": {"max_input_chars_per_word": "100"}}, r"`model.max_input_chars_per_word` must be a positive whole"),
        ({"model": []}, r"`model` must be a JSON object"),
        ({"added_tokens": {}}, r"`added_tokens` must be a JSON array"),
        ({"added_tokens": ["x"]}, r"`added_tokens` must hold an id and a `content` for every token"),
    ],
)
def test_a_wrong_value_of_a_fast_tokenizer_is_named_too(tmp_path, tokenizer, content, message):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"{message}.*tokenizer\.json'"):
        WordPieceTokenizer.from_pretrained(tmp_path)


def test_null_is_as_good_as_absent(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    keys = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "max_input_chars_per_word", "mask_token")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(dict.fromkeys(keys)))
    (tmp_path / "tokenizer.json").write_text(json.dumps(dict.fromkeys(["normalizer", "model", "added_tokens"])))
    assert WordPieceTokenizer.from_pretrained(tmp_path).options == tokenizer.options


def test_ids_of_a_fast_vocabulary_must_be_whole_numbers(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"[PAD]": "0"}}}))
    with pytest.raises(InputError, match=r"`model.vocab` must give every token a whole number.*tokenizer\.json'"):
        WordPieceTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "option, value, rule",
    [
        ("lowercase", "maybe", "True or False"),
        ("lowercase", None, "True or False"),
        ("split_cjk", 1, "True or False"),
        ("strip_accents", "no", "True, False or None"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named(vocabulary, option, value, rule):
    with pytest.raises(InputError, match=rf"`{option}` must be {rule}. Received: {option}={value!r}"):
        WordPieceTokenizer(vocabulary, **{option: value})


@pytest.mark.slow
def test_a_damaged_file_is_a_sentence_whatever_the_fault(tmp_path):
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[E1]"], added_tokens=["[E1]"])
    tokenizer.save_pretrained(tmp_path)
    vocabulary = {token: index for index, token in enumerate(tokenizer.vocabulary)}
    added = {"id": 5, "content": tokenizer.vocabulary[5], "single_word": False}
    normalizer = {"lowercase": True, "strip_accents": None, "handle_chinese_chars": True}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 100, "vocab": vocabulary}
    of_fast = {"added_tokens": [added], "normalizer": normalizer, "model": model}
    config = tmp_path / "tokenizer_config.json"
    for path, whole in ((config, json.loads(config.read_text())), (tmp_path / "tokenizer.json", of_fast)):
        if path != config:
            config.unlink()
            (tmp_path / "vocab.txt").unlink()
        refused = 0
        for text in faults_of(whole):
            path.write_text(text)
            try:
                WordPieceTokenizer.from_pretrained(tmp_path).encode("a b")
            except InputError as error:
                assert "\n" not in str(error)
                refused += 1
        assert refused > 50
