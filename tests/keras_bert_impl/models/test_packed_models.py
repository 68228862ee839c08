"""Packed models: several pairs in a row, each as if it stood alone."""

import keras
import numpy as np
import pytest
from harness import arrays, check_model, small_config
from packed_batches import inputs_of, packed_rows, pair_rows, small_packed_batch

from keras_bert_impl.models import BertEncoder, BertMaskedLM, BertPretrainer

WIDE = {"initializer_range": 0.3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Tokens of each pair by packed row; rows of one pair, of many, filled and not; the last slots stay unused.
LAYOUTS = {
    "filled": (9, [[4, 5], [3, 3, 3], [9]]),
    "padded": (11, [[4, 3], [2, 2, 2, 2], [7], [5, 5]]),
    "one": (16, [[5]]),
    "long": (16, [[8, 8], [2, 14], [3, 2, 4]]),
}


@pytest.mark.slow
def test_contract_of_the_encoder(tmp_path):
    def make(**kwargs):
        return BertEncoder(small_config(), packed=True, return_attention=True, return_hidden_states=True, **kwargs)

    inputs = {name: array for name, array in small_packed_batch().items() if name != "mask_positions"}
    shapes = {
        "sequence_output": (3, 9, 12),
        "pooled_output": (3, 3, 12),
        "attention_probabilities": (3, 2, 3, 9, 9),
        "hidden_states": (3, 3, 9, 12),
    }
    check_model(make, inputs, shapes, tmp_path)


@pytest.mark.slow
def test_contract_of_the_pretrainer(tmp_path):
    def make(**kwargs):
        return BertPretrainer(small_config(), packed=True, **kwargs)

    check_model(make, small_packed_batch(), {"mlm_logits": (3, 9, 37), "nsp_logits": (3, 3, 2)}, tmp_path)


@pytest.mark.slow
def test_contract_of_the_masked_lm(tmp_path):
    def make(**kwargs):
        return BertMaskedLM(small_config(), packed=True, **kwargs)

    check_model(make, small_packed_batch(), {"mlm_logits": (3, 9, 37)}, tmp_path)


@pytest.fixture(scope="module")
def both():
    """The same pretrainer unpacked and packed."""
    return [BertPretrainer(small_config(**WIDE), packed=packed, seed=3) for packed in (False, True)]


def layout(name, seed=0):
    """The pairs of a layout, unpacked and packed, and the packed row and slot of each."""
    length, sizes = LAYOUTS[name]
    rows = pair_rows([size for row in sizes for size in row], length, seed=seed)
    places = [(row, slot) for row, pairs in enumerate(sizes) for slot in range(len(pairs))]
    return rows, packed_rows(rows, [len(row) for row in sizes], pairs=5, predictions=13), places


def predictions_of(packed, weights, row, slot):
    """The packed prediction slots of a pair."""
    start = packed["cls_positions"][row, slot]
    size = (packed["pair_ids"][row] == slot + 1).sum()
    positions = packed["mask_positions"][row]
    return np.flatnonzero((weights[row] > 0) & (positions >= start) & (positions < start + size))


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_pair_has_the_outputs_that_it_has_alone(both, name):
    rows, packed, places = layout(name)
    alone, together = (arrays(model(inputs_of(batch))) for model, batch in zip(both, (rows, packed), strict=True))
    encoded, encoded_together = (
        arrays(model.encoder({key: value for key, value in inputs_of(batch).items() if key != "mask_positions"}))
        for model, batch in zip(both, (rows, packed), strict=True)
    )
    for pair, (row, slot) in enumerate(places):
        real, here = rows["padding_mask"][pair] > 0, packed["pair_ids"][row] == slot + 1
        found = encoded_together["sequence_output"][row, here]
        np.testing.assert_allclose(found, encoded["sequence_output"][pair, real], rtol=0, atol=1e-5)
        used = rows["mask_weights"][pair] > 0
        slots = predictions_of(packed, packed["mask_weights"], row, slot)
        np.testing.assert_array_equal(packed["mask_labels"][row, slots], rows["mask_labels"][pair, used])
        found = together["mlm_logits"][row, slots]
        np.testing.assert_allclose(found, alone["mlm_logits"][pair, used], rtol=0, atol=1e-5)
        for outputs, ones, key in (
            (encoded_together, encoded, "pooled_output"),
            (together, alone, "nsp_logits"),
        ):
            np.testing.assert_allclose(outputs[key][row, slot], ones[key][pair], rtol=0, atol=1e-5)


def gradients(config, packed, inputs, upstream):
    """Gradients of the sum of all outputs times `upstream`: what a step of SGD with rate 1 takes off the weights."""
    model = BertPretrainer(config, packed=packed, seed=3)
    model.compile(keras.optimizers.SGD(1.0), loss=lambda of, outputs: keras.ops.sum(of * outputs), run_eagerly=True)
    before = [arrays(weight) for weight in model.trainable_weights]
    model.train_on_batch(inputs, upstream)
    after = [arrays(weight) for weight in model.trainable_weights]
    paths = [weight.path for weight in model.trainable_weights]
    return {path: old - new for path, old, new in zip(paths, before, after, strict=True)}


@pytest.mark.parametrize("name", ["padded", pytest.param("long", marks=pytest.mark.slow)])
def test_gradients_are_those_of_the_pairs_alone(name):
    rows, packed, places = layout(name)
    rng = np.random.default_rng(1)
    upstream = {
        "mlm_logits": rng.normal(size=(len(places), 3, 37)).astype("float32") * rows["mask_weights"][..., None],
        "nsp_logits": rng.normal(size=(len(places), 2)).astype("float32"),
    }
    of_packed = {
        "mlm_logits": np.zeros((*packed["mask_weights"].shape, 37), "float32"),
        "nsp_logits": np.zeros((*packed["cls_positions"].shape, 2), "float32"),
    }
    for pair, (row, slot) in enumerate(places):
        slots = predictions_of(packed, packed["mask_weights"], row, slot)
        of_packed["mlm_logits"][row, slots] = upstream["mlm_logits"][pair, rows["mask_weights"][pair] > 0]
        of_packed["nsp_logits"][row, slot] = upstream["nsp_logits"][pair]
    config = small_config(**WIDE)
    expected = gradients(config, False, inputs_of(rows), upstream)
    found = gradients(config, True, inputs_of(packed), of_packed)
    assert found.keys() == expected.keys()
    assert max(np.abs(gradient).max() for gradient in expected.values()) > 1
    for path, gradient in expected.items():
        largest = max(np.abs(gradient).max(), 1)
        np.testing.assert_allclose(found[path] / largest, gradient / largest, rtol=1e-5, atol=1e-5, err_msg=path)


def test_padding_and_the_other_pairs_have_no_influence(both):
    _, packed, _ = layout("padded")
    inputs = inputs_of(packed)
    outputs = arrays(both[1](inputs))
    others = inputs["pair_ids"] != 2
    changed = {
        **inputs,
        "token_ids": np.where(others, 7, inputs["token_ids"]),
        "segment_ids": np.where(others, 1, inputs["segment_ids"]),
    }
    found = arrays(both[1](changed))
    for row in (0, 1, 3):
        np.testing.assert_array_equal(found["nsp_logits"][row, 1], outputs["nsp_logits"][row, 1])
        slots = predictions_of(packed, packed["mask_weights"], row, 1)
        np.testing.assert_array_equal(found["mlm_logits"][row, slots], outputs["mlm_logits"][row, slots])
        assert np.abs(found["nsp_logits"][row, 0] - outputs["nsp_logits"][row, 0]).max() > 1e-3


def test_nobody_gathers_from_another_pair():
    encoder = BertEncoder(small_config(**WIDE), packed=True, return_attention=True)
    inputs = {name: array for name, array in small_packed_batch().items() if name != "mask_positions"}
    probabilities = arrays(encoder(inputs))["attention_probabilities"]
    apart = inputs["pair_ids"][:, :, None] != inputs["pair_ids"][:, None]
    assert (probabilities[np.broadcast_to(apart[:, None, None], probabilities.shape)] == 0).all()
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("model", [BertEncoder, BertPretrainer, BertMaskedLM])
def test_the_variables_are_those_of_the_unpacked_model(model):
    one, other = (model(small_config(), packed=packed, seed=2) for packed in (False, True))
    assert [weight.path for weight in one.weights] == [weight.path for weight in other.weights]
    for plain, packed in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(arrays(plain), arrays(packed), err_msg=plain.path)


@pytest.mark.parametrize(
    "model", [BertPretrainer, *(pytest.param(model, marks=pytest.mark.slow) for model in (BertEncoder, BertMaskedLM))]
)
def test_the_packed_form_of_a_model_shares_its_variables(model):
    plain = model(small_config(**WIDE), seed=2)
    form = plain.packed_form()
    assert {id(variable) for variable in form.variables} == {id(variable) for variable in plain.variables}
    inputs = {name: value for name, value in small_packed_batch().items() if name in {i.name for i in form.inputs}}
    expected = arrays(model(small_config(**WIDE), packed=True, seed=2)(inputs))
    for name, value in arrays(form(inputs)).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_a_model_directory_does_not_say_how_its_model_was_fed(tmp_path, both):
    for model, name in zip(both, ("plain", "packed"), strict=True):
        model.save_pretrained(tmp_path / name)
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "plain" / file).read_bytes() == (tmp_path / "packed" / file).read_bytes()
    restored = BertPretrainer.from_pretrained(tmp_path / "plain", packed=True)
    assert restored.load_report.complete and restored.get_config()["packed"] is True
    inputs = small_packed_batch()
    for name, value in arrays(both[1](inputs)).items():
        np.testing.assert_array_equal(arrays(restored(inputs))[name], value)


@pytest.mark.slow
def test_a_keras_file_of_either_form_gives_a_model_of_either_form(tmp_path, both):
    for model, packed in zip(both, (False, True), strict=True):
        file = tmp_path / f"{packed}.keras"
        model.save(file)
        restored = BertPretrainer.from_pretrained(file, packed=not packed)
        assert restored.get_config()["packed"] is not packed
        assert restored.load_report.complete and not restored.load_report.ignored_config_keys
        for one, other in zip(model.trainable_weights, restored.trainable_weights, strict=True):
            np.testing.assert_array_equal(arrays(one), arrays(other))
