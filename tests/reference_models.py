"""Independent BERTs that take our weights: KerasHub's, the Model Garden's, and Hugging Face's on PyTorch.

Everywhere here a variable goes by the path that it has in our `BertPretrainer`, and its values and
gradients have the shape they have there. Each peer's package is imported when the peer is made.
"""

import contextlib

import keras
import numpy as np
import tensorflow as tf
from harness import arrays, small_config

from keras_bert_impl.losses import MLM_EPSILON, masked_lm_loss_sum, next_sentence_loss_sum
from keras_bert_impl.models import BertPretrainer

PADDINGS = ("none", "mixed", "row_of_padding", "single_token")
SHAPES = {
    "three_heads_of_4": {"heads": 3, "hidden": 12, "seq_len": 9, "batch": 4},
    "longest_rows": {"heads": 2, "hidden": 16, "seq_len": 16, "batch": 2},
    "one_head": {"heads": 1, "hidden": 10, "seq_len": 5, "batch": 6},
    "wide": {"heads": 4, "hidden": 64, "seq_len": 16, "batch": 5},
}
ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def pretrainer(shape, hidden_act="gelu_new", **options):
    """A small `BertPretrainer` with random weights.

    Args:
        shape: name in `SHAPES`.
        hidden_act: its GELU form.
        **options: further arguments of the model, for example `dtype`.
    """
    sizes = SHAPES[shape]
    config = small_config(hidden_size=sizes["hidden"], num_attention_heads=sizes["heads"], hidden_act=hidden_act)
    return draw_weights(BertPretrainer(config, **options))


