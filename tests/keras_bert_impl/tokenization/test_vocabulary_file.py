import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary_file import save_vocabulary
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer, load_vocabulary

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##é", "\u2028", "##\u2028"]


def written(tmp_path, content):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path, mark, line_end, end):
    assert load_vocabulary(written(tmp_path, mark + line_end.join(TOKENS) + end)) == TOKENS


def test_spaces_around_a_token_are_taken_off(tmp_path):
    assert load_vocabulary(written(tmp_path, "\n".join(f" {token}\t" for token in TOKENS))) == TOKENS


def test_saved_vocabulary_loads(tmp_path):
    save_vocabulary(TOKENS, tmp_path / "vocab.txt")
    assert load_vocabulary(tmp_path / "vocab.txt") == TOKENS


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"`vocab` must be a file that can be read. Received: '.*none.txt' \(No such"):
        load_vocabulary(tmp_path / "none.txt")


def test_directory_is_named(tmp_path):
    with pytest.raises(InputError, match=r"`vocab` must be a file that can be read. Received: .* \(Is a directory\)"):
        load_vocabulary(tmp_path)


def test_byte_that_is_not_utf8_is_named(tmp_path):
    with pytest.raises(InputError, match=r"`vocab` must be UTF-8 text.*byte 0xe9 at byte position 9"):
        load_vocabulary(written(tmp_path, b"[PAD]\ncaf\xe9\n"))


@pytest.mark.parametrize("blank", ["", " ", "\t\r"])
def test_blank_line_is_named(tmp_path, blank):
    with pytest.raises(InputError, match=r"`vocab` must have a token on every line.*with line 3 blank"):
        load_vocabulary(written(tmp_path, "\n".join([*TOKENS[:2], blank, *TOKENS[2:]])))


def test_both_lines_of_a_duplicate_are_named(tmp_path):
    with pytest.raises(InputError, match=r"`vocab` must not have a token twice.*'the' on lines 6 and 10"):
        load_vocabulary(written(tmp_path, "\n".join([*TOKENS, "the"])))


@pytest.mark.parametrize("token", TOKENS[:5])
def test_missing_special_token_is_named(tmp_path, token):
    with pytest.raises(InputError, match=rf"`vocab` must contain the special tokens.*without \[{token[1:-1]}\]"):
        load_vocabulary(written(tmp_path, "\n".join(other for other in TOKENS if other != token)))


def test_tokenizer_with_other_special_tokens_asks_for_those(tmp_path):
    path = written(tmp_path, "\n".join(["<mask>" if token == "[MASK]" else token for token in TOKENS]))
    assert WordPieceTokenizer.from_vocab_file(path, mask_token="<mask>").mask_token_id == 4
    with pytest.raises(InputError, match=r"without \[MASK\]"):
        WordPieceTokenizer.from_vocab_file(path)


@pytest.mark.shared
@pytest.mark.parametrize("name, size", [("uncased", 30522), ("cased", 28996), ("chinese", 21128)])
def test_released_vocabularies_load(shared, name, size):
    assert len(load_vocabulary(shared / "data" / "vocab" / f"bert-base-{name}-vocab.txt")) == size
