"""`BertAdamW` against the same optimizer in NumPy."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import arrays, small_config

from keras_bert_impl.layers import Embeddings
from keras_bert_impl.losses import MLM_EPSILON, masked_lm_loss_sum, next_sentence_loss_sum
from keras_bert_impl.models import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW, is_decayed
from keras_bert_impl.schedules import LinearWarmupDecay


class NumpyAdamW:
    """The update written out, in float64, from the published formulas."""

    def __init__(self, values, decayed, *, epsilon=1e-6, decay=0.01, clip=1.0, correct=False):
        self.values = [value.astype("float64") for value in values]
        self.means = [np.zeros_like(value) for value in self.values]
        self.squares = [np.zeros_like(value) for value in self.values]
        self.decayed, self.epsilon, self.decay, self.clip, self.correct = decayed, epsilon, decay, clip, correct
        self.step = 0

    def apply(self, gradients, rate):
        self.step += 1
        norm = np.sqrt(sum((gradient.astype("float64") ** 2).sum() for gradient in gradients))
        if self.clip:
            gradients = [gradient * min(1.0, self.clip / norm) for gradient in gradients]
        for i, gradient in enumerate(gradients):
            self.means[i] = 0.9 * self.means[i] + 0.1 * gradient
            self.squares[i] = 0.999 * self.squares[i] + 0.001 * gradient**2
            mean, square = self.means[i], self.squares[i]
            if self.correct:
                mean, square = mean / (1 - 0.9**self.step), square / (1 - 0.999**self.step)
            update = mean / (np.sqrt(square) + self.epsilon)
            if self.decayed[i]:
                update = update + self.decay * self.values[i]
            self.values[i] = self.values[i] - rate * update


def variables(dtype="float32"):
    rng = np.random.default_rng(0)
    shapes = {"kernel": (5, 3), "bias": (3,), "gamma": (3,)}
    return [keras.Variable(rng.normal(size=shape), dtype=dtype, name=name) for name, shape in shapes.items()]


def gradients(step, scale=1.0):
    rng = np.random.default_rng(100 + step)
    return [(rng.normal(size=shape) * scale).astype("float32") for shape in ((5, 3), (3,), (3,))]


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])  # fused and by single operations
def test_five_steps_equal_numpy(correct, decay, clip, dtype):
    ours = variables(dtype)
    reference = NumpyAdamW([arrays(v) for v in ours], [True, False, False], decay=decay, clip=clip, correct=correct)
    schedule = LinearWarmupDecay(0.05, 2, 10)
    optimizer = BertAdamW(schedule, weight_decay=decay, bias_correction=correct, global_clipnorm=clip)
    for step in range(5):
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients(step)], ours)
        reference.apply(gradients(step), float(schedule(step)))
    for variable, expected in zip(ours, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=1e-6)


def test_bias_correction_makes_the_first_step_as_long_as_the_rate():
    for correct, length in ((True, 0.01), (False, 0.01 * 0.1 / np.sqrt(0.001))):
        variable = keras.Variable(np.zeros((2,), "float32"), name="kernel")
        optimizer = BertAdamW(0.01, weight_decay=0.0, bias_correction=correct, epsilon=1e-12)
        optimizer.apply([keras.ops.convert_to_tensor([0.3, -0.2])], [variable])
        np.testing.assert_allclose(arrays(variable), [-length, length], rtol=1e-4)


def test_small_gradients_are_not_clipped_and_large_ones_to_the_norm():
    for scale, clipped in ((1e-3, False), (1e3, True)):
        plain, clip = variables(), variables()
        given = gradients(0, scale)
        norm = np.sqrt(sum((g**2).sum() for g in given))
        BertAdamW(0.1, global_clipnorm=None).apply(
            [keras.ops.convert_to_tensor(g / norm if clipped else g) for g in given], plain
        )
        BertAdamW(0.1).apply([keras.ops.convert_to_tensor(g) for g in given], clip)
        for one, other in zip(plain, clip, strict=True):
            np.testing.assert_allclose(arrays(one), arrays(other), rtol=1e-5)


def test_apply_reduced_neither_clips_nor_scales():
    given = [keras.ops.convert_to_tensor(g) for g in gradients(0, 1e3)]
    reduced, plain = variables(), variables()
    BertAdamW(0.1, global_clipnorm=1e-6, loss_scale_factor=8.0).apply_reduced(given, reduced)
    BertAdamW(0.1, global_clipnorm=None).apply(given, plain)
    for one, other in zip(reduced, plain, strict=True):
        np.testing.assert_array_equal(arrays(one), arrays(other))


def test_the_loss_scale_is_taken_out_of_the_gradients():
    scaled, plain = variables(), variables()
    BertAdamW(0.1, loss_scale_factor=8.0).apply([keras.ops.convert_to_tensor(g * 8) for g in gradients(0)], scaled)
    BertAdamW(0.1).apply([keras.ops.convert_to_tensor(g) for g in gradients(0)], plain)
    for one, other in zip(scaled, plain, strict=True):
        np.testing.assert_allclose(arrays(one), arrays(other), rtol=1e-6)


def test_biases_and_layer_norm_of_a_real_model_are_not_decayed():
    model = BertPretrainer(small_config())
    decayed = {variable.path for variable in model.trainable_variables if is_decayed(variable)}
    assert {path for path in decayed if path.split("/")[-1] not in ("kernel", "table")} == set()
    assert len(decayed) == 3 + 2 * 6 + 3
    assert "embeddings/token_embedding/table" in decayed
    for path in ("mlm_head/bias", "embeddings/layer_norm/gamma", "block_1/attention/key/bias"):
        assert path in {variable.path for variable in model.trainable_variables} - decayed


@pytest.mark.parametrize("jit", [False, True])
def test_token_ids_that_occur_twice_under_fit_equal_numpy(jit):
    """An encoder's embeddings under stock `fit`; the gradients are those of one step in float64."""
    embeddings = Embeddings(7, 4, 8, dropout=0.0, initializer_range=0.5)
    inputs = {name: keras.Input((4,), dtype="int32", name=name) for name in ("token_ids", "segment_ids")}
    model = keras.Model(inputs, embeddings(**inputs))
    batch = {
        "token_ids": np.array([[3, 3, 5, 3], [3, 1, 1, 0]], dtype="int32"),
        "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 1]], dtype="int32"),
    }
    target = np.random.default_rng(0).normal(size=(2, 4, 4)).astype("float32")
    model.compile(optimizer=BertAdamW(0.01), loss="mse", jit_compile=jit)
    weights = [v.path.split("/", 1)[1] for v in model.trainable_variables]
    assert weights == [
        "token_embedding/table",
        "segment_embedding/table",
        "position_embedding/table",
        "layer_norm/gamma",
        "layer_norm/beta",
    ]
    reference = NumpyAdamW([arrays(v) for v in model.trainable_variables], [True, True, True, False, False])
    for _ in range(5):
        model.train_on_batch(batch, target)
        reference.apply(embedding_gradients(reference.values, batch, target), 0.01)
    for variable, expected in zip(model.trainable_variables, reference.values, strict=True):
        np.testing.assert_allclose(arrays(variable), expected, rtol=0, atol=1e-6, err_msg=variable.path)


