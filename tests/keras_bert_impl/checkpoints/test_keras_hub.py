"""KerasHub presets and models, both ways."""

import json
import shutil
import sys
import warnings
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from harness import arrays, small_batch, small_config
from reference_models import draw_weights

from keras_bert_impl.checkpoints.keras_hub import (
    keras_hub_tokenizer,
    open_keras_hub,
    write_keras_hub,
)
from keras_bert_impl.checkpoints.places import places
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

BACKBONE = {
    "vocabulary_size": 37,
    "num_layers": 2,
    "num_heads": 3,
    "hidden_dim": 12,
    "intermediate_dim": 20,
    "max_sequence_length": 16,
    "num_segments": 2,
    "dropout": 0.2,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *"abcdefgh", "##a", "##b", "é", "É", "中", "文", *(f"w{i}" for i in range(18))]
QUERY = "layers/transformer_encoder/_self_attention_layer/query_dense/vars/0"
TOKEN_TABLE = "layers/reversible_embedding/vars/0"


@pytest.fixture(scope="session")
def keras_hub():
    return pytest.importorskip("keras_hub")


@pytest.fixture(scope="session")
def backbone(keras_hub):
    return draw(keras_hub.models.BertBackbone(**BACKBONE))


@pytest.fixture(scope="session")
def classifier(keras_hub, backbone):
    return draw(keras_hub.models.BertTextClassifier(backbone, num_classes=3, dropout=0.3))


@pytest.fixture(scope="session")
def masked_lm(keras_hub, backbone):
    return draw(keras_hub.models.BertMaskedLM(backbone))


@pytest.fixture
def preset(tmp_path, classifier):
    classifier.save_to_preset(tmp_path / "preset")
    return tmp_path / "preset"


@pytest.fixture(scope="module")
def model():
    """The classifier of `written`."""
    model = BertClassifier(small_config(), labels=["bad", "good"], problem_type="multi_label_classification", seed=2)
    return draw_weights(model)


@pytest.fixture(scope="module")
def template(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "preset"
    write_keras_hub(path, model, tokenizer=WordPieceTokenizer(VOCABULARY))
    return path


@pytest.fixture
def written(template, tmp_path):
    """A preset that we wrote ourselves, so that the tests of damage run without KerasHub too."""
    return shutil.copytree(template, tmp_path / "written")


def draw(model, seed=0):
    """Draws every variable anew; as they start, biases are zeros and cannot change places."""
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        gamma = variable.path.endswith("gamma")
        variable.assign(rng.normal(1.0 if gamma else 0.0, 0.2, variable.shape))
    return model


def batch(*names):
    return {name: small_batch()[name] for name in ("token_ids", "segment_ids", "padding_mask", *names)}


def check_same_outputs(ours, theirs, inputs=None, atol=2e-5):
    inputs = inputs or batch()
    one, other = arrays(ours(inputs)), arrays(theirs(inputs))
    keras.tree.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=atol), one, other)


def check_same_values(one, other):
    assert [variable.shape for variable in one.weights] == [variable.shape for variable in other.weights]
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(arrays(a), arrays(b), err_msg=a.path)


