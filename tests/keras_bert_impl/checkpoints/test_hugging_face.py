"""Model directories in Hugging Face's form."""

import json
import os
import stat
import struct

import numpy as np
import pytest
import safetensors.numpy
from harness import arrays, small_batch, small_config
from task_models import toy_tokenizer

from keras_bert_impl.checkpoints import hugging_face
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertEncoder, BertPretrainer
from keras_bert_impl.tokenization.tokenizer_config import write_longest_row


@pytest.fixture(scope="module")
def pretrainer():
    return BertPretrainer(small_config(hidden_act="gelu"), seed=1)


@pytest.fixture
def folder(pretrainer, tmp_path):
    path = tmp_path / "model"
    pretrainer.save_pretrained(path)
    return path


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def change_tensors(folder, change):
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder, **values):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


def same_weights(one, other):
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(arrays(a), arrays(b), err_msg=a.path)


def test_what_is_saved_loads_again(pretrainer, folder):
    restored = BertPretrainer.from_pretrained(folder)
    assert restored.config == pretrainer.config
    same_weights(restored, pretrainer)
    assert restored.load_report.complete
    assert restored.load_report.ignored_config_keys == ()
    assert str(restored.load_report) == f"{folder}/model.safetensors: 46 tensors loaded"


@pytest.mark.parametrize("umask", [0o022, 0o027], ids=oct)
def test_files_are_open_to_those_whom_the_umask_lets_in(umask, pretrainer, tmp_path):
    before = os.umask(umask)
    try:
        pretrainer.save_pretrained(tmp_path / "model", toy_tokenizer())
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()}
    assert len(modes) == 4 and set(modes.values()) == {0o666 & ~umask}, modes


def test_a_tokenizer_beside_a_model_says_how_long_its_rows_may_be(pretrainer, tmp_path):
    pretrainer.save_pretrained(tmp_path, toy_tokenizer())
    options = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert options["model_max_length"] == pretrainer.config.max_position_embeddings
    toy_tokenizer().save_pretrained(tmp_path / "alone")
    alone = tmp_path / "alone" / "tokenizer_config.json"
    assert "model_max_length" not in json.loads(alone.read_text())
    alone.write_text('{"model_max_length": 7}')
    write_longest_row(64, alone.parent)
    assert json.loads(alone.read_text()) == {"model_max_length": 7}


def test_an_encoder_saved_loads_again(tmp_path):
    encoder = BertEncoder(small_config(), seed=2)
    encoder.save_pretrained(tmp_path)
    restored = BertEncoder.from_pretrained(tmp_path)
    same_weights(restored, encoder)
    assert restored.load_report.complete


