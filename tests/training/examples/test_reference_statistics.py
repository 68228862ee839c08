"""The fast way (`pairs`, `masking`) against the reference mode: one distribution, wherever they are meant to agree.

They cannot agree row by row, since their generators differ. So both go through one corpus six times, and what they
make is compared by Kolmogorov-Smirnov and chi-square tests with fixed seeds. Where ours differs on purpose, a test
at the end says so.
"""

import numpy as np
import pytest
from scipy import stats

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.masking import mask_batch
from keras_bert_impl.training.examples.pairs import PairMaker
from keras_bert_impl.training.examples.reference_instances import ReferenceSettings, instances_of_lines
from keras_bert_impl.training.examples.shards import rows_of_pairs
from keras_bert_impl.training.examples.tfrecord_writing import rows_of_instances

LENGTH, PREDICTIONS, PASSES = 64, 10, 6
WORDS = [f"w{number}" for number in range(95)]
MASK_ID, SPECIAL = 4, 5
# Fixed seeds, so this is no rate of false alarms: what falls below it means that one of the two has changed.
LEAST_P_VALUE = 0.01
# With some 8,300 rows on either side this much is noticed, as the planted faults below show.
LARGEST_DISTANCE = 0.02

Rows = dict[str, np.ndarray]
Corpus = list[list[str]]


def make_corpus(documents: int, seed: int) -> Corpus:
    """Documents of 2 to some 30 sentences, which have 1 to some 60 words."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS, 1 + rng.poisson(rng.gamma(2.0, 6.0))))

    return [[sentence() for _ in range(1 + rng.geometric(0.12))] for _ in range(documents)]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    corpus = make_corpus(documents=400, seed=0)
    assert sum(map(len, corpus)) == 3867
    return corpus


def by_reference(corpus: Corpus, tokenizer: WordPieceTokenizer, passes: int = PASSES) -> Rows:
    settings = ReferenceSettings(length=LENGTH, max_predictions=PREDICTIONS, dupe_factor=passes, seed=1)
    lines = [line for document in corpus for line in [*document, ""]]
    stretches = list(rows_of_instances(instances_of_lines(lines, tokenizer, settings), settings))
    return {name: np.concatenate([rows[name] for rows in stretches]) for name in stretches[0]}


def by_fast_way(corpus: Corpus, tokenizer: WordPieceTokenizer, passes: int = PASSES, **settings: float) -> Rows:
    documents = [[tokenizer.encode_ids(line) for line in document] for document in corpus]
    pairs = []
    for number in range(passes):
        rng = np.random.Generator(np.random.Philox(number))
        pairs += PairMaker(LENGTH, **settings).pairs_of_block(documents, rng)[0]
    tokens, examples = rows_of_pairs(
        pairs,
        np.arange(len(pairs), dtype=np.uint64),
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
        vocab_size=tokenizer.vocab_size,
    )
    positions = np.arange(LENGTH)
    real = positions < examples["length"][:, None]
    token_ids = np.zeros(real.shape, np.int32)
    token_ids[real] = tokens
    rows = {
        "token_ids": token_ids,
        "segment_ids": (real & (positions >= examples["second"][:, None])).astype(np.int32),
        "padding_mask": real.astype(np.int32),
        "next_sentence_labels": examples["next_sentence_label"].astype(np.int32),
        "example_ids": examples["id"],
    }
    return mask_batch(
        rows,
        vocab_size=tokenizer.vocab_size,
        special_token_ids=tokenizer.special_token_ids,
        mask_token_id=tokenizer.mask_token_id,
        max_predictions=PREDICTIONS,
        masked_share=0.15,
        seed=1,
        epoch=0,
    )


@pytest.fixture(scope="module")
def reference(corpus: Corpus, tokenizer: WordPieceTokenizer) -> Rows:
    return by_reference(corpus, tokenizer)


@pytest.fixture(scope="module")
def fast(corpus: Corpus, tokenizer: WordPieceTokenizer) -> Rows:
    return by_fast_way(corpus, tokenizer)


def lengths(rows: Rows) -> np.ndarray:
    return rows["padding_mask"].sum(axis=1)


def second_lengths(rows: Rows) -> np.ndarray:
    return rows["segment_ids"].sum(axis=1)


def first_lengths(rows: Rows) -> np.ndarray:
    return lengths(rows) - second_lengths(rows)


def predictions(rows: Rows) -> np.ndarray:
    return rows["mask_weights"].sum(axis=1).astype(int)


def relative_positions(rows: Rows) -> np.ndarray:
    return rows["mask_positions"][rows["mask_weights"] > 0] / np.repeat(lengths(rows), predictions(rows))


def positions(rows: Rows) -> np.ndarray:
    return np.bincount(rows["mask_positions"][rows["mask_weights"] > 0], minlength=LENGTH)


def shown_and_hidden(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    used = rows["mask_weights"] > 0
    return np.take_along_axis(rows["token_ids"], rows["mask_positions"], axis=1)[used], rows["mask_labels"][used]


def kinds(rows: Rows) -> np.ndarray:
    """Number of tokens masked, kept and replaced."""
    shown, hidden = shown_and_hidden(rows)
    return np.bincount(np.where(shown == MASK_ID, 0, np.where(shown == hidden, 1, 2)), minlength=3)


def drawn_tokens(rows: Rows) -> np.ndarray:
    shown, hidden = shown_and_hidden(rows)
    return np.bincount(shown[(shown != MASK_ID) & (shown != hidden)], minlength=len(WORDS) + SPECIAL)


def predicted_tokens(rows: Rows) -> np.ndarray:
    return np.bincount(shown_and_hidden(rows)[1], minlength=len(WORDS) + SPECIAL)


def labels(rows: Rows) -> np.ndarray:
    return np.bincount(rows["next_sentence_labels"], minlength=2)


def with_label(rows: Rows, label: int) -> Rows:
    return {name: values[rows["next_sentence_labels"] == label] for name, values in rows.items()}


def distance(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Returns the largest distance between the distributions, and its p-value."""
    result = stats.ks_2samp(one, other)
    return float(result.statistic), float(result.pvalue)