def change_json(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


# Reading


@pytest.mark.parametrize("max_shard_size", [10, 4e-6])
def test_a_backbone_preset_gives_the_same_outputs(backbone, tmp_path, max_shard_size):
    backbone.save_to_preset(tmp_path, max_shard_size=max_shard_size)
    assert (tmp_path / "model.weights.json").exists() == (max_shard_size < 1)
    model = BertEncoder.from_pretrained(tmp_path)
    assert model.load_report.complete
    assert model.load_report.format == "keras_hub"
    assert model.load_report.ignored_config_keys == ()
    assert model.config == small_config(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    check_same_outputs(model, backbone)


def test_a_classifier_preset_gives_the_same_logits(classifier, preset):
    model = BertClassifier.from_pretrained(preset)
    assert model.load_report.complete
    assert model.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert model.classifier_dropout == 0.3
    assert [reason for _, reason in model.load_report.passed_over] == ["optimizer state", "optimizer state"]
    check_same_outputs(model, classifier)
    assert BertClassifier.from_pretrained(preset, labels=["a", "b", "c"]).labels == ("a", "b", "c")


def test_a_masked_lm_head_is_loaded_only_if_named(masked_lm, tmp_path):
    masked_lm.save_to_preset(tmp_path)
    assert BertEncoder.from_pretrained(tmp_path).load_report.unused
    with pytest.raises(InputError, match=r"Received: '.*\.weights\.h5', whose masked-LM head has the erf GELU"):
        BertMaskedLM.from_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"`allow_inexact=\('mlm_head',\)` takes its weights"):
        BertMaskedLM.from_pretrained(masked_lm)
    for source in (tmp_path, masked_lm):
        model = BertMaskedLM.from_pretrained(source, allow_inexact=("mlm_head",))
        assert "computes something else: mlm_head, whose masked-LM head has the erf" in str(model.load_report)
        np.testing.assert_array_equal(arrays(model.mlm_head.bias), arrays(masked_lm.masked_lm_head._bias))
        np.testing.assert_array_equal(
            arrays(model.mlm_head.dense.kernel), arrays(masked_lm.masked_lm_head._intermediate_dense.kernel)
        )


def test_the_masked_lm_head_of_keras_hub_computes_something_else(masked_lm):
    """Why it is refused: were the two equal one day, this fails and the refusal can go."""
    model = BertMaskedLM.from_pretrained(masked_lm, allow_inexact=("mlm_head",))
    inputs = batch("mask_positions")
    difference = np.abs(arrays(model(inputs))["mlm_logits"] - arrays(masked_lm(inputs))).max()
    assert 1e-4 < difference < 1e-1


def test_a_classifier_with_another_activation_is_loaded_only_if_named(keras_hub, backbone, tmp_path):
    softmax = draw(keras_hub.models.BertTextClassifier(backbone, num_classes=2, activation="softmax"))
    softmax.save_to_preset(tmp_path)
    for source in (tmp_path, softmax):
        with pytest.raises(InputError, match="whose classifier puts its logits through the activation 'softmax'; here"):
            BertClassifier.from_pretrained(source)
        model = BertClassifier.from_pretrained(source, allow_inexact=("classifier",))
        check_same_outputs(lambda inputs, model=model: keras.ops.softmax(model(inputs)), softmax)


def test_models_are_sources_as_they_are(keras_hub, backbone, classifier):
    encoder = BertEncoder.from_pretrained(backbone)
    assert encoder.load_report.complete
    assert encoder.load_report.source == f"BertBackbone {backbone.name!r}"
    check_same_outputs(encoder, backbone)
    check_same_outputs(BertClassifier.from_pretrained(classifier), classifier)
    check_same_outputs(BertEncoder.from_pretrained(keras_hub.models.BertTextEmbedder(backbone)), backbone)


def test_a_model_of_another_kind_is_refused(keras_hub):
    other = keras_hub.models.RobertaBackbone(
        vocabulary_size=9, num_layers=1, num_heads=1, hidden_dim=2, intermediate_dim=2, max_sequence_length=4
    )
    with pytest.raises(InputError, match=r"`path` must be a KerasHub model of BertBackbone, .*RobertaBackbone"):
        BertEncoder.from_pretrained(other)


def test_an_embedder_preset_is_an_encoder(keras_hub, backbone, tmp_path):
    keras_hub.models.BertTextEmbedder(backbone).save_to_preset(tmp_path)
    model = BertEncoder.from_pretrained(tmp_path)
    assert model.load_report.complete
    assert model.load_report.ignored_config_keys == ("normalize", "pooling_mode")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "mixed_bfloat16"])
