"""`.keras` files as a source."""

import io
import json
import shutil
import zipfile

import h5py
import keras
import numpy as np
import pytest
from harness import arrays, small_batch, small_config
from keras.src.saving.serialization_lib import SafeModeScope
from reference_models import draw_weights

from keras_bert_impl.checkpoints.keras_file import open_keras_file
from keras_bert_impl.checkpoints.places import places
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder, BertMaskedLM
from keras_bert_impl.models.architectures import ARCHITECTURES

LABELLED = ("BertForSequenceClassification", "BertForTokenClassification")
TOKEN_TABLE = "layers/bert_encoder/layers/embeddings/token_embedding/vars/0"


def make(architecture="BertForSequenceClassification", **options):
    labels = {"labels": ["bad", "good", "so so"]} if architecture in LABELLED else {}
    return draw_weights(ARCHITECTURES[architecture](small_config(hidden_act="gelu"), seed=3, **labels, **options))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "model.keras"
    make(problem_type="regression", classifier_dropout=0.4).save(path)
    return path


@pytest.fixture
def file(template, tmp_path):
    return shutil.copy(template, tmp_path / "model.keras")


def members(file):
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(file, compression=zipfile.ZIP_STORED, **changed):
    """Writes the archive again with other contents of `config` or `weights`; None leaves a member out."""
    contents = members(file)
    for key, name in (("config", "config.json"), ("weights", "model.weights.h5")):
        if key in changed:
            contents[name] = changed[key]
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)


def change_config(file, change):
    content = json.loads(members(file)["config.json"])
    change(content)
    rewrite(file, config=json.dumps(content).encode())


def change_weights(file, change):
    content = io.BytesIO(members(file)["model.weights.h5"])
    with h5py.File(content, "a") as root:
        change(root)
    rewrite(file, weights=content.getvalue())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_value_of_every_model_is_found(architecture, tmp_path):
    model = make(architecture)
    model.save(tmp_path / "model.keras")
    checkpoint = open_keras_file(tmp_path / "model.keras")
    assert (checkpoint.format, checkpoint.architecture) == ("keras", architecture)
    assert checkpoint.config == model.config
    assert checkpoint.labels == getattr(model, "labels", ())
    assert checkpoint.tensors.keys() == places(model).keys()
    for key, place in places(model).items():
        assert checkpoint.tensors[key].shape == tuple(place.variable.shape)
        np.testing.assert_array_equal(checkpoint.tensors[key].read(), place.value(), err_msg=key)

    restored = type(model).from_pretrained(tmp_path / "model.keras")
    assert restored.load_report.complete
    inputs = {tensor.name: small_batch()[tensor.name] for tensor in model.inputs}
    keras.tree.map_structure(np.testing.assert_array_equal, arrays(restored(inputs)), arrays(model(inputs)))


def test_head_settings_are_kept(file):
    restored = BertClassifier.from_pretrained(file)
    assert restored.labels == ("bad", "good", "so so")
    assert restored.problem_type == "regression"
    assert restored.classifier_dropout == 0.4
    assert restored.load_report.ignored_config_keys == ()


def test_an_encoder_may_have_no_pooler(tmp_path):
    model = make("BertModel", pooler=False, return_attention=True)
    model.save(tmp_path / "model.keras")
    assert open_keras_file(tmp_path / "model.keras").parts == ("encoder",)
    with pytest.raises(InputError, match="lacks pooler"):
        BertEncoder.from_pretrained(tmp_path / "model.keras")
    assert BertEncoder.from_pretrained(tmp_path / "model.keras", pooler=False).load_report.complete


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "bfloat16"])
def test_the_state_of_training_is_passed_over(dtype, tmp_path):
    model = make(dtype=dtype)
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    restored = BertClassifier.from_pretrained(tmp_path / "model.keras")
    report = restored.load_report
    assert report.complete
    assert len(report.passed_over) > 2 * len(report.loaded)
    assert {reason for _, reason in report.passed_over} == {"optimizer state"}
    assert {dtype for _, dtype in report.widened} == ({dtype} & {"bfloat16"})
    for one, other in zip(restored.weights, model.weights, strict=True):
        np.testing.assert_array_equal(arrays(one), arrays(other))


def test_other_models_take_what_they_share(file):
    encoder = BertEncoder.from_pretrained(file)
    assert encoder.load_report.unused == ("layers/dense/vars/0", "layers/dense/vars/1")
    with pytest.raises(InputError, match=r"model\.keras', which lacks cls\.predictions.*\(mlm_head\)"):
        BertMaskedLM.from_pretrained(file, allow_unused=("classifier",))


# Nothing of the file runs


def lambda_layer(marker):
    """A layer, as Keras would write it, that makes a file when it is called."""
    return keras.saving.serialize_keras_object(keras.layers.Lambda(lambda x: (__import__("os").mkdir(marker), x)[1]))


def test_planted_code_does_not_run(file, tmp_path):
    marker = tmp_path / "ran"
    layer = lambda_layer(str(marker))
    call = {"module": "os", "class_name": "mkdir", "config": {"path": str(marker)}, "registered_name": None}
    keras.saving.deserialize_keras_object(json.loads(json.dumps(layer)), safe_mode=False)(np.zeros(1))
    assert marker.exists(), "the plant is dead"
    marker.rmdir()
    with SafeModeScope(False):
        for planted in (layer, call):
            compiled = {"optimizer": planted, "loss": planted}
            change_config(
                file, lambda c, p=planted, d=compiled: c.update(compile_config=d, build_config=p, module="os")
            )
            with_config(dtype=planted, name=planted, more=planted)(file)
            model = BertClassifier.from_pretrained(file)
            assert model.load_report.ignored_config_keys == ("more",)
            with_config(labels=planted)(file)
            with pytest.raises(InputError, match="must name its classifier's outputs"):
                open_keras_file(file)
            with_config(labels=["a", "b", "c"])(file)
    assert not marker.exists()


