import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.examples import prepared_data
from keras_bert_impl.training.examples.prepared_data import ExampleSet, PreparedData
from keras_bert_impl.training.prepare import prepare


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared")
    prepare(toy_config(path))
    return path / "data"


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "copy")


def changed_manifest(folder: Path, **changes: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_what_was_prepared_is_there(folder: Path):
    data = PreparedData(folder)
    assert data.lengths == (16, 64)
    assert data.tokenizer.vocab_size == data.token_counts.size
    assert data.token_counts.sum() == data.manifest["tokens"]["train"]
    for split in ("train", "held_out"):
        for length in data.lengths:
            assert len(data.examples(split, length)) == data.count(split, length) > 0


def test_rows_are_filled_up_and_say_what_they_are(folder: Path):
    data = PreparedData(folder)
    examples, tokenizer = data.examples("train", 64), data.tokenizer
    rows = examples.rows(np.arange(len(examples)))
    assert {name: (rows[name].dtype.name, rows[name].shape[1:]) for name in rows} == {
        "token_ids": ("int32", (64,)),
        "segment_ids": ("int32", (64,)),
        "padding_mask": ("int32", (64,)),
        "next_sentence_labels": ("int32", ()),
        "example_ids": ("uint64", ()),
    }
    for token_ids, segment_ids, padding_mask in zip(
        rows["token_ids"], rows["segment_ids"], rows["padding_mask"], strict=True
    ):
        size = padding_mask.sum()
        assert padding_mask.tolist() == [1] * size + [0] * (64 - size)
        assert token_ids[0] == tokenizer.cls_token_id
        first_end, second_end = np.flatnonzero(token_ids == tokenizer.sep_token_id)
        assert second_end == size - 1
        assert segment_ids.tolist() == [0] * (first_end + 1) + [1] * (size - first_end - 1) + [0] * (64 - size)
        assert (token_ids[size:] == tokenizer.pad_token_id).all()
    assert set(rows["next_sentence_labels"]) == {0, 1}
    assert np.unique(rows["example_ids"]).size == len(examples)


def test_rows_come_in_the_order_asked_for(folder: Path):
    examples = PreparedData(folder).examples("train", 16)
    everything = examples.rows(np.arange(len(examples)))
    some = np.array([5, 0, len(examples) - 1, 5])
    for name, values in examples.rows(some).items():
        assert np.array_equal(values, everything[name][some])


def test_rows_are_found_in_every_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 2000)
    prepare(toy_config(tmp_path))
    data = PreparedData(tmp_path / "data")
    examples = data.examples("train", 16)
    assert len(data.manifest["examples"]["train"]["16"]["shards"]) > 10
    rows = examples.rows(np.arange(len(examples))[::-1])
    assert np.unique(rows["example_ids"]).size == len(examples)
    assert (rows["token_ids"][:, 0] == data.tokenizer.cls_token_id).all()


@pytest.mark.parametrize("kind", ["absent", "empty", "other manifest", "not JSON", "a file"])
def test_other_directories_are_refused(tmp_path: Path, kind: str):
    path = tmp_path / "data"
    if kind == "a file":
        path.write_text("text", encoding="utf-8")
    elif kind != "absent":
        path.mkdir()
        if kind != "empty":
            (path / "manifest.json").write_text('{"a": 1}' if kind == "other manifest" else "{", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"`data` must be a directory that `keras-bert prepare` wrote\. Received: '.*'"
    ):
        PreparedData(path)


@pytest.mark.parametrize("version", [1, 99, None, 2.0])
def test_another_format_is_refused(copy: Path, version: float | None):
    changed_manifest(copy, format_version=version)
    with pytest.raises(
        InputError, match=rf"`data` must be of format 2, .*; prepare it anew\. Received: '.*' of format {version}"
    ):
        PreparedData(copy)


