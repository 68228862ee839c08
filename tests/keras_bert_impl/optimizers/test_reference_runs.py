"""`BertAdamW` in training runs of an independent implementation."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from harness import arrays

from keras_bert_impl.losses import MLM_EPSILON, masked_lm_loss_sum, next_sentence_loss_sum
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW


@pytest.mark.shared
@pytest.mark.parametrize("run,correct", [("adamw_gelu_erf", True), ("bert_adam_gelu_tanh", False)])
def test_fifty_steps_equal_an_independent_implementations(shared, tmp_path, run, correct):
    folder = shared / "data" / "reference_runs" / run
    batches = dict(np.load(folder / "batches.npz"))
    recorded = json.loads((folder / "run.json").read_text())
    model = BertPretrainer.from_pretrained(folder)
    rate = tf.Variable(0.0)
    optimizer = BertAdamW(lambda: rate, bias_correction=correct)

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            inputs = {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
            outputs = model({**inputs, "mask_positions": batch["positions"]}, training=True)
            mlm = masked_lm_loss_sum(outputs["mlm_logits"], batch["labels"], batch["weights"])
            nsp = next_sentence_loss_sum(outputs["nsp_logits"], batch["nsp"])
            loss = mlm / (tf.reduce_sum(batch["weights"]) + MLM_EPSILON) + nsp / len(batch["nsp"])
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, [v.value for v in variables]), variables)
        return loss

    for i, learning_rate in enumerate(recorded["learning_rate"]):
        rate.assign(learning_rate)
        loss = step({name: tf.constant(array[i]) for name, array in batches.items()})
        assert abs(float(loss) - recorded["loss_per_step"][i]) < 1e-4, i
    for name in ("config.json", "final.safetensors"):
        shutil.copy(folder / name, tmp_path / name.replace("final", "model"))
    final = BertPretrainer.from_pretrained(tmp_path)
    for one, other in zip(model.weights, final.weights, strict=True):
        np.testing.assert_allclose(arrays(one), arrays(other), rtol=0, atol=1e-5, err_msg=one.path)
