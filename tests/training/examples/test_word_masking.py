"""Whole-word and n-gram masking."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.reference_masking import masked_row, words_to_mask
from keras_bert_impl.training.examples.word_masking import Runs, draw_runs, run_lengths
from keras_bert_impl.training.examples.words import continuing_tokens

PAD, UNK, CLS, SEP, MASK = SPECIAL = (0, 1, 2, 3, 4)
# Every third token continues a word, so words have 1.5 tokens on average and some have five.
VOCABULARY = 995
TOKENIZER = WordPieceTokenizer(
    [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *(f"{'##' if n % 3 == 2 else ''}w{n}" for n in range(VOCABULARY - 5)),
    ]
)
CONTINUING = continuing_tokens(TOKENIZER)

Rows = dict[str, np.ndarray]


def rows_of(lengths, row_length: int, seed: int = 0, unknown: float = 0) -> Rows:
    """Rows of two parts, neither of which begins inside a word."""
    rng = np.random.default_rng(seed)
    lengths = np.asarray(lengths)
    token_ids = rng.integers(5, VOCABULARY, (lengths.size, row_length)).astype(np.int32)
    token_ids[rng.random(token_ids.shape) < unknown] = UNK
    row, middle = np.arange(lengths.size), lengths // 2
    for begin in (1, middle + 1):
        token_ids[row, begin] -= CONTINUING[token_ids[row, begin]]
    token_ids[:, 0] = CLS
    token_ids[row, middle] = token_ids[row, lengths - 1] = SEP
    padding_mask = (np.arange(row_length) < lengths[:, None]).astype(np.int32)
    return {
        "token_ids": token_ids * padding_mask,
        "padding_mask": padding_mask,
        "example_ids": rng.integers(0, 2**63, lengths.size).astype(np.uint64),
    }


def masked(rows: Rows, masking: str = "whole-word", *, share: float = 0.15, seed: int = 1, **changes) -> Rows:
    settings = {
        "vocab_size": VOCABULARY,
        "special_token_ids": SPECIAL,
        "mask_token_id": MASK,
        "max_predictions": max_predictions(rows["token_ids"].shape[1], share),
        "masked_share": share,
        "seed": seed,
        "epoch": 0,
        "masking": masking,
        "continuing_tokens": CONTINUING,
    }
    return mask_batch(rows, **{**settings, **changes})


def chosen_in(batch: Rows) -> np.ndarray:
    """Which positions are predicted, bool (rows, length)."""
    chosen = np.zeros(batch["token_ids"].shape, bool)
    row, slot = np.nonzero(batch["mask_weights"])
    chosen[row, batch["mask_positions"][row, slot]] = True
    return chosen


def words_in(token_ids: np.ndarray, continues: np.ndarray) -> list[list[int]]:
    """The positions of each word of a row, special tokens being none."""
    words: list[list[int]] = []
    for position, token_id in enumerate(token_ids):
        if continues[position]:
            words[-1].append(position)
        elif token_id not in (PAD, CLS, SEP):
            words.append([position])
    return words


shapes = st.lists(st.integers(6, 60), min_size=1, max_size=8)


@settings(max_examples=80, deadline=None)
@given(shapes, st.floats(0.01, 1), st.sampled_from(["whole-word", "n-gram"]), st.integers(1, 6), st.integers(0, 2**40))
def test_words_are_masked_whole_or_not_and_within_the_budget(lengths, share, masking, max_ngram, seed):
    rows = rows_of(lengths, 60, seed % 1000, unknown=0.05)
    batch = masked(rows, masking, share=share, seed=seed, max_ngram=max_ngram)
    chosen, token_ids = chosen_in(batch), rows["token_ids"]
    assert not np.isin(token_ids[chosen], SPECIAL).any()
    assert np.array_equal(batch["token_ids"][~chosen], token_ids[~chosen])
    assert batch["token_ids"].min() >= 0 and batch["token_ids"].max() < VOCABULARY
    for row, length in enumerate(lengths):
        budget = min(max_predictions(60, share), max(1, round(length * share)))
        assert chosen[row].sum() <= budget
        continues = CONTINUING[token_ids[row]] & ~np.isin(np.roll(token_ids[row], 1), SPECIAL)
        left = []
        for word in words_in(token_ids[row], continues):
            word = [position for position in word if token_ids[row, position] != UNK]
            assert chosen[row, word].all() or not chosen[row, word].any()
            left += [len(word)] if word and not chosen[row, word[0]] else []
        # No word is passed over that has room.
        assert not left or chosen[row].sum() + min(left) > budget


def test_slots_are_filled_in_order_and_labelled_with_what_stood_there():
    rows = rows_of([60, 30, 7], 60)
    batch = masked(rows, "n-gram")
    for row, weights in enumerate(batch["mask_weights"]):
        used = int(weights.sum())
        assert weights.tolist() == [1] * used + [0] * (weights.size - used)
        positions = batch["mask_positions"][row]
        assert (np.diff(positions[:used]) > 0).all() and not positions[used:].any()
        assert batch["mask_labels"][row, :used].tolist() == rows["token_ids"][row, positions[:used]].tolist()


@pytest.mark.parametrize("masking", ["whole-word", "n-gram"])
def test_masks_depend_on_seed_epoch_and_id_and_nothing_else(masking: str):
    rows = rows_of(np.full(40, 60), 60)
    batch = masked(rows, masking)
    alone = masked({name: values[7:8] for name, values in rows.items()}, masking)
    for name, values in alone.items():
        assert np.array_equal(values[0], batch[name][7])
    for other in (
        masked(rows, masking, seed=2),
        masked(rows, masking, epoch=1),
        masked(rows | {"example_ids": rows["example_ids"] + np.uint64(1)}, masking),
    ):
        assert (other["mask_positions"] != batch["mask_positions"]).any(axis=1).all()
    mixed = masked(rows, masking, epoch=np.arange(40) % 2)
    assert np.array_equal(mixed["mask_positions"][::2], batch["mask_positions"][::2])


def test_tokens_alone_are_masked_as_ever():
    batch = masked(rows_of([20, 12], 20), "token")
    assert batch["mask_positions"].tolist() == [[2, 7, 17], [1, 8, 0]]
    shown = np.take_along_axis(batch["token_ids"], batch["mask_positions"], axis=1)
    assert shown.tolist() == [[MASK, MASK, MASK], [MASK, 762, CLS]]


def test_boundaries_that_came_with_the_rows_go_before_those_of_the_vocabulary():
    rows = rows_of([40] * 50, 40)
    rows["token_ids"][:, 10] = UNK
    continues = np.zeros((50, 40), bool)
    continues[:, [2, 3, 4, 9, 10, 11, 12]] = True  # Words of four and five, one token of which is unknown.
    before = continues.copy()
    chosen = chosen_in(masked(rows | {"continues_word": continues}))
    assert set(chosen[:, 1:5].sum(axis=1)) == {0, 4}
    assert not chosen[:, 10].any()
    assert (chosen.sum(axis=1) == 6).all()
    assert np.array_equal(continues, before)


@pytest.mark.parametrize("masking", ["whole-word", "n-gram"])
def test_no_word_reaches_over_an_unknown_token_wherever_its_boundaries_come_from(masking: str):
    rows = rows_of([40] * 200, 40, unknown=0.1)
    assert (rows["token_ids"] == UNK).any(axis=1).mean() > 0.9
    stored = CONTINUING[rows["token_ids"]]
    # As `prepare` stores a stretch of text, of which the unknown token is a part like any other.
    stored |= (rows["token_ids"] == UNK) & (np.roll(rows["token_ids"], 1, axis=1) >= 5)
    pieces, found = masked(rows, masking), masked(rows | {"continues_word": stored}, masking)
    for name in ("mask_positions", "mask_labels", "mask_weights", "token_ids"):
        assert np.array_equal(pieces[name], found[name])
    every = np.zeros((200, 40), bool)
    every[:, 2:39] = True  # One stretch, cut by the separating and the unknown tokens.
    chosen = chosen_in(masked(rows | {"continues_word": every}, masking))
    shares = [
        marks[part[1:]].mean()
        for row, marks in zip(rows["token_ids"], chosen, strict=True)
        for part in np.split(np.arange(40), np.flatnonzero(row < 5))
        if part.size > 1
    ]
    assert set(shares) == {0, 1}


def test_a_word_longer_than_the_budget_is_never_masked():
    rows = rows_of([40] * 50, 40)
    continues = np.zeros((50, 40), bool)
    continues[:, 2:9] = True
    assert not chosen_in(masked(rows | {"continues_word": continues}))[:, 1:9].any()


def test_a_piece_after_a_special_token_begins_a_word():
    rows = rows_of([20], 20)
    rows["token_ids"][0, [1, 11]] = 5 + 2  # Continuing pieces, left by truncation.
    rows["token_ids"][0, [2, 12]] = 5
    for seed in range(20):
        chosen = chosen_in(masked(rows, seed=seed, share=0.05))[0]
        assert chosen.sum() == 1


def test_each_token_of_a_word_draws_its_kind_for_itself():
    rows = rows_of(np.full(6000, 63), 63)
    continues = np.zeros((6000, 63), bool)
    continues[:, 2:31:2] = continues[:, 33:62:2] = True  # All words have two tokens.
    batch = masked(rows | {"continues_word": continues})
    used = batch["mask_weights"] > 0
    shown = np.take_along_axis(batch["token_ids"], batch["mask_positions"], axis=1)
    kinds = np.where(shown == MASK, 0, np.where(shown == batch["mask_labels"], 1, 2))[used]
    assert np.bincount(kinds) / kinds.size == pytest.approx([0.8, 0.1, 0.1], abs=0.005)
    together = np.zeros((3, 3))
    np.add.at(together, (kinds[::2], kinds[1::2]), 1)
    assert stats.chi2_contingency(together).pvalue > 0.01


def by_reference(rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and choice of the original's whole-word masking for the same rows."""
    rng = Random(seed)
    token_ids, chosen = rows["token_ids"].copy(), np.zeros(rows["token_ids"].shape, bool)
    for index, length in enumerate(rows["padding_mask"].sum(axis=1)):
        row = rows["token_ids"][index, :length].tolist()
        words = words_to_mask(row, TOKENIZER, whole_words=True)
        settings = {"masked_share": 0.15, "max_predictions": max_predictions(64, 0.15)}
        token_ids[index, :length], positions = masked_row(row, words, tokenizer=TOKENIZER, rng=rng, **settings)
        chosen[index, positions] = True
    return token_ids, chosen


