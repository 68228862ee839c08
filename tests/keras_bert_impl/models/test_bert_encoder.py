"""`BertEncoder`: contract and properties."""

import numpy as np
import pytest
from harness import arrays, check_model, small_batch, small_config

from keras_bert_impl.models import BertEncoder

INPUTS = ("token_ids", "segment_ids", "padding_mask")


def batch(**kwargs):
    return {name: array for name, array in small_batch(**kwargs).items() if name in INPUTS}


@pytest.mark.parametrize("pooler", [True, False])
def test_contract(tmp_path, pooler):
    def make(**kwargs):
        return BertEncoder(small_config(), pooler=pooler, **kwargs)

    shapes = {"sequence_output": (3, 9, 12)} | ({"pooled_output": (3, 12)} if pooler else {})
    check_model(make, batch(), shapes, tmp_path)


def test_contract_with_further_outputs(tmp_path):
    def make(**kwargs):
        return BertEncoder(small_config(), return_attention=True, return_hidden_states=True, **kwargs)

    shapes = {
        "sequence_output": (3, 9, 12),
        "pooled_output": (3, 12),
        "attention_probabilities": (3, 2, 3, 9, 9),
        "hidden_states": (3, 3, 9, 12),
    }
    check_model(make, batch(), shapes, tmp_path)


def test_further_outputs_change_neither_the_others_nor_the_weights():
    config, inputs = small_config(initializer_range=0.3), batch()
    plain = BertEncoder(config)
    further = BertEncoder(config, return_attention=True, return_hidden_states=True)
    assert [weight.path for weight in further.weights] == [weight.path for weight in plain.weights]
    expected, outputs = arrays(plain(inputs)), arrays(further(inputs))
    assert set(outputs) - set(expected) == {"attention_probabilities", "hidden_states"}
    for name, value in expected.items():
        np.testing.assert_array_equal(outputs[name], value)


def test_further_outputs_are_those_of_each_block_in_turn():
    encoder = BertEncoder(small_config(initializer_range=0.3), return_attention=True, return_hidden_states=True)
    inputs = batch()
    outputs = arrays(encoder(inputs))
    state = encoder.embeddings(inputs["token_ids"], inputs["segment_ids"])
    for i, block in enumerate(encoder.blocks):
        np.testing.assert_allclose(outputs["hidden_states"][:, i], arrays(state), atol=1e-6)
        state, expected = block(state, padding_mask=inputs["padding_mask"], return_attention=True)
        np.testing.assert_allclose(outputs["attention_probabilities"][:, i], arrays(expected), atol=1e-6)
    np.testing.assert_array_equal(outputs["hidden_states"][:, -1], outputs["sequence_output"])


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_probabilities_sum_to_one_over_tokens_and_are_none_at_padding(dtype):
    encoder, inputs = BertEncoder(small_config(initializer_range=0.3), return_attention=True, dtype=dtype), batch()
    probabilities = arrays(encoder(inputs))["attention_probabilities"]
    at_padding = np.broadcast_to((inputs["padding_mask"] == 0)[:, None, None, None], probabilities.shape)
    assert (probabilities[at_padding] == 0).all()
    rounding = {"float32": 1e-6, "mixed_float16": 2e-3}.get(dtype, 1e-2)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=rounding)


def test_predict_joins_batches():
    encoder, inputs = BertEncoder(small_config(), return_attention=True, return_hidden_states=True), batch()
    outputs = encoder.predict(inputs, batch_size=2, verbose=0)
    for name, value in arrays(encoder(inputs)).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5, err_msg=name)


def test_a_model_directory_can_be_read_with_further_outputs(tmp_path):
    encoder = BertEncoder(small_config(), seed=5)
    encoder.save_pretrained(tmp_path / "model")
    further = BertEncoder.from_pretrained(tmp_path / "model", return_attention=True, return_hidden_states=True)
    assert further.load_report.complete
    outputs, expected = arrays(further(batch())), arrays(encoder(batch()))
    np.testing.assert_array_equal(outputs["sequence_output"], expected["sequence_output"])
    assert outputs["attention_probabilities"].shape == (3, 2, 3, 9, 9)
    assert outputs["hidden_states"].shape == (3, 3, 9, 12)


