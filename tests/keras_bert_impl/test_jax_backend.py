"""Layers and models on Keras' JAX backend: each in a process of its own, since a process has one backend."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import arrays, small_batch, small_config
from reference_models import draw_weights

from keras_bert_impl.models import BertPretrainer

pytestmark = pytest.mark.jax

pytest.importorskip("jax", reason="needs JAX: the extra `jax`")

TESTS = Path(__file__).parent
ON_JAX = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}

ANSWER = """
import sys
import keras, numpy as np
from keras_bert_impl.models import BertPretrainer

assert keras.backend.backend() == "jax"
folder = sys.argv[1]
model = BertPretrainer.from_pretrained(f"{folder}/theirs")
assert model.load_report.complete
outputs = model(dict(np.load(f"{folder}/batch.npz")))
np.savez(f"{folder}/answer.npz", **{name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()})
model.save_pretrained(f"{folder}/ours")
model.save(f"{folder}/model.keras")
"""


def run(*command):
    done = subprocess.run([sys.executable, *map(str, command)], env=ON_JAX, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "layers",
        "models/test_bert_encoder.py",
        "models/test_bert_pretrainer.py",
        "models/test_packed_models.py",
        "models/test_task_models.py",
        "models/test_unpadded_models.py",
        "optimizers/test_bert_adamw.py",
        "optimizers/test_bert_lamb.py",
        "optimizers/test_bert_optimizer.py",
        "test_schedules.py",
    ],
)
def test_layers_and_models_pass_their_tests(path):
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", TESTS / path)


@pytest.mark.slow
def test_weights_travel_to_jax_and_back_and_give_the_same_outputs(tmp_path):
    model, batch = draw_weights(BertPretrainer(small_config())), small_batch()
    model.save_pretrained(tmp_path / "theirs")
    np.savez(tmp_path / "batch.npz", **batch)
    run("-c", ANSWER, tmp_path)

    expected, answer = arrays(model(batch)), np.load(tmp_path / "answer.npz")
    assert set(answer) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(answer[name], values, rtol=0, atol=2e-5, err_msg=name)
    back = BertPretrainer.from_pretrained(tmp_path / "ours")
    saved = keras.models.load_model(tmp_path / "model.keras")
    for one, other, third in zip(model.trainable_weights, back.trainable_weights, saved.trainable_weights, strict=True):
        np.testing.assert_array_equal(arrays(one), arrays(other), err_msg=one.path)
        np.testing.assert_array_equal(arrays(one), arrays(third), err_msg=one.path)
