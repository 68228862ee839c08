from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.batches import BatchPart
from keras_bert_impl.training.examples.prepared_data import ExampleSet, PreparedData
from keras_bert_impl.training.input_pipeline import evaluation_batches, training_batches
from keras_bert_impl.training.prepare import prepare


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("batches")
    prepare(toy_config(folder, lengths=(16, 64, 128)))
    return PreparedData(folder / "data")


@pytest.fixture(scope="module")
def examples(data: PreparedData) -> ExampleSet:
    return data.examples("train", 64)


def batches(dataset: tf.data.Dataset) -> list[dict[str, np.ndarray]]:
    return [{name: value.numpy() for name, value in {**x, **y}.items()} for x, y in dataset]


def training(data: PreparedData, examples: ExampleSet, first_step: int, num_steps: int, **settings):
    settings = {"batch_size": 8, "seed": 1, "tokenizer": data.tokenizer, **settings}
    return training_batches(examples, first_step=first_step, num_steps=num_steps, **settings)


def equal(one: list[dict[str, np.ndarray]], other: list[dict[str, np.ndarray]]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a
    )


@pytest.mark.parametrize("packed", [False, True])
def test_a_token_outside_the_vocabulary_comes_out_as_a_sentence(tmp_path: Path, packed: bool):
    prepare(toy_config(tmp_path, count=20, lengths=(16,)))
    path = tmp_path / "data" / "train" / "16" / "00000.tokens.npy"
    np.save(path, np.full_like(np.load(path), 65535))
    data = PreparedData(tmp_path / "data")
    dataset = training(data, data.examples("train", 16), 0, 2, packed=packed)
    with pytest.raises(InputError, match=r"^`data` must be whole; .*has the token id 65535 for"), data.plain_errors():
        batches(dataset)


def test_batches_have_their_shapes_and_types(data: PreparedData, examples: ExampleSet):
    inputs, targets = training(data, examples, 0, 3).element_spec
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in inputs.items()} == {
        "token_ids": ((8, 64), "int32"),
        "segment_ids": ((8, 64), "int32"),
        "padding_mask": ((8, 64), "int32"),
        "mask_positions": ((8, 10), "int32"),
    }
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in targets.items()} == {
        "mask_labels": ((8, 10), "int32"),
        "mask_weights": ((8, 10), "float32"),
        "next_sentence_labels": ((8,), "int32"),
        "next_sentence_weights": ((8,), "float32"),
    }


