"""TensorFlow 1 checkpoints of google-research/bert."""

import json

import numpy as np
import pytest
import tensorflow as tf
from checkpoint_names import documented_names, every_shape
from harness import arrays, small_batch, small_config

from keras_bert_impl.checkpoints import hugging_face
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.google_tf1 import open_google_tf1, tensor_key
from keras_bert_impl.checkpoints.places import places
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
)

ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask")
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 12,
    "initializer_range": 0.02,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 37,
}


def variables(*heads, seed=0):
    """What modeling.py and the scripts make, under their names, with random values.

    Args:
        *heads: of `"pretraining"`, `"classifier"` (of 5 labels), `"squad"`.
    """
    layers = [f"bert/encoder/layer_{i}" for i in range(2)]
    shapes = {
        "bert/embeddings/word_embeddings": (37, 12),
        "bert/embeddings/position_embeddings": (16, 12),
        "bert/embeddings/token_type_embeddings": (2, 12),
    }
    dense = {"bert/pooler/dense": (12, 12)}
    norms = ["bert/embeddings/LayerNorm"]
    for layer in layers:
        for name in ("self/query", "self/key", "self/value", "output/dense"):
            dense[f"{layer}/attention/{name}"] = (12, 12)
        dense[f"{layer}/intermediate/dense"] = (12, 20)
        dense[f"{layer}/output/dense"] = (20, 12)
        norms += [f"{layer}/attention/output/LayerNorm", f"{layer}/output/LayerNorm"]
    if "pretraining" in heads:
        dense["cls/predictions/transform/dense"] = (12, 12)
        norms.append("cls/predictions/transform/LayerNorm")
        shapes |= {
            "cls/predictions/output_bias": (37,),
            "cls/seq_relationship/output_weights": (2, 12),
            "cls/seq_relationship/output_bias": (2,),
        }
    if "classifier" in heads:
        shapes |= {"output_weights": (5, 12), "output_bias": (5,)}
    if "squad" in heads:
        shapes |= {"cls/squad/output_weights": (2, 12), "cls/squad/output_bias": (2,)}
    for name, shape in dense.items():
        shapes |= {f"{name}/kernel": shape, f"{name}/bias": shape[1:]}
    for name in norms:
        shapes |= {f"{name}/gamma": (12,), f"{name}/beta": (12,)}
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) * 0.3 + name.endswith("gamma")).astype("float32")
        for name, shape in shapes.items()
    }


def adam_slots(values):
    rng = np.random.default_rng(1)
    slots = {
        f"{name}/adam_{which}": rng.random(value.shape, "float32") for name, value in values.items() for which in "mv"
    }
    return {**slots, "global_step": np.int64(10)}


def save(prefix, values, config=CONFIG):
    """Writes a checkpoint by names alone, as `tf.train.Saver` does."""
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(values[name]) for name in names],
    )
    if config is not None:
        (prefix.parent / "bert_config.json").write_text(json.dumps(config))
    return prefix.parent


def state_file(folder, *names):
    listed = [f'all_model_checkpoint_paths: "{name}"' for name in names]
    (folder / "checkpoint").write_text("\n".join([f'model_checkpoint_path: "{names[-1]}"', *listed]))


