"""`BertConfig` names the field that is wrong."""

import dataclasses
import json
import subprocess
import sys

import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

FIELDS = {"vocab_size": 11, "hidden_size": 4, "num_attention_heads": 2}


def test_survives_json():
    config = BertConfig(**FIELDS, hidden_act="gelu")
    assert BertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_defaults_are_the_originals_base():
    config = BertConfig(vocab_size=30522)
    assert (config.hidden_size, config.num_hidden_layers, config.intermediate_size) == (768, 12, 3072)
    assert (config.hidden_act, config.layer_norm_eps, config.initializer_range) == ("gelu_new", 1e-12, 0.02)
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.1, 0.1)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig(**FIELDS).hidden_size = 8


@pytest.mark.parametrize(
    "field,value,message",
    [
        ("vocab_size", 0, r"`vocab_size` must be a positive whole number. Received: vocab_size=0"),
        ("num_hidden_layers", 1.5, r"`num_hidden_layers` must be a positive whole number. .*num_hidden_layers=1.5"),
        ("intermediate_size", True, r"`intermediate_size` must be a positive whole number. .*intermediate_size=True"),
        ("hidden_size", 5, r"`hidden_size` must be a multiple of `num_attention_heads`. Received: hidden_size=5"),
        ("hidden_act", "elu", r"`hidden_act` must be one of gelu, gelu_new, .* Received: hidden_act='elu'"),
        ("hidden_dropout_prob", 1.0, r"`hidden_dropout_prob` must be at least 0 and less than 1. .*=1.0"),
        ("attention_probs_dropout_prob", -0.1, r"`attention_probs_dropout_prob` must be at least 0 .*=-0.1"),
        ("layer_norm_eps", 0, r"`layer_norm_eps` must be a positive number. Received: layer_norm_eps=0"),
        ("initializer_range", float("inf"), r"`initializer_range` must be a positive number. .*=inf"),
        ("pad_token_id", 11, r"`pad_token_id` must be an id of the vocabulary. .*pad_token_id=11, vocab_size=11"),
    ],
)
def test_names_the_bad_field(field, value, message):
    with pytest.raises(InputError, match=message):
        BertConfig(**{**FIELDS, field: value})


def test_from_dict_names_unknown_and_missing_keys():
    message = r"Unknown `BertConfig` keys: \['hiden_size'\]\. Did you mean 'hidden_size'\? Known keys: \['vocab_size', "
    with pytest.raises(InputError, match=message):
        BertConfig.from_dict({**FIELDS, "hiden_size": 4})
    with pytest.raises(InputError, match=r"`BertConfig` needs the key 'vocab_size'. Received: \['hidden_size'\]"):
        BertConfig.from_dict({"hidden_size": 4})


def test_config_and_presets_open_no_tensorflow():
    code = (
        "import sys; sys.modules['keras_bert_console'] = sys;"
        "import keras_bert_impl.presets, keras_bert_impl.atomic;"
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 'keras', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    "field,value",
    [
        ("hidden_size", 2**31),
        ("hidden_dropout_prob", "x"),
        ("hidden_dropout_prob", None),
        ("layer_norm_eps", "x"),
        ("initializer_range", [1]),
        ("pad_token_id", "a"),
        ("pad_token_id", 1.5),
    ],
)
def test_values_of_the_wrong_kind_are_a_sentence(field, value):
    with pytest.raises(InputError, match=f"`{field}` must be .*Received: {field}="):
        BertConfig(**{"vocab_size": 10, field: value})