def test_a_length_that_was_not_prepared_is_refused(folder: Path):
    with pytest.raises(
        InputError, match=r"`length` must be one that the data was prepared for: 16, 64\. .* length=128"
    ):
        PreparedData(folder).examples("train", 128)


def test_an_unknown_split_is_refused(folder: Path):
    with pytest.raises(InputError, match=r"`split` must be one of train, held_out\. Received: split='test'"):
        PreparedData(folder).examples("test", 16)


def test_a_part_without_examples_is_refused(tmp_path: Path):
    prepare(toy_config(tmp_path, held_out_share=0))
    data = PreparedData(tmp_path / "data")
    assert data.count("held_out", 16) == 0
    with pytest.raises(
        InputError, match=r"`data` must have held-out examples of length 16\. Received: '.*', which has"
    ):
        data.examples("held_out", 16)


def test_packed_rows_hold_every_example_once_and_none_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 4000)
    prepare(toy_config(tmp_path, lengths=(16, 256)))
    data = PreparedData(tmp_path / "data")
    for length, most in ((16, 1), (256, 4)):
        examples, facts = data.examples("train", length), data.manifest["examples"]["train"][str(length)]
        assert len(facts["shards"]) > 2
        assert examples.packed_rows == data.packed_rows("train", length) == facts["packed_rows"]
        numbers, bounds = examples.examples_of_rows(np.arange(examples.packed_rows))
        assert sorted(numbers.tolist()) == list(range(len(examples)))
        assert (bounds[0], bounds[-1]) == (0, len(examples)) and np.diff(bounds).min() >= 1
        assert np.diff(bounds).max() == most
        sizes = examples.rows(numbers)["padding_mask"].sum(axis=1)
        filled = np.add.reduceat(sizes, bounds[:-1])
        assert filled.max() <= length
        assert facts["packed_fill"] == pytest.approx(filled.mean() / length)
        assert facts["mean_fill"] == pytest.approx(sizes.mean() / length)
    assert facts["packed_fill"] > 2 * facts["mean_fill"]


def test_packed_rows_come_in_the_order_asked_for(tmp_path: Path):
    prepare(toy_config(tmp_path, lengths=(128,)))
    examples = PreparedData(tmp_path / "data").examples("train", 128)
    everything, bounds = examples.examples_of_rows(np.arange(examples.packed_rows))
    asked = np.array([5, 0, examples.packed_rows - 1, 5])
    numbers, found = examples.examples_of_rows(asked)
    rows = [everything[bounds[row] : bounds[row + 1]].tolist() for row in asked]
    assert [numbers[start:end].tolist() for start, end in itertools.pairwise(found)] == rows
    nothing, bounds = examples.examples_of_rows(np.zeros(0, int))
    assert (nothing.tolist(), bounds.tolist()) == ([], [0])


def test_packed_rows_that_the_manifest_does_not_have_are_refused(copy: Path):
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["examples"]["train"]["16"]["packed_rows"] += 1
    changed_manifest(copy, **manifest)
    with pytest.raises(InputError, match=r"`data` must be whole; prepare it anew\. Received: '.*rows\.npy', which is"):
        PreparedData(copy).examples("train", 16)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:-size])