class Original:
    """The released code's forward pass in NumPy, from variables by their names."""

    def __init__(self, values, heads, layers=2):
        self.values, self.heads, self.layers = values, heads, layers

    def dense(self, name, x):
        return x @ self.values[f"{name}/kernel"] + self.values[f"{name}/bias"]

    def norm(self, name, x):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * self.values[f"{name}/gamma"] + self.values[f"{name}/beta"]

    def output(self, name, x):
        return x @ self.values[f"{name}/output_weights"].T + self.values[f"{name}/output_bias"]

    @staticmethod
    def gelu(x):
        return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def attention(self, name, x, mask):
        def split(kind):
            y = self.dense(f"{name}/self/{kind}", x)
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(query.shape[-1])
        scores = scores - 10000.0 * (1 - mask[:, None, None, :])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        context = (weights @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        return self.norm(f"{name}/output/LayerNorm", self.dense(f"{name}/output/dense", context) + x)

    def __call__(self, batch):
        tables = {
            name: self.values[f"bert/embeddings/{name}_embeddings"] for name in ("word", "position", "token_type")
        }
        x = tables["word"][batch["token_ids"]] + tables["token_type"][batch["segment_ids"]]
        x = self.norm("bert/embeddings/LayerNorm", x + tables["position"][: x.shape[1]])
        for i in range(self.layers):
            name = f"bert/encoder/layer_{i}"
            x = self.attention(f"{name}/attention", x, batch["padding_mask"])
            inner = self.gelu(self.dense(f"{name}/intermediate/dense", x))
            x = self.norm(f"{name}/output/LayerNorm", self.dense(f"{name}/output/dense", inner) + x)
        return x, np.tanh(self.dense("bert/pooler/dense", x[:, 0]))

    def pretraining(self, batch):
        x, pooled = self(batch)
        x = np.take_along_axis(x, batch["mask_positions"][..., None], axis=1)
        x = self.norm(
            "cls/predictions/transform/LayerNorm", self.gelu(self.dense("cls/predictions/transform/dense", x))
        )
        logits = x @ self.values["bert/embeddings/word_embeddings"].T + self.values["cls/predictions/output_bias"]
        return {"mlm_logits": logits, "nsp_logits": self.output("cls/seq_relationship", pooled)}


def encoder_batch(**kwargs):
    return {name: value for name, value in small_batch(**kwargs).items() if name in ENCODER_INPUTS}


def check_weights(model, values):
    """Each variable of the model is the checkpoint's, to the bit."""
    named = {tensor_key(name): (name, value) for name, value in values.items()}
    for key, place in places(model).items():
        name, value = named[key]
        np.testing.assert_array_equal(
            place.value(), value.T if name.endswith("output_weights") else value, err_msg=name
        )


def test_names_are_those_of_the_documentation():
    google = documented_names("Google", layers=2)
    assert {key: tensor_key(name) for key, name in google.items()} == {key: key for key in google}
    assert google.keys() == every_shape(small_config(), 5).keys()
    for key, name in documented_names("Hugging Face", layers=2).items():
        assert hugging_face.tensor_name(key, "BertForPreTraining") == name


@pytest.mark.shared
class TestSharedCheckpoint:
    @pytest.fixture
    def folder(self, shared):
        return shared / "data" / "tf1_checkpoint_tiny"

    @pytest.fixture
    def values(self, folder):
        reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
        names = reader.get_variable_to_shape_map()
        return {name: reader.get_tensor(name) for name in names if "adam" not in name and name != "global_step"}

    def test_nothing_is_left_unexplained(self, folder, values):
        model = BertPretrainer.from_pretrained(folder)
        report = model.load_report
        assert report.complete
        assert sorted(report.loaded) == sorted(values)
        assert len(report.passed_over) == 2 * len(values) + 1
        assert "pooler_type" in report.ignored_config_keys
        assert model.config.hidden_act == "gelu_new"
        check_weights(model, values)

    def test_outputs_are_those_of_the_original(self, folder, values, tmp_path):
        batch = small_batch(vocab_size=15)
        model = BertPretrainer.from_pretrained(folder)
        expected = Original(values, heads=4).pretraining(batch)
        for name, value in arrays(model(batch)).items():
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-5)
        model.save_pretrained(tmp_path / "model")
        copy = BertPretrainer.from_pretrained(tmp_path / "model")
        for name, value in arrays(model(batch)).items():
            np.testing.assert_array_equal(value, arrays(copy(batch))[name])


@pytest.mark.parametrize("slots", [True, False])
def test_outputs_are_those_of_the_original(tmp_path, slots):
    values, batch = variables("pretraining"), small_batch()
    save(tmp_path / "bert_model.ckpt", values | (adam_slots(values) if slots else {}))
    model = BertPretrainer.from_pretrained(tmp_path)
    assert model.load_report.complete
    assert model.load_report.format == "google_tf1"
    assert model.load_report.ignored_config_keys == ("directionality", "pooler_type")
    assert len(model.load_report.passed_over) == (len(values) * 2 + 1 if slots else 0)
    check_weights(model, values)
    for name, value in Original(values, heads=3).pretraining(batch).items():
        np.testing.assert_allclose(arrays(model(batch))[name], value, rtol=0, atol=1e-5)


