from functools import partial
from pathlib import Path

import numpy as np
import pytest
from records import features, random_rows, read_features
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.reference_instances import ReferenceInstance, ReferenceSettings
from keras_bert_impl.training.examples.tfrecord_writing import rows_of_instances, static_rows, write_tfrecords
from keras_bert_impl.training.input_pipeline import training_batches
from keras_bert_impl.training.prepare import prepare

INSTANCES = [
    ReferenceInstance([2, 7, 4, 3, 8, 9, 3], [0, 0, 0, 0, 1, 1, 1], [2, 4], [6, 8], 1),
    ReferenceInstance([2, 4, 3, 8, 3], [0, 0, 0, 1, 1], [1], [11], 0),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("static")
    prepare(toy_config(folder, count=60))
    return PreparedData(folder / "data")


def test_instances_are_written_with_the_originals_features_types_and_padding(tmp_path: Path):
    path = tmp_path / "file.tfrecord"
    settings = ReferenceSettings(length=9, max_predictions=3)
    assert write_tfrecords(rows_of_instances(INSTANCES, settings), [path]) == 2
    first, second = read_features(path)
    assert first == {
        "input_ids": [2, 7, 4, 3, 8, 9, 3, 0, 0],
        "input_mask": [1, 1, 1, 1, 1, 1, 1, 0, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 1, 0, 0],
        "masked_lm_positions": [2, 4, 0],
        "masked_lm_ids": [6, 8, 0],
        "masked_lm_weights": [1.0, 1.0, 0.0],
        "next_sentence_labels": [1],
    }
    assert (second["input_mask"], second["masked_lm_ids"]) == ([1] * 5 + [0] * 4, [11, 0, 0])
    assert {name: type(values[0]) for name, values in first.items()} == {
        **dict.fromkeys(first, int),
        "masked_lm_weights": float,
    }


def test_more_instances_than_go_at_once_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = "keras_bert_impl.training.examples.tfrecord_writing"
    settings = ReferenceSettings(length=9, max_predictions=3)
    whole = list(rows_of_instances(INSTANCES * 3, settings))
    monkeypatch.setattr(f"{module}.ROWS_AT_ONCE", 4)
    parts = list(rows_of_instances(INSTANCES * 3, settings))
    assert [len(part["token_ids"]) for part in parts] == [4, 2]
    for name, values in whole[0].items():
        assert np.array_equal(np.concatenate([part[name] for part in parts]), values)


def test_rows_go_to_the_files_in_turn_whatever_the_batches(tmp_path: Path):
    paths = [tmp_path / "new" / f"{number}.tfrecord" for number in range(3)]
    batches = [{name: values[start : start + 4] for name, values in random_rows(10).items()} for start in (0, 4, 8)]
    assert write_tfrecords(batches, paths) == 10
    expected = features(10)
    assert [read_features(path) for path in paths] == [expected[number::3] for number in range(3)]
    assert sorted(paths[0].parent.iterdir()) == paths


def test_the_same_rows_give_the_same_bytes(tmp_path: Path):
    for name in ("one", "other"):
        write_tfrecords([random_rows(20)], [tmp_path / name])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_what_stands_in_padding_and_unused_slots_is_not_written(tmp_path: Path):
    rows = random_rows(20)
    dirty = dict(rows)
    for name in ("token_ids", "segment_ids"):
        dirty[name] = np.where(rows["padding_mask"] > 0, rows[name], 17)
    for name in ("mask_positions", "mask_labels"):
        dirty[name] = np.where(rows["mask_weights"] > 0, rows[name], 17)
    write_tfrecords([rows], [tmp_path / "clean"])
    write_tfrecords([dirty], [tmp_path / "dirty"])
    assert (tmp_path / "clean").read_bytes() == (tmp_path / "dirty").read_bytes()


def test_a_failure_leaves_no_new_file_and_the_old_ones_untouched(tmp_path: Path):
    def failing():
        yield random_rows(5)
        raise RuntimeError("no more")

    old, new = tmp_path / "old", tmp_path / "folder" / "new"
    old.write_text("before", encoding="utf-8")
    with pytest.raises(RuntimeError, match="no more"):
        write_tfrecords(failing(), [old, new])
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert old.read_text(encoding="utf-8") == "before"


def test_static_rows_are_those_that_training_meets_in_these_epochs(data: PreparedData, tmp_path: Path):
    examples, tokenizer = data.examples("train", 64), data.tokenizer
    mask = partial(
        mask_batch,
        vocab_size=tokenizer.vocab_size,
        special_token_ids=tokenizer.special_token_ids,
        mask_token_id=tokenizer.mask_token_id,
        max_predictions=max_predictions(64, 0.15),
        masked_share=0.15,
        seed=7,
    )
    found = list(static_rows(examples, mask, seed=7, epochs=range(2)))
    count = 2 * len(examples)
    assert write_tfrecords(found, [tmp_path / "file"]) == count
    batches = training_batches(examples, batch_size=1, seed=7, first_step=0, num_steps=count, tokenizer=tokenizer)
    for name in ("token_ids", "segment_ids", "padding_mask", "mask_positions", "mask_labels", "mask_weights"):
        met = np.concatenate([({**x, **y})[name] for x, y in batches.as_numpy_iterator()])
        assert np.array_equal(np.concatenate([rows[name] for rows in found]), met), name
    half = [np.concatenate([rows["token_ids"] for rows in found])[part] for part in np.split(np.arange(count), 2)]
    assert sorted(map(tuple, half[0])) != sorted(map(tuple, half[1]))


@pytest.mark.parametrize(
    "paths,message",
    [
        ("one", r"`paths` must be a list of files\. Received: paths='one'"),
        ([], r"`paths` must be a list of files\. Received: paths=\[\]"),
        (["a", "b", "./a"], r"`paths` must name every file once\. Received: paths=\['a', 'b', 'a'\]"),
    ],
)
def test_wrong_paths_are_refused(paths, message: str):
    with pytest.raises(InputError, match=message):
        write_tfrecords([random_rows(1)], paths)