def test_files_have_hugging_face_names_and_orientation(pretrainer, folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    assert config["model_type"] == "bert"
    assert config["hidden_act"] == "gelu"
    tensors = tensors_of(folder)
    assert tensors["bert.embeddings.word_embeddings.weight"].shape == (37, 12)
    assert tensors["bert.encoder.layer.0.intermediate.dense.weight"].shape == (20, 12)
    np.testing.assert_array_equal(tensors["cls.seq_relationship.weight"], arrays(pretrainer.nsp_head.kernel).T)
    assert "cls.predictions.transform.LayerNorm.weight" in tensors

    pretrainer.encoder.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["BertModel"]
    assert "embeddings.word_embeddings.weight" in tensors_of(folder)


def test_the_tokenizer_is_written_beside_the_weights(pretrainer, tmp_path):
    class Tokenizer:
        def save_pretrained(self, path):
            (path / "vocab.txt").write_text("[PAD]\n")

    pretrainer.save_pretrained(tmp_path / "model", tokenizer=Tokenizer())
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["config.json", "model.safetensors", "vocab.txt"]


def test_dtype_of_the_model_is_the_one_asked_for(folder):
    model = BertPretrainer.from_pretrained(folder, dtype="mixed_bfloat16")
    assert model.dtype_policy.name == "mixed_bfloat16"


def test_an_encoder_is_taken_out_of_a_pretrainer_and_the_rest_named(pretrainer, folder):
    encoder = BertEncoder.from_pretrained(folder)
    same_weights(encoder, pretrainer.encoder)
    assert len(encoder.load_report.unused) == 7
    assert all(name.startswith("cls.") for name in encoder.load_report.unused)
    assert "  unused: cls.predictions.bias" in str(encoder.load_report).splitlines()

    without = BertEncoder.from_pretrained(folder, pooler=False)
    assert "bert.pooler.dense.weight" in without.load_report.unused


def test_old_names_of_layer_norm_are_read(pretrainer, folder):
    def rename(tensors):
        for name in [name for name in tensors if "LayerNorm" in name]:
            old = name.replace("weight", "gamma").replace("bias", "beta")
            tensors[old] = tensors.pop(name)

    change_tensors(folder, rename)
    same_weights(BertPretrainer.from_pretrained(folder), pretrainer)


def test_half_precision_files_are_widened(pretrainer, folder):
    def halve(tensors):
        for name in tensors:
            tensors[name] = tensors[name].astype("float16")

    change_tensors(folder, halve)
    table = BertPretrainer.from_pretrained(folder).mlm_head.token_embedding.table
    expected = arrays(pretrainer.mlm_head.token_embedding.table).astype("float16").astype("float32")
    np.testing.assert_array_equal(arrays(table), expected)


def test_a_missing_head_must_be_allowed_and_is_then_fresh(pretrainer, folder):
    def drop(tensors):
        for name in [name for name in tensors if "pooler" in name or "seq_relationship" in name]:
            del tensors[name]

    change_tensors(folder, drop)
    with pytest.raises(
        InputError,
        match=r"lacks pooler.dense.weight, .* \(nsp_head, pooler\); `allow_missing=\('nsp_head', 'pooler'\)` starts",
    ):
        BertPretrainer.from_pretrained(folder)
    with pytest.raises(InputError, match=r"lacks cls.seq_relationship.weight, cls.seq_relationship.bias \(nsp_head\)"):
        BertPretrainer.from_pretrained(folder, allow_missing=("pooler",))
    model = BertPretrainer.from_pretrained(folder, seed=9, allow_missing=("pooler", "nsp_head"))
    fresh = BertPretrainer(pretrainer.config, seed=9)
    np.testing.assert_array_equal(arrays(model.nsp_head.kernel), arrays(fresh.nsp_head.kernel))
    np.testing.assert_array_equal(arrays(model.mlm_head.dense.kernel), arrays(pretrainer.mlm_head.dense.kernel))
    assert "  newly initialised: cls.seq_relationship.bias" in str(model.load_report).splitlines()


def test_half_a_head_is_no_head(folder):
    change_tensors(folder, lambda tensors: tensors.pop("bert.pooler.dense.bias"))
    with pytest.raises(InputError, match=r"lacks pooler.dense.bias \(pooler\)"):
        BertPretrainer.from_pretrained(folder, allow_missing=("pooler",))


def test_allow_missing_takes_names_of_parts_only(folder):
    with pytest.raises(
        InputError,
        match=r"`allow_missing` must be of pooler, mlm_head, nsp_head, .*Received: allow_missing=\['encoder'\]",
    ):
        BertPretrainer.from_pretrained(folder, allow_missing=("encoder",))


def test_a_missing_tensor_of_the_encoder_is_refused(folder):
    change_tensors(folder, lambda tensors: tensors.pop("bert.encoder.layer.1.output.dense.bias"))
    with pytest.raises(InputError, match=r"which lacks encoder.layer.1.output.dense.bias \(encoder\)$"):
        BertPretrainer.from_pretrained(folder)


def test_an_extra_tensor_is_refused_unless_allowed(pretrainer, folder):
    def add(tensors):
        tensors["classifier.weight"] = np.zeros((2, 12), "float32")

    change_tensors(folder, add)
    with pytest.raises(InputError, match=r"also has classifier.weight; `allow_unused=\('classifier',\)` leaves them"):
        BertPretrainer.from_pretrained(folder)
    model = BertPretrainer.from_pretrained(folder, allow_unused=("classifier",))
    assert model.load_report.unused == ("classifier.weight",)
    same_weights(model, pretrainer)


def test_an_extra_block_is_refused_by_an_encoder_too(folder):
    change_config(folder, num_hidden_layers=1)
    with pytest.raises(InputError, match=r"also has bert.encoder.layer.1.attention.* and 12 more"):
        BertEncoder.from_pretrained(folder)


def test_buffers_and_tied_copies_are_passed_over(folder):
    def add(tensors):
        tensors["bert.embeddings.position_ids"] = np.arange(16)[None]
        tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"]

    change_tensors(folder, add)
    report = BertPretrainer.from_pretrained(folder).load_report
    assert report.complete
    assert len(report.passed_over) == 3
    assert "  passed over, a copy of cls.predictions.bias: cls.predictions.decoder.bias" in str(report).splitlines()


def test_an_output_kernel_of_its_own_is_refused(folder):
    def add(tensors):
        tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"] + 1

    change_tensors(folder, add)
    with pytest.raises(InputError, match=r"output kernel is its token table. .*decoder.weight differs"):
        BertPretrainer.from_pretrained(folder)


@pytest.mark.parametrize(
    "key,value,message",
    [
        (
            "vocab_size",
            40,
            r"embeddings.weight is \(37, 12\) in the file and \(40, 12\) in the model.*`vocab_size`",
        ),
        ("max_position_embeddings", 32, r"\(16, 12\) in the file and \(32, 12\) .*`max_position_embeddings`"),
        ("hidden_size", 24, r"is \(12,\) in the file and \(24,\) in the model, and \d+ more$"),
    ],
)
def test_another_shape_is_refused_with_both(folder, key, value, message):
    change_config(folder, **{key: value})
    with pytest.raises(InputError, match=message):
        BertPretrainer.from_pretrained(folder)


@pytest.mark.parametrize("kept", [4, 100, 4000])
def test_a_cut_off_file_is_refused(folder, kept):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"`path` must hold whole weights. Received: .* cut off or damaged"):
        BertPretrainer.from_pretrained(folder)