def test_an_encoder_has_the_hidden_states_of_the_original(tmp_path):
    values, batch = variables("pretraining"), encoder_batch()
    encoder = BertEncoder.from_pretrained(save(tmp_path / "bert_model.ckpt", values))
    sequence, pooled = Original(values, heads=3)(batch)
    outputs = arrays(encoder(batch))
    np.testing.assert_allclose(outputs["sequence_output"], sequence, rtol=0, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, rtol=0, atol=1e-5)
    assert encoder.load_report.unused == tuple(sorted(name for name in values if name.startswith("cls/")))


def test_a_classifier_is_read_with_its_numbered_labels(tmp_path):
    values, batch = variables("classifier"), encoder_batch()
    folder = save(tmp_path / "model.ckpt-10", values | adam_slots(values))
    checkpoint = open_checkpoint(folder)
    assert checkpoint.architecture == "BertForSequenceClassification"
    assert checkpoint.labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4")
    model = BertClassifier.from_pretrained(folder, labels=list("abcde"))
    assert model.load_report.complete
    _, pooled = Original(values, heads=3)(batch)
    expected = pooled @ values["output_weights"].T + values["output_bias"]
    np.testing.assert_allclose(arrays(model(batch)), expected, rtol=0, atol=1e-5)
    with pytest.raises(InputError, match=r"output_bias is \(5,\) in the file and \(2,\) in the model, and 1 more"):
        BertClassifier.from_pretrained(folder, labels=["a", "b"])


def test_a_question_answerer_is_read(tmp_path):
    values, batch = variables("squad"), encoder_batch()
    folder = save(tmp_path / "model.ckpt-10", values)
    assert open_checkpoint(folder).architecture == "BertForQuestionAnswering"
    model = BertQuestionAnswerer.from_pretrained(folder)
    assert model.load_report.unused == ("bert/pooler/dense/bias", "bert/pooler/dense/kernel")
    sequence, _ = Original(values, heads=3)(batch)
    expected = Original(values, heads=3).output("cls/squad", sequence)
    for i, name in enumerate(("start_logits", "end_logits")):
        np.testing.assert_allclose(arrays(model(batch))[name], expected[..., i], rtol=0, atol=1e-5)


def test_a_head_that_is_absent_is_missed(tmp_path):
    folder = save(tmp_path / "bert_model.ckpt", variables())
    assert open_checkpoint(folder).architecture == "BertModel"
    with pytest.raises(InputError, match=r"lacks cls.predictions.transform.dense.weight, .*\(mlm_head\)"):
        BertMaskedLM.from_pretrained(folder)
    with pytest.warns(UserWarning, match="mlm_head starts with fresh weights"):
        BertMaskedLM.from_pretrained(folder, allow_missing=("mlm_head",))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bert/pooler/dense/kernel/lamb_m", "an optimizer slot"),
        ("bert/pooler/dense/kernel/adam_v_1", "an optimizer slot"),
        ("bert/pooler/dense/kernel/Adam", "an optimizer slot"),
        ("bert/pooler/dense/kernel/Adam_1", "an optimizer slot"),
        ("bert/pooler/dense/kernel/AdamWeightDecayOptimizer_1", "an optimizer slot"),
        ("global_step", "a counter"),
        ("beta1_power", "optimizer state"),
        ("training/beta2_power_1", "optimizer state"),
        ("current_loss_scale", "optimizer state"),
        ("good_steps", "optimizer state"),
    ],
)
def test_what_an_optimizer_keeps_is_passed_over_with_the_reason(tmp_path, name, reason):
    values = variables()
    scalar = "kernel" not in name
    folder = save(tmp_path / "bert_model.ckpt", {**values, name: np.zeros(() if scalar else (12, 12), "float32")})
    checkpoint = open_google_tf1(folder)
    assert checkpoint.passed_over == ((name, reason),)
    assert len(checkpoint.tensors) == len(values)


