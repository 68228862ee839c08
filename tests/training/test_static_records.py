"""`prepare --format tfrecord` and `prepare --reference`: static masks in TFRecord files."""

import dataclasses
import functools
import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from pretraining_runs import small_config
from records import read_features
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.inspection import inspect
from keras_bert_impl.training import static_records
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.record_counts import RecordCounts
from keras_bert_impl.training.examples.record_data import RecordData
from keras_bert_impl.training.examples.reference_instances import ReferenceSettings, reference_instances
from keras_bert_impl.training.examples.tfrecord_writing import rows_of_instances, write_tfrecords
from keras_bert_impl.training.input_pipeline import evaluation_batches, training_batches
from keras_bert_impl.training.prepare import load_tokenizer, prepare
from keras_bert_impl.training.pretrain import pretrain
from keras_bert_impl.training.pretraining_data import open_data
from keras_bert_impl.training.unfinished import Unfinished

INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions", "mask_labels", "mask_weights")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same text as prepared data and, in two epochs, as records."""
    folder = tmp_path_factory.mktemp("static")
    prepare(toy_config(folder, count=60))
    records = toy_config(folder, count=60, format="tfrecord", epochs=2, output=str(folder / "records"))
    manifest = prepare(records)
    assert manifest == json.loads((folder / "records" / "manifest.json").read_text(encoding="utf-8"))
    return folder


def rows_of(data: Any, split: str, length: int) -> dict[str, np.ndarray]:
    return data.examples(split, length).rows(np.arange(data.count(split, length)))


def met(batches: Any) -> dict[str, np.ndarray]:
    found = [{**inputs, **targets} for inputs, targets in batches.as_numpy_iterator()]
    return {name: np.concatenate([batch[name] for batch in found]) for name in (*INPUTS, "next_sentence_labels")}


def test_records_are_what_training_on_prepared_data_meets(folder: Path) -> None:
    prepared, records = open_data(folder / "data"), open_data(folder / "records")
    assert isinstance(prepared, PreparedData) and isinstance(records, RecordData)
    assert records.lengths == prepared.lengths and records.tokenizer.vocabulary == prepared.tokenizer.vocabulary
    count = prepared.count("train", 64)
    assert records.count("train", 64) == 2 * count
    expected = met(
        training_batches(
            prepared.examples("train", 64),
            batch_size=1,
            seed=1,
            first_step=0,
            num_steps=2 * count,
            tokenizer=prepared.tokenizer,
        )
    )
    found = rows_of(records, "train", 64)
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


def test_held_out_records_are_what_evaluation_on_prepared_data_meets(folder: Path) -> None:
    prepared, records = open_data(folder / "data"), open_data(folder / "records")
    batches, _ = evaluation_batches(
        prepared.examples("held_out", 16), batch_size=1, seed=1, tokenizer=prepared.tokenizer
    )
    found, expected = rows_of(records, "held_out", 16), met(batches)
    assert sorted(map(bytes, found["token_ids"])) == sorted(map(bytes, expected["token_ids"]))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"format": "tfrecord"}, {"reference": True, "held_out_share": 0.05}])
def test_both_kinds_of_records_can_be_trained_on(tmp_path: Path, options: dict[str, Any]) -> None:
    prepare(toy_config(tmp_path, count=60, lengths=(16, 32), epochs=2, **options))
    result = pretrain(small_config(tmp_path / "data", tmp_path / "run"))
    assert result["steps"] == 12
    assert ("held_out" in result and bool(result["held_out"])) == ("format" in options)
    assert inspect(tmp_path / "data")["kind"] == "TFRecord files"


