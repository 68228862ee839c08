import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.training.examples.chunks import ChunkCounts, ChunkMaker
from keras_bert_impl.training.examples.pairs import TRUE_NEXT
from keras_bert_impl.training.examples.shards import rows_of_pairs

# Every token of a block is another number, so that a chunk tells where it comes from.
shapes = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=1, max_size=6)


def numbered(shape: list[list[int]]) -> list[list[list[int]]]:
    counter = iter(range(10**6))
    return [[[next(counter) for _ in range(size)] for size in document] for document in shape]


@settings(max_examples=200, deadline=None)
@given(shapes, st.integers(8, 64))
def test_every_token_is_in_one_chunk_in_the_order_of_the_text(shape, length):
    documents = numbered(shape)
    chunks, counts = ChunkMaker(length).chunks_of_block(documents)
    tokens = [token for document in documents for sentence in document for token in sentence]
    assert [token for chunk in chunks for token in chunk.first] == tokens
    assert counts.kept_tokens == len(tokens)
    assert all(0 < len(chunk.first) <= length - 2 for chunk in chunks)
    assert all((chunk.second, chunk.next_sentence_label) == ([], TRUE_NEXT) for chunk in chunks)


@settings(max_examples=200, deadline=None)
@given(shapes, st.integers(8, 64))
def test_chunks_are_of_one_document_and_end_with_a_sentence_or_with_the_row(shape, length):
    documents = numbered(shape)
    home = {token: number for number, document in enumerate(documents) for sentence in document for token in sentence}
    size_from = {sentence[0]: len(sentence) for document in documents for sentence in document}
    ends = {sentence[-1] for document in documents for sentence in document}
    chunks, counts = ChunkMaker(length).chunks_of_block(documents)
    for chunk, following in zip(chunks, [*chunks[1:], None], strict=True):
        assert home[chunk.first[0]] == home[chunk.first[-1]]
        assert chunk.first[-1] in ends or len(chunk.first) == length - 2
        if following and home[following.first[0]] == home[chunk.first[0]] and chunk.first[-1] in ends:
            # Nothing would have had room.
            assert len(chunk.first) + size_from[following.first[0]] > length - 2
    assert counts.cut_sentences == sum(size > length - 2 for document in shape for size in document)


def test_a_sentence_longer_than_a_row_goes_on_in_the_next_ones():
    chunks, counts = ChunkMaker(12).chunks_of_block([[[1, 2], [*range(10, 35)], [3, 4]], [[5]]])
    assert [chunk.first for chunk in chunks] == [
        [1, 2],
        [*range(10, 20)],
        [*range(20, 30)],
        [*range(30, 35), 3, 4],
        [5],
    ]
    assert counts == ChunkCounts(kept_tokens=30, cut_sentences=1)


def test_the_row_of_a_chunk_is_one_segment_between_two_special_tokens():
    chunks, _ = ChunkMaker(8).chunks_of_block([[[10, 11], [12]], [[13]]])
    ids = np.array([7, 9], np.uint64)
    tokens, examples = rows_of_pairs(chunks, ids, cls_token_id=2, sep_token_id=3, vocab_size=100)
    assert tokens.tolist() == [2, 10, 11, 12, 3, 2, 13, 3]
    assert examples.tolist() == [(0, 5, 5, 0, 7), (5, 3, 3, 0, 9)]
