"""Checkpoints of the Model Garden: those that its own classes write, and objects laid out like them."""

import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf
from checkpoint_names import documented_names, every_shape
from harness import arrays, small_batch, small_config

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.model_garden import open_model_garden
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

CONFIG = {
    "hidden_act": "gelu",
    "hidden_size": 12,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": 37,
}
needs_model_garden = pytest.mark.skipif(
    importlib.util.find_spec("official") is None, reason="needs the Model Garden: the extra `garden`"
)


def save(folder, config=CONFIG, **objects):
    """Writes a checkpoint of objects and the configuration beside it."""
    tf.train.Checkpoint(**objects).write(str(folder / "bert_model.ckpt"))
    (folder / "bert_config.json").write_text(json.dumps(config))
    return folder


class Garden:
    """The Model Garden's own classes, with random weights."""

    def __init__(self):
        import tf_keras
        from official.modeling import tf_utils
        from official.nlp.modeling import layers, models, networks

        self.keras, self.layers, self.models, self.networks = tf_keras, layers, models, networks
        self.activations = {
            "gelu": tf_utils.get_activation("gelu"),
            "gelu_erf": lambda x: tf_keras.activations.gelu(x, approximate=False),
            "relu": tf_utils.get_activation("relu"),
        }

    def encoder(self, network="BertEncoderV2", hidden_act="gelu", **kwargs):
        encoder = getattr(self.networks, network)(
            vocab_size=CONFIG["vocab_size"],
            hidden_size=CONFIG["hidden_size"],
            num_layers=CONFIG["num_hidden_layers"],
            num_attention_heads=CONFIG["num_attention_heads"],
            max_sequence_length=CONFIG["max_position_embeddings"],
            type_vocab_size=CONFIG["type_vocab_size"],
            inner_dim=CONFIG["intermediate_size"],
            inner_activation=self.activations[hidden_act],
            **{"dict_outputs": True, "return_word_embeddings": True, **kwargs},
        )
        encoder(encoder.inputs)
        return draw(encoder)

    def pretrainer(self, network="BertEncoderV2", hidden_act="gelu"):
        head = self.layers.ClassificationHead(inner_dim=CONFIG["hidden_size"], num_classes=2, name="next_sentence")
        activation = self.activations[hidden_act]
        pretrainer = self.models.BertPretrainerV2(
            self.encoder(network, hidden_act), mlm_activation=activation, classification_heads=[head]
        )
        pretrainer(pretrainer.inputs)
        return draw(pretrainer)

    def first_pretrainer(self, hidden_act="gelu"):
        encoder = self.encoder("BertEncoder", hidden_act, dict_outputs=False, return_word_embeddings=False)
        activation = self.activations[hidden_act]
        return draw(self.models.BertPretrainer(encoder, num_classes=2, num_token_predictions=3, activation=activation))


def draw(model, seed=0):
    """Draws every variable anew, biases and gammas too. Returns the model."""
    rng = np.random.default_rng(seed)
    for variable in model.variables:
        mean = 1.0 if "gamma" in variable.name else 0.0
        variable.assign(rng.normal(mean, 0.3, variable.shape))
    return model


def garden_batch(seed=0):
    """A padded batch under our names, and under theirs."""
    ours = small_batch(seed=seed, predictions=3)
    names = {
        "input_word_ids": "token_ids",
        "input_mask": "padding_mask",
        "input_type_ids": "segment_ids",
        "masked_lm_positions": "mask_positions",
    }
    return ours, {theirs: tf.constant(ours[name]) for theirs, name in names.items()}


def encoder_inputs(batch):
    return {name: value for name, value in batch.items() if name not in ("mask_positions", "masked_lm_positions")}


def check_encoder(encoder, theirs, pooled=True):
    """Every hidden state and the pooled output are those of the Model Garden's own encoder."""
    ours, garden = map(encoder_inputs, garden_batch())
    expected = theirs(garden)
    outputs = arrays(encoder(ours))
    states = [expected["word_embeddings"], *expected["encoder_outputs"]]
    for i, state in enumerate(states):
        np.testing.assert_allclose(outputs["hidden_states"][:, i], state, rtol=0, atol=2e-5, err_msg=f"state {i}")
    if pooled:
        np.testing.assert_allclose(outputs["pooled_output"], expected["pooled_output"], rtol=0, atol=2e-5)