def test_the_manifest_counts_records_and_masks(folder: Path) -> None:
    manifest = json.loads((folder / "records" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == "keras_bert_impl TFRecord files"
    assert manifest["settings"]["epochs"] == 2 and manifest["settings"]["masking"] == "token"
    facts = manifest["examples"]["train"]["64"]
    rows = rows_of(open_data(folder / "records"), "train", 64)
    assert facts["records"] == len(rows["token_ids"]) == 2 * facts["examples"]
    masks = facts["masks"]
    assert (
        masks["predictions"]
        == rows["mask_weights"].sum()
        == sum(masks[name] for name in ("mask", "random", "unchanged"))
    )
    assert masks["mask"] / masks["predictions"] == pytest.approx(0.8, abs=0.03)
    assert facts["mean_fill"] == pytest.approx(rows["padding_mask"].mean())
    assert "shards" not in facts and "packed_rows" not in facts


def test_ten_epochs_and_the_usual_masks_are_the_default(tmp_path: Path) -> None:
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path, count=20, format="tfrecord", lengths=(16,)), say=said.append)
    facts = manifest["examples"]["train"]["16"]
    assert facts["records"] == 10 * facts["examples"]
    assert manifest["settings"]["masked_share"] == 0.15 and "max_ngram" not in manifest["settings"]
    assert manifest["settings"]["max_predictions"] is None and facts["masks"]["max_predictions"] == 3
    line = (
        f"Length 16, training: {facts['records']:,} records, filled to {facts['mean_fill']:.0%}, second part random in"
    )
    assert any(told.startswith(line) and "tokens to predict: " in told and "% [MASK]" in told for told in said)
    assert said[-1] == f"TFRecord files: {tmp_path / 'data'}"


@pytest.mark.parametrize("masking", ["whole-word", "n-gram"])
def test_options_of_the_masks_reach_them(tmp_path: Path, masking: str) -> None:
    options = {"masking": masking, "masked_share": 0.3, "max_predictions": 6, "epochs": 1}
    manifest = prepare(toy_config(tmp_path, count=20, format="tfrecord", lengths=(32,), **options))
    examples = open_data(tmp_path / "data").examples("train", 32)
    assert examples.predictions == 6
    assert 3 < manifest["examples"]["train"]["32"]["masks"]["predictions"] / len(examples) <= 6
    assert {name: manifest["settings"][name] for name in options} == options


def test_many_records_are_spread_over_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_records, "_RECORDS_PER_FILE", 100)
    prepare(toy_config(tmp_path, count=20, format="tfrecord", lengths=(16,), epochs=3))
    sizes = [len(read_features(path)) for path in sorted((tmp_path / "data" / "train" / "16").iterdir())]
    assert len(sizes) > 2 and max(sizes) <= 100 and max(sizes) - min(sizes) <= 1


