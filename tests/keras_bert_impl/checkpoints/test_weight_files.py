"""The files that Hugging Face's weights come in: shards, half precision, PyTorch's pickles."""

import importlib.util
import json
import os
import pickle
import zipfile

import ml_dtypes  # noqa: F401 (lets NumPy know bfloat16)
import numpy as np
import pytest
import safetensors.numpy
from harness import arrays, small_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertEncoder, BertPretrainer

with_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
without_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")


@pytest.fixture(scope="module")
def pretrainer():
    return BertPretrainer(small_config(), seed=1)


@pytest.fixture
def folder(pretrainer, tmp_path):
    pretrainer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def sharded(folder):
    """The same weights in two shards with their index."""
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    where = {}
    for number, part in enumerate((names[:20], names[20:]), start=1):
        shard = f"model-{number:05}-of-00002.safetensors"
        safetensors.numpy.save_file({name: tensors[name] for name in part}, folder / shard, metadata={"format": "pt"})
        where |= dict.fromkeys(part, shard)
    write_index(folder, where)
    return folder


def write_index(folder, where):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def index_of(folder):
    return json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]


def same_weights(one, other):
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(arrays(a), arrays(b), err_msg=a.path)


def test_shards_are_one_model(pretrainer, sharded):
    restored = BertPretrainer.from_pretrained(sharded)
    same_weights(restored, pretrainer)
    assert restored.load_report.complete
    assert restored.load_report.source.endswith("model.safetensors.index.json")


def test_a_missing_shard_is_named(sharded):
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(
        InputError, match=r"hold every shard of its index. .* without 'model-00002-of-00002.safetensors'"
    ):
        BertPretrainer.from_pretrained(sharded)


def test_a_tensor_that_no_shard_has_is_named(sharded):
    write_index(sharded, {**index_of(sharded), "bert.extra": "model-00001-of-00002.safetensors"})
    with pytest.raises(InputError, match=r"hold every tensor of its index. .*whose shards lack bert.extra"):
        BertPretrainer.from_pretrained(sharded)


def test_a_tensor_that_the_index_does_not_list_stops_the_load(sharded):
    file = sharded / "model-00001-of-00002.safetensors"
    tensors = safetensors.numpy.load_file(file)
    safetensors.numpy.save_file({**tensors, "secret.weight": np.ones(3, "float32")}, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"which also has secret.weight"):
        BertPretrainer.from_pretrained(sharded)
    name = sorted(safetensors.numpy.load_file(sharded / "model-00002-of-00002.safetensors"))[0]
    safetensors.numpy.save_file({**tensors, name: np.ones(3, "float32")}, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"hold every tensor once"):
        BertPretrainer.from_pretrained(sharded)


@pytest.mark.parametrize("place", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_shards_outside_the_directory_are_not_opened(sharded, place):
    write_index(sharded, {**index_of(sharded), "bert.extra": place})
    with pytest.raises(InputError, match=r"have its shards beside their index. Received: .*, shard '"):
        BertPretrainer.from_pretrained(sharded)


@pytest.mark.parametrize("content", ["[]", '{"weight_map": []}', '{"weight_map": {"a": 3}}'])
def test_an_index_without_a_map_is_refused(sharded, content):
    (sharded / "model.safetensors.index.json").write_text(content)
    with pytest.raises(InputError, match=r"have an index with a `weight_map`. Received: '.*index.json'"):
        BertPretrainer.from_pretrained(sharded)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_widened_and_said(folder, dtype):
    file = folder / "model.safetensors"
    half = {name: value.astype(dtype) for name, value in safetensors.numpy.load_file(file).items()}
    safetensors.numpy.save_file(half, file, metadata={"format": "pt"})
    restored = BertPretrainer.from_pretrained(folder)
    assert {kind for _, kind in restored.load_report.widened} == {dtype}
    expected = half["bert.embeddings.word_embeddings.weight"].astype("float32")
    np.testing.assert_array_equal(arrays(restored.encoder.embeddings.token_embedding.table), expected)


def test_a_tensor_under_its_old_and_its_new_name_is_refused(folder):
    file = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(file)
    tensors["bert.embeddings.LayerNorm.gamma"] = tensors["bert.embeddings.LayerNorm.weight"]
    safetensors.numpy.save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"hold every tensor once. .*LayerNorm.\w+ and bert.embeddings.LayerNorm."):
        BertPretrainer.from_pretrained(folder)


class RunsCode:
    """What a pickle can be made to do when it is opened."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def plant(folder, mark, zipped):
    """Replaces the weights by a pickle that makes a directory when it is unpickled."""
    (folder / "model.safetensors").unlink()
    content = pickle.dumps({"bert.pooler.dense.bias": RunsCode(mark)})
    file = folder / "pytorch_model.bin"
    if zipped:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", content)
            archive.writestr("archive/version", "3\n")
    else:
        file.write_bytes(content)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_runs_nothing(folder, tmp_path, zipped):
    mark = tmp_path / "planted"
    plant(folder, mark, zipped)
    pickle.loads(pickle.dumps(RunsCode(tmp_path / "shows_that_it_could")))
    assert (tmp_path / "shows_that_it_could").is_dir()
    with pytest.raises(InputError, match=r"`path` must hold (a file of tensors only|model.safetensors where PyTorch)"):
        BertEncoder.from_pretrained(folder)
    assert not mark.exists()


@without_torch
def test_pickled_weights_are_not_read_without_pytorch(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(
        InputError, match=r"where PyTorch is not installed, since a pickled file can run code. .*install"
    ):
        BertEncoder.from_pretrained(folder)


@pytest.mark.torch
@with_torch
@pytest.mark.parametrize("zipped", [True, False])
def test_pickled_weights_are_read_by_pytorchs_restricted_reader(pretrainer, folder, zipped):
    import torch

    state = {n: torch.tensor(v) for n, v in safetensors.numpy.load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    restored = BertPretrainer.from_pretrained(folder)
    assert restored.load_report.complete
    same_weights(restored, pretrainer)


@pytest.mark.torch
@with_torch
def test_a_cut_off_pickle_is_refused(folder):
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"a": torch.zeros(100)}, folder / "pytorch_model.bin")
    content = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"hold a file of tensors only. .* damaged or holds something else"):
        BertEncoder.from_pretrained(folder)