def shortened(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


@pytest.mark.parametrize("name", ["00000.tokens.npy", "00000.examples.npy", "00000.rows.npy"])
@pytest.mark.parametrize(
    "damage",
    [lambda path: cut(path, 1), lambda path: cut(path, 10**9), Path.unlink, shortened],
    ids=["cut", "emptied", "missing", "shortened"],
)
def test_a_damaged_shard_is_named(copy: Path, name: str, damage):
    damage(copy / "train" / "16" / name)
    with pytest.raises(InputError, match=rf"`data` must be whole; prepare it anew\. Received: '.*{name}', which is"):
        PreparedData(copy).examples("train", 16)


def put(array: np.ndarray, place: object, value: object) -> np.ndarray:
    array[place] = value
    return array


def of_example(field: str, value: int):
    def change(examples: np.ndarray) -> np.ndarray:
        examples[field][3] = value
        return examples

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda bounds: put(bounds, 5, bounds[6])),
        ("rows", lambda bounds: put(bounds, 5, bounds[6] + 1)),
        ("rows", lambda bounds: put(bounds, 5, 0)),
        ("rows", lambda bounds: put(bounds, 3, -7)),
        ("rows", lambda bounds: put(bounds, 3, 2**62)),
        ("rows", lambda bounds: bounds[None]),
        ("rows", lambda bounds: bounds.astype(">i8")),
        ("examples", of_example("length", 0)),
        ("examples", of_example("length", 65535)),
        ("examples", of_example("start", -100)),
        ("examples", of_example("start", 2**62)),
        ("examples", of_example("start", 0)),
        ("examples", of_example("second", 0)),
        ("examples", of_example("second", 65535)),
        ("examples", of_example("next_sentence_label", 9)),
    ],
)
@pytest.mark.parametrize("length", [16, 64])
def test_a_shard_whose_numbers_do_not_fit_is_named(copy: Path, length: int, name: str, change):
    path = copy / "train" / str(length) / f"00000.{name}.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(InputError, match=rf"`data` must be whole; prepare it anew\. Received: '.*{name}\.npy', which"):
        PreparedData(copy).examples("train", length)


def repacked(folder: Path, sizes_of: list[int]) -> None:
    """Prepares rows of 128 tokens and gives the first ones other numbers of examples, all others one each."""
    prepare(toy_config(folder, lengths=(128,)))
    path = folder / "data" / "train" / "128" / "00000.rows.npy"
    last = np.load(path)[-1]
    bounds = np.cumsum([0, *sizes_of])
    np.save(path, np.concatenate([bounds, np.arange(bounds[-1] + 1, last + 1)]))
    manifest = json.loads((folder / "data" / "manifest.json").read_text(encoding="utf-8"))
    manifest["examples"]["train"]["128"]["packed_rows"] = int(bounds.size - 1 + last - bounds[-1])
    changed_manifest(folder / "data", **manifest)


