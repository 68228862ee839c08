import numpy as np
import pytest
import tensorflow as tf
from pretraining_runs import small_config

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.presets import get_preset
from keras_bert_impl.training.distribution import make_strategy
from keras_bert_impl.training.performance import (
    describe_peak,
    flops_in_words,
    flops_of,
    peak_flops,
    training_flops,
)


def products_of(config: BertConfig, lengths: list[int], predictions: int) -> int:
    """Multiplications of every matrix product of a forward pass, written out one by one."""
    h, i, total = config.hidden_size, config.intermediate_size, 0
    for n in lengths:
        for layer in range(config.num_hidden_layers):
            total += 3 * n * h * h  # query, key, value
            total += n * n * h  # scores, over all heads
            total += n * n * h  # values by their probabilities
            if layer < config.num_hidden_layers - 1:
                total += n * h * h  # output
                total += n * h * i + n * i * h
        total += h * h + h * 2  # pooler and next-sentence head
    # What follows the last attention: where something is predicted, and at [CLS].
    total += (predictions + len(lengths)) * (h * h + 2 * h * i)
    return total + predictions * (h * h + h * config.vocab_size)


@pytest.mark.parametrize("preset", ["tiny", "base"])
def test_flops_of_equally_long_pairs_are_all_products_three_times(preset):
    config = get_preset(preset, vocab_size=30522)
    counted = training_flops(config, tokens=4 * 96, pairs=4, predictions=56)
    assert counted == 2 * 3 * products_of(config, [96] * 4, 56)


def test_the_mean_length_counts_a_little_less_than_the_lengths_themselves():
    config = get_preset("base", vocab_size=30522)
    lengths = [32, 64, 96, 128]
    counted = training_flops(config, tokens=sum(lengths), pairs=4, predictions=48)
    assert 0.995 < counted / (6 * products_of(config, lengths, 48)) < 1


def test_padding_and_packing_need_no_flops():
    config = get_preset("tiny", vocab_size=100)
    assert training_flops(config, tokens=0, pairs=0, predictions=0) == 0


def test_a_model_without_next_sentences_needs_no_pooler():
    config = BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    counts = {"tokens": 30.0, "examples": 3.0, "mlm_weight": 4.0}
    with_pooler, without = (flops_of(model(config))(counts) for model in (BertPretrainer, BertMaskedLM))
    assert with_pooler - without == 6 * 3 * (8 * 8 + 8 * 2 + 8 * 8 + 2 * 8 * 16)


def test_a_stated_peak_is_that_of_each_replica():
    assert peak_flops(make_strategy(2), "float32", 1e12) == 2e12


def test_a_measured_peak_is_what_products_reach():
    peak = peak_flops(tf.distribute.get_strategy(), "float32")
    # A two-core machine under load, and more than any one device has.
    assert 1e9 < peak < 1e16
    assert peak_flops(tf.distribute.get_strategy(), "float32") == peak


@pytest.mark.slow
def test_replicas_that_share_cores_share_the_peak():
    one, two = (np.median([peak_of(count) for _ in range(3)]) for count in (1, 2))
    assert 0.4 < two / one < 1.7


def peak_of(replicas):
    from keras_bert_impl.training.performance import _measured

    _measured.cache_clear()
    return peak_flops(make_strategy(replicas), "float32")


def test_the_peak_is_told_with_its_source():
    assert describe_peak(4.25e10, small_config("data", "run")) == (
        "Peak of 1 replica: 42.5 gigaFLOP a second in products of float32 matrices, measured; "
        "utilisation is the share of it that real tokens need."
    )
    stated = small_config("data", "run", replicas=4, dtype="mixed_bfloat16", peak_flops=1e15)
    assert "Peak of 4 replicas: 4 petaFLOP a second in products of bfloat16 matrices, as `peak_flops` says" in (
        describe_peak(4e15, stated)
    )


@pytest.mark.parametrize(
    ("flops", "words"), [(0, "0 FLOP"), (999, "999 FLOP"), (1.5e6, "1.5 megaFLOP"), (2e22, "2e+04 exaFLOP")]
)
def test_flops_have_words(flops, words):
    assert flops_in_words(flops) == words
