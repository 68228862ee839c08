import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.corpus.readers import find_files, read_documents
from keras_bert_impl.training.examples.pairs import RANDOM_NEXT, TRUE_NEXT, Pair, PairCounts, PairMaker

# Every token of a block is another number, so that a part tells where it comes from.
shapes = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), min_size=1, max_size=6)


def numbered(shape: list[list[int]]) -> list[list[list[int]]]:
    counter = iter(range(10**6))
    return [[[next(counter) for _ in range(size)] for size in document] for document in shape]


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def is_run(tokens: list[int]) -> bool:
    return tokens == list(range(tokens[0], tokens[0] + len(tokens)))


@settings(max_examples=300, deadline=None)
@given(shapes, st.integers(8, 64), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32))
def test_pairs_are_what_their_label_says(shape, length, short_seq_prob, next_sentence_prob, seed):
    documents = numbered(shape)
    home = {token: number for number, document in enumerate(documents) for sentence in document for token in sentence}
    pairs, counts = PairMaker(length, short_seq_prob, next_sentence_prob).pairs_of_block(documents, philox(seed))
    for pair in pairs:
        assert pair.first and pair.second
        assert len(pair.first) + len(pair.second) + 3 <= length
        assert is_run(pair.first) and is_run(pair.second)
        if pair.next_sentence_label == RANDOM_NEXT:
            assert home[pair.first[0]] != home[pair.second[0]]
        else:
            assert home[pair.first[0]] == home[pair.second[0]]
            assert pair.first[-1] < pair.second[0]
    if len(documents) > 1 and next_sentence_prob > 0:
        assert counts.unpaired_sentences == 0
    elif next_sentence_prob == 0 or len(documents) == 1:
        assert all(pair.next_sentence_label == TRUE_NEXT for pair in pairs)


@settings(max_examples=200, deadline=None)
@given(shapes.filter(lambda shape: len(shape) > 1), st.integers(0, 2**32))
def test_no_sentence_is_lost_or_used_twice(shape, seed):
    documents = numbered(shape)
    pairs, _ = PairMaker(10_000).pairs_of_block(documents, philox(seed))  # Nothing is cut at this length.
    used = []
    for pair in pairs:
        used += pair.first
        if pair.next_sentence_label == TRUE_NEXT:
            used += pair.second
    assert used == [token for document in documents for sentence in document for token in sentence]


@settings(max_examples=100, deadline=None)
@given(shapes, st.integers(8, 40), st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_pairs(shape, length, seed):
    documents, maker = numbered(shape), PairMaker(length)
    assert maker.pairs_of_block(documents, philox(seed)) == maker.pairs_of_block(documents, philox(seed))


def test_a_single_sentence_takes_a_random_partner():
    pairs, counts = PairMaker(16).pairs_of_block([[[1, 2]], [[3, 4]]], philox(0))
    assert counts == PairCounts(kept_tokens=4, single_sentence_chunks=2)
    assert pairs == [Pair([1, 2], [3, 4], RANDOM_NEXT), Pair([3, 4], [1, 2], RANDOM_NEXT)]


def test_a_lone_document_gives_true_successors_and_counts_what_is_left():
    sentences = [[number] * 20 for number in range(5)]
    pairs, counts = PairMaker(16, short_seq_prob=0).pairs_of_block([sentences], philox(0))
    assert [(pair.first[0], pair.second[0], pair.next_sentence_label) for pair in pairs] == [(0, 1, 0), (2, 3, 0)]
    # 40 tokens stand for a pair that has room for 13.
    assert counts == PairCounts(kept_tokens=26, truncated_tokens=54, unpaired_sentences=1, unpaired_tokens=20)


def test_a_random_part_that_is_cut_loses_nothing_but_a_first_part_does():
    pairs, counts = PairMaker(16, short_seq_prob=0).pairs_of_block([[[1] * 9], [[2] * 3]], philox(0))
    # Room for 13: 9 and 3 fit. Both sentences have their own place in a first part.
    assert counts == PairCounts(kept_tokens=12, single_sentence_chunks=2)
    pairs, counts = PairMaker(16, short_seq_prob=0).pairs_of_block([[[1] * 20], [[2] * 3]], philox(0))
    # 20 and 3: the longer one loses 10, in the first pair from its own place, in the second pair as a guest.
    assert [(len(pair.first), len(pair.second)) for pair in pairs] == [(10, 3), (3, 10)]
    assert counts == PairCounts(kept_tokens=13, truncated_tokens=10, single_sentence_chunks=2)


@settings(max_examples=200, deadline=None)
@given(shapes, st.integers(8, 64), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**32))
def test_every_token_is_kept_cut_off_or_left_out(shape, length, short_seq_prob, next_sentence_prob, seed):
    documents = numbered(shape)
    pairs, counts = PairMaker(length, short_seq_prob, next_sentence_prob).pairs_of_block(documents, philox(seed))
    kept = [token for pair in pairs for token in pair.first]
    kept += [token for pair in pairs if pair.next_sentence_label == TRUE_NEXT for token in pair.second]
    assert counts.kept_tokens == len(kept) == len(set(kept))
    read = sum(len(sentence) for document in documents for sentence in document)
    assert counts.kept_tokens + counts.truncated_tokens + counts.unpaired_tokens == read


