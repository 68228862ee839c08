"""One whole training step beside KerasHub's (masked LM alone) and beside its own matrix products.

4 layers of 256, vocabulary 30522, batch 16 at length 128 without padding, 20 predictions, AdamW, clipping.
"""

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.exact_step import PretrainingTrainer

from .row import Row, interleaved

BATCH, LENGTH, PREDICTIONS, VOCABULARY, HIDDEN, LAYERS = 16, 128, 20, 30522, 256, 4


def measure() -> list[Row]:
    rng = np.random.default_rng(0)
    ids = rng.integers(5, VOCABULARY, (BATCH, LENGTH)).astype("int32")
    x = {
        "token_ids": ids,
        "segment_ids": np.repeat([[0, 1]], LENGTH // 2, axis=1).repeat(BATCH, axis=0).astype("int32"),
        "padding_mask": np.ones_like(ids),
        "mask_positions": np.tile(np.arange(PREDICTIONS, dtype="int32") * 6 + 1, (BATCH, 1)),
    }
    labels = rng.integers(5, VOCABULARY, (BATCH, PREDICTIONS)).astype("int32")
    ones = np.ones(labels.shape, "float32")
    y = {
        "mask_labels": labels,
        "mask_weights": ones,
        "next_sentence_labels": rng.integers(0, 2, BATCH).astype("int32"),
        "next_sentence_weights": np.ones(BATCH, "float32"),
    }
    ours, garden = _ours(x, y), _keras_hub(x, labels, ones)
    seconds = interleaved([ours, garden, _products()], rounds=9)
    return [
        Row("training step 4 x 256, both heads", "s", seconds[0], "KerasHub, masked LM alone", seconds[1], 0.75),
        Row("the same step", "s", seconds[0], "its matrix products alone", seconds[2], 1.3),
    ]


def _ours(x, y):
    model = BertPretrainer.from_preset("mini")
    trainer = PretrainingTrainer(model)
    trainer.compile(BertAdamW(1e-4, global_clipnorm=1.0), jit_compile=False)
    trainer.optimizer.build(model.trainable_variables)
    step = tf.function(lambda: trainer.train_step(tf.nest.map_structure(tf.constant, (x, y))))
    return lambda: step()["loss"].numpy()


def _keras_hub(x, labels, weights):
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=VOCABULARY, num_layers=LAYERS, num_heads=4, hidden_dim=HIDDEN, intermediate_dim=4 * HIDDEN
    )
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda t: keras.activations.gelu(t, approximate=True),
        activation=None,
        name="mlm_head",
    )
    inputs = {**backbone.input, "mask_positions": keras.Input((PREDICTIONS,), dtype="int32")}
    logits = head(backbone(backbone.input)["sequence_output"], mask_positions=inputs["mask_positions"])
    model = keras.Model(inputs, logits)
    model.compile(
        keras.optimizers.AdamW(1e-4, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return lambda: model.train_on_batch(x, labels, sample_weight=weights)


def _products():
    """All matrix products of the step, forward and both backward ones, at their shapes."""
    rows, heads = BATCH * LENGTH, BATCH * 4
    shapes = [(1, rows, HIDDEN, HIDDEN)] * 4 + [(1, rows, HIDDEN, 4 * HIDDEN), (1, rows, 4 * HIDDEN, HIDDEN)]
    shapes += [(heads, LENGTH, 64, LENGTH), (heads, LENGTH, LENGTH, 64)]
    shapes = shapes * LAYERS + [(1, BATCH * PREDICTIONS, HIDDEN, HIDDEN), (1, BATCH * PREDICTIONS, HIDDEN, VOCABULARY)]
    operands = [
        tuple(tf.random.stateless_normal(shape, (n, 1)) for shape in ((b, m, k), (b, k, n_), (b, m, n_)))
        for n, (b, m, k, n_) in enumerate(shapes)
    ]

    @tf.function
    def products():
        total = 0.0
        for a, b, c in operands:
            total += tf.matmul(a, b)[0, 0, 0]
            total += tf.matmul(c, b, transpose_b=True)[0, 0, 0]
            total += tf.matmul(a, c, transpose_a=True)[0, 0, 0]
        return total

    return lambda: products().numpy()
