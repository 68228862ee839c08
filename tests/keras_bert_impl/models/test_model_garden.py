"""Agreement with the Model Garden's BERT on Keras 2, weights copied across."""

import pytest
from reference_models import (
    PADDINGS,
    ModelGardenBert,
    Ours,
    check_gradients,
    check_hidden_states,
    check_logits,
    check_rounded_hidden_states,
    padded_batch,
    pretrainer,
)

pytest.importorskip("official", reason="needs the Model Garden: the extra `garden`")

CASES = [
    ("three_heads_of_4", "gelu", "BertEncoderV2"),
    ("longest_rows", "gelu_new", "BertEncoderV2"),
    ("one_head", "gelu", "BertEncoder"),
    ("wide", "gelu_new", "BertEncoder"),
    ("wide", "gelu", "BertEncoderV2"),
]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def pair(request):
    """A model of ours and theirs with its weights, with the name of their shape."""
    shape, hidden_act, network = request.param
    model = pretrainer(shape, hidden_act)
    return shape, Ours(model), ModelGardenBert(model, network)


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


@pytest.mark.parametrize("network", ["BertEncoder", "BertEncoderV2"])
@pytest.mark.parametrize("padding", ["none", "mixed"])
def test_in_bfloat16_both_round_the_same_network(network, padding):
    full = pretrainer("wide", "gelu")
    check_rounded_hidden_states(
        Ours(pretrainer("wide", "gelu", dtype="mixed_bfloat16")),
        ModelGardenBert(full, network, dtype="mixed_bfloat16"),
        ModelGardenBert(full, network),
        padded_batch("wide", padding),
    )


def test_the_two_forms_of_gelu_are_told_apart():
    model = pretrainer("three_heads_of_4", "gelu")
    theirs = ModelGardenBert(pretrainer("three_heads_of_4", "gelu_new"))
    batch = padded_batch("three_heads_of_4", "mixed")
    with pytest.raises(AssertionError, match="hidden state 1"):
        check_hidden_states(Ours(model), theirs, batch)