@pytest.mark.parametrize(
    "name",
    [
        "bert/encoder/adapter/dense/kernel",
        "bert/pooler/dense/kernel/ExponentialMovingAverage",
        "cls/other/dense/bias",
        "loss/output_weights",
        "global_step",
        "bert/encoder/layer_0/attention/self/query/gamma",
    ],
)
def test_a_variable_that_is_not_known_stops_the_load(tmp_path, name):
    # A counter is a scalar; another variable of that name is none.
    folder = save(tmp_path / "bert_model.ckpt", {**variables(), name: np.zeros((12, 12), "float32")})
    with pytest.raises(InputError, match=f"no tensor that the model has no place for.*which also has {name}"):
        BertEncoder.from_pretrained(folder)
    assert BertEncoder.from_pretrained(folder, allow_unused=(name,)).load_report.unused == (name,)


def test_a_layer_more_than_the_configuration_says_stops_the_load(tmp_path):
    folder = save(tmp_path / "bert_model.ckpt", variables(), {**CONFIG, "num_hidden_layers": 1})
    with pytest.raises(InputError, match="which also has bert/encoder/layer_1/attention/output/LayerNorm/beta"):
        BertEncoder.from_pretrained(folder)
    folder = save(tmp_path / "bert_model.ckpt", variables(), {**CONFIG, "num_hidden_layers": 3})
    with pytest.raises(InputError, match=r"which lacks encoder.layer.2.attention.self.query.weight"):
        BertEncoder.from_pretrained(folder)


@pytest.mark.parametrize(
    ("field", "size", "message"),
    [
        (
            "vocab_size",
            38,
            r"word_embeddings is \(37, 12\) in the file and \(38, 12\) in the model.*another vocabulary",
        ),
        ("max_position_embeddings", 8, r"position_embeddings is \(16, 12\) in the file and \(8, 12\).*another length"),
        ("type_vocab_size", 3, r"token_type_embeddings is \(2, 12\) in the file and \(3, 12\)"),
        ("intermediate_size", 24, r"intermediate/dense/bias is \(20,\) in the file and \(24,\)"),
        ("hidden_size", 24, r"beta is \(12,\) in the file and \(24,\) in the model, and 36 more"),
    ],
)
def test_shapes_that_are_not_those_of_the_configuration_stop_the_load(tmp_path, field, size, message):
    folder = save(tmp_path / "bert_model.ckpt", variables(), {**CONFIG, field: size})
    with pytest.raises(InputError, match=message):
        BertEncoder.from_pretrained(folder)


def test_half_precision_is_widened(tmp_path):
    values = {name: value.astype("float16") for name, value in variables().items()}
    encoder = BertEncoder.from_pretrained(save(tmp_path / "bert_model.ckpt", values))
    check_weights(encoder, values)
    assert ("bert/pooler/dense/bias", "float16") in encoder.load_report.widened


