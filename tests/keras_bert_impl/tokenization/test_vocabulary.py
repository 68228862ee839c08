import os
import random
import subprocess
import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization import vocabulary as vocabulary_module
from keras_bert_impl.tokenization import word_counts
from keras_bert_impl.tokenization.vocabulary import learn_vocabulary
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def made_up_lines(number=2000):
    choose = random.Random(7)
    syllables = ["ka", "Lo", "mi", "né", "ru", "ta", "vo", "si"]
    return [
        " ".join("".join(choose.choices(syllables, k=choose.randint(1, 4))) for _ in range(8)) + "."
        for _ in range(number)
    ]


def test_special_tokens_come_first_then_characters_then_pieces():
    vocabulary = learn_vocabulary(["low low low lower lower newest newest newest"], 40)
    assert vocabulary[:5] == SPECIAL_TOKENS
    lengths = [len(token.removeprefix("##")) for token in vocabulary[5:]]
    assert lengths[: lengths.index(2)] == [1] * lengths.index(2)
    assert 1 not in lengths[lengths.index(2) :]
    assert {"low", "newest"} <= set(vocabulary)


def test_has_exactly_the_size_asked_for_and_no_token_twice():
    vocabulary = learn_vocabulary(made_up_lines(), 200)
    assert len(vocabulary) == len(set(vocabulary)) == 200


def test_most_frequent_pair_is_merged_first():
    vocabulary = learn_vocabulary(["ab ab ab cd cd"], 100)
    assert vocabulary[5:] == ["##b", "a", "##d", "c", "b", "##a", "d", "##c", "ab", "cd"]


def test_little_text_gives_fewer_tokens_and_says_so():
    said = []
    vocabulary = learn_vocabulary(["ab ab cd cd"], 100, say=said.append)
    assert len(vocabulary) == 15
    assert said == ["the text gives only 15 tokens, not 100: no other pieces stand together at least 2 times"]


def test_a_text_too_short_for_merges_gives_all_its_characters_and_says_so():
    said = []
    vocabulary = learn_vocabulary(["a note from me."], 30522, say=said.append)
    # Every letter at the start and inside of a word; a full stop is always a word of its own.
    letters = set("anotefrm")
    assert set(vocabulary[5:]) == letters | {"##" + letter for letter in letters} | {"."}
    assert said == [
        "the text gives only 22 tokens, not 30522: it is too short for more than its single characters, "
        "for no two pieces stand together at least 2 times"
    ]


def test_characters_that_are_seen_come_before_those_that_may_be():
    said = []
    assert learn_vocabulary(["ab cd"], 13, say=said.append)[5:] == ["##b", "##d", "a", "c"]
    assert not any("get no token" in line for line in said)
    assert learn_vocabulary(["ab cd"], 11, say=said.append)[5:] == ["##b", "##d", "a"]
    assert said[-2].startswith("1 rare character gets no token (25.00% of the text's characters), ")


def test_characters_that_stand_alone_get_no_token_for_the_inside_of_words():
    assert set(learn_vocabulary(["中文 ひ, 中"], 100)[5:]) == {"中", "文", "ひ", "##ひ", ","}


def test_number_signs_are_characters_like_others():
    vocabulary = learn_vocabulary(["# ## a#b"], 100)
    assert {"#", "a", "b"} <= set(vocabulary)
    assert WordPieceTokenizer(vocabulary).tokenize("a##b") == ["a", "#", "#", "b"]


def test_rare_characters_make_room_and_it_says_so():
    said = []
    vocabulary = learn_vocabulary(
        ["aa " * 100, "bb " * 50, "".join(map(chr, range(0x4E00, 0x4E40))) * 2], 15, say=said.append
    )
    assert vocabulary[5:10] == ["##a", "a", "##b", "b", "\u4e00"]
    assert said[0].startswith("63 rare characters get no token (29.")


def test_text_is_cleaned_as_the_tokenizer_cleans_it():
    lines = made_up_lines(300)
    tokenizer = WordPieceTokenizer(learn_vocabulary(lines, 100))
    assert "[UNK]" not in tokenizer.tokenize(" ".join(lines))
    assert not any("é" in token or token != token.lower() for token in tokenizer.vocabulary[5:])
    assert any("é" in token for token in learn_vocabulary(lines, 100, lowercase=False))
    assert any("é" in token for token in learn_vocabulary(lines, 100, strip_accents=False))


