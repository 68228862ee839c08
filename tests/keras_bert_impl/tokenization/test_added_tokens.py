import json

import pytest
import tensorflow as tf
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

ADDED = ["[E1]", "[E10]", "Ab", "a b-c", "中文", "É"]
TEXTS = [
    "[E1] the [E10][E1]", "[e1]", "sAbAba b-ca b-", "x中文中", "naïvÉ É é", "ABAb", "ΑΣÉ ΑÉΣ", "", "[E1", "the[MASK]Ab",
    "\u0301É\u0301", "a\u00adb A\u200bb", "Ab" * 300,
]  # fmt: skip


@pytest.fixture(scope="module")
def larger_vocabulary(vocabulary):
    return [*vocabulary, *ADDED]


@pytest.fixture(scope="module")
def tokenizer(larger_vocabulary):
    return WordPieceTokenizer(larger_vocabulary, added_tokens=ADDED)


def test_added_tokens_are_kept_whole_exactly_as_written_and_the_longest_first(tokenizer):
    assert tokenizer.tokenize("[E1] [E10] [e1]") == ["[E1]", "[E10]", "[", "e", "##1", "]"]
    assert tokenizer.tokenize("sAbs a b-c Éé") == ["s", "Ab", "s", "a b-c", "É", "e"]


def test_added_tokens_are_kept_whole_where_special_tokens_are_text(tokenizer):
    assert tokenizer.tokenize("[E1][MASK]", keep_special_tokens=False) == ["[E1]", "[", "mask", "]"]


def test_offsets_of_added_tokens_slice_them(tokenizer):
    text = "the[E10] a b-cs"
    assert [text[start:end] for start, end in tokenizer.encode(text).offsets] == ["the", "[E10]", "a b-c", "s"]


@pytest.mark.parametrize("keep_special_tokens", [True, False])
def test_in_graph_keeps_added_tokens_whole_too(tokenizer, keep_special_tokens):
    expected = [tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens) for text in TEXTS]
    assert InGraphWordPiece(tokenizer)(tf.constant(TEXTS), keep_special_tokens).to_list() == expected


def test_agrees_with_the_tokenizers_library(tokenizer, larger_vocabulary):
    known = {token: index for index, token in enumerate(larger_vocabulary) if token not in ADDED}
    other = Tokenizer(models.WordPiece(known, unk_token="[UNK]", max_input_chars_per_word=200))
    other.normalizer = normalizers.BertNormalizer()
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    other.add_tokens([AddedToken(token, normalized=False) for token in ADDED])
    for text in TEXTS:
        if "[MASK]" not in text and "Σ" not in text:  # it knows no special tokens here, and no final sigma
            ours, theirs = tokenizer.encode(text), other.encode(text)
            assert (ours.ids, ours.offsets) == (theirs.ids, theirs.offsets)


def test_saved_added_tokens_come_back(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))["added_tokens_decoder"]
    assert written[str(tokenizer.token_to_id("É"))] == {
        "content": "É", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": False,
    }  # fmt: skip
    restored = WordPieceTokenizer.from_pretrained(tmp_path)
    assert restored.options == tokenizer.options
    assert restored.vocabulary == tokenizer.vocabulary


def test_special_tokens_among_them_stay_special(larger_vocabulary):
    tokenizer = WordPieceTokenizer(larger_vocabulary, added_tokens=["[MASK]", "Ab", "[E1]"])
    assert tokenizer.added_tokens == ("[E1]", "Ab")
    assert tokenizer.tokenize("[MASK]", keep_special_tokens=False) == ["[", "mask", "]"]


def directory(path, vocabulary, **files):
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return path


def decoder(tokens):
    return {"added_tokens_decoder": {str(number): {"content": token} for number, token in tokens.items()}}


