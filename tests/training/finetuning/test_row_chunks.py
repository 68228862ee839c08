"""Rows in chunks: no row waits for one that has not come, and none is lost."""

import os
import threading
import time

import pytest

from keras_bert_impl.training.finetuning.row_chunks import arriving_chunks, full_chunks


def test_a_file_comes_in_full_chunks():
    assert list(full_chunks(range(13), 8)) == [[*range(8)], [8, 9, 10, 11, 12]]
    assert list(full_chunks([], 8)) == []


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_a_stream_loses_no_row_and_keeps_the_order(count):
    chunks = list(arriving_chunks(iter(range(count)), 8))
    assert [row for chunk in chunks for row in chunk] == [*range(count)]
    assert all(1 <= len(chunk) <= 8 for chunk in chunks)


def test_a_row_is_handed_over_before_the_next_has_come():
    answered = threading.Event()

    def rows():
        yield "first"
        assert answered.wait(10)
        yield "second"

    chunks = arriving_chunks(rows(), 8)
    assert next(chunks) == ["first"]
    answered.set()
    assert list(chunks) == [["second"]]


def test_rows_that_trickle_in_do_not_hold_one_another_up_for_long():
    def rows():
        for number in range(40):
            time.sleep(0.01)
            yield number

    assert len(next(arriving_chunks(rows(), 1000))) < 40


def test_what_reading_raises_comes_after_the_rows_before_it():
    def rows():
        yield 1
        raise OSError("the line is dead")

    chunks = arriving_chunks(rows(), 8)
    assert next(chunks) == [1]
    with pytest.raises(OSError, match="the line is dead"):
        next(chunks)


def test_a_reader_that_nobody_listens_to_ends():
    chunks = arriving_chunks(iter(range(1000)), 2)
    assert next(chunks) == [0, 1]
    chunks.close()
    deadline = time.monotonic() + 5
    while any(thread.name == "reading rows" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pipe_is_read_while_it_is_open():
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb", buffering=0) as pipe:
        os.write(theirs, b"one\n")
        chunks = arriving_chunks(iter(lambda: pipe.read(100), b""), 8)
        assert next(chunks) == [b"one\n"]
        os.close(theirs)
        assert list(chunks) == []