def p_value_of_counts(one: np.ndarray, other: np.ndarray) -> float:
    met = one + other > 0
    return float(stats.chi2_contingency([one[met], other[met]]).pvalue)


def test_both_make_as_many_rows(reference: Rows, fast: Rows):
    assert len(fast["token_ids"]) / len(reference["token_ids"]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("measure", [lengths, first_lengths, second_lengths, predictions, relative_positions])
def test_rows_parts_and_masked_places_have_one_distribution(reference: Rows, fast: Rows, measure):
    found, p_value = distance(measure(reference), measure(fast))
    assert found < LARGEST_DISTANCE and p_value > LEAST_P_VALUE


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("measure", [lengths, first_lengths, second_lengths])
def test_true_and_random_pairs_each_have_one_distribution(reference: Rows, fast: Rows, measure, label: int):
    found, p_value = distance(measure(with_label(reference, label)), measure(with_label(fast, label)))
    assert found < 1.5 * LARGEST_DISTANCE and p_value > LEAST_P_VALUE  # Half the rows, so half as sharp.


@pytest.mark.parametrize("measure", [labels, kinds, positions, drawn_tokens, predicted_tokens])
def test_labels_kinds_positions_and_tokens_have_one_distribution(reference: Rows, fast: Rows, measure):
    assert p_value_of_counts(measure(reference), measure(fast)) > LEAST_P_VALUE


def test_a_row_of_so_many_tokens_has_as_many_predictions(reference: Rows, fast: Rows):
    for rows in (reference, fast):
        expected = [min(PREDICTIONS, max(1, round(int(length) * 0.15))) for length in lengths(rows)]
        assert predictions(rows).tolist() == expected
    shares = [predictions(rows).sum() / lengths(rows).sum() for rows in (reference, fast)]
    assert shares[0] == pytest.approx(shares[1], abs=0.001)


def test_shares_agree_to_a_point(reference: Rows, fast: Rows):
    for measure in (labels, kinds):
        one, other = (measure(rows) / measure(rows).sum() for rows in (reference, fast))
        np.testing.assert_allclose(one, other, atol=0.01)


def test_the_comparison_notices_lengths_without_short_rows(reference: Rows, corpus, tokenizer):
    found, p_value = distance(lengths(reference), lengths(by_fast_way(corpus, tokenizer, short_seq_prob=0.0)))
    assert found > 2 * LARGEST_DISTANCE and p_value < 1e-6


def test_the_comparison_notices_a_shift_of_the_labels(reference: Rows, corpus, tokenizer):
    shifted = by_fast_way(corpus, tokenizer, next_sentence_prob=0.45)
    assert p_value_of_counts(labels(reference), labels(shifted)) < 1e-4


def test_the_comparison_notices_kinds_and_places_drawn_wrongly(reference: Rows, fast: Rows):
    fifth = kinds(fast)[1] // 5
    fewer_kept = kinds(fast) + np.array([0, -fifth, fifth])
    assert p_value_of_counts(kinds(reference), fewer_kept) < 1e-4
    assert distance(relative_positions(reference), 0.97 * relative_positions(fast))[1] < 1e-4


def restored(rows: Rows) -> np.ndarray:
    """The tokens before they were masked."""
    token_ids = rows["token_ids"].copy()
    row, slot = np.nonzero(rows["mask_weights"])
    token_ids[row, rows["mask_positions"][row, slot]] = rows["mask_labels"][row, slot]
    return token_ids


def own_random_parts(rows: Rows) -> int:
    """Number of pairs labelled random though both parts are of one document, told by the half of the words it has."""
    token_ids, second = restored(rows), first_lengths(rows)
    late = (token_ids - SPECIAL) >= len(WORDS) // 2
    same = late[:, 1] == late[np.arange(len(late)), second]
    return int((same & (rows["next_sentence_labels"] == 1)).sum())


def test_on_purpose_no_pair_of_one_documents_sentences_is_labelled_random(tokenizer: WordPieceTokenizer):
    """The original redraws ten times, then takes what it has: of two documents every 1024th random part."""
    half, rng = len(WORDS) // 2, np.random.default_rng(0)
    corpus = [
        [" ".join(rng.choice(words, 20)) for _ in range(40)]
        for words in (np.array(WORDS[:half]), np.array(WORDS[half:]))
    ]
    assert own_random_parts(by_reference(corpus, tokenizer, passes=150)) > 0
    assert own_random_parts(by_fast_way(corpus, tokenizer, passes=150)) == 0


def test_on_purpose_a_lone_document_has_no_random_pairs(tokenizer: WordPieceTokenizer):
    """The original labels about half of its pairs random though every part is its own."""
    corpus = make_corpus(documents=1, seed=5)
    assert labels(by_reference(corpus, tokenizer, passes=100))[1] > 0
    assert labels(by_fast_way(corpus, tokenizer, passes=100))[1] == 0


def test_on_purpose_the_unknown_token_is_never_predicted(tokenizer: WordPieceTokenizer):
    """To the original it is a token like any other; to predict it teaches nothing."""
    corpus = [["w1 w2 strange w3 w4 odd w5"] * 3, ["w6 queer w7"] * 3]
    assert predicted_tokens(by_reference(corpus, tokenizer))[tokenizer.unk_token_id] > 0
    assert predicted_tokens(by_fast_way(corpus, tokenizer))[tokenizer.unk_token_id] == 0