def test_added_tokens_beyond_the_vocabulary_file_go_on_from_its_end(tmp_path, vocabulary):
    size = len(vocabulary)
    config = decoder({0: "[PAD]", 4: "[MASK]", size + 1: "<b>", size: "<a>"})
    tokenizer = WordPieceTokenizer.from_pretrained(directory(tmp_path, vocabulary, tokenizer_config=config))
    assert tokenizer.added_tokens == ("<a>", "<b>")
    assert tokenizer.encode_ids("<b><a>") == [size + 1, size]


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer": {"added_tokens": [{"id": 4, "content": "[MASK]"}, {"id": 5, "content": "the"}]}},
        {"added_tokens": {"the": 5}},
    ],
)
def test_added_tokens_are_read_from_other_files_too(tmp_path, vocabulary, files):
    tokenizer = WordPieceTokenizer.from_pretrained(directory(tmp_path, vocabulary, **files))
    assert tokenizer.added_tokens == ("the",)
    assert tokenizer.tokenize("unthe") == ["un", "the"]


def test_a_special_token_may_be_an_added_one_beyond_the_file(tmp_path, vocabulary):
    config = {**decoder({len(vocabulary): "<m>"}), "mask_token": "<m>"}
    folder = directory(tmp_path, vocabulary, tokenizer_config=config)
    assert WordPieceTokenizer.from_pretrained(folder).mask_token_id == len(vocabulary)


@pytest.mark.parametrize(
    "tokens, received",
    [
        ({5: "sat"}, r"'sat' with id 5, where the vocabulary has 6"),
        ({7: "<a>"}, r"'<a>' with id 7, where the vocabulary has \d+ tokens without it"),
        ({999: "<a>"}, r"'<a>' with id 999, where the vocabulary has \d+ tokens without it"),
    ],
)
def test_ids_that_do_not_fit_are_named(tmp_path, vocabulary, tokens, received):
    folder = directory(tmp_path, vocabulary, tokenizer_config=decoder(tokens))
    with pytest.raises(InputError, match=rf"`added_tokens` must have the ids that the vocabulary gives.*{received}"):
        WordPieceTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    "entries, message",
    [
        ([], r"`added_tokens_decoder` must be a JSON object. Received: \[1\], in "),
        ({"x": {"content": "a"}}, r"`added_tokens_decoder` must hold an id and a `content` for every token"),
        ({"5": "the"}, r"`added_tokens_decoder` must hold an id and a `content`.*Received: \{'5': 'the'\}"),
        ({"5": {"content": ""}}, r"`added_tokens_decoder` must hold an id and a `content` for every token"),
        (
            {"5": {"content": "the", "single_word": True}},
            r"`added_tokens_decoder` must be found anywhere in a text, not as single words only. Received: 'the', in '",
        ),
        (
            {"5": {"content": "the"}, "6": {"content": "the"}},
            r"`added_tokens_decoder` must have every token and every id once. Received: \{'6': 'the'\}",
        ),
    ],
)
def test_entries_that_say_something_else_are_named(tmp_path, vocabulary, entries, message):
    folder = directory(tmp_path, vocabulary, tokenizer_config={"added_tokens_decoder": entries or [1]})
    with pytest.raises(InputError, match=message):
        WordPieceTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    "added, message",
    [
        ("the", r"`added_tokens` must be a list of tokens. Received: added_tokens='the'"),
        (["absent"], r"`added_tokens` must be tokens of the vocabulary. Received: 'absent'"),
        ([5], r"`added_tokens` must be tokens of the vocabulary. Received: 5"),
        ([" x"], r"`added_tokens` must neither begin nor end with white space nor have line ends. Received: ' x'"),
        (["x\ny"], r"`added_tokens` must neither begin nor end with white space nor have line ends"),
    ],
)
def test_rejects_added_tokens_that_cannot_be_used(vocabulary, added, message):
    with pytest.raises(InputError, match=message):
        WordPieceTokenizer([*vocabulary, " x", "x\ny"], added_tokens=added)


@pytest.mark.slow
def test_rejects_more_tokens_than_a_graph_has_markers_for(vocabulary):
    many = [f"<{number}>" for number in range(65532)]
    tokenizer = WordPieceTokenizer([*vocabulary, *many], added_tokens=many)
    with pytest.raises(InputError, match=r"`added_tokens` must leave at most 65536 tokens.*Received: 65532"):
        InGraphWordPiece(tokenizer)
