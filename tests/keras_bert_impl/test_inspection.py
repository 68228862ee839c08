"""`inspect` says what a directory holds."""

import json

import pytest

from keras_bert_impl import InputError
from keras_bert_impl.config import BertConfig
from keras_bert_impl.inspection import describe, inspect
from keras_bert_impl.models.bert_pretrainer import BertPretrainer


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("inspected") / "model"
    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    pretrainer = BertPretrainer(config)
    pretrainer.save_pretrained(path)
    return path, pretrainer


def test_a_models_parameters_are_counted_by_part(model):
    path, pretrainer = model
    counts = inspect(path)["parameters"]
    assert counts["total"] == pretrainer.count_params() == sum(v for k, v in counts.items() if k != "total")
    assert {"embeddings", "encoder", "pooler", "mlm_head", "nsp_head"} < set(counts)
    assert f"total: {counts['total']:,}" in describe(inspect(path))


def test_prepared_data_shows_its_manifest(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"documents": {"train": 3}, "fill": 0.123456789, "notes": []}))
    text = describe(inspect(tmp_path))
    assert "kind: prepared data" in text and "train: 3" in text and "fill: 0.123457" in text


def test_an_unfinished_preparation_is_known(tmp_path):
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "block-train-00000.json").write_text("{}")
    (tmp_path / "command.json").write_text("{}")
    facts = inspect(tmp_path)
    assert facts == {"path": str(tmp_path), "kind": "unfinished preparation", "finished parts": 1}


def test_a_version_of_an_export_is_an_export(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"12345")
    assert inspect(tmp_path)["versions"] == inspect(tmp_path / "1")["versions"] == {"1": {"bytes": 5}}


def test_a_description_of_an_export_that_is_no_object_is_a_sentence(tmp_path):
    extra = tmp_path / "1" / "assets.extra"
    extra.mkdir(parents=True)
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"12345")
    for content in ("[]", "1", '"x"', "null"):
        (extra / "signature.json").write_text(content)
        with pytest.raises(InputError, match=r"`path` must hold a JSON object\. Received: '.*signature\.json'"):
            inspect(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, (10**6).to_bytes(8, "little") + b"{}"])
def test_weights_that_cannot_be_read_are_named(tmp_path, content):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors.*cut off or damaged"):
        inspect(tmp_path)


def test_anything_else_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be a model, run, prepared data or export directory"):
        inspect(tmp_path)
    with pytest.raises(InputError, match=r"must be a model directory .* which is not there"):
        inspect(tmp_path / "nope")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="readable JSON"):
        inspect(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(InputError, match="must hold a JSON object"):
        inspect(tmp_path)