def test_a_successor_with_the_same_words_elsewhere_is_never_labelled_random():
    # The other document has nothing but the true next sentence.
    documents = [[[1, 2], [7, 8]], [[7, 8]]]
    for seed in range(50):
        pairs, counts = PairMaker(16).pairs_of_block(documents, philox(seed))
        of_first = [pair for pair in pairs if pair.first == [1, 2]]
        assert of_first == [Pair([1, 2], [7, 8], TRUE_NEXT)]
        assert counts.unpaired_sentences == 0


def test_half_of_the_pairs_are_random():
    documents = numbered([[10] * 2000, [10] * 2000])
    pairs, _ = PairMaker(128).pairs_of_block(documents, philox(1))
    labels = [pair.next_sentence_label for pair in pairs]
    assert len(labels) > 400
    assert abs(np.mean(labels) - 0.5) < 0.07


@pytest.mark.parametrize(("share", "low", "high"), [(0.1, 0.06, 0.14), (0, 0, 0), (1, 0.97, 1)])
def test_the_share_of_short_targets(share: float, low: float, high: float):
    documents = numbered([[1] * 125] * 500)
    pairs, _ = PairMaker(128, share, next_sentence_prob=0).pairs_of_block(documents, philox(1))
    full = sum(len(pair.first) + len(pair.second) == 125 for pair in pairs)
    # A document with the full target is one pair; a shorter one hardly ever fills the row.
    assert low <= 1 - full / len(documents) <= high


def test_parts_are_cut_at_both_ends_with_equal_chance():
    documents = numbered([[100, 100]] * 300)
    pairs, _ = PairMaker(64, short_seq_prob=0, next_sentence_prob=0).pairs_of_block(documents, philox(1))
    starts = [pair.first[0] % 100 for pair in pairs]
    assert all(len(pair.first) in (30, 31) and len(pair.second) in (30, 31) for pair in pairs)
    assert abs(np.mean(starts) - (100 - 31) / 2) < 1.5
    assert 2 < np.std(starts) < 6  # Binomial: token by token, not all from one end.


@pytest.mark.shared
@pytest.mark.parametrize("setting", [0, 2])
def test_the_pairs_are_distributed_as_those_of_the_original(shared: Path, setting: int):
    compressed = (shared / "data/bert_original/golden_instances.json.xz").read_bytes()
    golden = json.loads(lzma.decompress(compressed))[setting]
    vocabulary = shared / "data/vocab/bert-base-uncased-vocab.txt"
    tokenizer = WordPieceTokenizer.from_vocab_file(vocabulary)
    files = find_files([str(shared / "data/bert_original/sample_text.txt")])
    documents = [[tokenizer.encode_ids(line) for line in document.lines] for document in read_documents(files)]
    arguments, instances = golden["args"], golden["instances"]
    maker = PairMaker(arguments["max_seq_length"], arguments["short_seq_prob"])
    rounds = 200
    ours = [pair for seed in range(rounds) for pair in maker.pairs_of_block(documents, philox(seed))[0]]
    assert len(ours) / rounds == pytest.approx(len(instances) / arguments["dupe_factor"], rel=0.06)
    random_share = np.mean([instance["is_random_next"] for instance in instances])
    assert np.mean([pair.next_sentence_label for pair in ours]) == pytest.approx(random_share, abs=0.1)
    length = np.mean([len(instance["tokens"]) for instance in instances])
    assert np.mean([len(pair.first) + len(pair.second) + 3 for pair in ours]) == pytest.approx(length, rel=0.06)
