import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples import word_boundaries
from keras_bert_impl.training.examples.pairs import Pair
from keras_bert_impl.training.examples.shards import continued_of_pairs, rows_of_pairs
from keras_bert_impl.training.examples.word_boundaries import MarkingTokenizer
from keras_bert_impl.training.examples.words import CONTINUES, unmarked

TOKENIZER = WordPieceTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"我们在北京天安门看见了，。1.5%ab", "play", "##ing", "##b"]
)


def words_of(sentence: str, boundaries: str) -> str:
    """The sentence's tokens, those of a word joined by `+`."""
    token_ids, continues = unmarked(MarkingTokenizer(TOKENIZER, boundaries)(sentence))
    assert token_ids.tolist() == TOKENIZER.encode_ids(sentence, keep_special_tokens=False)
    pairs = zip(token_ids, continues, strict=True)
    return "".join(("+" if mark else " ") + TOKENIZER.vocabulary[token_id] for token_id, mark in pairs).strip()


def test_pieces_are_not_marked_since_the_vocabulary_tells_them():
    assert words_of("我们 playing", "pieces") == "我 们 play ##ing"


def test_what_stands_between_spaces_is_a_word():
    assert words_of("我们 在 北京\u3000看见 了", "spaces") == "我+们 在 北+京 看+见 了"
    assert words_of("我们在\u200b北京", "spaces") == "我+们+在+北+京"  # What vanishes separates nothing.


def test_a_punctuation_mark_is_a_word_by_itself():
    assert words_of("北京，我们。 1.5%", "spaces") == "北+京 ， 我+们 。 1 . 5 %"


def test_pieces_that_go_on_inside_a_word_always_do():
    assert words_of("playing北京 playing", "spaces") == "play+##ing+北+京 play+##ing"


def test_an_unknown_character_is_part_of_its_word():
    assert words_of("北囧 囧京 了", "spaces") == "北+[UNK] [UNK]+京 了"


def test_words_of_jieba_are_placed_by_their_characters(monkeypatch: pytest.MonkeyPatch):
    cuts = {"我们 在\u200b北京ab": ["我们", " ", "在\u200b", "北京", "a", "b"]}
    monkeypatch.setattr(word_boundaries, "chinese_words", cuts.__getitem__)
    # A word of the text's that jieba cuts up stays a word if the vocabulary has pieces inside it.
    assert words_of("我们 在\u200b北京ab", "jieba") == "我+们 在 北+京 a+##b"


def test_an_empty_sentence_has_no_words():
    assert words_of(" \u200b", "spaces") == ""


def test_special_tokens_in_the_text_are_text():
    assert "[SEP]" not in words_of("北京 [SEP] 了", "spaces")


def test_marks_go_with_their_tokens_into_rows_and_no_part_begins_with_one():
    marks = CONTINUES
    pairs = [
        Pair([10, 11 | marks], [12 | marks, 13 | marks, 14], 0),  # Its second part lost its beginning.
        Pair([15 | marks, 16, 17 | marks], [], 0),  # A chunk.
        Pair([18], [19, 20 | marks], 1),
    ]
    ids = np.arange(3, dtype=np.uint64)
    tokens, examples = rows_of_pairs(pairs, ids, cls_token_id=2, sep_token_id=3, vocab_size=100)
    assert tokens.tolist() == [2, 10, 11, 3, 12, 13, 14, 3, 2, 15, 16, 17, 3, 2, 18, 3, 19, 20, 3]
    continued = continued_of_pairs(pairs, examples)
    assert continued.dtype == bool and tokens.dtype == np.uint16
    assert tokens[continued].tolist() == [11, 13, 17, 20]


def test_no_pairs_have_no_marks():
    _, examples = rows_of_pairs([], np.zeros(0, np.uint64), cls_token_id=2, sep_token_id=3, vocab_size=100)
    assert continued_of_pairs([], examples).shape == (0,)


def test_where_jieba_is_absent_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(InputError, match=r"='jieba'` needs the extra `chinese`: pip install .* Missing: jieba"):
        MarkingTokenizer(TOKENIZER, "jieba")


@pytest.mark.slow
def test_jieba_finds_chinese_words():
    pytest.importorskip("jieba")
    assert words_of("我们在北京天安门看见了，playing 1.5%。", "jieba") == (
        "我+们 在 北+京 天+安+门 看+见 了 ， play+##ing 1 . 5 % 。"
    )


@pytest.mark.slow
def test_jieba_says_nothing_writes_nothing_and_leaves_the_random_state_alone(tmp_path: Path):
    pytest.importorskip("jieba")
    code = """
import keras_bert_console, random, numpy
before = random.getstate(), numpy.random.get_state()[1].tolist()
from keras_bert_impl.training.corpus.chinese_words import chinese_words
text = "我们在北京天安门\\u200b看见 naïve カタカナ１２\\r\\n"
assert "".join(chinese_words(text)) == text and chinese_words(text)[:2] == ["我们", "在"]
assert before == (random.getstate(), numpy.random.get_state()[1].tolist())
"""
    result = subprocess.run(
        [sys.executable, "-W", "default", "-c", code],
        capture_output=True,
        text=True,
        env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
