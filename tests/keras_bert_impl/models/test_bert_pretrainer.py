"""`BertPretrainer`: contract and properties."""

import math

import numpy as np
import pytest
from harness import arrays, check_model, small_batch, small_config

from keras_bert_impl.losses import masked_lm_loss_sum, next_sentence_loss_sum
from keras_bert_impl.models import BertEncoder, BertPretrainer
from keras_bert_impl.presets import PRESETS


def make(**kwargs):
    return BertPretrainer(small_config(), **kwargs)


def test_contract(tmp_path):
    check_model(make, small_batch(), {"mlm_logits": (3, 2, 37), "nsp_logits": (3, 2)}, tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_under_every_policy(dtype):
    model = make(dtype=dtype)
    assert {output.dtype.name for output in model(small_batch()).values()} == {"float32"}
    assert {output.dtype for output in model.output.values()} == {"float32"}


@pytest.mark.parametrize("vocab_size", [1000, 30522])
def test_untrained_losses_are_those_of_a_guess(vocab_size):
    model = BertPretrainer.from_preset("tiny", vocab_size=vocab_size)
    outputs = model(small_batch(batch=8, predictions=5, vocab_size=vocab_size))
    labels = np.random.default_rng(0).integers(0, vocab_size, (8, 5))
    loss = float(masked_lm_loss_sum(outputs["mlm_logits"], labels, np.ones((8, 5), "float32"))) / 40
    assert abs(loss - math.log(vocab_size)) < 0.1
    loss = float(next_sentence_loss_sum(outputs["nsp_logits"], np.arange(8) % 2)) / 8
    assert abs(loss - math.log(2)) < 0.02


def test_predictions_do_not_depend_on_one_another():
    model, batch = make(), small_batch(predictions=4)
    together = arrays(model(batch))["mlm_logits"]
    for slot in range(4):
        alone = arrays(model({**batch, "mask_positions": batch["mask_positions"][:, slot : slot + 1]}))["mlm_logits"]
        np.testing.assert_allclose(alone[:, 0], together[:, slot], atol=1e-6)


def test_the_output_kernel_is_the_token_table():
    model = make()
    assert sum(tuple(weight.shape) == (37, 12) for weight in model.weights) == 1
    assert model.mlm_head.token_embedding is model.encoder.embeddings.token_embedding


def test_a_second_model_with_the_same_seed_has_the_same_weights_whatever_was_made_between():
    first = make(seed=5)
    BertEncoder(small_config(num_hidden_layers=1))
    for one, other in zip(first.weights, make(seed=5, name="elsewhere").weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(arrays(one), arrays(other))


def count(config):
    """Parameters of encoder and pooler, by the formula."""
    hidden, wide = config.hidden_size, config.intermediate_size
    tables = (config.vocab_size + config.max_position_embeddings + config.type_vocab_size) * hidden
    block = 4 * (hidden * hidden + hidden) + 2 * hidden * wide + hidden + wide + 4 * hidden
    return tables + 2 * hidden + config.num_hidden_layers * block + hidden * hidden + hidden


PUBLISHED = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_the_formula_gives_the_published_parameter_counts(preset):
    assert count(PRESETS[preset]) == PUBLISHED[preset]


@pytest.mark.parametrize(
    "preset", [pytest.param(name, marks=pytest.mark.slow if name in ("base", "large") else []) for name in PUBLISHED]
)
def test_models_have_the_published_parameter_counts(preset):
    assert BertEncoder.from_preset(preset).count_params() == PUBLISHED[preset]


@pytest.mark.slow
def test_both_heads_of_base_have_the_published_parameter_count():
    assert BertPretrainer.from_preset("base").count_params() == 110_106_428


def test_heads_of_every_size_have_the_parameters_of_their_definition():
    model, config = make(), small_config()
    heads = (12 * 12 + 12) + 2 * 12 + 37 + (12 * 2 + 2)
    trainable = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    assert trainable == count(config) + heads


def test_refuses_an_unknown_preset_and_field():
    with pytest.raises(ValueError, match=r"`preset` must be one of tiny, .* Received: preset='huge'"):
        BertPretrainer.from_preset("huge")
    with pytest.raises(ValueError, match=r"Unknown `BertConfig` keys: \['hiden_size'\]"):
        BertPretrainer.from_preset("tiny", hiden_size=4)