def measures(rows: Rows, token_ids: np.ndarray, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Counts that tell how tokens were chosen and hidden."""
    before = rows["token_ids"]
    begins = ~CONTINUING[before]
    of_word = np.cumsum(begins, axis=1) + 100 * np.arange(len(before))[:, None]
    shown, hidden = token_ids[chosen], before[chosen]
    kinds = np.where(shown == MASK, 0, np.where(shown == hidden, 1, 2))
    return {
        "predictions of a row": np.bincount(chosen.sum(axis=1), minlength=12),
        "positions": chosen.sum(axis=0),
        "tokens of a masked word": np.bincount(np.unique(of_word[chosen], return_counts=True)[1], minlength=8)[:8],
        "kinds": np.bincount(kinds, minlength=3),
        "predicted tokens": np.bincount(hidden, minlength=VOCABULARY),
        "random tokens": np.bincount(shown[kinds == 2] // 50, minlength=20),
    }


@pytest.fixture(scope="module")
def two_ways() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], Rows]:
    rows = rows_of(np.random.default_rng(3).integers(12, 65, 8000), 64, seed=4)
    batch = masked(rows)
    return measures(rows, *by_reference(rows, seed=5)), measures(rows, batch["token_ids"], chosen_in(batch)), rows


def p_value_of_counts(one: np.ndarray, other: np.ndarray) -> float:
    met = one + other > 0
    return float(stats.chi2_contingency([one[met], other[met]]).pvalue)


@pytest.mark.parametrize(
    "measure",
    ["predictions of a row", "positions", "tokens of a masked word", "kinds", "predicted tokens", "random tokens"],
)
def test_whole_words_are_masked_as_the_original_does_it(two_ways, measure: str):
    reference, ours, _ = two_ways
    assert p_value_of_counts(reference[measure], ours[measure]) > 0.01


def test_the_comparison_notices_single_tokens_and_a_smaller_budget(two_ways):
    reference, _, rows = two_ways
    for measure, fault in (
        ("tokens of a masked word", {"masking": "token"}),
        ("predictions of a row", {"share": 0.145}),
    ):
        batch = masked(rows, **fault)
        other = measures(rows, batch["token_ids"], chosen_in(batch))
        assert p_value_of_counts(reference[measure], other[measure]) < 1e-4


def test_n_grams_of_one_word_are_whole_words():
    rows = rows_of(np.full(50, 60), 60)
    one, other = masked(rows, "n-gram", max_ngram=1), masked(rows, "whole-word")
    assert all(np.array_equal(one[name], other[name]) for name in one)


def runs_of(count: int, length: int, max_ngram: int, share: float = 0.15) -> tuple[Runs, np.ndarray, np.ndarray]:
    """Runs of rows of one part, the words of which have one token."""
    rng = np.random.default_rng(count)
    ordinary = np.ones((count, length), bool)
    ordinary[:, [0, -1]] = False
    budget = round(length * share)
    lengths = run_lengths(rng.integers(0, 2**63, count).astype(np.uint64), budget, max_ngram)
    numbers = rng.integers(0, 2**63, ordinary.shape).astype(np.uint64)
    runs = draw_runs(numbers, ordinary, np.zeros_like(ordinary), np.full(count, budget), lengths)
    return runs, ordinary, lengths


@pytest.mark.parametrize("max_ngram", [2, 3, 5])
def test_the_lengths_of_n_grams_are_drawn_in_proportion_to_one_over_n(max_ngram: int):
    drawn = run_lengths(np.random.default_rng(0).integers(0, 2**63, 5000).astype(np.uint64), 20, max_ngram)
    share = 1 / np.arange(1, max_ngram + 1)
    expected = drawn.size * share / share.sum()
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=max_ngram + 1)[1:], expected).pvalue > 0.01


def expected_lengths(budget: int) -> np.ndarray:
    """How many runs of 1, 2 and 3 words a budget takes on average if only the last one is cut to what is left."""
    counts = [np.zeros(3)]
    for left in range(1, budget + 1):
        by_length = [np.eye(3)[min(words, left) - 1] + counts[max(0, left - words)] for words in (1, 2, 3)]
        counts.append(np.average(by_length, axis=0, weights=[1, 1 / 2, 1 / 3]))
    return counts[budget]


def test_n_grams_have_the_lengths_that_were_drawn_but_for_the_last_one():
    runs, _, lengths = runs_of(3000, 128, 3)
    for row in range(300):
        words = runs.words[runs.rows == row]
        assert words.sum() == 19
        assert words[:-1].tolist() == lengths[row, : words.size - 1].tolist()
        assert words[-1] <= lengths[row, words.size - 1]
    assert np.bincount(runs.words)[1:] / 3000 == pytest.approx(expected_lengths(19), rel=0.02)


def test_of_the_77_predictions_of_a_long_row_the_n_grams_have_shares_in_proportion_to_one_over_n():
    runs, _, _ = runs_of(1000, 512, 3)
    shares = np.bincount(runs.words)[1:] / runs.words.size
    assert shares == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.01)


def test_n_grams_begin_anywhere_and_never_overlap_or_leave_their_part():
    runs, ordinary, _ = runs_of(4000, 64, 3)
    covered = np.zeros(ordinary.shape, int)
    for row, start, end in zip(runs.rows, runs.starts, runs.ends, strict=True):
        covered[row, start:end] += 1
    assert covered.max() == 1 and not covered[~ordinary].any()
    assert np.array_equal(runs.painted(ordinary.shape), covered > 0)
    inner = covered[:, 4:-4].sum(axis=0)  # At the edges of a part long runs have no room.
    assert stats.chisquare(inner).pvalue > 0.01


def test_single_words_fill_a_row_in_which_longer_runs_have_no_room():
    ordinary = np.arange(40) % 2 == 1  # Parts of a single token.
    numbers = np.random.default_rng(0).integers(0, 2**63, (30, 40)).astype(np.uint64)
    ordinary = np.tile(ordinary, (30, 1))
    lengths = np.full((30, 6), 3)
    runs = draw_runs(numbers, ordinary, np.zeros_like(ordinary), np.full(30, 6), lengths)
    assert (runs.words == 1).all() and np.bincount(runs.rows).tolist() == [6] * 30


def test_an_unknown_kind_and_absent_boundaries_are_refused():
    with pytest.raises(InputError, match=r"`masking` must be one of token, whole-word, n-gram\. .* masking='words'"):
        masked(rows_of([20], 20), "words")
    with pytest.raises(InputError, match=r"`continuing_tokens` must be given where the rows have no `continues_word`"):
        masked(rows_of([20], 20), continuing_tokens=None)