def test_half_precision_is_widened_and_said(keras_hub, tmp_path, dtype):
    source = draw(keras_hub.models.BertBackbone(**BACKBONE, dtype=dtype))
    source.save_to_preset(tmp_path)
    for path in (tmp_path, source):
        model = BertEncoder.from_pretrained(path)
        assert {dtype for _, dtype in model.load_report.widened} == ({dtype} - {"mixed_bfloat16"})
        np.testing.assert_array_equal(
            arrays(model.embeddings.token_embedding.table), arrays(source.token_embedding.embeddings)
        )
        np.testing.assert_array_equal(arrays(model.pooler.dense.kernel), arrays(source.pooled_dense.kernel))


def test_files_with_the_paths_of_keras_2_are_read(keras_hub, backbone, tmp_path):
    backbone.save_to_preset(tmp_path)
    with h5py.File(tmp_path / "model.weights.h5", "a") as file:
        file.move("layers", "_layer_checkpoint_dependencies")
    check_same_values(keras_hub.models.BertBackbone.from_preset(str(tmp_path)), backbone)
    check_same_outputs(BertEncoder.from_pretrained(tmp_path), backbone)


def test_nothing_of_keras_hub_is_needed_or_made(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    for name in ("deserialize_keras_object", "load_model"):
        monkeypatch.setattr(keras.saving, name, lambda *_, **__: pytest.fail("made what a file names"))
    assert BertClassifier.from_pretrained(written).load_report.complete
    assert keras_hub_tokenizer(written).vocab_size == len(VOCABULARY)


def test_planted_code_does_not_run(written, tmp_path):
    marker = tmp_path / "ran"
    planted = {
        "module": "os",
        "class_name": "system",
        "config": {"command": f"touch {marker}"},
        "registered_name": None,
    }
    function = {"class_name": "__lambda__", "config": {"value": "gASV", "defaults": None, "closure": None}}
    change_json(written / "config.json", lambda content: content["config"].update(dtype=planted, planted=function))
    change_json(written / "task.json", lambda content: content["config"].update(activation=planted))
    change_json(written / "tokenizer.json", lambda content: content["config"].update(dtype=planted))
    checkpoint = open_keras_hub(written)
    assert checkpoint.ignored_config_keys == ("planted",)
    assert BertEncoder.from_pretrained(checkpoint).load_report.unused
    assert keras_hub_tokenizer(written) is not None
    with pytest.raises(InputError, match=r"through the activation {'module': 'os'"):
        BertClassifier.from_pretrained(checkpoint)
    change_json(written / "config.json", lambda content: content.update(module="os", registered_name="os>system"))
    with pytest.raises(InputError, match=r"configuration of a KerasHub class.*registered_name='os>system'"):
        open_keras_hub(written)
    assert not marker.exists()


def test_tensors_have_the_names_and_shapes_that_they_have_here(model, written):
    assert {key: tensor.shape for key, tensor in open_keras_hub(written).tensors.items()} == {
        key: tuple(place.variable.shape) for key, place in places(model).items()
    }


# Damage


def configured(file="config.json", **values):
    return lambda folder: change_json(folder / file, lambda content: content["config"].update(values))


def without(key):
    return lambda folder: change_json(folder / "config.json", lambda content: content["config"].pop(key))


def changed(change, file="model.weights.h5"):
    def damage(folder):
        with h5py.File(folder / file, "a") as root:
            change(root)

    return damage


def replaced(path, make):
    """Puts something else in place of an array."""

    def change(root):
        value = root[path][()]
        del root[path]
        make(root, path, value)

    return changed(change)


def link_out(root, path, value):
    with h5py.File(root.filename + ".other", "w") as other:
        other["secret"] = value
    root[path] = h5py.ExternalLink(root.filename + ".other", "secret")


def link_inside(root, path, value):
    root["elsewhere"] = value
    root[path] = h5py.SoftLink("/elsewhere")


def values_outside(root, path, value):
    Path(root.filename + ".raw").write_bytes(value.tobytes())
    root.create_dataset(path, value.shape, value.dtype, external=[(root.filename + ".raw", 0, value.nbytes)])


def virtual(root, path, value):
    layout = h5py.VirtualLayout(value.shape, value.dtype)
    layout[:] = h5py.VirtualSource(root.filename + ".other", "secret", value.shape)
    root.create_virtual_dataset(path, layout)


def truncate(file, share):
    def damage(folder):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    return damage


DAMAGE = [
    (lambda f: (f / "config.json").write_text("{"), r"readable JSON.*config\.json"),
    (lambda f: (f / "config.json").write_text("[" * 100000), r"readable JSON.*config\.json"),
    (lambda f: (f / "config.json").write_text('{"registered_name": 3}'), "KerasHub class.*registered_name=3"),
    (lambda f: change_json(f / "config.json", lambda c: c.update(config=[])), "configuration of a KerasHub class"),
    (
        lambda f: change_json(f / "config.json", lambda c: c.update(registered_name="keras_hub>GPT2Backbone")),
        "must hold a KerasHub BertBackbone.*'GPT2Backbone'",
    ),
    (without("num_heads"), r"sizes of a BertBackbone.*without 'num_heads'"),
    (configured(vocabulary_size="37"), r"`vocabulary_size` must be a positive whole number.*vocabulary_size='37'"),
    (configured(num_layers=-1), r"usable configuration.*num_layers=-1"),
    (configured(dropout=True), "`dropout` must be at least 0"),
    (configured(num_layers=3), "as many blocks as its configuration says.*with 2, num_layers=3"),
    (configured(num_layers=2**31 - 1), "as many blocks as its configuration says.*with 2, num_layers=2147483647"),
    (configured(num_heads=4), r"attention of 4 heads.*_dense/vars/\d is \((12, )?3, 4\)"),
    (lambda f: (f / "model.weights.h5").unlink(), r"must be a KerasHub preset.*has no model\.weights\.h5"),
    (lambda f: (f / "model.weights.h5").write_bytes(b"no HDF5"), "must hold whole weights.*cut off or damaged"),
    (truncate("model.weights.h5", 0.9), "must hold whole weights.*cut off or damaged"),
    (truncate("model.weights.h5", 0), "must hold whole weights.*cut off or damaged"),
    (truncate("task.weights.h5", 0.5), r"must hold whole weights.*task\.weights\.h5', which is cut off or damaged"),
    (replaced(TOKEN_TABLE, link_out), f"in its own file.*'{TOKEN_TABLE}' is a link"),
    (replaced(TOKEN_TABLE, link_inside), f"in its own file.*'{TOKEN_TABLE}' is a link"),
    (replaced(TOKEN_TABLE, values_outside), "is an array whose values are in other files"),
    (replaced(TOKEN_TABLE, virtual), "is an array whose values are in other files"),
    (
        replaced(TOKEN_TABLE, lambda r, p, v: r.create_dataset(p, data=v, compression="gzip")),
        "is an array that is compressed or in chunks",
    ),
    (
        replaced(TOKEN_TABLE, lambda r, p, v: r.create_dataset(p, (2**20, 2**20), "float32")),
        "is an array of 4398046511104 bytes that are not all there",
    ),
    (replaced(TOKEN_TABLE, lambda r, p, v: r.create_dataset(p, data=h5py.Empty("f"))), "is no array"),
    (changed(lambda r: r.__setitem__("layers/again", r["layers"])), "is a group that is met twice"),
    (replaced(TOKEN_TABLE, lambda r, p, v: r.__setitem__(p, v.astype("int8"))), "weights in float32, .* is int8"),
    (replaced(TOKEN_TABLE, lambda r, p, v: r.__setitem__(p, v.astype("float64"))), "weights in float32, .* is float64"),
    (replaced(QUERY, lambda r, p, v: r.__setitem__(p, v.reshape(12, 2, 6))), "attention of 3 heads"),
    (replaced(QUERY, lambda r, p, v: r.__setitem__(p, np.float32(1))), "attention of 3 heads"),
    (
        lambda f: change_json(f / "task.json", lambda c: c.update(registered_name="keras_hub>BertOther")),
        "KerasHub task of BertBackbone, BertMaskedLM, .*of class 'BertOther'",
    ),
    (
        lambda f: change_json(f / "task.json", lambda c: c["config"]["backbone"]["config"].update(dropout=0.3)),
        r"task made for its backbone.*task\.json",
    ),
    (configured("task.json", backbone=None), r"task made for its backbone"),
    (configured("task.json", num_classes=3), r"as many outputs as.*num_classes=3, layers/dense/vars/0 is \(12, 2\)"),
    (configured("task.json", num_classes=2.0), r"as many outputs as.*num_classes=2\.0"),
    (configured("task.json", dropout=1), "dropout of at least 0 and less than 1.*dropout=1"),
    (
        lambda f: change_json(f / "metadata.json", lambda c: c.update(labels=["one"])),
        r"one name in `labels` for each output.*2 outputs, labels=\['one'\]",
    ),
]


@pytest.mark.parametrize("damage,message", DAMAGE)
def test_a_damaged_preset_is_refused(written, damage, message):
    damage(written)
    with pytest.raises(InputError, match=message):
        open_keras_hub(written)


@pytest.mark.parametrize(
    "damage,message",
    [
        (configured(vocabulary_size=38), r"reversible_embedding/vars/0 is \(37, 12\) .* and \(38, 12\) in the model"),
        (configured(max_sequence_length=8), r"position_embedding/vars/0 is \(16, 12\) .* and \(8, 12\) in the model"),
        (changed(lambda root: root.__delitem__(QUERY)), r"lacks encoder\.layer\.0\.attention\.self\.query\.weight"),
        (changed(lambda root: root.__delitem__("layers/dense")), r"lacks pooler\.dense\.weight"),
        (changed(lambda r: r.__setitem__("layers/dense/vars/2", [1.0])), r"also has layers/dense/vars/2.*\('model',\)"),
        (
            changed(lambda r: r.__setitem__("layers/other", [1.0]), "task.weights.h5"),
            r"also has layers/other.*`allow_unused=\('task',\)` leaves them",
        ),
    ],
)
def test_what_does_not_fit_the_configuration_is_not_loaded(written, damage, message):
    (written / "task.json").rename(written / "kept")
    change_json(written / "kept", lambda content: content["config"].pop("backbone"))
    damage(written)
    backbone = json.loads((written / "config.json").read_text())
    change_json(written / "kept", lambda content: content["config"].update(backbone=backbone))
    (written / "kept").rename(written / "task.json")
    with pytest.raises(InputError, match=message):
        BertEncoder.from_pretrained(written)


@pytest.mark.parametrize("shard", ["../model.weights.h5", "absent.weights.h5", 3])
def test_shards_lie_beside_their_index(written, shard):
    (written / "model.weights.h5").rename(written.parent / "model.weights.h5")
    (written / "model.weights.json").write_text(json.dumps({"weight_map": {"/layers/dense/vars": shard}}))
    with pytest.raises(InputError, match=f"shards of its index beside it.*'{shard}'"):
        open_keras_hub(written)


def test_a_tensor_in_two_shards_is_refused(written):
    weights = written / "model.weights.h5"
    shutil.copy(weights, written / "copy.weights.h5")
    weights.rename(written / "one.weights.h5")
    index = {"weight_map": {"/a": "one.weights.h5", "/b": ["copy.weights.h5"]}}
    (written / "model.weights.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"hold every tensor once.* twice"):
        open_keras_hub(written)


def test_values_that_vanish_after_opening_are_missed(written):
    checkpoint = open_keras_hub(written)
    truncate("model.weights.h5", 0.5)(written)
    with pytest.raises(InputError, match=r"must hold whole weights.*cut off or damaged"):
        BertClassifier.from_pretrained(checkpoint)


# Writing


def test_an_encoder_is_written_with_the_same_outputs(keras_hub, tmp_path):
    model = draw_weights(BertEncoder(small_config(hidden_act="gelu_pytorch_tanh"), seed=1))
    write_keras_hub(tmp_path, model)
    theirs = keras_hub.models.BertBackbone.from_preset(str(tmp_path))
    check_same_outputs(model, theirs)
    assert theirs.dropout == 0.1
    restored = BertEncoder.from_pretrained(tmp_path)
    check_same_values(restored, model)
    assert restored.load_report.complete


def test_a_classifier_is_written_with_its_labels(keras_hub, model, written):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = keras_hub.models.BertTextClassifier.from_preset(str(written))
    check_same_outputs(model, theirs)
    assert theirs.predict(["a b", "c"], verbose=0).shape == (2, 2)
    restored = BertClassifier.from_pretrained(written)
    check_same_values(restored, model)
    assert restored.labels == ("bad", "good")
    assert restored.problem_type == "multi_label_classification"
    assert restored.classifier_dropout == 0.1


def test_the_encoder_of_other_models_is_written_if_their_heads_are_named(keras_hub, model, tmp_path):
    pretrainer = draw_weights(BertPretrainer(small_config()))
    with pytest.raises(InputError, match=r"`model` must have no head .*BertPretrainer, with mlm_head, nsp_head; mask"):
        write_keras_hub(tmp_path, pretrainer)
    with pytest.raises(InputError, match=r"with nsp_head; `drop=\('nsp_head',\)`, or `arch.* writes the encoder"):
        write_keras_hub(tmp_path, pretrainer, drop=["mlm_head"])
    write_keras_hub(tmp_path, pretrainer, drop=["mlm_head", "nsp_head"])
    check_same_outputs(pretrainer.encoder, keras_hub.models.BertBackbone.from_preset(str(tmp_path)))
    write_keras_hub(tmp_path, model, drop=["classifier"])
    assert not (tmp_path / "task.json").exists()


def test_a_model_in_low_precision_is_written_in_float32(keras_hub, tmp_path):
    model = draw_weights(BertEncoder(small_config(), dtype="bfloat16"))
    write_keras_hub(tmp_path, model)
    theirs = keras_hub.models.BertBackbone.from_preset(str(tmp_path))
    assert {weight.dtype for weight in theirs.weights} == {"float32"}
    np.testing.assert_array_equal(
        arrays(theirs.token_embedding.embeddings), arrays(model.embeddings.token_embedding.table)
    )


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: BertEncoder(small_config(hidden_act="gelu")), "must have the tanh form of GELU.*hidden_act='gelu'"),
        (lambda: BertEncoder(small_config(hidden_act="relu")), "must have the tanh form of GELU.*hidden_act='relu'"),
        (lambda: BertEncoder(small_config(layer_norm_eps=1e-5)), "must add 1e-12 to the variance.*_eps=1e-05"),
        (
            lambda: BertEncoder(small_config(attention_probs_dropout_prob=0.0)),
            r"must have one dropout.*hidden_dropout_prob=0\.1, attention_probs_dropout_prob=0\.0",
        ),
        (lambda: BertEncoder(small_config(), pooler=False), "must have a pooler.*BertEncoder .*, without one"),
        (lambda: BertMaskedLM(small_config()), r"must have a pooler.*BertMaskedLM .*, without one"),
        (lambda: BertQuestionAnswerer(small_config()), r"must have a pooler.*BertQuestionAnswerer .*, without one"),
        (lambda: BertTokenClassifier(small_config(), labels=["a"]), r"must have a pooler.*BertTokenClassifier .*"),
    ],
)
def test_what_keras_hub_would_compute_otherwise_is_not_written(tmp_path, make, message):
    with pytest.raises(InputError, match=message):
        write_keras_hub(tmp_path / "new", make())
    assert not (tmp_path / "new").exists()


