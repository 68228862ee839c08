"""Unpadded forms of the models of tasks: the same outputs and gradients, with no work on padding."""

import keras
import numpy as np
import pytest
from harness import arrays, small_config
from packed_batches import pair_rows

from keras_bert_impl.models import BertClassifier, BertQuestionAnswerer, BertTokenClassifier

WIDE = {"initializer_range": 0.3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MODELS = {
    "classifier": lambda **options: BertClassifier(small_config(**WIDE), labels=["a", "b", "c"], seed=3, **options),
    "token_classifier": lambda **options: BertTokenClassifier(
        small_config(**WIDE), labels=["O", "B"], seed=3, **options
    ),
    "question_answerer": lambda **options: BertQuestionAnswerer(small_config(**WIDE), seed=3, **options),
}
# One of them for every day; the others share its layers.
ONE_AND_OTHERS = [
    "token_classifier",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("classifier", "question_answerer")),
]
INPUTS = ("token_ids", "segment_ids", "padding_mask")


def inputs_of(sizes, length=11):
    rows = pair_rows(sizes, length)
    return {name: rows[name] for name in INPUTS}


def at_real_tokens(name, outputs, inputs):
    """The outputs, those of tokens without padding, as a list."""
    values = list(outputs.values()) if isinstance(outputs, dict) else [outputs]
    return values if name == "classifier" else [value[inputs["padding_mask"] > 0] for value in values]


@pytest.mark.parametrize(
    "sizes",
    [[11, 4, 7, 2], *(pytest.param(sizes, marks=pytest.mark.slow) for sizes in ([11, 11], [5]))],
    ids=["mixed", "none", "one"],
)
@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_the_padded_form_and_0_at_padding(name, sizes):
    model, inputs = MODELS[name](), inputs_of(sizes)
    expected, found = arrays(model(inputs)), arrays(model.unpadded_form()(inputs))
    for one, other in zip(at_real_tokens(name, found, inputs), at_real_tokens(name, expected, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if name != "classifier":
            assert (one[inputs["padding_mask"] == 0] == 0).all()


def gradients(make_form, name, inputs, upstream):
    """Gradients of the sum of all outputs times `upstream`: what a step of SGD with rate 1 takes off the weights."""
    model = MODELS[name]()
    form = make_form(model)
    form.compile(keras.optimizers.SGD(1.0), loss=lambda of, outputs: keras.ops.sum(of * outputs), run_eagerly=True)
    before = [arrays(weight) for weight in model.trainable_weights]
    form.train_on_batch(inputs, upstream)
    return {weight.path: old - arrays(weight) for weight, old in zip(model.trainable_weights, before, strict=True)}


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="Keras traces a training step on JAX: shapes are static")
@pytest.mark.parametrize("name", ONE_AND_OTHERS)
def test_gradients_are_those_of_the_padded_form(name):
    inputs, random = inputs_of([11, 4, 7, 2]), np.random.default_rng(1)

    def upstream_of(output):
        values = random.normal(size=output.shape).astype("float32")
        mask = inputs["padding_mask"].reshape(*inputs["padding_mask"].shape, *[1] * (output.ndim - 2))
        return values if name == "classifier" else values * mask

    upstream = keras.tree.map_structure(upstream_of, arrays(MODELS[name]()(inputs)))
    expected = gradients(lambda model: model, name, inputs, upstream)
    found = gradients(lambda model: model.unpadded_form(), name, inputs, upstream)
    assert expected.keys() == found.keys()
    for path, gradient in expected.items():
        largest = max(np.abs(gradient).max(), 1)
        np.testing.assert_allclose(found[path] / largest, gradient / largest, rtol=1e-6, atol=2e-6, err_msg=path)


@pytest.mark.parametrize("name", MODELS)
def test_the_variables_are_those_of_the_model(name):
    model = MODELS[name]()
    form = model.unpadded_form()
    assert {id(variable) for variable in form.variables} == {id(variable) for variable in model.variables}


@pytest.mark.parametrize("name", ONE_AND_OTHERS)
def test_half_precision_gives_float32_outputs_close_to_those_of_the_padded_form(name):
    model, inputs = MODELS[name](dtype="mixed_bfloat16"), inputs_of([11, 4, 7, 2])
    expected, found = model(inputs), model.unpadded_form()(inputs)
    assert {keras.backend.standardize_dtype(value.dtype) for value in keras.tree.flatten(found)} == {"float32"}
    for one, other in zip(
        at_real_tokens(name, arrays(found), inputs), at_real_tokens(name, arrays(expected), inputs), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=0.15)