class TestFiles:
    DATA = "bert_model.ckpt.data-00000-of-00001"
    INDEX = "bert_model.ckpt.index"

    @pytest.fixture
    def folder(self, tmp_path):
        return save(tmp_path / "bert_model.ckpt", variables())

    @pytest.mark.parametrize("name", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
    def test_a_checkpoint_is_named_by_directory_prefix_or_index(self, folder, name):
        encoder = BertEncoder.from_pretrained(folder / name)
        assert encoder.load_report.source == str(folder / "bert_model.ckpt")
        check_weights(encoder, variables())

    def test_a_damaged_or_absent_file_is_named(self, folder):
        whole = {name: (folder / name).read_bytes() for name in (self.DATA, self.INDEX)}

        def check():
            with pytest.raises(InputError, match=r"bert_model.ckpt', of which a file is absent, cut off or damaged"):
                BertEncoder.from_pretrained(folder)
            for name, content in whole.items():
                (folder / name).write_bytes(content)

        for name, content in whole.items():
            (folder / name).write_bytes(content[: len(content) // 2])
            check()
            (folder / name).write_bytes(content[: len(content) // 2] + b"\xff" + content[len(content) // 2 + 1 :])
            check()
        (folder / self.DATA).unlink()
        check()
        assert BertEncoder.from_pretrained(folder).load_report.complete

    def test_no_checkpoint_at_all(self, folder):
        (folder / self.INDEX).unlink()
        with pytest.raises(InputError, match=r"a TensorFlow checkpoint with its bert_config.json.*which has no config"):
            BertEncoder.from_pretrained(folder)
        with pytest.raises(
            InputError, match=r"must be a TensorFlow checkpoint. Received: .*, which has no .index file"
        ):
            open_google_tf1(folder)

    def test_of_several_checkpoints_the_latest_is_meant_if_one_is_said_to_be(self, folder, tmp_path):
        save(folder / "model.ckpt-9", variables(seed=9))
        save(folder / "model.ckpt-10", variables(seed=10))
        with pytest.raises(
            InputError,
            match=r"one checkpoint where a directory has several.*with bert_model.ckpt, model.ckpt-10, model.ckpt-9",
        ):
            BertEncoder.from_pretrained(folder)
        check_weights(BertEncoder.from_pretrained(folder / "model.ckpt-9"), variables(seed=9))

        state_file(folder, "model.ckpt-10", "model.ckpt-9")
        check_weights(BertEncoder.from_pretrained(folder), variables(seed=9))
        state_file(folder, "/where/it/once/was/model.ckpt-10")
        check_weights(BertEncoder.from_pretrained(folder), variables(seed=10))
        state_file(folder, "model.ckpt-11")
        with pytest.raises(InputError, match="where a directory has several"):
            BertEncoder.from_pretrained(folder)
        (folder / "checkpoint").write_text("cut o")
        with pytest.raises(InputError, match="where a directory has several"):
            BertEncoder.from_pretrained(folder)


class TestConfiguration:
    def folder(self, tmp_path, config):
        folder = save(tmp_path / "bert_model.ckpt", variables(), None)
        if config is not None:
            (folder / "bert_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        return folder

    def test_it_is_looked_for_beside_the_checkpoint(self, tmp_path):
        with pytest.raises(InputError, match=rf"its bert_config.json beside .*Received: '{tmp_path}', which has none"):
            open_google_tf1(self.folder(tmp_path, None) / "bert_model.ckpt")

    @pytest.mark.parametrize(
        ("stated", "meant"),
        [
            ("gelu", "gelu_new"),
            (None, "gelu_new"),
            ("gelu_new", "gelu_new"),
            ("gelu_pytorch_tanh", "gelu_pytorch_tanh"),
            ("gelu_erf", "gelu"),
            ("relu", "relu"),
        ],
    )
    def test_gelu_means_the_tanh_form(self, tmp_path, stated, meant):
        assert open_google_tf1(self.folder(tmp_path, {**CONFIG, "hidden_act": stated})).config.hidden_act == meant

    def test_what_it_does_not_say_is_what_the_released_code_assumes(self, tmp_path):
        config = open_google_tf1(self.folder(tmp_path, {"vocab_size": 37})).config
        assert (config.type_vocab_size, config.hidden_size, config.layer_norm_eps) == (16, 768, 1e-12)

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            (
                {**CONFIG, "hidden_act": "tanh"},
                r"hidden_act of gelu, .*Received: .*bert_config.json', hidden_act='tanh'",
            ),
            ({**CONFIG, "hidden_act": ["gelu"]}, r"hidden_act=\['gelu'\]"),
            ({**CONFIG, "num_attention_heads": 5}, r"a bert_config.json of a BERT.*multiple of `num_attention_heads`"),
            ({"hidden_size": 12}, r"a bert_config.json of a BERT. Received: .*needs the key 'vocab_size'"),
            ({**CONFIG, "embedding_size": 6}, r"with embedding_size=12. Received: .*, embedding_size=6"),
            ({**CONFIG, "norm_first": True}, r"with norm_first=False. Received: .*, norm_first=True"),
            ({**CONFIG, "num_hidden_groups": 1}, r"with num_hidden_groups=None. Received: .*, num_hidden_groups=1"),
            ('{"vocab_size": 37', r"must hold readable JSON. Received: .*bert_config.json': Expecting"),
            ('{"vocab_size": 37, "initializer_range": NaN}', r"readable JSON. Received: .*: NaN is no JSON"),
            ("[37]", r"must hold a JSON object. Received: .*bert_config.json', a list"),
        ],
    )
    def test_what_is_no_bert_is_refused(self, tmp_path, config, message):
        with pytest.raises(InputError, match=message):
            open_google_tf1(self.folder(tmp_path, config))
