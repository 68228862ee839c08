from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from records import VOCAB_SIZE, example, features, random_rows, write_records
from toy_data import toy_config

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.exact_step import PretrainingTrainer
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.tfrecord import TFRecordExamples
from keras_bert_impl.training.examples.tfrecord_writing import write_tfrecords
from keras_bert_impl.training.input_pipeline import evaluation_batches, training_batches
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.record_batches import read_tfrecords

COUNT = 50


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("records")
    paths = [folder / "0.tfrecord", folder / "1.tfrecord"]
    write_tfrecords([random_rows(COUNT)], paths)
    return paths


@pytest.fixture
def examples(paths: list[Path]) -> TFRecordExamples:
    return TFRecordExamples(paths, vocab_size=VOCAB_SIZE)


def batches(dataset: tf.data.Dataset) -> list[dict[str, np.ndarray]]:
    return [{**x, **y} for x, y in dataset.as_numpy_iterator()]


def training(examples: TFRecordExamples, first_step: int, num_steps: int, **settings) -> list[dict[str, np.ndarray]]:
    settings = {"batch_size": 8, "seed": 1, **settings}
    return batches(training_batches(examples, first_step=first_step, num_steps=num_steps, **settings))


def equal(one: list[dict[str, np.ndarray]], other: list[dict[str, np.ndarray]]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a
    )


def test_batches_have_the_structure_of_those_of_prepared_data(examples: TFRecordExamples, tmp_path: Path):
    prepare(toy_config(tmp_path, count=20))
    data = PreparedData(tmp_path / "data")
    prepared = training_batches(
        data.examples("train", 16), batch_size=8, seed=1, first_step=0, num_steps=1, tokenizer=data.tokenizer
    )
    found = training_batches(examples, batch_size=8, seed=1, first_step=0, num_steps=1)

    def structure(dataset: tf.data.Dataset):
        return tf.nest.map_structure(lambda spec: (spec.dtype, spec.shape.rank), dataset.element_spec)

    assert structure(found) == structure(prepared)
    shapes = {name: tuple(spec.shape) for part in found.element_spec for name, spec in part.items()}
    assert (shapes["token_ids"], shapes["mask_labels"], shapes["next_sentence_weights"]) == ((8, 12), (8, 3), (8,))
    options = found.options()
    assert options.experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.OFF
    assert options.deterministic


def test_every_epoch_has_every_example_once_in_an_order_of_its_own(examples: TFRecordExamples):
    found = [tuple(batch["token_ids"][0]) for batch in training(examples, 0, 2 * COUNT, batch_size=1)]
    everything = sorted(map(tuple, random_rows(COUNT)["token_ids"]))
    assert sorted(found[:COUNT]) == sorted(found[COUNT:]) == everything
    assert found[:COUNT] != found[COUNT:]


def test_entry_in_the_middle_equals_walking_through(examples: TFRecordExamples):
    walked = training(examples, 0, 20)
    for first in (1, 6, 13, 18):
        assert equal(training(examples, first, 2), walked[first : first + 2])


def test_batch_sizes_cut_the_same_stream(examples: TFRecordExamples):
    small, large = training(examples, 0, 6, batch_size=4), training(examples, 0, 2, batch_size=12)
    for name in ("token_ids", "mask_labels", "next_sentence_labels"):
        assert np.array_equal(*(np.concatenate([batch[name] for batch in found]) for found in (small, large)))


def test_another_seed_gives_another_order(examples: TFRecordExamples):
    assert not equal(training(examples, 0, 1), training(examples, 0, 1, seed=2))


def test_reading_without_a_number_of_steps_meets_every_example(paths: list[Path]):
    dataset = read_tfrecords(paths, 8, vocab_size=VOCAB_SIZE)
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY or dataset.cardinality() == 7
    found = batches(dataset)
    assert len(found) == 7
    tokens = np.concatenate([batch["token_ids"] for batch in found])[:COUNT]
    assert sorted(map(tuple, tokens)) == sorted(map(tuple, random_rows(COUNT)["token_ids"]))
    assert equal(batches(read_tfrecords(paths, 8, vocab_size=VOCAB_SIZE, first_step=3, num_steps=2)), found[3:5])


