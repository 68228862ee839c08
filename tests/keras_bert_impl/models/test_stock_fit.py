"""Plain Keras around our embeddings: stock `fit` and optimizers take the step of the dense gradient.

Keras' Adam family on TensorFlow takes gradients of look-ups as slices, one for each id of the batch, and squares
each slice alone. So every batch here has few ids, each many times.
"""

import functools
import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import arrays, small_config
from reference_models import draw_weights

from keras_bert_impl.layers import Embeddings, EmbeddingTable
from keras_bert_impl.models import BertEncoder

RATE, DECAY, STEPS, ROWS = 1e-3, 0.1, 5, 4
OPTIMIZERS = {
    "Adam": lambda epsilon: keras.optimizers.Adam(RATE, epsilon=epsilon),
    "AdamW": lambda epsilon: keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=epsilon),
}
# Not of an instance: making one starts the devices, which other tests still have to divide.
STOCK_EPSILON = inspect.signature(keras.optimizers.Adam).parameters["epsilon"].default
TABLES = {f"embeddings/{name}_embedding/table" for name in ("token", "segment", "position")}


def encoder(dtype=None, output="pooled_output"):
    """An encoder without a masked-LM head, so that nothing but the look-up touches the token table."""
    config = small_config(num_hidden_layers=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    bert = BertEncoder(config, dtype=dtype)
    return keras.Model(bert.input, bert.output[output])


def ids(*names):
    return {name: keras.Input((None,), dtype="int32", name=name) for name in names}


def embeddings(dtype=None):
    inputs = ids("token_ids", "segment_ids")
    return keras.Model(inputs, Embeddings(37, 12, 16, dropout=0.0, dtype=dtype, name="embeddings")(**inputs))


def table(dtype=None):
    inputs = ids("token_ids")
    return keras.Model(inputs, EmbeddingTable(37, 12, dtype=dtype, name="tokens")(inputs["token_ids"]))


def stock_embedding(dtype=None):
    inputs = ids("token_ids")
    return keras.Model(inputs, keras.layers.Embedding(37, 12, dtype=dtype, name="tokens")(inputs["token_ids"]))


class HalfPrecisionTable(EmbeddingTable):
    """Ours with a table that is cast to the compute dtype before the look-up."""

    def call(self, ids):
        rows = keras.ops.multiply(keras.ops.cast(self.table, self.compute_dtype), 1.0)
        return keras.ops.take(rows, ids, axis=0)


def half_precision_table(dtype=None):
    inputs = ids("token_ids")
    return keras.Model(inputs, HalfPrecisionTable(37, 12, dtype=dtype, name="tokens")(inputs["token_ids"]))


def examples(model, rows=STEPS * ROWS, seq_len=9):
    """Rows of six different ids, padded, and how much each number of the output weighs in the loss.

    The weights lean to one direction. Where rows pull about equally against one another, all that is left in
    bfloat16 is its rounding.
    """
    rng = np.random.default_rng(0)
    padding_mask = (np.arange(seq_len) < rng.integers(2, seq_len + 1, (rows, 1))).astype("int32")
    inputs = {
        "token_ids": rng.integers(1, 6, (rows, seq_len)).astype("int32") * padding_mask,
        "segment_ids": (np.arange(seq_len) >= 3).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
    }
    weights = rng.normal(size=12) + rng.normal(size=(rows, *(seq_len,) * (len(model.output.shape) - 2), 12))
    return {name: inputs[name] for name in model.input}, weights.astype("bfloat16").astype("float32")


def weighted_sum(weights, outputs):
    """The loss."""
    dtype = keras.backend.result_type(outputs.dtype, "float32")
    return keras.ops.sum(keras.ops.cast(weights, dtype) * keras.ops.cast(outputs, dtype))


def dense_gradients(model, inputs, weights, jit=False):
    """Returns the gradient of every variable by path, slices summed."""
    variables = model.trainable_variables

    @tf.function(jit_compile=jit)
    def gradients(inputs, weights):
        with tf.GradientTape() as tape:
            loss = weighted_sum(weights, model(inputs))
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, [variable.value for variable in variables])]

    found = gradients({name: tf.constant(array) for name, array in inputs.items()}, tf.constant(weights))
    return {variable.path: gradient.numpy() for variable, gradient in zip(variables, found, strict=True)}