def padded_batch(shape, padding, predictions=3, vocab_size=37, seed=0):
    """A pretraining batch: inputs, labels and weights.

    Args:
        shape: name in `SHAPES`.
        padding: of the rows, one of `PADDINGS`: `"none"`; `"mixed"`, from two tokens to a full row;
            `"row_of_padding"` and `"single_token"` are mixed too, but for the last row, which has
            no token at all or one.
        predictions: slots a row.
        vocab_size: ids are below it.
        seed: of the ids, labels and positions.
    """
    batch, seq_len = SHAPES[shape]["batch"], SHAPES[shape]["seq_len"]
    rng = np.random.default_rng(seed)
    lengths = np.full(batch, seq_len) if padding == "none" else np.linspace(seq_len, 2, batch).astype(int)
    if padding in ("row_of_padding", "single_token"):
        lengths[-1] = padding == "single_token"
    positions = np.arange(seq_len)
    padding_mask = (positions < lengths[:, None]).astype("int32")
    # Unused prediction slots hold position 0, id 0 and weight 0.
    slots = np.arange(predictions) < np.minimum(lengths, predictions)[:, None]
    mask_positions = np.zeros((batch, predictions), "int32")
    for row, length in enumerate(lengths):
        used = min(length, predictions)
        mask_positions[row, :used] = rng.permutation(length)[:used]
    return {
        "token_ids": rng.integers(1, vocab_size, (batch, seq_len)).astype("int32") * padding_mask,
        "segment_ids": (positions >= lengths[:, None] // 2).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": mask_positions,
        "mask_labels": rng.integers(0, vocab_size, (batch, predictions)).astype("int32") * slots,
        "mask_weights": slots.astype("float32"),
        "next_sentence_labels": rng.integers(0, 2, batch).astype("int32"),
    }


def draw_weights(model, seed=0):
    """Draws every variable anew; as they start, biases or gammas could change places unseen. Returns the model."""
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        kind = variable.path.split("/")[-1]
        scale = variable.shape[0] ** -0.5 if kind == "kernel" else 0.2
        variable.assign(rng.normal(1.0 if kind == "gamma" else 0.0, scale, variable.shape))
    return model


def real_rows(batch):
    """Indices of rows with a token. Of others each implementation makes what its way of masking makes of them."""
    return np.flatnonzero(batch["padding_mask"].any(axis=1))


class Ours:
    """What our `BertPretrainer` gives, in the form in which the peers give it."""

    def __init__(self, model):
        encoder = model.encoder
        self.model = model
        states = [encoder.embeddings.output, *(block.output for block in encoder.blocks)]
        self.encoder = keras.Model(encoder.inputs, {"states": states, "pooled": encoder.output["pooled_output"]})

    def hidden_states(self, batch):
        """Returns the embeddings, the output of every block, and the pooled output."""
        outputs = arrays(self.encoder([batch[tensor.name] for tensor in self.encoder.inputs]))
        return [*outputs["states"], outputs["pooled"]]

    def logits(self, batch):
        """Returns MLM and NSP logits."""
        outputs = self._outputs(batch)
        return arrays((outputs["mlm_logits"], outputs["nsp_logits"]))

    def gradients(self, batch):
        """Returns the gradient of the pretraining loss for every trainable variable."""
        rows = real_rows(batch)
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            outputs = self._outputs(batch)
            mlm = masked_lm_loss_sum(outputs["mlm_logits"], batch["mask_labels"], batch["mask_weights"])
            nsp = next_sentence_loss_sum(
                keras.ops.take(outputs["nsp_logits"], rows, axis=0), batch["next_sentence_labels"][rows]
            )
            loss = mlm / (batch["mask_weights"].sum() + MLM_EPSILON) + nsp / len(rows)
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        return {v.path: tf.convert_to_tensor(g).numpy() for v, g in zip(variables, gradients, strict=True)}

    def _outputs(self, batch):
        return self.model({name: batch[name] for name in (*ENCODER_INPUTS, "mask_positions")})


class _OnTensorFlow:
    """A peer whose variables are TensorFlow's: `variables` by path, `_forward` from a batch to states and logits."""

    def _take_weights(self, model):
        assert self.variables.keys() == {variable.path for variable in model.trainable_variables}
        self.shapes = {variable.path: tuple(variable.shape) for variable in model.trainable_variables}
        for variable in model.trainable_variables:
            theirs = self.variables[variable.path]
            # Where they cut attention kernels into heads, the numbers keep their order.
            theirs.assign(arrays(variable).reshape(theirs.shape))

    def hidden_states(self, batch):
        return [tf.cast(state, "float32").numpy() for state in self._forward(batch)[0]]

    def logits(self, batch):
        return [logits.numpy() for logits in self._forward(batch)[1]]

    def gradients(self, batch):
        rows = real_rows(batch)
        with tf.GradientTape() as tape:
            mlm_logits, nsp_logits = self._forward(batch)[1]
            mlm = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["mask_labels"], mlm_logits)
            nsp = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["next_sentence_labels"], nsp_logits)
            loss = tf.reduce_sum(mlm * batch["mask_weights"]) / (batch["mask_weights"].sum() + 1e-5)
            loss += tf.reduce_mean(tf.gather(nsp, rows))
        gradients = tape.gradient(loss, self.variables)
        return {
            path: tf.convert_to_tensor(gradient).numpy().reshape(self.shapes[path])
            for path, gradient in gradients.items()
        }


class KerasHubBert(_OnTensorFlow):
    """KerasHub's `BertBackbone` under its own masked-LM head. Its GELU is the tanh form, always.

    Args:
        model: our `BertPretrainer`, whose weights are copied.
        dtype: its dtype policy.
    """

    def __init__(self, model, dtype=None):
        import keras_hub

        config = model.config
        assert config.hidden_act in ("gelu_new", "gelu_pytorch_tanh")
        backbone = keras_hub.models.BertBackbone(
            vocabulary_size=config.vocab_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            hidden_dim=config.hidden_size,
            intermediate_dim=config.intermediate_size,
            max_sequence_length=config.max_position_embeddings,
            num_segments=config.type_vocab_size,
            dtype=dtype,
        )
        states = [backbone.embeddings_dropout.output, *(layer.output for layer in backbone.transformer_layers)]
        self.encoder = keras.Model(backbone.input, [*states, backbone.output["pooled_output"]])
        self.mlm_head = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding,
            intermediate_activation=lambda x: keras.activations.gelu(x, approximate=True),
            layer_norm_epsilon=config.layer_norm_eps,  # 1e-5 when not said
            dtype=dtype,
        )
        self.mlm_head.build((None, None, config.hidden_size))
        self.nsp_head = keras.layers.Dense(2, dtype=dtype)
        self.nsp_head.build((None, config.hidden_size))
        variables = {
            "embeddings/token_embedding/table": backbone.token_embedding.embeddings,
            "embeddings/segment_embedding/table": backbone.segment_embedding.embeddings,
            "embeddings/position_embedding/table": backbone.position_embedding.position_embeddings,
            **_norm("embeddings/layer_norm", backbone.embeddings_layer_norm),
            **_dense("pooler/dense", backbone.pooled_dense),
            **_dense("mlm_head/dense", self.mlm_head._intermediate_dense),
            **_norm("mlm_head/layer_norm", self.mlm_head._intermediate_layer_norm),
            "mlm_head/bias": self.mlm_head._bias,
            **_dense("nsp_head", self.nsp_head),
        }
        for i, layer in enumerate(backbone.transformer_layers):
            variables |= _attention(f"block_{i}/attention", layer._self_attention_layer)
            variables |= _norm(f"block_{i}/attention_norm", layer._self_attention_layer_norm)
            variables |= _dense(f"block_{i}/feed_forward/intermediate", layer._feedforward_intermediate_dense)
            variables |= _dense(f"block_{i}/feed_forward/output", layer._feedforward_output_dense)
            variables |= _norm(f"block_{i}/feed_forward_norm", layer._feedforward_layer_norm)
        self.variables = {path: variable.value for path, variable in variables.items()}
        self._take_weights(model)

    def _forward(self, batch):
        states = self.encoder({name: batch[name] for name in ENCODER_INPUTS})
        return states, (self.mlm_head(states[-2], batch["mask_positions"]), self.nsp_head(states[-1]))