def test_min_frequency_keeps_rare_pairs_out_but_no_characters():
    assert learn_vocabulary(["ab ab cd"], 100)[5:] == ["##b", "a", "##d", "c", "b", "##a", "d", "##c", "ab"]
    assert "cd" in learn_vocabulary(["ab ab cd"], 100, min_frequency=1)


def test_order_of_lines_does_not_matter():
    lines = made_up_lines()
    assert learn_vocabulary(lines, 300) == learn_vocabulary(reversed(lines), 300)


def test_result_depends_on_neither_hash_seed_nor_threads(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(made_up_lines()), encoding="utf-8")
    code = (
        "import keras_bert_console, sys\n"
        "from keras_bert_impl.tokenization.vocabulary import learn_vocabulary\n"
        "print(ascii(learn_vocabulary(open(sys.argv[1], encoding='utf-8'), 300)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(text)],
            env={**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for seed, threads in [("1", "1"), ("2", "2"), ("3", "5")]
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("bound", ["_MOST_STRETCHES", "_MOST_CHARACTERS"])
def test_memory_bounds_change_nothing_while_words_are_few(monkeypatch, bound):
    lines = made_up_lines()
    expected = learn_vocabulary(lines, 300)
    monkeypatch.setattr(word_counts, bound, 100)
    assert learn_vocabulary(lines, 300) == expected


def test_pieces_are_learnt_from_the_most_frequent_words_where_all_are_too_long(monkeypatch):
    lines = ["often often often", "rare rare", "seldom"]
    assert {"often", "rare", "seldom"} <= set(learn_vocabulary(lines, 100, min_frequency=1))
    monkeypatch.setattr(vocabulary_module, "_MOST_CHARACTERS", 9)
    said = []
    learnt = learn_vocabulary(lines, 100, min_frequency=1, say=said.append)
    assert {"often", "rare", "s", "##m"} <= set(learnt)
    assert "seldom" not in learnt
    assert said[0] == "pieces are learnt from the 2 most frequent of 3 different words (83.33% of the text)"


def test_unused_tokens_stand_where_the_released_vocabularies_have_them():
    vocabulary = learn_vocabulary(made_up_lines(), 200, unused=99)
    assert len(vocabulary) == 200
    assert vocabulary[:2] == ["[PAD]", "[unused0]"]
    assert vocabulary[99:104] == ["[unused98]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert vocabulary[104:] == learn_vocabulary(made_up_lines(), 101)[5:]


def test_rare_characters_are_unknown_below_full_coverage_and_it_says_so():
    said = []
    # 1000 characters: 600 a, 300 b, 60 中, 39 文, 1 é.
    lines = ["ab " * 300, "a " * 300, "中" * 60, "文" * 39, "é"]
    settings = {"strip_accents": False, "min_frequency": 1}
    assert set(learn_vocabulary(lines, 30, **settings)[5:]) == {"a", "##b", "b", "##a", "ab", "中", "文", "é", "##é"}
    learnt = learn_vocabulary(lines, 30, character_coverage=0.96, say=said.append, **settings)
    assert set(learnt[5:]) == {"a", "##b", "b", "##a", "ab", "中"}
    assert said[0] == "3 of 5 different characters get tokens; the others, 4.000% of the text, make their words unknown"
    assert "文" in learn_vocabulary(lines, 30, character_coverage=0.961, **settings)
    assert WordPieceTokenizer(learnt).tokenize("ab文 éa中") == ["ab", "[UNK]", "[UNK]", "中"]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"size": 5}, r"`size` must be more than 5, the special tokens. Received: size=5"),
        ({"size": 15, "unused": 10}, r"`size` must be more than 15, the special and the unused tokens. .*size=15"),
        ({"size": 50, "unused": -1}, r"`unused` must be at least 0. Received: unused=-1"),
        (
            {"size": 50, "character_coverage": 0},
            r"`character_coverage` must be more than 0 and at most 1. Received: character_coverage=0",
        ),
        ({"size": 50, "character_coverage": 1.5}, r"`character_coverage` must be.*character_coverage=1.5"),
        ({"size": 50, "min_frequency": 0}, r"`min_frequency` must be at least 1. Received: min_frequency=0"),
        ({"size": 50, "texts": ["", " \n"]}, r"`texts` must contain words to learn a vocabulary from. Received: none"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        learn_vocabulary(**{"texts": ["some text"], **settings})
