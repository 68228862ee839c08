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