class ModelGardenBert(_OnTensorFlow):
    """The Model Garden's encoder, masked-LM head and classification, on Keras 2.

    Args:
        model: our `BertPretrainer`, whose weights are copied.
        network: `"BertEncoder"` or `"BertEncoderV2"`.
        dtype: its dtype policy: the global one of Keras 2, while the peer is made and called.
    """

    def __init__(self, model, network="BertEncoderV2", dtype="float32"):
        import tf_keras
        from official.nlp.modeling import layers, networks

        config = model.config
        approximate = {"gelu": False, "gelu_new": True, "gelu_pytorch_tanh": True}[config.hidden_act]

        def activation(x):
            return tf_keras.activations.gelu(x, approximate=approximate)

        self.dtype, self.policy = dtype, tf_keras.mixed_precision
        with self._global_policy():
            encoder = getattr(networks, network)(
                vocab_size=config.vocab_size,
                hidden_size=config.hidden_size,
                num_layers=config.num_hidden_layers,
                num_attention_heads=config.num_attention_heads,
                max_sequence_length=config.max_position_embeddings,
                type_vocab_size=config.type_vocab_size,
                inner_dim=config.intermediate_size,
                inner_activation=activation,
                dict_outputs=True,
                return_word_embeddings=True,
            )
            if network == "BertEncoderV2":
                encoder(encoder.inputs)
            self.encoder = encoder
            self.mlm_head = layers.MaskedLM(encoder.get_embedding_table(), activation=activation)
            self.mlm_head.build((None, None, config.hidden_size))
            self.mlm_head.dense.build((None, config.hidden_size))
            self.mlm_head.layer_norm.build((None, config.hidden_size))
            self.nsp_head = networks.Classification(input_width=config.hidden_size, num_classes=2)
        self.variables = {
            "embeddings/token_embedding/table": encoder.get_embedding_table(),
            "embeddings/segment_embedding/table": encoder._type_embedding_layer.embeddings,
            "embeddings/position_embedding/table": encoder._position_embedding_layer._position_embeddings,
            **_norm("embeddings/layer_norm", encoder._embedding_norm_layer),
            **_dense("pooler/dense", encoder.pooler_layer),
            **_dense("mlm_head/dense", self.mlm_head.dense),
            **_norm("mlm_head/layer_norm", self.mlm_head.layer_norm),
            "mlm_head/bias": self.mlm_head.bias,
            **_dense("nsp_head", self.nsp_head.layers[-1]),
        }
        for i, layer in enumerate(encoder.transformer_layers):
            self.variables |= _attention(f"block_{i}/attention", layer._attention_layer)
            self.variables |= _norm(f"block_{i}/attention_norm", layer._attention_layer_norm)
            self.variables |= _dense(f"block_{i}/feed_forward/intermediate", layer._intermediate_dense)
            self.variables |= _dense(f"block_{i}/feed_forward/output", layer._output_dense)
            self.variables |= _norm(f"block_{i}/feed_forward_norm", layer._output_layer_norm)
        self._take_weights(model)

    @contextlib.contextmanager
    def _global_policy(self):
        before = self.policy.global_policy()
        self.policy.set_global_policy(self.dtype)
        try:
            yield
        finally:
            self.policy.set_global_policy(before)

    def _forward(self, batch):
        inputs = {
            "input_word_ids": tf.constant(batch["token_ids"]),
            "input_mask": tf.constant(batch["padding_mask"]),
            "input_type_ids": tf.constant(batch["segment_ids"]),
        }
        with self._global_policy():
            outputs = self.encoder(inputs)
            mlm_logits = self.mlm_head(outputs["sequence_output"], tf.constant(batch["mask_positions"]))
            nsp_logits = self.nsp_head(outputs["pooled_output"])
        states = [outputs["word_embeddings"], *outputs["encoder_outputs"], outputs["pooled_output"]]
        return states, (mlm_logits, nsp_logits)