def test_the_attention_of_a_model_without_that_output_can_be_had():
    encoder = BertEncoder(small_config(), return_attention=True, seed=5)
    plain = BertEncoder(small_config(), seed=5)
    expected = arrays(encoder(batch()))["attention_probabilities"]
    np.testing.assert_array_equal(arrays(plain.attention_probabilities(batch())), expected)


@pytest.mark.parametrize("attention", [True, False])
def test_each_further_output_can_be_had_alone(attention):
    encoder = BertEncoder(small_config(), return_attention=attention, return_hidden_states=not attention)
    asked = "attention_probabilities" if attention else "hidden_states"
    assert set(encoder(batch())) == {"sequence_output", "pooled_output", asked}


@pytest.mark.shared
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "bert-tiny-splade-mlm"])
def test_hidden_states_are_those_that_hugging_face_recorded(shared, name):
    golden = np.load(shared / "models" / name / "golden_batch.npz")
    encoder = BertEncoder.from_pretrained(
        shared / "models" / name, pooler=False, return_hidden_states=True, return_attention=True
    )
    positions = [0, 1, 2, 5, 10, 40]
    outputs = arrays(encoder({input.name: golden[input.name] for input in encoder.inputs}))
    real = golden["padding_mask"][:, positions].astype(bool)
    for i in range(encoder.config.num_hidden_layers + 1):
        expected = golden[f"hidden_{i}_positions_0_1_2_5_10_40"][real]
        np.testing.assert_allclose(outputs["hidden_states"][:, i, positions][real], expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(outputs["attention_probabilities"].sum(-1), 1, atol=1e-5)


def test_padding_has_no_influence():
    encoder, padded = BertEncoder(small_config(initializer_range=0.3)), batch()
    outputs = arrays(encoder(padded))
    real = padded["padding_mask"].astype(bool)
    other = {
        **padded,
        "token_ids": np.where(real, padded["token_ids"], 7),
        "segment_ids": padded["segment_ids"] | ~real,
    }
    np.testing.assert_array_equal(arrays(encoder(other))["sequence_output"][real], outputs["sequence_output"][real])

    short = {name: array[:1, :5] for name, array in padded.items()}
    assert short["padding_mask"].all()
    np.testing.assert_allclose(arrays(encoder(short))["sequence_output"], outputs["sequence_output"][:1, :5], atol=1e-5)


def test_takes_bool_masks_too():
    encoder, inputs = BertEncoder(small_config()), batch()
    as_bool = {**inputs, "padding_mask": inputs["padding_mask"].astype(bool)}
    np.testing.assert_array_equal(arrays(encoder(as_bool))["pooled_output"], arrays(encoder(inputs))["pooled_output"])


def test_tokens_segments_and_positions_matter():
    encoder, inputs = BertEncoder(small_config(initializer_range=0.3)), batch()
    outputs = arrays(encoder(inputs))["pooled_output"]
    for change in (
        {"token_ids": inputs["token_ids"] * 0 + 5},
        {"segment_ids": 1 - inputs["segment_ids"]},
        {"token_ids": inputs["token_ids"][:, [0, 2, 1, 3, 4, 5, 6, 7, 8]]},
    ):
        assert np.abs(arrays(encoder({**inputs, **change}))["pooled_output"] - outputs).max() > 1e-2


def test_dropout_draws_anew_in_every_call_and_the_same_from_the_same_seed():
    config = small_config(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3)

    def two_calls():
        encoder = BertEncoder(config, seed=3)
        return [arrays(encoder(batch(), training=True))["pooled_output"] for _ in range(2)]

    first, second = two_calls()
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(two_calls(), [first, second])


def test_every_dropout_has_a_stream_of_its_own():
    encoder = BertEncoder(small_config())
    states = {tuple(arrays(variable)) for variable in encoder.non_trainable_variables}
    # One after the embeddings, three in each block.
    assert len(states) == len(encoder.non_trainable_variables) == 1 + 2 * 3


def test_refuses_a_sequence_longer_than_its_positions():
    with pytest.raises(ValueError, match=r"Received: seq_len=17, max_position_embeddings=16"):
        BertEncoder(small_config())(batch(seq_len=17))