def test_only_heads_of_the_model_can_be_dropped(tmp_path):
    encoder = BertEncoder(small_config())
    with pytest.raises(
        InputError, match=r"`drop` must be of the model's heads, of which it has none\..*\['mlm_head'\]"
    ):
        write_keras_hub(tmp_path, encoder, drop=["mlm_head"])


def test_only_presets_are_replaced(written, tmp_path):
    encoder = BertEncoder(small_config())
    write_keras_hub(written, encoder)
    assert not (written / "task.json").exists()
    encoder.save_pretrained(tmp_path / "hugging_face")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("all of it")
    for name in ("hugging_face", "other"):
        with pytest.raises(InputError, match=f"`path` must be new, empty or a KerasHub preset.*{name}'"):
            write_keras_hub(tmp_path / name, encoder)
    assert (tmp_path / "other" / "thesis.tex").read_text() == "all of it"


def test_a_failed_write_leaves_what_was_there(written, monkeypatch):
    before = {file: file.read_bytes() for file in written.rglob("*") if file.is_file()}

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("keras_bert_impl.checkpoints.keras_hub_writer.write_hdf5", fail)
    with pytest.raises(OSError, match="disk full"):
        write_keras_hub(written, BertEncoder(small_config()))
    assert {file: file.read_bytes() for file in written.rglob("*") if file.is_file()} == before
    assert [path.name for path in written.parent.iterdir()] == ["written"]


