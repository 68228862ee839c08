"""The published sizes, by name."""

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.presets import PRESETS, get_preset


def test_the_six_sizes_are_there():
    shapes = {name: (config.num_hidden_layers, config.hidden_size) for name, config in PRESETS.items()}
    assert shapes == {
        "tiny": (2, 128),
        "mini": (4, 256),
        "small": (4, 512),
        "medium": (8, 512),
        "base": (12, 768),
        "large": (24, 1024),
    }


def test_heads_are_64_wide_and_the_feed_forward_is_four_times_the_width():
    for config in PRESETS.values():
        assert config.hidden_size == 64 * config.num_attention_heads
        assert config.intermediate_size == 4 * config.hidden_size


def test_fields_can_be_replaced():
    config = get_preset("tiny", vocab_size=8000, hidden_dropout_prob=0.0)
    assert (config.vocab_size, config.hidden_dropout_prob, config.hidden_size) == (8000, 0.0, 128)
    assert PRESETS["tiny"].vocab_size == 30522


def test_refuses_an_unknown_name_or_field():
    with pytest.raises(InputError, match=r"`preset` must be one of tiny, mini, .* Received: preset='huge'"):
        get_preset("huge")
    with pytest.raises(InputError, match=r"Unknown `BertConfig` keys: \['size'\]"):
        get_preset("tiny", size=3)