def test_entry_in_the_middle_equals_walking_through(data: PreparedData, examples: ExampleSet):
    steps = 2 * len(examples) // 8 + 5
    walked = batches(training(data, examples, 0, steps))
    assert len(walked) == steps
    for first in (1, 7, len(examples) // 8, steps - 2):
        assert equal(batches(training(data, examples, first, 2)), walked[first : first + 2])


def test_every_epoch_has_every_example_once_with_new_masks(data: PreparedData, examples: ExampleSet):
    steps = 2 * len(examples)
    found = batches(training(data, examples, 0, steps, batch_size=1))
    restored = []
    for batch in found:
        row, used = batch["token_ids"][0].copy(), batch["mask_weights"][0] > 0
        row[batch["mask_positions"][0][used]] = batch["mask_labels"][0][used]
        restored.append(tuple(row))
    everything = sorted(map(tuple, examples.rows(np.arange(len(examples)))["token_ids"]))
    half = len(examples)
    assert sorted(restored[:half]) == sorted(restored[half:]) == everything
    assert restored[:half] != restored[half:]
    masked = [tuple(batch["token_ids"][0]) for batch in found]
    assert sorted(masked[:half]) != sorted(masked[half:])


def test_batch_sizes_cut_the_same_stream(data: PreparedData, examples: ExampleSet):
    small = batches(training(data, examples, 0, 6, batch_size=4))
    large = batches(training(data, examples, 0, 2, batch_size=12))
    for name in ("token_ids", "mask_labels", "next_sentence_labels"):
        joined = [np.concatenate([batch[name] for batch in found]) for found in (small, large)]
        assert np.array_equal(*joined)


def test_another_seed_gives_other_batches(data: PreparedData, examples: ExampleSet):
    one, other = (batches(training(data, examples, 0, 1, seed=seed))[0] for seed in (1, 2))
    assert (one["token_ids"] != other["token_ids"]).any()


def test_the_order_holds_under_determinism_and_without(data: PreparedData, examples: ExampleSet, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.training.batches.ROWS_PER_CALL", 16)
    dataset = training(data, examples, 0, 40)
    options = tf.data.Options()
    options.deterministic = False
    assert equal(batches(dataset.with_options(options)), batches(dataset))
    assert dataset.options().experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF


@pytest.fixture(scope="module")
def short_examples(data: PreparedData) -> ExampleSet:
    """Examples that share rows of 128 tokens, two by two."""
    return data.examples("train", 128)


def test_packed_batches_have_their_shapes_and_types(data: PreparedData, short_examples: ExampleSet):
    inputs, targets = training(data, short_examples, 0, 3, packed=True).element_spec
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in inputs.items()} == {
        "token_ids": ((8, 128), "int32"),
        "segment_ids": ((8, 128), "int32"),
        "pair_ids": ((8, 128), "int32"),
        "cls_positions": ((8, 2), "int32"),
        "mask_positions": ((8, 22), "int32"),
    }
    assert {name: (tuple(spec.shape), spec.dtype.name) for name, spec in targets.items()} == {
        "mask_labels": ((8, 22), "int32"),
        "mask_weights": ((8, 22), "float32"),
        "next_sentence_labels": ((8, 2), "int32"),
        "next_sentence_weights": ((8, 2), "float32"),
    }


def test_entry_in_the_middle_of_packed_batches_equals_walking_through(data: PreparedData, short_examples: ExampleSet):
    steps = 2 * short_examples.packed_rows // 8 + 3
    walked = batches(training(data, short_examples, 0, steps, packed=True))
    assert len(walked) == steps
    for first in (1, short_examples.packed_rows // 8, steps - 2):
        assert equal(batches(training(data, short_examples, first, 2, packed=True)), walked[first : first + 2])


def unpacked_pairs(batch: dict[str, np.ndarray]) -> list[tuple]:
    """What each pair of a batch is: tokens, segments, what is to be predicted where, and the next-sentence label."""
    if "padding_mask" in batch:
        layout = {"pair_ids": batch["padding_mask"], "cls_positions": np.zeros((len(batch["token_ids"]), 1), int)}
        batch = batch | layout | {name: batch[name][:, None] for name in batch if name.startswith("next_sentence")}
    found = []
    for row, slot in zip(*np.nonzero(batch["next_sentence_weights"]), strict=True):
        here = batch["pair_ids"][row] == slot + 1
        start = batch["cls_positions"][row, slot]
        assert np.flatnonzero(here)[0] == start
        positions = batch["mask_positions"][row] - start
        used = (batch["mask_weights"][row] > 0) & (positions >= 0) & (positions < here.sum())
        predicted = zip(positions[used].tolist(), batch["mask_labels"][row, used].tolist(), strict=True)
        tokens, segments = (batch[name][row, here].tolist() for name in ("token_ids", "segment_ids"))
        found.append((*tokens, *segments, *predicted, int(batch["next_sentence_labels"][row, slot])))
    return found


def test_a_pair_has_the_same_masks_packed_or_not_and_comes_once_in_an_epoch(
    data: PreparedData, short_examples: ExampleSet
):
    epochs = []
    for packed, rows in ((False, len(short_examples)), (True, short_examples.packed_rows)):
        found = batches(training(data, short_examples, 0, 2 * rows, batch_size=1, packed=packed))
        epochs.append(
            [[pair for batch in half for pair in unpacked_pairs(batch)] for half in (found[:rows], found[rows:])]
        )
    for alone, together in zip(*epochs, strict=True):
        assert len(alone) == len(together) == len(short_examples)
        assert sorted(map(str, alone)) == sorted(map(str, together))
    assert sorted(map(str, epochs[1][0])) != sorted(map(str, epochs[1][1]))


def test_batch_sizes_cut_the_same_stream_of_packed_rows(data: PreparedData, short_examples: ExampleSet):
    small = batches(training(data, short_examples, 0, 6, batch_size=4, packed=True))
    large = batches(training(data, short_examples, 0, 2, batch_size=12, packed=True))
    for name in small[0]:
        joined = [np.concatenate([batch[name] for batch in found]) for found in (small, large)]
        assert np.array_equal(*joined), name


def test_prepared_data_needs_its_tokenizer(data: PreparedData, examples: ExampleSet):
    with pytest.raises(InputError, match=r"`tokenizer` must be given for prepared data, .* Received: None"):
        training(data, examples, 0, 1, tokenizer=None)


def test_a_seed_that_would_be_taken_for_another_is_refused(data: PreparedData, examples: ExampleSet):
    message = r"`seed` must be a whole number from 0 to 18446744073709551615\. Received: seed=-1"
    with pytest.raises(InputError, match=message):
        evaluation_batches(examples, batch_size=8, seed=-1, tokenizer=data.tokenizer)
    with pytest.raises(InputError, match=message):
        training_batches(examples, batch_size=8, seed=-1, first_step=0, num_steps=1, tokenizer=data.tokenizer)


def test_evaluation_is_the_same_every_time(data: PreparedData):
    held_out = data.examples("held_out", 16)
    runs = []
    for _ in range(2):
        dataset, count = evaluation_batches(held_out, batch_size=8, limit=0, seed=1, tokenizer=data.tokenizer)
        runs.append(batches(dataset))
        assert count == len(runs[-1]) == -(-len(held_out) // 8)
    assert equal(*runs)


@pytest.mark.parametrize(("limit", "taken"), [(0, None), (21, 21), (10**6, None)])
def test_the_last_evaluation_batch_is_filled_with_rows_of_no_weight(data: PreparedData, limit: int, taken: int | None):
    held_out = data.examples("held_out", 16)
    taken = taken or len(held_out)
    dataset, count = evaluation_batches(held_out, batch_size=8, limit=limit, seed=1, tokenizer=data.tokenizer)
    found = batches(dataset)
    weights = np.concatenate([batch["next_sentence_weights"] for batch in found])
    assert weights.tolist() == [1] * taken + [0] * (count * 8 - taken)
    masks = np.concatenate([batch["mask_weights"] for batch in found])
    assert (masks.sum(axis=1)[:taken] > 0).all() and not masks[taken:].any()


def test_a_limit_takes_different_examples(data: PreparedData):
    held_out = data.examples("held_out", 16)
    (batch,) = batches(evaluation_batches(held_out, batch_size=20, limit=20, seed=1, tokenizer=data.tokenizer)[0])
    (other,) = batches(evaluation_batches(held_out, batch_size=20, limit=20, seed=2, tokenizer=data.tokenizer)[0])
    assert np.unique(batch["token_ids"], axis=0).shape[0] == 20
    assert (batch["token_ids"] != other["token_ids"]).any()


def test_bucketed_batches_are_those_rows_cut_to_the_longest(data: PreparedData, examples: ExampleSet):
    steps = 2 * len(examples) // 8 + 3
    found = batches(training(data, examples, 0, steps, bucketed=True))
    plain = batches(training(data, examples, 0, steps))
    widths = [batch["token_ids"].shape[1] for batch in found]
    assert len(set(widths)) > 2
    assert max(widths) <= 64
    half = len(examples)
    for epoch in (slice(0, half), slice(half, 2 * half)):
        # In every epoch the same rows with the same masks.
        told = [sorted(map(str, rows_of(batch_list)[epoch])) for batch_list in (found, plain)]
        assert told[0] == told[1]
    for batch, width in zip(found, widths, strict=True):
        assert batch["padding_mask"].sum(axis=1).max() > width - 16
        assert batch["mask_labels"].shape == batch["mask_weights"].shape == batch["mask_positions"].shape
        assert batch["mask_labels"].shape[1] == -(-width * 15 // 100)


def rows_of(found: list[dict[str, np.ndarray]]) -> list[tuple]:
    """What each row is, without padding and slots that are not used."""
    rows = []
    for batch in found:
        for row, mask in enumerate(batch["padding_mask"] > 0):
            used = batch["mask_weights"][row] > 0
            of_tokens = [batch[name][row][mask].tolist() for name in ("token_ids", "segment_ids")]
            of_slots = [batch[name][row][used].tolist() for name in ("mask_positions", "mask_labels")]
            rows.append((*of_tokens, *of_slots, int(batch["next_sentence_labels"][row])))
    return rows


def test_entry_in_the_middle_of_bucketed_batches_equals_walking_through(data: PreparedData, examples: ExampleSet):
    steps = len(examples) // 8 + 5
    walked = batches(training(data, examples, 0, steps, bucketed=True))
    for first in (1, 33, len(examples) // 8, steps - 2):
        assert equal(batches(training(data, examples, first, 2, bucketed=True)), walked[first : first + 2])


def test_machines_read_their_parts_of_bucketed_batches_at_the_same_width(data: PreparedData, examples: ExampleSet):
    whole = batches(training(data, examples, 0, 9, bucketed=True))
    parts = [
        batches(training(data, examples, 0, 9, bucketed=True, part=BatchPart(number, machines=2, replicas=2)))
        for number in range(2)
    ]
    for step, batch in enumerate(whole):
        pieces = [*parts[0][2 * step : 2 * step + 2], *parts[1][2 * step : 2 * step + 2]]
        for name, values in batch.items():
            np.testing.assert_array_equal(np.concatenate([piece[name] for piece in pieces]), values, err_msg=name)


def test_packed_rows_have_no_buckets(data: PreparedData, short_examples: ExampleSet):
    with pytest.raises(InputError, match=r"`bucketed` must be False for packed rows, .* Received: True"):
        training(data, short_examples, 0, 1, packed=True, bucketed=True)