@pytest.mark.parametrize("kind", ["sequential", "functional", "lambda"])
def test_other_models_are_refused(kind, tmp_path):
    path = tmp_path / "model.keras"
    if kind == "functional":
        encoder = make("BertModel")
        keras.Model(encoder.inputs, encoder.outputs).save(path)
    else:
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(path)
    if kind == "lambda":
        rewrite(path, config=json.dumps(lambda_layer(str(tmp_path / "ran"))).encode())
    name = {"sequential": "Sequential", "functional": "Functional", "lambda": "Lambda"}[kind]
    with pytest.raises(InputError, match=f"must hold a model of this package: BertEncoder, .*of class '{name}'"):
        open_keras_file(path)
    assert not (tmp_path / "ran").exists()


# Damage


def flip_a_weight(file):
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as archive:
        info = archive.getinfo("model.weights.h5")
    content[info.header_offset + info.file_size // 2] ^= 1
    file.write_bytes(content)


def with_config(**values):
    return lambda file: change_config(file, lambda content: content["config"].update(values))


def with_sizes(**values):
    return lambda file: change_config(file, lambda content: content["config"]["config"].update(values))


def put(path, value):
    def change(root):
        if path in root:
            del root[path]
        root[path] = value

    return lambda file: change_weights(file, change)


@pytest.mark.parametrize(
    "damage,message",
    [
        (lambda file: file.write_bytes(b""), "must be a whole .keras file.*cut off or damaged"),
        (lambda file: file.write_bytes(b"no zip"), "must be a whole .keras file.*cut off or damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-200]), "must be a whole .keras file.*cut off or damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[200:]), "cut off or damaged"),
        (flip_a_weight, "must be a whole .keras file.*Bad CRC-32"),
        (lambda file: rewrite(file, config=None), r"must be a whole .keras file.*config\.json"),
        (lambda file: rewrite(file, weights=None), r"must be a whole .keras file.*model\.weights\.h5"),
        (lambda file: rewrite(file, config=b"{"), r"must hold readable JSON.*model\.keras', config\.json"),
        (lambda file: rewrite(file, config=b"[" * 100000), r"must hold readable JSON.*model\.keras', config\.json"),
        (lambda file: rewrite(file, config=b"[]"), "model of this package: .*of class None"),
        (lambda file: rewrite(file, config=b" " * (1 << 24) + b"{}"), "of at most 16777216 bytes.*16777218 bytes"),
        (lambda file: rewrite(file, zipfile.ZIP_DEFLATED), r"weights uncompressed.*model\.weights\.h5 is compressed"),
        (lambda file: rewrite(file, weights=b"no HDF5"), r"must hold whole weights.*model\.keras', which is cut off"),
        (
            lambda file: rewrite(file, weights=members(file)["model.weights.h5"][:-2000]),
            r"must hold whole weights.*model\.keras', which is cut off",
        ),
        (with_config(config=None), "must hold a `config` of its model.*config=None"),
        (with_config(labels=["a", "a"]), "must name its classifier's outputs.*labels="),
        (with_sizes(hidden_size="12"), "usable configuration.*`hidden_size` must be a positive whole number"),
        (with_sizes(heads=3), "usable configuration.*Unknown `BertConfig` keys"),
        (with_sizes(num_hidden_layers=3), "as many blocks as its configuration says.*with 2, num_hidden_layers=3"),
        (with_sizes(num_hidden_layers=2**31 - 1), "as many blocks as .*with 2, num_hidden_layers=2147483647"),
        (put(TOKEN_TABLE, np.zeros((37, 12), "int8")), "weights in float32.*token_embedding/vars/0 is int8"),
        (put(TOKEN_TABLE, h5py.ExternalLink("other.h5", "x")), f"in its own file.*'{TOKEN_TABLE}' is a link"),
    ],
)
def test_a_damaged_file_is_refused(file, damage, message):
    damage(file)
    with pytest.raises(InputError, match=message):
        open_keras_file(file)


@pytest.mark.parametrize(
    "damage,message",
    [
        (with_sizes(vocab_size=38), r"token_embedding/vars/0 is \(37, 12\) in the file and \(38, 12\) in the model"),
        (with_config(labels=["a", "b"]), r"layers/dense/vars/0 is \(12, 3\) in the file and \(12, 2\) in the model"),
        (lambda file: change_weights(file, lambda r: r.__delitem__(TOKEN_TABLE)), "lacks embeddings.word_embeddings"),
        (put("layers/dense/vars/2", [1.0]), "no place for.*also has layers/dense/vars/2"),
    ],
)
def test_what_does_not_fit_the_configuration_is_not_loaded(file, damage, message):
    damage(file)
    with pytest.raises(InputError, match=message):
        BertClassifier.from_pretrained(file)


def test_values_that_vanish_after_opening_are_missed(file):
    checkpoint = open_keras_file(file)
    file.write_bytes(file.read_bytes()[:20000])
    with pytest.raises(InputError, match=r"must hold whole weights.*cut off or damaged"):
        BertClassifier.from_pretrained(checkpoint)
