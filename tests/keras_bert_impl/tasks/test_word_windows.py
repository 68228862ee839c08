"""Every word in one row, where it has its most context."""

import numpy as np
import pytest
from task_models import toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.word_windows import sentence_rows, window_sizes

TOKENIZER = toy_tokenizer()


def words_of(seed, count, longest=6):
    """Words of 1 to `longest` pieces: letters that are no word of the vocabulary."""
    rng = np.random.default_rng(seed)
    return ["z" * int(length) for length in rng.integers(1, longest + 1, count)]


def text_of(row):
    return [TOKENIZER.vocabulary[token_id] for token_id in row.row.token_ids]


def test_a_sentence_that_fits_is_one_row():
    rows = sentence_rows(TOKENIZER, ["good", "zz", "film"], 6, 3).rows
    assert [text_of(row) for row in rows] == [["[CLS]", "good", "z", "##z", "film", "[SEP]"]]
    assert rows[0].row.segment_ids == [0] * 6
    assert rows[0].words == ((0, 1, 2), (1, 2, 4), (2, 4, 5))


def test_windows_begin_with_whole_words_and_the_last_as_early_as_it_fits():
    sentence = ["a", "zz", "the", "film", "good", "bad", "dull", "book"]  # 9 pieces
    rows = sentence_rows(TOKENIZER, sentence, 5, 2).rows
    assert [text_of(row)[1:-1] for row in rows] == [
        ["a", "z", "##z", "the", "film"],
        ["the", "film", "good", "bad", "dull"],  # 2 pieces on is inside zz
        ["film", "good", "bad", "dull", "book"],
    ]
    # `the` has two pieces before it and one behind it in the first window, none before it in the second.
    assert [[word.word for word in row.words] for row in rows] == [[0, 1, 2], [3, 4], [5, 6, 7]]


@pytest.mark.parametrize("room,stride", [(1, 1), (5, 1), (6, 3), (14, 7), (14, 14), (62, 31)])
@pytest.mark.parametrize("seed", range(4))
def test_every_word_is_read_once_with_its_own_pieces(room, stride, seed):
    sentence = words_of(seed, 150)
    cut = sentence_rows(TOKENIZER, sentence, room, stride)
    read = [word.word for row in cut.rows for word in row.words]
    assert sorted(read) == list(range(150))
    assert cut.cut_words == sum(len(word) > room for word in sentence)
    for row in cut.rows:
        assert 0 < len(row.row.token_ids) - 2 <= room
        for word, start, end in row.words:
            expected = (["z"] + ["##z"] * (len(sentence[word]) - 1))[:room]
            assert text_of(row)[start:end] == expected
        assert not text_of(row)[1].startswith("##")


@pytest.mark.parametrize("stride", [1, 5, 10])
def test_words_are_read_where_their_poorer_side_is_richest(stride):
    sentence = words_of(7, 60)
    room = 20
    edges = np.cumsum([0, *map(len, sentence)])
    cut = sentence_rows(TOKENIZER, sentence, room, stride)
    # All windows from the rows, by the pieces that they begin with and end before.
    spans = []
    for row in cut.rows:
        begin = int(edges[row.words[0].word]) - row.words[0].start + 1
        spans.append((begin, begin + len(row.row.token_ids) - 2))
    for place, row in enumerate(cut.rows):
        for word, _, _ in row.words:
            sides = [
                min(edges[word] - begin, end - edges[word + 1])
                if begin <= edges[word] and edges[word + 1] <= end
                else -1
                for begin, end in spans
            ]
            assert sides[place] == max(sides), (word, sides)


def test_a_word_without_pieces_is_unknown_so_that_it_has_a_place():
    cut = sentence_rows(TOKENIZER, ["good", "\u200d", "", "film"], 62, 31)
    assert text_of(cut.rows[0]) == ["[CLS]", "good", "[UNK]", "[UNK]", "film", "[SEP]"]
    assert cut.unknown_words == 2 and cut.cut_words == 0


def test_a_word_of_more_pieces_than_a_row_is_cut_and_counted():
    cut = sentence_rows(TOKENIZER, ["good", "z" * 9, "film"], 4, 2)
    assert [text_of(row)[1:-1] for row in cut.rows] == [["good"], ["z", "##z", "##z", "##z"], ["film"]]
    assert cut.cut_words == 1
    assert [row.row.truncated for row in cut.rows] == [False, True, False]


def test_no_words_are_no_rows():
    assert sentence_rows(TOKENIZER, [], 4, 2).rows == []


def test_a_stride_that_leaves_words_out_is_refused():
    assert window_sizes(64, None) == (62, 31)
    assert window_sizes(3, None) == (1, 1)
    assert window_sizes(64, 62) == (62, 62)
    with pytest.raises(InputError, match=r"`stride` must be at most `max_length` - 2, .* Received: stride=63, max_"):
        window_sizes(64, 63)