@pytest.mark.parametrize("limit,taken", [(0, COUNT), (21, 21), (10**6, COUNT)])
def test_evaluation_is_the_same_every_time_and_filled_up_with_rows_of_no_weight(
    examples: TFRecordExamples, limit: int, taken: int
):
    runs = [evaluation_batches(examples, batch_size=8, limit=limit) for _ in range(2)]
    found = batches(runs[0][0])
    assert equal(found, batches(runs[1][0]))
    assert runs[0][1] == len(found) == -(-taken // 8)
    weights = np.concatenate([batch["next_sentence_weights"] for batch in found])
    assert weights.tolist() == [1] * taken + [0] * (len(found) * 8 - taken)
    masks = np.concatenate([batch["mask_weights"] for batch in found])
    assert (masks.sum(axis=1)[:taken] > 0).all() and not masks[taken:].any()


def test_a_fault_met_on_the_way_comes_out_as_an_input_error_where_asked_for(tmp_path: Path):
    rows = features(20)
    rows[11]["input_ids"][1] = 77
    path = write_records(tmp_path / "file", [example(row) for row in rows])
    examples = TFRecordExamples([path], vocab_size=VOCAB_SIZE)
    dataset = training_batches(examples, batch_size=4, seed=1, first_step=0, num_steps=5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"record 11 \(counted from 0\) has 77 in input_ids"):
        batches(dataset)
    with pytest.raises(InputError, match=r"record 11 \(counted from 0\) has 77 in input_ids"), examples.plain_errors():
        batches(dataset)


def test_records_cannot_be_packed(examples: TFRecordExamples):
    with pytest.raises(InputError, match=r"`packed` must be False for TFRecord files, .* Received: True"):
        training_batches(examples, batch_size=4, seed=1, first_step=0, num_steps=1, packed=True)


def test_records_have_buckets_too(examples: TFRecordExamples):
    found, plain = (training(examples, 0, 6, bucketed=bucketed) for bucketed in (True, False))
    assert sorted(examples.lengths) == sorted(random_rows(COUNT)["padding_mask"].sum(axis=1))
    assert {batch["token_ids"].shape[1] for batch in found} == {12}
    for name in ("token_ids", "mask_labels"):
        rows = [np.concatenate([batch[name] for batch in one]).tolist() for one in (found, plain)]
        assert sorted(rows[0]) == sorted(rows[1])


def trainer(config: BertConfig) -> PretrainingTrainer:
    keras.utils.set_random_seed(0)
    trainer = PretrainingTrainer(BertPretrainer(config))
    trainer.compile(optimizer=BertAdamW(learning_rate=1e-3, global_clipnorm=1.0))
    return trainer


def small_config(**settings) -> BertConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return BertConfig(**sizes, **settings)


@pytest.mark.slow
def test_the_trainer_learns_and_measures_on_records(examples: TFRecordExamples):
    ours = trainer(small_config(vocab_size=VOCAB_SIZE, max_position_embeddings=12))
    held_out, steps = evaluation_batches(examples, batch_size=8)
    before = ours.evaluate(held_out, steps=steps, verbose=0, return_dict=True)
    assert before["mlm_loss"] == pytest.approx(np.log(VOCAB_SIZE), abs=0.1)
    steps_of_training = training_batches(examples, batch_size=8, seed=1, first_step=0, num_steps=40)
    ours.fit(steps_of_training, steps_per_epoch=40, shuffle=False, verbose=0)
    assert ours.evaluate(held_out, steps=steps, verbose=0, return_dict=True)["mlm_loss"] < before["mlm_loss"]


@pytest.mark.slow
@pytest.mark.shared
def test_the_originals_sample_trains_ours(shared: Path):
    path = shared / "data" / "bert_original" / "sample_text.tfrecord"
    ours = trainer(small_config(vocab_size=30522, max_position_embeddings=128))
    before = [value.numpy() for value in ours.pretrainer.trainable_variables]
    history = ours.fit(
        read_tfrecords([path], 8, vocab_size=30522, num_steps=2), steps_per_epoch=2, shuffle=False, verbose=0
    )
    assert history.history["mlm_loss"][0] == pytest.approx(np.log(30522), abs=0.05)
    assert history.history["nsp_loss"][0] == pytest.approx(np.log(2), abs=0.05)
    changed = [
        not np.array_equal(old, new.numpy())
        for old, new in zip(before, ours.pretrainer.trainable_variables, strict=True)
    ]
    assert all(changed)
