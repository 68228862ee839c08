"""Rows of texts and pairs: nothing is lost unless it is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_models import toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.rows import TextRow, batch_inputs, batches_by_length, row_windows, text_row

TOKENIZER = toy_tokenizer()
WORDS = [token for token in TOKENIZER.vocabulary if token.isalpha()]


def tokens(row: TextRow) -> list[str]:
    return [TOKENIZER.id_to_token(token_id) for token_id in row.token_ids]


def words_of(count: int, first: int = 0) -> list[str]:
    return [WORDS[(first + i) % len(WORDS)] for i in range(count)]


def original_cut(first: list, second: list, room: int) -> tuple[list, list]:
    """As the original's `_truncate_seq_pair`: one piece at a time."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


def test_a_text_is_framed():
    row = text_row(TOKENIZER, 8, "the good film")
    assert tokens(row) == ["[CLS]", "the", "good", "film", "[SEP]"]
    assert row.segment_ids == [0] * 5 and not row.truncated


def test_the_second_text_has_segment_one():
    row = text_row(TOKENIZER, 9, "good film", "bad")
    assert tokens(row) == ["[CLS]", "good", "film", "[SEP]", "bad", "[SEP]"]
    assert row.segment_ids == [0, 0, 0, 0, 1, 1]


def test_an_empty_second_text_is_a_second_text():
    assert tokens(text_row(TOKENIZER, 9, "good", "")) == ["[CLS]", "good", "[SEP]", "[SEP]"]


def test_a_text_that_just_fits_is_whole_and_one_more_piece_is_cut_and_said():
    assert not text_row(TOKENIZER, 5, "the good film").truncated
    row = text_row(TOKENIZER, 5, "the good film was")
    assert row.truncated and tokens(row) == ["[CLS]", "the", "good", "film", "[SEP]"]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(4, 40))
def test_pairs_are_cut_as_in_the_original(first, second, max_length):
    texts = words_of(first), words_of(second, 5)
    row = text_row(TOKENIZER, max_length, *(" ".join(words) for words in texts))
    kept = original_cut(*texts, max_length - 3)
    assert tokens(row) == ["[CLS]", *kept[0], "[SEP]", *kept[1], "[SEP]"]
    assert row.truncated == (first + second > max_length - 3)
    assert row.segment_ids == [0] * (len(kept[0]) + 2) + [1] * (len(kept[1]) + 1)


@given(st.integers(0, 60), st.integers(3, 30))
def test_every_piece_of_a_long_text_is_in_a_window(count, max_length):
    words = words_of(count)
    windows = row_windows(TOKENIZER, max_length, " ".join(words))
    room = max_length - 2
    assert all(len(window.token_ids) <= max_length and not window.truncated for window in windows)
    inner = [tokens(window)[1:-1] for window in windows]
    starts = [min(i * max(1, room // 2), max(0, count - room)) for i in range(len(windows))]
    assert inner == [words[start : start + room] for start in starts]
    covered = {start + i for start, window in zip(starts, inner, strict=True) for i in range(len(window))}
    assert covered == set(range(count))


def test_windows_of_a_pair_go_over_the_longer_text():
    for swap in (False, True):
        pair = ["good film", " ".join(words_of(12))]
        windows = row_windows(TOKENIZER, 11, *reversed(pair) if swap else pair)
        assert len(windows) == 3 and not any(window.truncated for window in windows)
        place = 2 if swap else 1
        for window in windows:
            parts = " ".join(tokens(window)).removeprefix("[CLS] ").split(" [SEP]")
            assert parts[place - 1].strip() == "good film"


def test_windows_of_two_long_texts_say_that_the_shorter_was_cut():
    windows = row_windows(TOKENIZER, 11, " ".join(words_of(9)), " ".join(words_of(12)))
    assert all(window.truncated and len(window.token_ids) == 11 for window in windows)
    assert len(row_windows(TOKENIZER, 31, " ".join(words_of(9)), " ".join(words_of(12)))) == 1


def test_batches_are_filled_up_and_masked():
    rows = [text_row(TOKENIZER, 9, "good", "bad"), text_row(TOKENIZER, 9, "good film was bad")]
    inputs = batch_inputs(rows, TOKENIZER.pad_token_id, 8)
    assert {name: (array.dtype, array.shape) for name, array in inputs.items()} == {
        name: (np.dtype("int32"), (2, 8)) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    assert inputs["padding_mask"].tolist() == [[1] * 5 + [0] * 3, [1] * 6 + [0] * 2]
    assert inputs["token_ids"][0].tolist() == [*rows[0].token_ids, 0, 0, 0]
    assert inputs["segment_ids"][0].tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    assert batch_inputs(rows, 0)["token_ids"].shape == (2, 6)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 9))
def test_batches_by_length_hold_every_row_once_the_longest_first(lengths, batch_size):
    batches = batches_by_length(lengths, batch_size)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)


def test_a_row_without_room_is_refused():
    with pytest.raises(InputError, match=r"`max_length` must be more than 2 for a text\. Received: max_length=2"):
        text_row(TOKENIZER, 2, "good")
    with pytest.raises(InputError, match=r"`max_length` must be more than 3 for a pair of texts\. Received"):
        row_windows(TOKENIZER, 3, "good", "bad")