def check_logits(outputs, mlm_logits, nsp_logits):
    outputs = arrays(outputs)
    np.testing.assert_allclose(outputs["mlm_logits"], mlm_logits, rtol=0, atol=1e-4)
    np.testing.assert_allclose(outputs["nsp_logits"], nsp_logits, rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def garden():
    return Garden()


@needs_model_garden
@pytest.mark.filterwarnings("ignore:Input dict contained keys")
class TestTheirOwn:
    @pytest.mark.parametrize("network", ["BertEncoder", "BertEncoderV2"])
    @pytest.mark.parametrize("hidden_act", ["gelu", "gelu_erf", "relu"])
    def test_encoders_agree_in_every_hidden_state(self, garden, tmp_path, network, hidden_act):
        theirs = garden.encoder(network, hidden_act)
        folder = save(tmp_path, {**CONFIG, "hidden_act": hidden_act}, encoder=theirs)
        encoder = BertEncoder.from_pretrained(folder, return_hidden_states=True)
        assert encoder.load_report.complete
        assert encoder.load_report.format == "model_garden"
        check_encoder(encoder, theirs)

    @pytest.mark.parametrize("network", ["BertEncoder", "BertEncoderV2"])
    def test_what_else_it_is_saved_as_does_not_matter(self, garden, tmp_path, network):
        theirs = garden.encoder(network)
        save(tmp_path, model=theirs)
        check_encoder(BertEncoder.from_pretrained(tmp_path, return_hidden_states=True), theirs)

        (tmp_path / "saved").mkdir()
        checkpoint = tf.train.Checkpoint(other=tf.Module(), network=theirs)
        prefix = checkpoint.save(str(tmp_path / "saved" / "ckpt"))
        (tmp_path / "saved" / "bert_config.json").write_text(json.dumps(CONFIG))
        for path in (prefix, tmp_path / "saved"):
            encoder = BertEncoder.from_pretrained(path, return_hidden_states=True)
            assert encoder.load_report.passed_over == (("save_counter/.ATTRIBUTES/VARIABLE_VALUE", "a counter"),)
            check_encoder(encoder, theirs)

    @pytest.mark.parametrize(
        ("network", "hidden_act", "items"),
        [
            ("BertEncoder", "gelu", "model"),
            ("BertEncoder", "gelu_erf", "trainer"),
            ("BertEncoderV2", "gelu", "trainer"),
            ("BertEncoderV2", "gelu_erf", "model"),
        ],
    )
    def test_pretrainers_agree_in_their_logits(self, garden, tmp_path, network, hidden_act, items):
        theirs = garden.pretrainer(network, hidden_act)
        beside = {} if items == "model" else {**theirs.checkpoint_items, "global_step": tf.Variable(7)}
        folder = save(tmp_path, {**CONFIG, "hidden_act": hidden_act}, model=theirs, **beside)
        ours, batch = garden_batch()
        expected = theirs(batch)
        pretrainer = BertPretrainer.from_pretrained(folder)
        assert pretrainer.load_report.complete
        check_logits(pretrainer(ours), expected["mlm_logits"], expected["next_sentence"])
        encoder = BertEncoder.from_pretrained(folder, return_hidden_states=True)
        check_encoder(encoder, theirs.encoder_network, pooled=False)
        # The next-sentence head pools by itself; the encoder's own pooler is in no one's training.
        reasons = dict(pretrainer.load_report.passed_over)
        assert list(reasons.values()).count("the head has a pooler of its own") == 2

    @pytest.mark.parametrize("hidden_act", ["gelu", "gelu_erf"])
    def test_first_pretrainers_agree_in_their_logits(self, garden, tmp_path, hidden_act):
        theirs = garden.first_pretrainer(hidden_act)
        folder = save(tmp_path, {**CONFIG, "hidden_act": hidden_act}, model=theirs)
        ours, batch = garden_batch()
        expected = theirs(batch)
        pretrainer = BertPretrainer.from_pretrained(folder)
        assert pretrainer.load_report.complete
        check_logits(pretrainer(ours), expected["masked_lm"], expected["classification"])

    @pytest.mark.parametrize("legacy", [True, False])
    def test_what_an_optimizer_keeps_is_passed_over(self, garden, tmp_path, legacy):
        theirs = garden.pretrainer()
        _, batch = garden_batch()
        with tf.GradientTape() as tape:
            outputs = theirs(batch)
            loss = tf.reduce_sum(outputs["mlm_logits"]) + tf.reduce_sum(outputs["next_sentence"])
        kinds = garden.keras.optimizers.legacy if legacy else garden.keras.optimizers
        optimizer = kinds.Adam(1e-3)
        variables = [v for v in theirs.trainable_variables if "pooler_transform" not in v.name]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        folder = save(tmp_path, model=theirs, optimizer=optimizer, **theirs.checkpoint_items)
        pretrainer = BertPretrainer.from_pretrained(folder)
        assert pretrainer.load_report.complete
        reasons = list(dict(pretrainer.load_report.passed_over).values())
        slots = reasons.count("an optimizer slot") if legacy else reasons.count("optimizer state") - 2
        assert slots == 2 * len(variables)
        expected = theirs(batch)
        check_logits(pretrainer(garden_batch()[0]), expected["mlm_logits"], expected["next_sentence"])

    @pytest.mark.parametrize("own_pooler", [True, False])
    def test_classifiers_agree(self, garden, tmp_path, own_pooler):
        theirs = draw(garden.models.BertClassifier(garden.encoder(), 5, use_encoder_pooler=not own_pooler))
        folder = save(tmp_path, model=theirs)
        assert open_checkpoint(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4")
        classifier = BertClassifier.from_pretrained(folder)
        assert classifier.load_report.complete
        ours, batch = map(encoder_inputs, garden_batch())
        np.testing.assert_allclose(arrays(classifier(ours)), theirs(batch), rtol=0, atol=1e-4)

    def test_token_classifiers_agree(self, garden, tmp_path):
        theirs = draw(garden.models.BertTokenClassifier(garden.encoder(), 5))
        folder = save(tmp_path, model=theirs)
        assert open_checkpoint(folder).architecture == "BertForTokenClassification"
        ours, batch = map(encoder_inputs, garden_batch())
        logits = arrays(BertTokenClassifier.from_pretrained(folder)(ours))
        np.testing.assert_allclose(logits, theirs(batch)["logits"], rtol=0, atol=1e-4)

    def test_question_answerers_agree(self, garden, tmp_path):
        theirs = draw(garden.models.BertSpanLabeler(garden.encoder("BertEncoder")))
        folder = save(tmp_path, model=theirs)
        assert open_checkpoint(folder).architecture == "BertForQuestionAnswering"
        ours, batch = map(encoder_inputs, garden_batch())
        outputs = arrays(BertQuestionAnswerer.from_pretrained(folder)(ours))
        for name, expected in zip(("start_logits", "end_logits"), theirs(batch), strict=True):
            np.testing.assert_allclose(outputs[name], expected, rtol=0, atol=1e-4)

    def test_another_architecture_is_refused(self, garden, tmp_path):
        albert = garden.networks.AlbertEncoder(vocab_size=37, embedding_width=6, hidden_size=12, num_attention_heads=3)
        with pytest.raises(InputError, match=r"one BERT encoder of the Model Garden.*which has 0 among encoder"):
            open_model_garden(save(tmp_path, encoder=albert))

    @pytest.mark.parametrize("network", ["BertEncoder", "BertEncoderV2"])
    def test_a_projection_after_the_embeddings_stops_the_load(self, garden, tmp_path, network):
        folder = save(tmp_path, encoder=garden.encoder(network, embedding_width=6))
        assert len([key for key in open_model_garden(folder).tensors if key.startswith("encoder/")]) == 2
        with pytest.raises(InputError, match=r"/embeddings/.* is \(37, 6\) in the file and \(37, 12\) in the model"):
            BertEncoder.from_pretrained(folder)


class Tree(tf.Module):
    """Objects that hold one another under given names, as the layers of a Keras 2 model do."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


def dense(*shape, name="variable"):
    rng = np.random.default_rng(sum(shape))
    bias = shape[1:] if len(shape) == 2 or shape[0] > shape[1] else shape[-1:]
    return Tree(
        kernel=tf.Variable(rng.normal(size=shape), dtype="float32", name=f"{name}/kernel"),
        bias=tf.Variable(rng.normal(size=bias), dtype="float32", name=f"{name}/bias"),
    )


def norm():
    rng = np.random.default_rng(0)
    return Tree(**{name: tf.Variable(rng.normal(size=12), dtype="float32") for name in ("gamma", "beta")})


def table(rows):
    return Tree(embeddings=tf.Variable(np.random.default_rng(rows).normal(size=(rows, 12)), dtype="float32"))


def early_block():
    """A block of the releases of 2020: the output of the attention is a layer beside it."""
    return Tree(
        _attention_layer=Tree(_query_dense=dense(12, 3, 4), _key_dense=dense(12, 3, 4), _value_dense=dense(12, 3, 4)),
        _attention_output_dense=dense(3, 4, 12),
        _attention_layer_norm=norm(),
        _intermediate_dense=dense(12, 20),
        _output_dense=dense(20, 12),
        _output_layer_norm=norm(),
    )


def early_encoder(*after):
    """An encoder of those releases: its layers have only their order, and no pooler of their own."""
    layers = [table(37), table(16), table(2), norm(), early_block(), early_block(), *after]
    return Tree(**{f"layer_with_weights-{i}": layer for i, layer in enumerate(layers)})


def masked_lm(encoder):
    words = getattr(encoder, "layer_with_weights-0").embeddings
    bias = tf.Variable(np.random.default_rng(3).normal(size=37), dtype="float32")
    return Tree(embedding_table=words, dense=dense(12, 12), layer_norm=norm(), bias=bias)


def grown(names, shapes):
    """Objects with a variable at the end of each way of the documentation, and the variables by our names."""
    root, variables = Tree(), {}
    for key, way in names.items():
        at, (*path, last) = root, way.split("/")
        for name in path:
            if not hasattr(at, name):
                setattr(at, name, Tree())
            at = getattr(at, name)
        shape = shapes[key]
        if ".attention.self." in key:
            shape = (*shape[:-1], 3, 4)
        elif key.endswith("attention.output.dense.weight"):
            shape = (3, 4, 12)
        values = np.random.default_rng(len(variables)).normal(size=shape)
        scope = "next_sentence/" if key.startswith("cls.seq") else ""
        variables[key] = tf.Variable(values, dtype="float32", name=f"{scope}{last}")
        setattr(at, last, variables[key])
    return root, variables


class TestLayouts:
    def test_objects_are_those_of_the_documentation(self, tmp_path):
        shapes = every_shape(small_config(), 5)
        names = documented_names("Model Garden", layers=2)
        assert names.keys() == shapes.keys()
        root, variables = grown(names, shapes)
        checkpoint = open_model_garden(save(tmp_path, root=root))
        assert checkpoint.passed_over == ()
        assert {key: tensor.shape for key, tensor in checkpoint.tensors.items()} == shapes
        for key, variable in variables.items():
            np.testing.assert_array_equal(checkpoint.tensors[key].read(), variable, err_msg=key)

    def test_an_early_release_is_read_in_the_order_of_its_layers(self, tmp_path):
        encoder = early_encoder()
        pooler = dense(12, 12)
        folder = save(tmp_path, encoder=encoder, masked_lm=masked_lm(encoder), **{"next_sentence.pooler_dense": pooler})
        checkpoint = open_checkpoint(folder)
        assert checkpoint.passed_over == ()
        assert (
            "next_sentence..pooler_dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
            in checkpoint.tensors["pooler.dense.weight"].name
        )
        model = BertEncoder.from_pretrained(folder)
        assert len(model.load_report.loaded) == 39
        found = {key: place.value() for key, place in places(model).items()}
        second = getattr(encoder, "layer_with_weights-5")
        attention = second._attention_layer
        for key, value in {
            "embeddings.position_embeddings.weight": getattr(encoder, "layer_with_weights-1").embeddings,
            "encoder.layer.1.attention.self.key.weight": tf.reshape(attention._key_dense.kernel, (12, 12)),
            "encoder.layer.1.attention.self.key.bias": tf.reshape(attention._key_dense.bias, (12,)),
            "encoder.layer.1.attention.output.dense.weight": tf.reshape(
                second._attention_output_dense.kernel, (12, 12)
            ),
            "encoder.layer.1.output.dense.weight": second._output_dense.kernel,
            "pooler.dense.weight": pooler.kernel,
        }.items():
            np.testing.assert_array_equal(found[key], value, err_msg=key)
        assert BertMaskedLM.from_pretrained(folder).load_report.unused == tuple(
            checkpoint.tensors[f"pooler.dense.{kind}"].name for kind in ("bias", "weight")
        )

    def test_the_layer_after_the_blocks_is_the_pooler(self, tmp_path):
        model = BertEncoder.from_pretrained(save(tmp_path, encoder=early_encoder(pooler := dense(12, 12))))
        assert model.load_report.complete
        np.testing.assert_array_equal(arrays(model.pooler.dense.kernel), pooler.kernel)

    @pytest.mark.parametrize("extra", ["among_blocks", "after_pooler"])
    def test_another_order_of_layers_is_not_known(self, tmp_path, extra):
        after = (dense(12, 12), early_block()) if extra == "among_blocks" else (dense(12, 12), dense(12, 12))
        with pytest.raises(InputError, match=r"with its layers in that order as layer_with_weights-0.*which has 0"):
            open_model_garden(save(tmp_path, encoder=early_encoder(*after)))

    def test_of_two_encoders_neither_is_taken(self, tmp_path):
        with pytest.raises(InputError, match=r"which has 2 among discriminator, generator"):
            open_model_garden(save(tmp_path, generator=early_encoder(), discriminator=early_encoder()))

    def test_a_variable_that_is_not_known_stops_the_load(self, tmp_path):
        folder = save(tmp_path, encoder=early_encoder(dense(12, 12)), adapter=dense(12, 20))
        with pytest.raises(
            InputError, match=r"which also has adapter/bias/.ATTRIBUTES/VARIABLE_VALUE, adapter/kernel/"
        ):
            BertEncoder.from_pretrained(folder)

    def test_an_output_kernel_that_is_not_the_token_table_stops_the_load(self, tmp_path):
        encoder = early_encoder()
        head = masked_lm(encoder)
        head.embedding_table = tf.Variable(head.embedding_table + 1.0)
        folder = save(tmp_path, encoder=encoder, masked_lm=head)
        with pytest.raises(InputError, match=r"which also has masked_lm/embedding_table/.ATTRIBUTES/VARIABLE_VALUE"):
            BertMaskedLM.from_pretrained(folder)

    def test_text_that_a_layer_keeps_is_passed_over(self, tmp_path):
        folder = save(tmp_path, encoder=early_encoder(dense(12, 12)), words=tf.Variable(["a"]))
        report = BertEncoder.from_pretrained(folder).load_report
        assert report.passed_over == (("words/.ATTRIBUTES/VARIABLE_VALUE", "a description"),)

    def test_only_a_head_that_is_called_so_is_the_next_sentence_head(self, tmp_path):
        def heads(name):
            head = Tree(dense=dense(12, 12, name=f"{name}/pooler_dense"), out_proj=dense(12, 2, name=f"{name}/logits"))
            encoder = early_encoder(dense(12, 12))
            return {"model": Tree(encoder_network=encoder, masked_lm=masked_lm(encoder), classification_heads=[head])}

        report = BertPretrainer.from_pretrained(save(tmp_path, **heads("bert/next_sentence"))).load_report
        assert report.complete
        assert len(report.passed_over) == 2
        folder = save(tmp_path, **heads("bert/sentence_order"))
        assert "pooler.dense.weight" in open_model_garden(folder).tensors
        with pytest.raises(InputError, match=r"which also has model/classification_heads/0/dense/bias"):
            BertEncoder.from_pretrained(folder)

    def test_heads_must_be_those_of_the_configuration(self, tmp_path):
        folder = save(tmp_path, {**CONFIG, "num_attention_heads": 4}, encoder=early_encoder())
        with pytest.raises(
            InputError,
            match=r"number of heads in its bert_config.json. Received: .*num_attention_heads=4, where encoder/.* has 3",
        ):
            open_model_garden(folder)

    def test_shapes_that_are_not_those_of_the_configuration_stop_the_load(self, tmp_path):
        folder = save(tmp_path, {**CONFIG, "intermediate_size": 24}, encoder=early_encoder(dense(12, 12)))
        with pytest.raises(
            InputError, match=r"_intermediate_dense/bias/.* is \(20,\) in the file and \(24,\) in the model"
        ):
            BertEncoder.from_pretrained(folder)
        folder = save(tmp_path, {**CONFIG, "num_hidden_layers": 3}, encoder=early_encoder(dense(12, 12)))
        with pytest.raises(InputError, match=r"which lacks encoder.layer.2.attention.self.query.weight"):
            BertEncoder.from_pretrained(folder)

    def test_a_checkpoint_of_other_objects_is_refused(self, tmp_path):
        folder = save(tmp_path, step=tf.Variable(1), model=dense(2, 3))
        with pytest.raises(InputError, match=r"an object with _embedding_layer, .*which has 0 among model, step"):
            open_checkpoint(folder)

    def test_a_damaged_or_absent_file_is_named(self, tmp_path):
        folder = save(tmp_path, encoder=early_encoder(dense(12, 12)))
        data = folder / "bert_model.ckpt.data-00000-of-00001"
        whole = data.read_bytes()
        for content in (whole[: len(whole) // 2], whole[:5000] + b"\xff\xff" + whole[5002:]):
            data.write_bytes(content)
            with pytest.raises(InputError, match=r"bert_model.ckpt', of which a file is absent, cut off or damaged"):
                BertEncoder.from_pretrained(folder)
        data.unlink()
        with pytest.raises(InputError, match=r"of which a file is absent"):
            BertEncoder.from_pretrained(folder)

    def test_the_configuration_is_looked_for_beside_the_checkpoint(self, tmp_path):
        folder = save(tmp_path, encoder=early_encoder())
        (folder / "bert_config.json").unlink()
        with pytest.raises(InputError, match=rf"its bert_config.json beside .*Received: '{tmp_path}', which has none"):
            open_model_garden(folder)