def test_keras_hub_to_ours_and_back_changes_no_bit(keras_hub, classifier, preset, tmp_path):
    write_keras_hub(tmp_path / "back", BertClassifier.from_pretrained(preset))
    theirs = keras_hub.models.BertTextClassifier.from_preset(str(tmp_path / "back"))
    check_same_values(theirs, classifier)
    names = {"name", "trainable", "dtype"}
    for one, other in ((theirs, classifier), (theirs.backbone, classifier.backbone)):
        ignored = {*names, "backbone"}
        assert {k: v for k, v in one.get_config().items() if k not in ignored} == {
            k: v for k, v in other.get_config().items() if k not in ignored
        }


def test_keras_hub_to_hugging_face_and_back_changes_no_bit(keras_hub, backbone, tmp_path):
    backbone.save_to_preset(tmp_path / "preset")
    BertEncoder.from_pretrained(tmp_path / "preset").save_pretrained(tmp_path / "directory")
    check_same_values(keras_hub.models.BertBackbone.from_preset(str(tmp_path / "directory")), backbone)


# Tokenizer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lowercase": False},
        {"lowercase": True, "strip_accents": False},
        {"lowercase": False, "strip_accents": True, "split_cjk": False},
    ],
)
def test_a_written_tokenizer_cuts_alike(keras_hub, tmp_path, options):
    ours = WordPieceTokenizer(VOCABULARY, max_chars_per_word=100, **options)
    write_keras_hub(tmp_path, BertEncoder(small_config()), tokenizer=ours)
    theirs = keras_hub.models.BertTokenizer.from_preset(str(tmp_path))
    for text in ("a b cab, Ab", "É é e", "中文a 中", "ba zz w3"):
        assert np.asarray(theirs(text)).tolist() == ours.encode_ids(text)
    restored = keras_hub_tokenizer(tmp_path)
    assert restored.vocabulary == ours.vocabulary
    strip_accents = ours.lowercase if ours.strip_accents is None else ours.strip_accents
    assert restored.options == {**ours.options, "strip_accents": strip_accents}