def test_packed_rows_of_too_many_examples_or_tokens_are_refused(tmp_path: Path):
    repacked(tmp_path, [1])
    lengths = np.load(tmp_path / "data" / "train" / "128" / "00000.examples.npy")["length"].astype(int)
    assert len(PreparedData(tmp_path / "data").examples("train", 128)) == lengths.size
    assert lengths[:2].sum() > 128 and lengths[-3:].sum() <= 128
    for number, sizes_of in enumerate([[2], [1] * (lengths.size - 3) + [3]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        repacked(folder, sizes_of)
        with pytest.raises(InputError, match=r"`data` must be whole; .*rows\.npy', which is"):
            PreparedData(folder / "data").examples("train", 128)


@pytest.mark.parametrize("token_id", [65535, "size"])
def test_a_token_outside_the_vocabulary_is_found_when_it_is_read(copy: Path, token_id: int | str):
    path = copy / "train" / "16" / "00000.tokens.npy"
    data = PreparedData(copy)
    token_id = data.tokenizer.vocab_size if token_id == "size" else token_id
    starts = np.load(copy / "train" / "16" / "00000.examples.npy")["start"]
    np.save(path, put(np.load(path), starts[4] + 1, token_id))
    examples = data.examples("train", 16)
    examples.rows(np.arange(4))
    message = (
        rf"`data` must be whole; prepare it anew\. Received: '.*train/16/00000\.tokens\.npy', which has the token id "
        rf"{token_id} for a vocabulary of {data.tokenizer.vocab_size} tokens"
    )
    with pytest.raises(InputError, match=message):
        examples.rows([2, 4, 3])
    with pytest.raises(InputError, match=message), data.plain_errors():
        raise RuntimeError("what a pipeline made of it")


def test_other_errors_come_out_as_they_are(folder: Path):
    data = PreparedData(folder)
    data.examples("train", 16).rows([0])
    with pytest.raises(RuntimeError, match="of another kind"), data.plain_errors():
        raise RuntimeError("of another kind")


def test_another_vocabulary_is_refused(copy: Path):
    vocabulary = (copy / "vocab.txt").read_text(encoding="utf-8")
    (copy / "vocab.txt").write_text(vocabulary + "more\n", encoding="utf-8")
    size = vocabulary.count("\n")
    with pytest.raises(
        InputError,
        match=rf"`data` must have the vocabulary that it was prepared with; prepare it anew\. Received: '.*', "
        rf"with {size + 1} tokens in vocab\.txt and {size} in manifest\.json",
    ):
        PreparedData(copy).examples("train", 16)


def test_word_boundaries_that_the_manifest_does_not_have_are_refused(copy: Path):
    path = copy / "train" / "16" / "00000.continued.npy"
    np.save(path, np.zeros(np.load(copy / "train" / "16" / "00000.tokens.npy").size, bool))
    with pytest.raises(
        InputError,
        match=r"`data` must be whole; .*continued\.npy', which settings\.word_boundaries='pieces' does not go",
    ):
        PreparedData(copy).examples("train", 16)


@pytest.mark.parametrize(
    "change",
    [lambda counts: counts[:3], lambda counts: counts.astype(float), lambda counts: counts[None], np.negative],
    ids=["shortened", "float", "two axes", "negative"],
)
def test_token_counts_that_do_not_fit_are_named(copy: Path, change):
    path = copy / "token_counts.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(InputError, match=r"`data` must be whole; .*token_counts\.npy', which is"):
        _ = PreparedData(copy).token_counts


def test_damaged_token_counts_are_named(copy: Path):
    cut(copy / "token_counts.npy", 8)
    with pytest.raises(InputError, match=r"`data` must be whole; .*token_counts\.npy"):
        _ = PreparedData(copy).token_counts


def test_an_example_set_keeps_no_text_in_memory(folder: Path):
    examples: ExampleSet = PreparedData(folder).examples("train", 16)
    base = examples._shard(0).tokens.base
    while base is not None and not hasattr(base, "find"):
        base = base.base
    assert type(base).__name__ == "mmap"


@pytest.fixture(scope="module")
def many_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 4000)
        prepare(toy_config(path, lengths=(16,)))
    return path / "data"


def test_rows_are_the_same_however_few_shards_are_open_at_a_time(many_shards: Path, monkeypatch: pytest.MonkeyPatch):
    all_open = PreparedData(many_shards).examples("train", 16)
    everything = np.random.default_rng(0).permutation(len(all_open))
    monkeypatch.setattr(prepared_data, "MOST_OPEN_SHARDS", 2)
    examples = PreparedData(many_shards).examples("train", 16)
    assert len(list((many_shards / "train" / "16").glob("*.tokens.npy"))) > 2
    expected = all_open.rows(everything)
    for name, values in examples.rows(everything).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    np.testing.assert_array_equal(examples.lengths[everything], expected["padding_mask"].sum(axis=1))
    numbers = np.arange(examples.packed_rows)
    for found, whole in zip(examples.examples_of_rows(numbers), all_open.examples_of_rows(numbers), strict=True):
        np.testing.assert_array_equal(found, whole)


def test_a_shard_that_went_missing_is_named_when_it_is_opened_again(
    many_shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(prepared_data, "MOST_OPEN_SHARDS", 1)
    data = PreparedData(shutil.copytree(many_shards, tmp_path / "copy"))
    examples = data.examples("train", 16)
    (tmp_path / "copy" / "train" / "16" / "00000.tokens.npy").unlink()
    with pytest.raises(InputError, match=r"`data` must be whole; .*00000.tokens.npy', which is missing, cut short"):
        examples.rows(np.array([0]))
    with pytest.raises(InputError, match=r"00000.tokens.npy"), data.plain_errors():
        raise RuntimeError("as tf.data says it")