class HuggingFaceBert:
    """Hugging Face's `BertForPreTraining` on PyTorch.

    Args:
        model: our `BertPretrainer`, whose weights are copied.
    """

    def __init__(self, model):
        import torch
        import transformers

        config = transformers.BertConfig(**model.config.to_dict())
        self.torch = torch
        self.model = transformers.BertForPreTraining(config).eval()
        parameters = dict(self.model.named_parameters())
        names = hugging_face_names(model.config.num_hidden_layers)
        assert set(names.values()) == parameters.keys()
        self.parameters = {path: parameters[name] for path, name in names.items()}
        with torch.no_grad():
            for variable in model.trainable_variables:
                values = torch.from_numpy(np.array(oriented(variable.path, arrays(variable))))
                self.parameters[variable.path].copy_(values)

    def hidden_states(self, batch):
        with self.torch.no_grad():
            outputs = self.model.bert(**self._inputs(batch), output_hidden_states=True)
        return [state.numpy() for state in (*outputs.hidden_states, outputs.pooler_output)]

    def logits(self, batch):
        with self.torch.no_grad():
            return [logits.numpy() for logits in self._logits(batch)]

    def gradients(self, batch):
        cross_entropy = self.torch.nn.functional.cross_entropy
        rows = real_rows(batch)
        labels, weights, nsp_labels = (
            self.torch.from_numpy(batch[name]) for name in ("mask_labels", "mask_weights", "next_sentence_labels")
        )
        mlm_logits, nsp_logits = self._logits(batch)
        mlm = cross_entropy(mlm_logits.flatten(0, 1), labels.flatten().long(), reduction="none")
        loss = (mlm * weights.flatten()).sum() / (weights.sum() + 1e-5)
        loss = loss + cross_entropy(nsp_logits[rows], nsp_labels[rows].long())
        self.model.zero_grad()
        loss.backward()
        return {path: oriented(path, parameter.grad.numpy()) for path, parameter in self.parameters.items()}

    def _inputs(self, batch):
        names = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
        return {theirs: self.torch.from_numpy(batch[ours]).long() for theirs, ours in names.items()}

    def _logits(self, batch):
        outputs = self.model(**self._inputs(batch))
        positions = self.torch.from_numpy(batch["mask_positions"]).long()
        rows = self.torch.arange(len(positions))[:, None]
        return outputs.prediction_logits[rows, positions], outputs.seq_relationship_logits


