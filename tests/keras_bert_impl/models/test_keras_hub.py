"""Agreement with KerasHub's BERT, weights copied across. It knows the tanh GELU only."""

import keras_hub
import numpy as np
import pytest
from harness import arrays, small_batch, small_config
from reference_models import (
    PADDINGS,
    SHAPES,
    KerasHubBert,
    Ours,
    check_gradients,
    check_hidden_states,
    check_logits,
    check_rounded_hidden_states,
    draw_weights,
    padded_batch,
    pretrainer,
)

from keras_bert_impl.models import BertEncoder, BertPretrainer
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module", params=SHAPES)
def pair(request):
    """A model of ours and theirs with its weights, with the name of their shape."""
    model = pretrainer(request.param)
    return request.param, Ours(model), KerasHubBert(model)


@pytest.mark.parametrize("padding", PADDINGS)
def test_hidden_states_pooled_outputs_and_logits_agree(pair, padding):
    shape, ours, theirs = pair
    check_hidden_states(ours, theirs, padded_batch(shape, padding))
    check_logits(ours, theirs, padded_batch(shape, padding))


@pytest.mark.parametrize("padding", PADDINGS)
def test_every_gradient_of_the_pretraining_loss_agrees(pair, padding):
    shape, ours, theirs = pair
    batch = padded_batch(shape, padding)
    check_gradients(ours.gradients(batch), theirs.gradients(batch))


@pytest.mark.parametrize("padding", ["none", "mixed"])
def test_in_bfloat16_both_round_the_same_network(padding):
    full = pretrainer("wide")
    check_rounded_hidden_states(
        Ours(pretrainer("wide", dtype="mixed_bfloat16")),
        KerasHubBert(full, dtype="mixed_bfloat16"),
        KerasHubBert(full),
        padded_batch("wide", padding),
    )


def test_other_weights_are_told_apart():
    """The comparison itself: one bias of ours that theirs has not is found, forward and in the gradients."""
    model = pretrainer("three_heads_of_4")
    theirs, batch = KerasHubBert(model), padded_batch("three_heads_of_4", "mixed")
    value_bias = model.encoder.blocks[1].attention.value.bias
    value_bias.assign(arrays(value_bias) + np.eye(12)[3] * 1e-3)
    with pytest.raises(AssertionError, match="hidden state 2"):
        check_hidden_states(Ours(model), theirs, batch)
    with pytest.raises(AssertionError, match="token_embedding/table"):
        check_gradients(Ours(model).gradients(batch), theirs.gradients(batch))


@pytest.fixture
def tokenizer():
    letters = [f"{mark}{letter}" for mark in ("", "##") for letter in "abcdefghijklmnop"]
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters], lowercase=True)


@pytest.mark.parametrize("architecture", [BertEncoder, BertPretrainer])
def test_a_model_directory_opens_in_keras_hub(architecture, tokenizer, tmp_path):
    """Under tanh GELU, with a pooler and a tokenizer's `do_lower_case`: what its reader needs."""
    model = draw_weights(architecture(small_config(hidden_act="gelu_new")))
    model.save_pretrained(tmp_path / "model", tokenizer=tokenizer)
    theirs = keras_hub.models.Backbone.from_preset(str(tmp_path / "model"))
    batch = {name: array for name, array in small_batch().items() if name != "mask_positions"}
    ours, theirs = arrays(getattr(model, "encoder", model)(batch)), arrays(theirs(batch))
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=2e-5, err_msg=name)

    their_tokenizer = keras_hub.models.BertTokenizer.from_preset(str(tmp_path / "model"))
    assert their_tokenizer.lowercase
    np.testing.assert_array_equal(their_tokenizer("Bad Pig, a cab"), tokenizer.encode_ids("Bad Pig, a cab"))