def test_a_header_that_promises_too_much_is_refused(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 40) + b"{}")
    with pytest.raises(InputError, match=r"cut off or damaged"):
        BertPretrainer.from_pretrained(folder)


def test_a_refused_load_says_so_before_a_model_is_built(folder, monkeypatch):
    change_tensors(folder, lambda tensors: tensors.pop("cls.seq_relationship.bias"))
    monkeypatch.setattr(BertPretrainer, "__init__", lambda self, *args, **kwargs: pytest.fail("built"))
    with pytest.raises(InputError, match=r"lacks cls.seq_relationship.bias"):
        BertPretrainer.from_pretrained(folder)


def test_directories_that_are_no_model_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"must be a model directory .*Received: '.*nowhere', which is not there"):
        BertEncoder.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"must be a model directory .*Received: '.*empty', which has no config.json"):
        BertEncoder.from_pretrained(tmp_path / "empty")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"which has no model.safetensors"):
        BertEncoder.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"`path` must hold readable JSON. Received: '.*config.json': Expecting"):
        BertEncoder.from_pretrained(folder)


@pytest.mark.parametrize(
    "key,value,message",
    [
        ("model_type", "roberta", r"a model of type 'bert'. Received: .*, model_type='roberta'"),
        ("position_embedding_type", "relative_key", r"position_embedding_type='absolute'. Received: .*'relative_key'"),
        ("is_decoder", True, r"is_decoder=False. Received: .*, is_decoder=True"),
        ("tie_word_embeddings", False, r"tie_word_embeddings=True. Received: .*, tie_word_embeddings=False"),
        ("hidden_act", "silu", r"`hidden_act` must be one of gelu, .* Received: hidden_act='silu'"),
    ],
)
def test_another_architecture_is_refused(folder, key, value, message):
    change_config(folder, **{key: value})
    with pytest.raises(InputError, match=message):
        BertEncoder.from_pretrained(folder)


