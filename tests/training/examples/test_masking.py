import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.training.examples.masking import mask_batch, max_predictions

SPECIAL = (0, 1, 2, 3, 4)
CLS, SEP, MASK, VOCABULARY = 2, 3, 4, 1000


def rows_of(lengths, row_length: int = 128, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.Generator(np.random.Philox(seed))
    lengths = np.asarray(lengths)
    token_ids = rng.integers(5, VOCABULARY, (lengths.size, row_length)).astype(np.int32)
    token_ids[:, 0] = CLS
    token_ids[np.arange(lengths.size), lengths // 2] = SEP
    token_ids[np.arange(lengths.size), lengths - 1] = SEP
    padding_mask = (np.arange(row_length) < lengths[:, None]).astype(np.int32)
    return {
        "token_ids": token_ids * padding_mask,
        "padding_mask": padding_mask,
        "example_ids": rng.integers(0, 2**63, lengths.size).astype(np.uint64),
    }


def masked(rows, *, seed: int = 1, epoch=0, share: float = 0.15, predictions: int = 20):
    return mask_batch(
        rows,
        vocab_size=VOCABULARY,
        special_token_ids=SPECIAL,
        mask_token_id=MASK,
        max_predictions=predictions,
        masked_share=share,
        seed=seed,
        epoch=epoch,
    )


def test_prediction_slots_as_in_the_original():
    assert (max_predictions(128, 0.15), max_predictions(512, 0.15)) == (20, 77)


def test_the_number_of_predictions_is_the_rounded_share_of_all_tokens():
    lengths = np.arange(5, 129)
    weights = masked(rows_of(lengths))["mask_weights"]
    expected = [min(20, max(1, round(int(length) * 0.15)), int(length) - 3) for length in lengths]
    assert weights.sum(axis=1).tolist() == expected


def test_a_slot_limit_holds():
    assert masked(rows_of([128] * 4), predictions=7)["mask_weights"].sum() == 28


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(4, 40), min_size=1, max_size=8), st.floats(0.01, 1), st.integers(0, 2**40))
def test_masks_hold_together(lengths, share, seed):
    rows = rows_of(lengths, 40, seed % 1000)
    before = rows["token_ids"].copy()
    batch = masked(rows, seed=seed, share=share, predictions=max_predictions(40, share))
    assert np.array_equal(rows["token_ids"], before)
    used = batch["mask_weights"] > 0
    at = np.take_along_axis(before, batch["mask_positions"], axis=1)
    assert np.array_equal(batch["mask_labels"][used], at[used])
    assert not np.isin(batch["mask_labels"][used], SPECIAL).any()
    for name in ("mask_positions", "mask_labels", "mask_weights"):
        assert not batch[name][~used].any()
    chosen = np.zeros(before.shape, bool)
    for row in range(len(lengths)):
        positions = batch["mask_positions"][row][used[row]]
        assert (np.diff(positions) > 0).all()
        chosen[row, positions] = True
    assert np.array_equal(batch["token_ids"][~chosen], before[~chosen])
    assert batch["token_ids"].min() >= 0 and batch["token_ids"].max() < VOCABULARY


def test_a_row_of_special_tokens_alone_has_no_predictions():
    rows = rows_of([3, 20])
    rows["token_ids"][0, :3] = [CLS, SEP, SEP]
    batch = masked(rows)
    assert batch["mask_weights"].sum(axis=1).tolist() == [0, 3]
    assert np.array_equal(batch["token_ids"][0], rows["token_ids"][0])


def test_shares_over_many_examples():
    batch, rows = None, rows_of(np.full(4000, 128))
    chosen = kept = hidden = 0
    drawn = []
    for epoch in range(5):
        batch = masked(rows, epoch=epoch)
        used = batch["mask_weights"] > 0
        now = np.take_along_axis(batch["token_ids"], batch["mask_positions"], axis=1)[used]
        labels = batch["mask_labels"][used]
        chosen += labels.size
        hidden += (now == MASK).sum()
        kept += (now == labels).sum()
        drawn.append(now[(now != MASK) & (now != labels)])
    # Of the random tokens one in a thousand is the mask and one the token itself.
    assert abs(hidden / chosen - 0.8001) < 0.005
    assert abs(kept / chosen - 0.1001) < 0.004
    assert chosen / (5 * 4000 * 128) == pytest.approx(19 / 128)
    # Drawn from the whole vocabulary, special tokens among them, each as often as the others.
    counts = np.bincount(np.concatenate(drawn), minlength=VOCABULARY)
    counts = np.delete(counts, MASK)
    assert counts[:4].min() > 0
    assert abs(counts / counts.mean() - 1).max() < 6 / np.sqrt(counts.mean())


def test_every_position_is_chosen_equally_often():
    batch = masked(rows_of(np.full(20_000, 32), 32), predictions=5)
    counts = np.bincount(batch["mask_positions"][batch["mask_weights"] > 0], minlength=32)
    assert counts[[0, 16, 31]].tolist() == [0, 0, 0]
    ordinary = np.delete(counts, [0, 16, 31])
    assert abs(ordinary / ordinary.mean() - 1).max() < 0.1


def test_masks_depend_on_seed_epoch_and_id_and_nothing_else():
    rows = rows_of(np.full(50, 100))
    batch = masked(rows)
    for name, value in masked(rows).items():
        assert np.array_equal(value, batch[name])
    alone = masked({name: values[7:8] for name, values in rows.items()})
    assert np.array_equal(alone["mask_positions"][0], batch["mask_positions"][7])
    assert np.array_equal(alone["token_ids"][0], batch["token_ids"][7])
    for other in (
        masked(rows, seed=2),
        masked(rows, epoch=1),
        masked(rows | {"example_ids": rows["example_ids"] + np.uint64(1)}),
    ):
        assert (other["mask_positions"] != batch["mask_positions"]).any(axis=1).all()


def test_every_row_may_have_its_own_epoch():
    rows = rows_of(np.full(4, 100))
    batch = masked(rows, epoch=np.array([0, 0, 1, 1]))
    first, second = masked(rows, epoch=0), masked(rows, epoch=1)
    assert np.array_equal(batch["mask_positions"][:2], first["mask_positions"][:2])
    assert np.array_equal(batch["mask_positions"][2:], second["mask_positions"][2:])