def test_a_tokenizer_of_keras_hub_is_read(keras_hub, backbone, tmp_path):
    theirs = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True, strip_accents=True, oov_token="h")
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(theirs, sequence_length=8)
    keras_hub.models.BertMaskedLM(backbone, preprocessor=preprocessor).save_to_preset(tmp_path)
    ours = keras_hub_tokenizer(tmp_path)
    assert ours.vocabulary == tuple(VOCABULARY)
    assert (ours.lowercase, ours.strip_accents, ours.split_cjk, ours.unk_token) == (True, True, True, "h")
    assert ours.encode_ids("A cab É 中文") == np.asarray(theirs("A cab É 中文")).tolist()


def test_a_preset_may_have_no_tokenizer(tmp_path):
    write_keras_hub(tmp_path, BertEncoder(small_config()))
    assert keras_hub_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    "values,message",
    [
        ({"split": False}, r"tokenizer with split=True\..*split=False"),
        ({"suffix_indicator": "@@"}, r"tokenizer with suffix_indicator='##'.*'@@'"),
        ({"lowercase": "yes"}, "usable tokenizer.*lowercase='yes'"),
        ({"oov_token": None}, "usable tokenizer.*unk_token=None"),
    ],
)
def test_a_tokenizer_that_is_no_bert_s_is_refused(written, values, message):
    configured("tokenizer.json", **values)(written)
    with pytest.raises(InputError, match=message):
        keras_hub_tokenizer(written)