@pytest.mark.parametrize(
    "key,value,message",
    [
        ("classifier_dropout", "0.1", r"a `classifier_dropout` of at least 0 and less than 1. .*dropout='0.1'"),
        ("classifier_dropout", 2, r"classifier_dropout=2"),
        ("problem_type", "x", r"a `problem_type` of single_label_.*Received: .*problem_type='x'"),
        ("num_hidden_layers", 2147483647, r"hold the blocks that its configuration says. .*46 tensors, num_hidden_lay"),
    ],
)
def test_values_of_another_kind_are_refused(folder, key, value, message):
    change_config(folder, **{key: value})
    with pytest.raises(InputError, match=message):
        BertEncoder.from_pretrained(folder)


@pytest.mark.parametrize("architectures", [[[1]], [{}], "BertModel", [3], None])
def test_an_odd_architecture_is_one_that_is_not_stated(folder, architectures):
    change_config(folder, architectures=architectures)
    checkpoint = hugging_face.open_hugging_face(folder)
    assert (checkpoint.architecture, checkpoint.architecture_is_stated) == ("BertForPreTraining", False)


def test_json_nested_too_deeply_is_refused(folder):
    (folder / "config.json").write_text("[" * 200_000)
    with pytest.raises(
        InputError, match=r"`path` must hold readable JSON. Received: '.*config.json': nested too deeply"
    ):
        BertEncoder.from_pretrained(folder)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "bool"])
def test_tensors_that_are_no_floats_of_at_most_32_bits_are_refused(folder, dtype):
    def change(tensors):
        tensors["bert.pooler.dense.bias"] = tensors["bert.pooler.dense.bias"].astype(dtype)

    change_tensors(folder, change)
    with pytest.raises(InputError, match=rf"weights in float32, float16, bfloat16. .*dense.bias is {dtype}$"):
        BertPretrainer.from_pretrained(folder)


@pytest.mark.parametrize("name,values", [("position_ids", range(15, -1, -1)), ("token_type_ids", [1] * 16)])
def test_buffers_that_are_not_what_they_always_are_are_refused(folder, name, values):
    change_tensors(folder, lambda tensors: tensors.update({f"bert.embeddings.{name}": np.array([list(values)])}))
    with pytest.raises(InputError, match=rf"number its positions 0, 1, 2, … .*bert.embeddings.{name} says otherwise"):
        BertPretrainer.from_pretrained(folder)


def test_a_full_disk_is_an_error_of_the_system(folder, pretrainer, monkeypatch):
    def full(*args, **kwargs):
        raise safetensors.SafetensorError("Error while serializing: I/O error: File too large (os error 27)")

    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    with pytest.raises(OSError, match="File too large") as caught:
        pretrainer.save_pretrained(folder)
    assert caught.value.errno == 27


def test_foreign_config_keys_are_passed_over_and_listed(folder):
    change_config(folder, transformers_version="9", use_cache=True)
    report = BertPretrainer.from_pretrained(folder).load_report
    assert report.ignored_config_keys == ("transformers_version", "use_cache")
    assert str(report).endswith("  configuration keys passed over: transformers_version, use_cache")


def test_a_config_that_says_nothing_means_hugging_face_defaults(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    config, ignored = hugging_face.read_config(tmp_path)
    assert (config.hidden_act, config.vocab_size, config.layer_norm_eps) == ("gelu", 30522, 1e-12)
    assert ignored == ()


def test_saving_replaces_a_model_but_nothing_else(pretrainer, folder, tmp_path):
    pretrainer.save_pretrained(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("")
    with pytest.raises(InputError, match=r"must be new, empty or a model directory. Received: .*, which has other"):
        pretrainer.save_pretrained(tmp_path / "home")
    assert (tmp_path / "home" / "thesis.txt").exists()


def test_a_failed_save_leaves_the_old_model(pretrainer, folder):
    class Broken:
        def save_pretrained(self, path):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        pretrainer.save_pretrained(folder, tokenizer=Broken())
    same_weights(BertPretrainer.from_pretrained(folder), pretrainer)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_outputs_survive_the_way_there_and_back(pretrainer, folder):
    batch = small_batch()
    expected = arrays(pretrainer(batch))
    for name, output in arrays(BertPretrainer.from_pretrained(folder)(batch)).items():
        np.testing.assert_array_equal(output, expected[name])
