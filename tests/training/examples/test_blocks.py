from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.corpus.documents import Document
from keras_bert_impl.training.examples.blocks import (
    BLOCKS,
    LARGEST,
    SMALLEST,
    block_size,
    block_starts,
    blocks_of_documents,
)

streams = st.lists(st.tuples(st.sampled_from(["train", "held_out"]), st.integers(1, 40)), max_size=40)


@given(streams, st.integers(1, 60))
def test_blocks_hold_every_document_in_order_and_two_where_there_are_two(stream, size):
    documents = [(split, Document((f"{number}" + "x" * length,))) for number, (split, length) in enumerate(stream)]
    blocks = list(blocks_of_documents(documents, size))
    for split in ("train", "held_out"):
        own = [block for block in blocks if block.split == split]
        expected = [document for part, document in documents if part == split]
        assert [block.number for block in own] == list(range(len(own)))
        assert [document for block in own for document in block.documents] == expected
        if len(expected) > 1:
            assert all(len(block.documents) >= 2 for block in own)
        for block in own[:-1]:
            assert sum(document.size for document in block.documents) >= size


@given(st.lists(st.integers(1, 40), max_size=40), st.integers(1, 60))
def test_where_blocks_begin_is_known_from_the_sizes_alone(sizes, size):
    documents = [("train", Document(("x" * (length - 1),))) for length in sizes]
    begin = [0]
    for block in blocks_of_documents(documents, size):
        begin.append(begin[-1] + len(block.documents))
    assert block_starts(sizes, size) == begin[:-1]


def test_a_lone_last_document_joins_the_block_before():
    documents = [("train", Document(("long enough",))) for _ in range(5)]
    assert [len(block.documents) for block in blocks_of_documents(documents, 20)] == [2, 3]


def test_the_size_of_blocks_is_bounded():
    assert block_size(0) == SMALLEST
    assert block_size(BLOCKS * 1_000_000) == 1_000_000
    assert block_size(10**12) == LARGEST