def test_added_tokens_are_refused(tmp_path):
    tokenizer = WordPieceTokenizer([*VOCABULARY, "<tag>"], added_tokens=["<tag>"])
    model = BertEncoder(small_config(vocab_size=len(VOCABULARY) + 1))
    with pytest.raises(InputError, match=r"must have no added tokens, .*Received: added_tokens=\['<tag>'\]"):
        write_keras_hub(tmp_path / "new", model, tokenizer)
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_of_another_class_is_refused(written):
    change_json(written / "tokenizer.json", lambda content: content.update(registered_name="keras_hub>GPT2Tokenizer"))
    with pytest.raises(InputError, match=r"must hold a KerasHub BertTokenizer.*'GPT2Tokenizer'"):
        keras_hub_tokenizer(written)


def test_a_vocabulary_must_be_there(written):
    (written / "assets/tokenizer/vocabulary.txt").unlink()
    with pytest.raises(InputError, match=r"must be a file that can be read.*vocabulary\.txt"):
        keras_hub_tokenizer(written)


@pytest.mark.parametrize(
    "vocabulary,options,message",
    [
        (["<s>", *VOCABULARY], {"cls_token": "<s>"}, "special tokens as KerasHub does.*cls_token='<s>'"),
        ([*VOCABULARY, "x\u2028"], {}, r"no token that ends with white space.*'x\\u2028'"),
    ],
)
def test_a_tokenizer_that_keras_hub_cannot_hold_is_not_written(tmp_path, vocabulary, options, message):
    tokenizer = WordPieceTokenizer(vocabulary, **options)
    with pytest.raises(InputError, match=message):
        write_keras_hub(tmp_path / "new", BertEncoder(small_config(vocab_size=38)), tokenizer=tokenizer)
    assert not (tmp_path / "new").exists()


# Real weights


@pytest.mark.shared
def test_a_model_with_the_erf_gelu_cannot_be_written(keras_hub, shared, tmp_path):
    folder = shared / "models" / "all-MiniLM-L6-v2"
    model = BertEncoder.from_pretrained(folder)
    with pytest.raises(InputError, match=r"must have the tanh form of GELU.*hidden_act='gelu'"):
        write_keras_hub(tmp_path / "new", model)
    # What it would have cost, by KerasHub's own reader of the directory, which does not ask.
    theirs = keras_hub.models.BertBackbone.from_preset(str(folder))
    one, other = arrays(model(batch()))["sequence_output"], arrays(theirs(batch()))["sequence_output"]
    assert 1e-3 < np.abs(one - other).max() < 1e-1