def embedding_gradients(values, batch, target):
    """Of the mean squared error of normalised embedding sums, by hand."""
    tokens, segments, positions, gamma, beta = values
    summed = tokens[batch["token_ids"]] + segments[batch["segment_ids"]] + positions[None, :4]
    centred = summed - summed.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    normal = centred / deviation
    error = 2 * (normal * gamma + beta - target) / target.size
    through = error * gamma
    through = through - through.mean(-1, keepdims=True) - normal * (through * normal).mean(-1, keepdims=True)
    through = through / deviation
    token_gradient, segment_gradient = np.zeros_like(tokens), np.zeros_like(segments)
    np.add.at(token_gradient, batch["token_ids"], through)
    np.add.at(segment_gradient, batch["segment_ids"], through)
    position_gradient = np.zeros_like(positions)
    position_gradient[:4] = through.sum(0)
    return [token_gradient, segment_gradient, position_gradient, (error * normal).sum((0, 1)), error.sum((0, 1))]


def test_survives_a_round_trip_with_its_schedule_and_inside_a_saved_model(tmp_path):
    optimizer = BertAdamW(LinearWarmupDecay(1e-3, 2, 9), weight_decay=0.1, beta_2=0.98, bias_correction=True)
    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    restored = keras.optimizers.deserialize(config)
    assert type(restored) is BertAdamW
    assert restored.get_config() == optimizer.get_config()

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse")
    data = np.ones((4, 3)), np.ones((4, 2))
    model.train_on_batch(*data)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for one in (model, again):
        one.train_on_batch(*data)
    np.testing.assert_array_equal(arrays(again.layers[0].kernel), arrays(model.layers[0].kernel))
    assert int(again.optimizer.iterations) == 2


def test_half_precision_variables_move_too():
    variable = keras.Variable(np.ones((2,)), dtype="bfloat16", name="kernel")
    optimizer = BertAdamW(0.1)
    for _ in range(3):
        optimizer.apply([keras.ops.convert_to_tensor([0.3, -0.2])], [variable])
    values = arrays(variable)
    assert values[0] < 0.7
    assert values[1] > 1.3


@pytest.mark.parametrize(
    "arguments,message",
    [
        ({"weight_decay": -1}, r"`weight_decay` must be at least 0 and less than inf. Received: weight_decay=-1"),
        ({"beta_1": 1.0}, r"`beta_1` must be at least 0 and less than 1. Received: beta_1=1.0"),
        ({"beta_2": -0.1}, r"`beta_2` must be at least 0 and less than 1. Received: beta_2=-0.1"),
        ({"epsilon": 0}, r"`epsilon` must be positive. Received: epsilon=0"),
        ({"global_clipnorm": 0}, r"`global_clipnorm` must be positive. Received: global_clipnorm=0"),
    ],
)
def test_refuses_numbers_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        BertAdamW(1e-3, **arguments)


def test_two_replicas_take_the_step_of_one():
    """In a process of its own: there the CPU is cut in two before TensorFlow starts."""
    script = Path(__file__).parent / "two_replicas.py"
    finished = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr[-2000:]


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