def hugging_face_names(num_layers):
    """Returns Hugging Face's name of every variable of a `BertPretrainer`, by path."""
    names = {
        "embeddings/token_embedding/table": "bert.embeddings.word_embeddings.weight",
        "embeddings/segment_embedding/table": "bert.embeddings.token_type_embeddings.weight",
        "embeddings/position_embedding/table": "bert.embeddings.position_embeddings.weight",
        "mlm_head/bias": "cls.predictions.bias",
    }
    dense = {
        "pooler/dense": "bert.pooler.dense",
        "mlm_head/dense": "cls.predictions.transform.dense",
        "nsp_head": "cls.seq_relationship",
    }
    norm = {
        "embeddings/layer_norm": "bert.embeddings.LayerNorm",
        "mlm_head/layer_norm": "cls.predictions.transform.LayerNorm",
    }
    for i in range(num_layers):
        block, layer = f"block_{i}", f"bert.encoder.layer.{i}"
        dense |= {
            f"{block}/attention/query": f"{layer}.attention.self.query",
            f"{block}/attention/key": f"{layer}.attention.self.key",
            f"{block}/attention/value": f"{layer}.attention.self.value",
            f"{block}/attention/output": f"{layer}.attention.output.dense",
            f"{block}/feed_forward/intermediate": f"{layer}.intermediate.dense",
            f"{block}/feed_forward/output": f"{layer}.output.dense",
        }
        norm |= {
            f"{block}/attention_norm": f"{layer}.attention.output.LayerNorm",
            f"{block}/feed_forward_norm": f"{layer}.output.LayerNorm",
        }
    for path, name in dense.items():
        names |= {f"{path}/kernel": f"{name}.weight", f"{path}/bias": f"{name}.bias"}
    for path, name in norm.items():
        names |= {f"{path}/gamma": f"{name}.weight", f"{path}/beta": f"{name}.bias"}
    return names


def oriented(path, values):
    """Turns values as Keras has them into values as PyTorch has them, and back: a linear layer's are transposed."""
    return values.T if path.endswith("/kernel") else values


def _dense(path, layer):
    return {f"{path}/kernel": layer.kernel, f"{path}/bias": layer.bias}


def _norm(path, layer):
    return {f"{path}/gamma": layer.gamma, f"{path}/beta": layer.beta}


def _attention(path, layer):
    return {
        **_dense(f"{path}/query", layer._query_dense),
        **_dense(f"{path}/key", layer._key_dense),
        **_dense(f"{path}/value", layer._value_dense),
        **_dense(f"{path}/output", layer._output_dense),
    }


def check_hidden_states(ours, theirs, batch, atol=2e-5):
    """Every hidden state of rows with tokens, padding positions included, and the pooled output."""
    rows = real_rows(batch)
    for i, (one, other) in enumerate(zip(ours.hidden_states(batch), theirs.hidden_states(batch), strict=True)):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one[rows], other[rows], rtol=0, atol=atol, err_msg=f"hidden state {i}")


def check_rounded_hidden_states(ours, theirs, exact, batch):
    """Every hidden state and the pooled output of two half-precision forms of one network.

    They round at different places, so no digit need be equal. But if both are the network `exact` but for rounding,
    and ours rounds no more than theirs does, they lie at most twice as far apart as theirs lies from it.
    """
    rows = real_rows(batch)
    states = zip(ours.hidden_states(batch), theirs.hidden_states(batch), exact.hidden_states(batch), strict=True)
    for i, (one, other, true) in enumerate(states):
        assert np.isfinite(one).all()
        rounding = _root_mean_square(other[rows] - true[rows])
        assert 0 < rounding < 2**-6, "more than rounding lies between their two precisions"
        assert _root_mean_square(one[rows] - other[rows]) <= 2 * rounding, f"hidden state {i}"


def _root_mean_square(values):
    return np.sqrt(np.mean(np.square(values)))


def check_logits(ours, theirs, batch, atol=1e-4):
    """MLM logits of every slot and NSP logits, in rows with tokens."""
    rows = real_rows(batch)
    for name, one, other in zip(("MLM", "NSP"), ours.logits(batch), theirs.logits(batch), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one[rows], other[rows], rtol=0, atol=atol, err_msg=name)


def check_gradients(ours, theirs):
    """Each gradient: the norm of the difference at most 1e-4 of its own norm, or of 1e-6 of the whole gradient's.

    A key's bias moves every score of a query alike, which softmax does not see: its gradient is rounding alone.

    Args:
        ours: gradients by path.
        theirs: gradients by path.
    """
    assert ours.keys() == theirs.keys()
    whole = np.sqrt(sum(np.sum(np.square(gradient, dtype="float64")) for gradient in theirs.values()))
    for path, expected in theirs.items():
        own = np.linalg.norm(expected)
        if path.endswith("attention/key/bias"):
            assert max(own, np.linalg.norm(ours[path])) <= 1e-6 * whole, path
        else:
            difference = np.linalg.norm(ours[path] - expected)
            assert difference <= 1e-4 * max(own, 1e-6 * whole), f"{path}: {difference} of {own}"
