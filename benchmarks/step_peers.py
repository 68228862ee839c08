"""A training step as peers do it: each takes a batch and returns a function that does one step."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HIDDEN, LAYERS, HEADS, LONGEST = 256, 4, 4, 512


def keras_hub_step(x, y, vocabulary):
    """KerasHub's backbone and masked-LM head; it has no next-sentence head."""
    import keras
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=vocabulary, num_layers=LAYERS, num_heads=HEADS, hidden_dim=HIDDEN, intermediate_dim=4 * HIDDEN
    )
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda t: keras.activations.gelu(t, approximate=True),
        activation=None,
        name="mlm_head",
    )
    inputs = {**backbone.input, "mask_positions": keras.Input((y["mask_labels"].shape[1],), dtype="int32")}
    logits = head(backbone(backbone.input)["sequence_output"], mask_positions=inputs["mask_positions"])
    model = keras.Model(inputs, logits)
    model.compile(
        keras.optimizers.AdamW(1e-4, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return lambda: model.train_on_batch(x, y["mask_labels"], sample_weight=y["mask_weights"])


def model_garden_step(x, y, vocabulary):
    """The Model Garden's encoder with both heads and its own optimizer, which clips."""
    import tensorflow as tf
    import tf_keras
    from official.nlp import optimization
    from official.nlp.modeling import layers, models, networks

    def activation(inputs):
        return tf_keras.activations.gelu(inputs, approximate=True)

    encoder = networks.BertEncoderV2(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        num_layers=LAYERS,
        num_attention_heads=HEADS,
        max_sequence_length=LONGEST,
        inner_dim=4 * HIDDEN,
        inner_activation=activation,
        output_dropout=0.1,
        attention_dropout=0.1,
        dict_outputs=True,
    )
    next_sentence = layers.ClassificationHead(HIDDEN, num_classes=2, dropout_rate=0.1, name="next_sentence")
    model = models.BertPretrainerV2(encoder, mlm_activation=activation, classification_heads=[next_sentence])
    optimizer = optimization.create_optimizer(1e-4, 1000, 100, optimizer_type="adamw")
    inputs = {
        "input_word_ids": tf.constant(x["token_ids"]),
        "input_mask": tf.constant(x["padding_mask"]),
        "input_type_ids": tf.constant(x["segment_ids"]),
        "masked_lm_positions": tf.constant(x["mask_positions"]),
    }
    labels, weights, next_labels = (
        tf.constant(y[name]) for name in ("mask_labels", "mask_weights", "next_sentence_labels")
    )
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            losses = cross_entropy(labels, tf.cast(outputs["mlm_logits"], tf.float32))
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))
            loss += tf.reduce_mean(cross_entropy(next_labels, tf.cast(outputs["next_sentence"], tf.float32)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return lambda: step().numpy()


class HuggingFaceStep:
    """`BertForPreTraining` on PyTorch in a process of its own, which does a step for each line that it reads.

    Args:
        x, y: the batch.
        vocabulary: ids of the model.
        threads: threads of PyTorch.
    """

    def __init__(self, x, y, vocabulary, threads):
        self.python = os.environ.get("BENCHMARK_TORCH_PYTHON", sys.executable)
        self.why_not = self._why_not()
        if self.why_not:
            return
        self.folder = tempfile.mkdtemp()
        np.savez(Path(self.folder) / "batch.npz", **x, **y)
        sizes = {"vocab_size": vocabulary, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS}
        sizes |= {"num_attention_heads": HEADS, "intermediate_size": 4 * HIDDEN, "hidden_act": "gelu_new"}
        script = Path(__file__).with_name("torch_step.py")
        self.process = subprocess.Popen(
            [self.python, script, f"{self.folder}/batch.npz", json.dumps(sizes), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _why_not(self):
        done = subprocess.run([self.python, "-c", "import torch, transformers"], capture_output=True, check=False)
        return "" if done.returncode == 0 else "PyTorch or transformers is not installed (BENCHMARK_TORCH_PYTHON)"

    def __call__(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            raise RuntimeError("the process of PyTorch has ended")

    def end(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.folder)
