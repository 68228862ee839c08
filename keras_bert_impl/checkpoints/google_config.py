"""`bert_config.json`, as Google's releases have it beside a checkpoint."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

CONFIG_FILE = "bert_config.json"

# "gelu" is the tanh form in google-research/bert since bee6030 and in the Model Garden. A checkpoint of older code
# or of other training can say "gelu_erf", which no release does.
_ACTIVATIONS = {
    "gelu": "gelu_new",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_pytorch_tanh",
    "gelu_erf": "gelu",
    "relu": "relu",
}
# What the released code assumes where a file does not say, unlike `BertConfig`.
_FORMAT_DEFAULTS: dict[str, Any] = {"type_vocab_size": 16}


def read_google_config(folder: Path) -> tuple[BertConfig, tuple[str, ...]]:
    """Reads `bert_config.json`.

    Args:
        folder: the directory that the checkpoint is in.

    Returns:
        The config, and the keys of the file that it has no field for.

    Raises:
        InputError: if there is no such file, or it describes another architecture.
    """
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise InputError(
            f"`path` must have its {CONFIG_FILE} beside the checkpoint. "
            f"Received: {str(folder)!r}, which has none; fine-tuned checkpoints need the one of the model they began as"
        )
    values = _read_json(file)
    known = {field.name for field in dataclasses.fields(BertConfig)}
    given = {key: value for key, value in values.items() if key in known and value is not None}
    stated = given.get("hidden_act", "gelu")
    if not isinstance(stated, str) or stated not in _ACTIVATIONS:
        raise InputError(
            f"`path` must have a hidden_act of {', '.join(_ACTIVATIONS)} in its {CONFIG_FILE}. "
            f"Received: {str(file)!r}, hidden_act={stated!r}"
        )
    try:
        config = BertConfig.from_dict({**_FORMAT_DEFAULTS, **given, "hidden_act": _ACTIVATIONS[stated]})
    except InputError as error:
        raise InputError(f"`path` must have a {CONFIG_FILE} of a BERT. Received: {str(file)!r}: {error}") from error
    _check_architecture(values, config, file)
    return config, tuple(sorted(values.keys() - known))


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`path` must hold readable JSON. Received: {str(file)!r}: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"`path` must hold a JSON object. Received: {str(file)!r}, a {type(values).__name__}")
    return values


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check_architecture(values: dict[str, Any], config: BertConfig, file: Path) -> None:
    # Keys of ALBERT's and the Model Garden's files that change what is computed.
    for key, required in (("embedding_size", config.hidden_size), ("norm_first", False), ("num_hidden_groups", None)):
        if values.get(key) not in (None, required):
            raise InputError(
                f"`path` must hold a BERT encoder with {key}={required!r}. "
                f"Received: {str(file)!r}, {key}={values[key]!r}"
            )