def test_a_stop_while_records_are_written_keeps_shards_and_finished_lengths(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = toy_config(tmp_path, count=60, format="tfrecord", epochs=2)
    counted = RecordCounts.counted

    def stopped(self: RecordCounts, batches: Any) -> Any:
        for rows in counted(self, batches):
            yield rows
            if self.length == 64:
                raise KeyboardInterrupt

    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(RecordCounts, "counted", stopped)
        with pytest.raises(KeyboardInterrupt):
            prepare(config, say=said.append)
    assert said[-1].startswith("Stopped; 3 finished parts kept in ")
    first = tmp_path / ".data.unfinished" / "records" / "train" / "16" / "00000.tfrecord"
    before = first.stat().st_ino
    prepare(config)
    assert (tmp_path / "data" / "train" / "16" / "00000.tfrecord").stat().st_ino == before
    for path in (folder / "records").rglob("*.tfrecord"):
        assert (tmp_path / "data" / path.relative_to(folder / "records")).read_bytes() == path.read_bytes()
    assert not any(path.name.startswith(".") for path in tmp_path.rglob("*"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")


@pytest.mark.parametrize("change", [Path.unlink, cut, damage])
def test_records_that_are_not_what_they_were_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    config = toy_config(tmp_path, count=20, format="tfrecord", lengths=(16,), epochs=1)

    def stopped(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("keras_bert_impl.training.prepare.make_record_manifest", stopped)
        with pytest.raises(KeyboardInterrupt):
            prepare(config)
    hidden = tmp_path / ".data.unfinished" / "records"
    before = {path.relative_to(hidden): path.read_bytes() for path in hidden.rglob("*.tfrecord")}
    assert len(before) == 2
    change(hidden / "train" / "16" / "00000.tfrecord")
    prepare(config)
    assert {name: (tmp_path / "data" / name).read_bytes() for name in before} == before


def test_after_a_kill_once_the_output_is_in_place_all_is_made_again_if_that_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = toy_config(tmp_path, count=20, format="tfrecord", lengths=(16,), epochs=1)

    def killed(self: Unfinished) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Unfinished, "clear", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(config)
    output = tmp_path / "data"
    before = {path.relative_to(output): path.read_bytes() for path in output.rglob("*") if path.is_file()}
    assert len(before) == 5
    shutil.rmtree(output)
    prepare(config)
    assert {path.relative_to(output): path.read_bytes() for path in output.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "data", "vocab.txt"]


@pytest.mark.parametrize("options", [{"format": "tfrecord"}, {"reference": True, "held_out_share": 0.05}])
def test_a_full_disk_while_records_are_written_is_said_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    config = toy_config(tmp_path, count=20, lengths=(16,), epochs=1, **options)
    full = functools.partial(tf.io.TFRecordWriter, "/dev/full")
    monkeypatch.setattr(tf.io, "TFRecordWriter", lambda path: full())
    with pytest.raises(InputError) as caught:
        prepare(config)
    kept = "nothing was left behind"
    if not config.reference:
        hidden = tmp_path / ".data.unfinished"
        kept = f"2 finished parts kept in '{hidden}', where the same command goes on"
    assert str(caught.value) == (
        f"`output` could not be written: No space left on device. Received: '{tmp_path / 'data'}'; {kept}"
    )


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_reference_records_are_the_originals_instances(tmp_path: Path, suffix: str) -> None:
    config = toy_config(tmp_path, count=20, held_out_share=0.05, reference=True, epochs=2, lengths=(16, 64))
    settings = ReferenceSettings(length=64, max_predictions=10, dupe_factor=2, seed=1)
    instances = reference_instances(config.inputs, load_tokenizer(config.vocab), settings)
    write_tfrecords(rows_of_instances(instances, settings), [tmp_path / "expected"])
    if suffix:
        packed = tmp_path / "corpus.txt.xz"
        packed.write_bytes(lzma.compress((tmp_path / "corpus.txt").read_bytes()))
        config = dataclasses.replace(config, inputs=(str(packed),))
    said: list[str] = []
    manifest = prepare(config, said.append)
    assert (tmp_path / "data" / "train" / "64" / "00000.tfrecord").read_bytes() == (tmp_path / "expected").read_bytes()
    assert open_data(tmp_path / "data").count("train", 64) == len(instances)
    facts = manifest["examples"]["train"]["64"]
    assert facts["records"] == len(instances)
    assert facts["random_next_share"] == np.mean([instance.next_sentence_label for instance in instances])
    assert manifest["files"][0]["bytes"] == Path(config.inputs[0]).stat().st_size
    assert len(manifest["files"][0]["sha256"]) == 64
    # What the original has no say in is not said to have been done.
    assert set(manifest["settings"]) == {
        *("inputs", "vocab", "lengths", "seed", "cased", "short_seq_prob", "format", "reference"),
        *("epochs", "masked_share", "masking", "max_predictions"),
    }
    assert manifest["documents"] == {"train": 20, "held_out": 0}
    assert manifest["vocabulary"]["lowercase"] is True
    rows = open_data(tmp_path / "data").examples("train", 64).rows(np.arange(len(instances)))
    assert facts["tokens"] == rows["padding_mask"].sum() and facts["masks"]["max_predictions"] == 10
    short = manifest["examples"]["train"]["16"]["records"]
    assert said[0] == (
        f"20 documents, gone through 2 times: {short:,} instances of length 16, {len(instances):,} instances of "
        "length 64; nothing is held out."
    )


@pytest.mark.shared
@pytest.mark.parametrize("setting", range(3))
def test_reference_records_of_the_sample_text_are_the_golden_ones(shared: Path, tmp_path: Path, setting: int) -> None:
    data = shared / "data"
    vocab, text = data / "vocab" / "bert-base-uncased-vocab.txt", data / "bert_original" / "sample_text.txt"
    with lzma.open(data / "bert_original" / "golden_instances.json.xz") as file:
        golden = json.load(file)[setting]
    options = golden["args"]
    length = options["max_seq_length"]
    config = PrepareConfig(
        inputs=(str(text),),
        vocab=str(vocab),
        output=str(tmp_path / "data"),
        lengths=(length,),
        seed=options["random_seed"],
        short_seq_prob=options["short_seq_prob"],
        epochs=options["dupe_factor"],
        masked_share=options["masked_lm_prob"],
        max_predictions=options["max_predictions_per_seq"],
        masking="whole-word" if options["do_whole_word_mask"] else "token",
        reference=True,
    )
    prepare(config)
    tokenizer = load_tokenizer(config.vocab)
    found = read_features(tmp_path / "data" / "train" / str(length) / "00000.tfrecord")
    assert len(found) == len(golden["instances"])
    for record, instance in zip(found, golden["instances"], strict=True):
        size = len(instance["tokens"])
        assert [tokenizer.id_to_token(number) for number in record["input_ids"][:size]] == instance["tokens"]
        assert record["segment_ids"][:size] == instance["segment_ids"]
        predicted = len(instance["masked_lm_positions"])
        assert record["masked_lm_positions"][:predicted] == instance["masked_lm_positions"]
        labels = [tokenizer.id_to_token(number) for number in record["masked_lm_ids"][:predicted]]
        assert labels == instance["masked_lm_labels"]
        assert record["next_sentence_labels"] == [int(instance["is_random_next"])]
        assert sum(record["input_mask"]) == size and sum(record["masked_lm_weights"]) == predicted


def test_reference_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    config = toy_config(tmp_path, held_out_share=0.05, reference=True, reference_limit=1, epochs=20)
    size = Path(config.inputs[0]).stat().st_size
    message = (
        r"`inputs` must be small enough to be held in memory for `reference`: 1 MB of text times epochs, unless "
        rf"`reference_limit` says otherwise\. Received: {size / 1e3:.1f} kB in 20 epochs, {20 * size / 1e6:.1f} MB$"
    )
    with pytest.raises(InputError, match=message):
        prepare(config)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"{}", r"`inputs` must be text files for `reference`\. Received: '.*a\.jsonl'"),
        ("a.txt", b"\n \n", r"`inputs` must hold text\. Received: \['.*a\.txt'\], which hold none"),
        ("a.txt", b"ab\nc\xff", r"`inputs` must be UTF-8 text\. Received: '.*a\.txt', with the line b'c\\xff'"),
    ],
)
def test_reference_refuses_what_is_no_text(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    config = toy_config(tmp_path, held_out_share=0.05, reference=True)
    with pytest.raises(InputError, match=message):
        prepare(dataclasses.replace(config, inputs=(str(tmp_path / name),)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "tf"}, r"`format` must be prepared or tfrecord\. Received: format='tf'"),
        ({"epochs": 3}, r"`epochs` must go with `format` tfrecord; prepared data gets its masks when it is read\."),
        ({"masking": "token"}, r"`masking` must go with `format` tfrecord"),
        ({"max_predictions": 3, "format": "prepared"}, r"`max_predictions` must go with `format` tfrecord"),
        ({"format": "tfrecord", "epochs": 0}, r"`epochs` must be a number of at least 1\. Received: epochs=0"),
        (
            {"format": "tfrecord", "max_predictions": 33, "lengths": (64, 32)},
            r"`max_predictions` must be at most the shortest length, 32\. Received: max_predictions=33",
        ),
        ({"reference": True, "max_predictions": 129}, r"`max_predictions` must be at most the shortest length, 128"),
        ({"format": "tfrecord", "masked_share": 0}, r"`masked_share` must be a number more than 0 and at most 1"),
        ({"format": "tfrecord", "masking": "word"}, r"`masking` must be token, whole-word or n-gram\. Received: "),
        ({"format": "tfrecord", "max_ngram": 2}, r"`max_ngram` must go with `masking` n-gram\. Received: max_ngram=2"),
        ({"format": "tfrecord", "examples": "chunks"}, r"`examples` must be pairs for TFRecord files, every record"),
        ({"reference": True, "format": "prepared"}, r"`reference` must go with `format` tfrecord"),
        ({"reference_limit": 5}, r"`reference_limit` must go with `reference`\. Received: reference_limit=5"),
        ({"reference": True, "masking": "n-gram"}, r"`masking` must be token or whole-word for `reference`"),
        ({"reference": True, "held_out_share": 0.2}, r"`held_out_share` must be left as it is with `reference`"),
        ({"reference": True, "exclude": ("a",)}, r"`exclude` must be left as it is with `reference`.*exclude=\('a',\)"),
        ({"reference": True, "near_duplicates": "off"}, r"`near_duplicates` must be left as it is with `reference`"),
        ({"workers": 257}, r"`workers` must be a number of at least 1 and at most 256\. Received: workers=257"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PrepareConfig(inputs=("a",), vocab="v", output="o", **options)
