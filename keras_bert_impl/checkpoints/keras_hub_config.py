"""What the configuration of a KerasHub BERT says, taken as plain values; nothing that it names is made."""

import json
from pathlib import Path
from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

ARCHITECTURES = {
    "BertBackbone": "BertModel",
    "BertMaskedLM": "BertForMaskedLM",
    "BertTextClassifier": "BertForSequenceClassification",
    "BertClassifier": "BertForSequenceClassification",
    "BertTextEmbedder": "BertModel",
}
"""Architecture of every KerasHub class that is one of ours, its encoder or its encoder with a head."""

_MASKED_LM_DIFFERENCE = (
    "whose masked-LM head has the erf GELU and adds 1e-05 to the variance; here a head does as its encoder, tanh and "
    "1e-12, so that its logits would differ"
)

# What every BertBackbone computes; it has no argument for it.
FIXED: dict[str, Any] = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-12, "initializer_range": 0.02}

FIELDS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
"""Field of `BertConfig` for every size of a BertBackbone."""

_REQUIRED = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
_KNOWN_KEYS = {"name", "trainable", "dtype", "dropout", *FIELDS}
# KerasHub was KerasNLP, and registers its classes under both names.
_PACKAGES = ("keras_hub", "keras_nlp")


def class_and_values(file: Path) -> tuple[str, dict[str, Any]]:
    """Returns the name of the KerasHub class that a file describes, and its configuration.

    Raises:
        InputError: if the file is absent, damaged or of no KerasHub class.
    """
    content = read_json(file)
    registered = content.get("registered_name")
    package, _, name = registered.partition(">") if isinstance(registered, str) else ("", "", "")
    values = content.get("config")
    if package not in _PACKAGES or not isinstance(values, dict):
        raise InputError(
            f"`path` must hold the configuration of a KerasHub class. Received: {str(file)!r}, "
            f"registered_name={registered!r}"
        )
    return name, values


def read_json(file: Path) -> dict[str, Any]:
    """Returns the object that a file of a preset holds; raises `InputError` if it is absent or damaged."""
    if not file.is_file():
        raise InputError(f"`path` must be a KerasHub preset. Received: {str(file.parent)!r}, which has no {file.name}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        fault = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"`path` must hold readable JSON. Received: {str(file)!r}: {fault}") from error
    if not isinstance(content, dict):
        raise InputError(f"`path` must hold a JSON object. Received: {str(file)!r}")
    return content


def bert_config(values: dict[str, Any], source: str) -> tuple[BertConfig, tuple[str, ...]]:
    """Returns what a BertBackbone computes, and the keys that are none of its known ones.

    Args:
        values: its configuration.
        source: where it is from, for the message.

    Raises:
        InputError: if a size is missing, of a wrong type or out of range.
    """
    if absent := [key for key in _REQUIRED if key not in values]:
        raise InputError(f"`path` must hold the sizes of a BertBackbone. Received: {source!r}, without {absent[0]!r}")
    dropout = values.get("dropout", 0.1)
    try:
        config = BertConfig(
            **{ours: values[theirs] for theirs, ours in FIELDS.items() if theirs in values},
            **FIXED,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
    except InputError as error:
        said = str(error).replace("hidden_dropout_prob", "dropout")
        for theirs, ours in FIELDS.items():
            said = said.replace(ours, theirs)
        raise InputError(f"`path` must hold a usable configuration. Received: {source!r}: {said}") from error
    return config, tuple(values.keys() - _KNOWN_KEYS)


def inexact_heads(architecture: str, activation: Any) -> tuple[tuple[str, str], ...]:
    """Returns the head of a task and how its outputs differ from ours, if they do; see `Checkpoint.inexact`.

    Args:
        architecture: a value of `ARCHITECTURES`.
        activation: of the task's classifier, as its configuration has it.
    """
    if architecture == "BertForMaskedLM":
        return (("mlm_head", _MASKED_LM_DIFFERENCE),)
    if architecture == "BertForSequenceClassification" and activation not in (None, "linear"):
        reason = f"whose classifier puts its logits through the activation {activation!r}; here they are its outputs"
        return (("classifier", reason),)
    return ()