@functools.cache
def after_dense_steps(build, optimizer, epsilon):
    """Returns every variable by path after the steps in NumPy, with float64 gradients."""
    model = draw_weights(build(dtype="float64"))
    inputs, weights = examples(model)
    values = {variable.path: variable.numpy() for variable in model.trainable_variables}
    mean, square = ({path: np.zeros_like(value) for path, value in values.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        rows = slice((step - 1) * ROWS, step * ROWS)
        gradients = dense_gradients(model, {name: array[rows] for name, array in inputs.items()}, weights[rows])
        for variable in model.trainable_variables:
            path, gradient = variable.path, gradients[variable.path]
            mean[path] = 0.9 * mean[path] + 0.1 * gradient
            square[path] = 0.999 * square[path] + 0.001 * gradient**2
            if optimizer == "AdamW":
                values[path] = values[path] * (1 - RATE * DECAY)
            corrected = np.sqrt(square[path] / (1 - 0.999**step)) + epsilon / np.sqrt(1 - 0.999**step)
            values[path] = values[path] - RATE * mean[path] / (1 - 0.9**step) / corrected
            variable.assign(values[path])
    return values


def differences(build, optimizer, epsilon, jit):
    """Returns the largest difference between stock `fit` and NumPy for every variable by path."""
    model = draw_weights(build())
    model.compile(optimizer=OPTIMIZERS[optimizer](epsilon), loss=weighted_sum, jit_compile=jit)
    model.fit(*examples(model), batch_size=ROWS, shuffle=False, verbose=0)
    expected = after_dense_steps(build, optimizer, epsilon)
    return {v.path: np.abs(arrays(v) - expected[v.path]).max() for v in model.trainable_variables}


jit_off_and_on = pytest.mark.parametrize(
    "jit", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["no_jit", "jit"]
)
optimizers = pytest.mark.parametrize("optimizer", OPTIMIZERS)


@jit_off_and_on
@optimizers
def test_every_variable_of_an_encoder_takes_the_dense_step(optimizer, jit):
    """With an epsilon above rounding: where a gradient is all rounding, the stock one makes a whole step of it."""
    found = differences(encoder, optimizer, 1e-4, jit)
    assert found.keys() > TABLES
    assert {path: difference for path, difference in found.items() if not difference <= 1e-6} == {}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer,jit", [("Adam", False), ("AdamW", True)])
def test_tables_of_an_encoder_take_the_dense_step_with_the_stock_epsilon_too(optimizer, jit):
    found = differences(encoder, optimizer, STOCK_EPSILON, jit)
    assert {path: found[path] for path in TABLES if not found[path] <= 1e-6} == {}


@jit_off_and_on
@optimizers
@pytest.mark.parametrize("build", [embeddings, table])
def test_embeddings_in_any_model_take_the_dense_step(build, optimizer, jit):
    found = differences(build, optimizer, STOCK_EPSILON, jit)
    assert {path: difference for path, difference in found.items() if not difference <= 1e-6} == {}


@jit_off_and_on
@optimizers
def test_the_stock_embedding_does_not(optimizer, jit):
    """What the tests above would find: half a learning rate and more."""
    assert differences(stock_embedding, optimizer, STOCK_EPSILON, jit)["tokens/embeddings"] > 5e-4


def relative_differences(build, jit):
    """Returns by path how far the gradient under mixed_bfloat16 is from that in float32."""
    found = {}
    for dtype in ("float32", "mixed_bfloat16"):
        model = build(dtype=dtype)
        found[dtype] = dense_gradients(model, *examples(model, rows=256), jit=jit)
    return {
        path: np.linalg.norm(found["mixed_bfloat16"][path] - gradient) / np.linalg.norm(gradient)
        for path, gradient in found["float32"].items()
    }


@pytest.mark.parametrize(
    "output,jit", [("pooled_output", False), ("sequence_output", False), ("sequence_output", True)]
)
def test_gradients_of_an_encoders_tables_survive_bfloat16(output, jit):
    found = relative_differences(functools.partial(encoder, output=output), jit)
    assert {path: found[path] for path in TABLES if not found[path] <= 0.01} == {}


@pytest.mark.parametrize("build", [embeddings, table])
def test_embeddings_alone_lose_nothing_to_bfloat16(build):
    """Their gradients are summed in float32, hundreds of them for each id."""
    found = relative_differences(build, jit=False)
    assert {path: difference for path, difference in found.items() if not difference <= 1e-5} == {}


def test_gradients_summed_in_bfloat16_do_not_survive():
    """What the two tests above would find, of a table that follows the compute dtype."""
    assert relative_differences(half_precision_table, jit=False)["tokens/table"] > 0.01
