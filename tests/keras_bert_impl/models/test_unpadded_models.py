"""Unpadded forms: the same outputs and gradients, with no work on padding and unused slots."""

import keras
import numpy as np
import pytest
from harness import arrays, small_config
from packed_batches import inputs_of, packed_rows, pair_rows

from keras_bert_impl.layers.feed_forward import FeedForward
from keras_bert_impl.layers.real_tokens import real_slots
from keras_bert_impl.models import BertEncoder, BertMaskedLM, BertPretrainer

WIDE = {"initializer_range": 0.3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Tokens of each row; and of each pair by packed row.
PADDINGS = {"none": [11, 11, 11], "mixed": [11, 4, 7, 2], "one": [5]}
PACKED = {"filled": (9, [[4, 5], [3, 3, 3], [9]]), "padded": (11, [[4, 3], [2, 2, 2, 2], [7], [5, 5]])}
LAYOUTS = [*PADDINGS, *PACKED]


def rows_of(layout):
    if layout in PADDINGS:
        return pair_rows(PADDINGS[layout], 11)
    length, sizes = PACKED[layout]
    rows = pair_rows([size for row in sizes for size in row], length)
    return packed_rows(rows, [len(row) for row in sizes], pairs=5, predictions=13)


def unpadded_inputs(rows):
    return {**inputs_of(rows), "mask_weights": rows["mask_weights"]}


def forms(model, rows):
    """The usual form of a model for these rows, and the unpadded one."""
    packed = "pair_ids" in rows
    return model.packed_form() if packed else model, model.unpadded_form(packed=packed)


def is_real(rows):
    return rows["pair_ids" if "pair_ids" in rows else "padding_mask"] > 0


def used_pairs(rows):
    """Flags in the shape of the next-sentence weights; rows of a pair each have but one."""
    return rows["next_sentence_weights"] > 0


@pytest.fixture(scope="module")
def pretrainer():
    return BertPretrainer(small_config(**WIDE), seed=3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_logits_are_those_of_the_padded_form(pretrainer, layout):
    rows = rows_of(layout)
    usual, unpadded = forms(pretrainer, rows)
    expected, found = arrays(usual(inputs_of(rows))), arrays(unpadded(unpadded_inputs(rows)))
    used = rows["mask_weights"] > 0
    assert found["mlm_logits"].shape == (used.sum(), 37)
    np.testing.assert_allclose(found["mlm_logits"], expected["mlm_logits"][used], rtol=1e-6, atol=5e-6)
    assert found["nsp_logits"].shape == expected["nsp_logits"].shape
    pairs = used_pairs(rows)
    np.testing.assert_allclose(found["nsp_logits"][pairs], expected["nsp_logits"][pairs], rtol=1e-6, atol=5e-6)


def gradients(make, inputs, upstream):
    """Gradients of the sum of all outputs times `upstream`: what a step of SGD with rate 1 takes off the weights."""
    model = BertPretrainer(small_config(**WIDE), seed=3)
    form = make(model)
    form.compile(keras.optimizers.SGD(1.0), loss=lambda of, outputs: keras.ops.sum(of * outputs), run_eagerly=True)
    before = [arrays(weight) for weight in model.trainable_weights]
    form.train_on_batch(inputs, upstream)
    return {weight.path: old - arrays(weight) for weight, old in zip(model.trainable_weights, before, strict=True)}


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="Keras traces a training step on JAX: shapes are static")
@pytest.mark.parametrize("layout", ["mixed", pytest.param("padded", marks=pytest.mark.slow)])
def test_gradients_are_those_of_the_padded_form(layout):
    rows = rows_of(layout)
    rng, used = np.random.default_rng(1), rows["mask_weights"] > 0
    upstream = {
        "mlm_logits": rng.normal(size=(*used.shape, 37)).astype("float32") * used[..., None],
        "nsp_logits": rng.normal(size=(*used_pairs(rows).shape, 2)).astype("float32") * used_pairs(rows)[..., None],
    }
    of_real = {**upstream, "mlm_logits": upstream["mlm_logits"][used]}
    expected = gradients(lambda model: forms(model, rows)[0], inputs_of(rows), upstream)
    found = gradients(lambda model: forms(model, rows)[1], unpadded_inputs(rows), of_real)
    for path, gradient in expected.items():
        largest = max(np.abs(gradient).max(), 1)
        np.testing.assert_allclose(found[path] / largest, gradient / largest, rtol=1e-6, atol=2e-6, err_msg=path)


@pytest.mark.parametrize("layout", ["mixed", "padded"])
def test_the_last_block_works_out_only_what_the_heads_ask_for(pretrainer, layout, monkeypatch):
    rows, counts = rows_of(layout), []
    usual_call = FeedForward.call

    def counted(self, inputs, **options):
        counts.append(inputs.shape[0])
        return usual_call(self, inputs, **options)

    monkeypatch.setattr(FeedForward, "call", counted)
    form = pretrainer.unpadded_form(packed="pair_ids" in rows)
    counts.clear()
    form(unpadded_inputs(rows))
    *before, last = counts
    assert before == [is_real(rows).sum()] * (len(pretrainer.encoder.blocks) - 1)
    assert last == rows["next_sentence_weights"].size + (rows["mask_weights"] > 0).sum()


def test_tokens_and_masks_of_padding_have_no_influence(pretrainer):
    rows = rows_of("mixed")
    form = pretrainer.unpadded_form()
    inputs = unpadded_inputs(rows)
    changed = {name: np.where(is_real(rows), inputs[name], 1) for name in ("token_ids", "segment_ids")}
    unused = {"mask_positions": np.where(rows["mask_weights"] > 0, inputs["mask_positions"], 10).astype("int32")}
    expected, found = arrays(form(inputs)), arrays(form({**inputs, **changed, **unused}))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_rows_and_slots_without_anything_stay_finite_and_leave_the_others_as_they_are(pretrainer):
    rows = rows_of("mixed")
    form = pretrainer.unpadded_form()
    inputs = unpadded_inputs(rows)
    empty = {name: np.concatenate([value, value[:1] * 0]) for name, value in inputs.items()}
    expected, found = arrays(form(inputs)), arrays(form(empty))
    assert np.isfinite(found["nsp_logits"]).all()
    np.testing.assert_allclose(found["mlm_logits"], expected["mlm_logits"], atol=5e-6)
    np.testing.assert_allclose(found["nsp_logits"][:-1], expected["nsp_logits"], atol=5e-6)
    nothing = arrays(form({name: value * 0 for name, value in inputs.items()}))
    assert nothing["mlm_logits"].shape == (0, 37) and np.isfinite(nothing["nsp_logits"]).all()


@pytest.mark.parametrize("layout", ["mixed", "padded"])
def test_the_encoder_gives_its_usual_outputs_and_zeros_at_padding(layout):
    rows = rows_of(layout)
    encoder = BertEncoder(small_config(**WIDE), seed=3, return_attention=True, return_hidden_states=True)
    inputs = {name: value for name, value in inputs_of(rows).items() if name != "mask_positions"}
    usual, unpadded = (arrays(form(inputs)) for form in forms(encoder, rows))
    real = is_real(rows)
    assert unpadded.keys() == usual.keys()
    for name, value in usual.items():
        assert unpadded[name].shape == value.shape, name
    close = {"rtol": 1e-6, "atol": 5e-6}
    np.testing.assert_allclose(unpadded["sequence_output"][real], usual["sequence_output"][real], **close)
    assert (unpadded["sequence_output"][~real] == 0).all()
    pairs = used_pairs(rows)
    np.testing.assert_allclose(unpadded["pooled_output"][pairs], usual["pooled_output"][pairs], **close)
    for name, axes in (("hidden_states", (0, 2, 1, 3)), ("attention_probabilities", (0, 3, 1, 2, 4))):
        found, expected = (outputs[name].transpose(axes)[real] for outputs in (unpadded, usual))
        np.testing.assert_allclose(found, expected, **close, err_msg=name)


@pytest.mark.parametrize("kind", [BertPretrainer, BertMaskedLM, BertEncoder])
def test_the_variables_are_those_of_the_model(kind):
    model = kind(small_config(), seed=2)
    form = model.unpadded_form()
    assert {id(variable) for variable in form.variables} == {id(variable) for variable in model.variables}


def test_a_masked_lm_predicts_what_its_padded_form_does():
    rows, model = rows_of("mixed"), BertMaskedLM(small_config(**WIDE), seed=2)
    found = arrays(model.unpadded_form()(unpadded_inputs(rows)))["mlm_logits"]
    expected = arrays(model(inputs_of(rows)))["mlm_logits"][rows["mask_weights"] > 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=5e-6)


def test_dropout_is_that_of_its_seeds():
    rows, model = rows_of("mixed"), BertPretrainer(small_config(), seed=2)
    form = model.unpadded_form()
    states = [keras.ops.convert_to_numpy(variable) for variable in model.non_trainable_variables]
    first, other = (arrays(form(unpadded_inputs(rows), training=True)) for _ in range(2))
    for variable, value in zip(model.non_trainable_variables, states, strict=True):
        variable.assign(value)
    again = arrays(form(unpadded_inputs(rows), training=True))
    np.testing.assert_array_equal(again["mlm_logits"], first["mlm_logits"])
    assert np.abs(other["mlm_logits"] - first["mlm_logits"]).max() > 1e-3


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_agrees_with_its_padded_form(dtype):
    rows = rows_of("mixed")
    model = BertPretrainer(small_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), dtype=dtype)
    found = arrays(model.unpadded_form()(unpadded_inputs(rows)))
    expected = arrays(model(inputs_of(rows)))
    np.testing.assert_allclose(found["mlm_logits"], expected["mlm_logits"][rows["mask_weights"] > 0], atol=2e-2)


def test_used_slots_are_named_row_by_row():
    weights = np.array([[1, 0, 0.5], [0, 0, 0], [0, 2, 0]], "float32")
    np.testing.assert_array_equal(real_slots(weights), [0, 2, 7])
