"""Writing a model as a KerasHub preset."""

import itertools
import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.atomic import atomic_directory
from keras_bert_impl.checkpoints.architecture import HEADS as HEAD_PARTS
from keras_bert_impl.checkpoints.architecture import part_of
from keras_bert_impl.checkpoints.hdf5_file import write_hdf5
from keras_bert_impl.checkpoints.keras_hub_config import FIELDS, FIXED
from keras_bert_impl.checkpoints.keras_hub_names import (
    CONFIG_FILE,
    HEADS,
    METADATA_FILE,
    PREPROCESSOR_FILE,
    TASK_FILE,
    TASK_WEIGHTS_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    backbone_paths,
    check_preset_target,
    split_shape,
)
from keras_bert_impl.checkpoints.keras_hub_tokenizer import keras_hub_tokenizer_config
from keras_bert_impl.checkpoints.places import Place, places
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary_file import save_vocabulary

_TANH_GELU = ("gelu_new", "gelu_pytorch_tanh")
_CLASSIFIER = "BertForSequenceClassification"
# Step and learning rate of the Adam that KerasHub gives a classifier when it opens it; without them it warns.
_NEW_OPTIMIZER: dict[str, Any] = {"optimizer/vars/0": np.int64(0), "optimizer/vars/1": np.float32(5e-5)}


def write_keras_hub(
    path: str | os.PathLike[str], model: Any, tokenizer: Any = None, *, drop: Collection[str] = ()
) -> None:
    """Writes a preset directory that KerasHub opens with the same outputs, whole or not at all.

    A `BertEncoder` becomes a `BertBackbone` and a `BertClassifier` a `BertTextClassifier`; the names of its labels and
    its problem type, which KerasHub has no place for, go into `metadata.json`. Of other models the encoder is written
    if its heads are named in `drop`. Values and dtype policy are float32 whatever the model's are.

    Args:
        path: directory to write; new, empty, or a preset directory, which is replaced.
        model: a `PretrainedModel`.
        tokenizer: `WordPieceTokenizer` to write beside the weights, if any. KerasHub's own has the same vocabulary
            and options, but differs on rare characters.
        drop: heads to leave out, of `"mlm_head"`, `"nsp_head"`, `"classifier"`, `"qa_head"`.

    Raises:
        InputError: if the directory has other content, or KerasHub cannot hold the model or the tokenizer.
    """
    target = Path(path)
    check_preset_target(target)
    found = places(model)
    _check_parts(model, found, drop)
    check_config(model.config)
    with_classifier = model.architecture == _CLASSIFIER and "classifier" not in drop
    backbone = _object("keras_hub.src.models.bert.bert_backbone", "BertBackbone", _backbone_config(model.config))
    preprocessor = None
    if tokenizer is not None:
        # Checked before anything is written.
        preprocessor = _preprocessor(tokenizer, model.config)
    with atomic_directory(target, replace=True) as folder:
        _write_json(folder / CONFIG_FILE, backbone)
        write_hdf5(folder / WEIGHTS_FILE, _values(found, backbone_paths(model.config.num_hidden_layers), model.config))
        _write_json(folder / METADATA_FILE, _metadata(model, found, with_classifier))
        if with_classifier:
            _write_json(folder / TASK_FILE, _classifier(model, backbone, preprocessor))
            head = _values(found, HEADS[_CLASSIFIER], model.config)
            write_hdf5(folder / TASK_WEIGHTS_FILE, itertools.chain(head, _NEW_OPTIMIZER.items()))
        if preprocessor is not None:
            _write_json(folder / TOKENIZER_FILE, preprocessor["config"]["tokenizer"])
            _write_json(folder / PREPROCESSOR_FILE, preprocessor)
            (folder / VOCABULARY_FILE).parent.mkdir(parents=True)
            save_vocabulary(tokenizer.vocabulary, folder / VOCABULARY_FILE)


def _check_parts(model: Any, found: dict[str, Place], drop: Collection[str]) -> None:
    parts = list(dict.fromkeys(part_of(key) for key in found))
    heads = [part for part in parts if part in HEAD_PARTS and part != "pooler"]
    if unknown := sorted(set(drop) - set(heads)):
        raise InputError(
            f"`drop` must be of the model's heads, {', '.join(heads) or 'of which it has none'}. "
            f"Received: drop={unknown}"
        )
    if "pooler" not in parts:
        raise InputError(
            "`model` must have a pooler, as every KerasHub BertBackbone. "
            f"Received: {type(model).__name__} {model.name!r}, without one"
        )
    kept = [part for part in heads if part not in drop]
    if kept and not (model.architecture == _CLASSIFIER and kept == ["classifier"]):
        reason = "masked-LM heads there have the erf GELU and add 1e-05 to the variance; " if "mlm_head" in kept else ""
        raise InputError(
            f"`model` must have no head that KerasHub has no equal of. Received: {type(model).__name__}, with "
            f"{', '.join(kept)}; {reason}`drop={tuple(kept)!r}`, "
            "or `architecture='BertModel'` of `convert`, writes the encoder alone"
        )


def check_config(config: BertConfig) -> None:
    """Raises `InputError` if KerasHub would compute something else from this configuration."""
    if config.hidden_act not in _TANH_GELU:
        raise InputError(
            "`model` must have the tanh form of GELU, which KerasHub computes whatever the model had. "
            f"Received: hidden_act={config.hidden_act!r}"
        )
    if config.layer_norm_eps != FIXED["layer_norm_eps"]:
        raise InputError(
            "`model` must add 1e-12 to the variance in layer normalisation, as KerasHub does whatever the model did. "
            f"Received: layer_norm_eps={config.layer_norm_eps!r}"
        )
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        raise InputError(
            "`model` must have one dropout, which KerasHub takes for hidden states and attention alike. "
            f"Received: hidden_dropout_prob={config.hidden_dropout_prob!r}, "
            f"attention_probs_dropout_prob={config.attention_probs_dropout_prob!r}"
        )


def _values(found: dict[str, Place], paths: dict[str, str], config: BertConfig) -> Iterator[tuple[str, np.ndarray]]:
    for key, path in paths.items():
        value = found[key].value()
        yield path, value.reshape(split_shape(key, value.shape, config.num_attention_heads))


def _backbone_config(config: BertConfig) -> dict[str, Any]:
    return {
        "name": "bert_backbone",
        "trainable": True,
        "dtype": _dtype("float32"),
        **{theirs: getattr(config, ours) for theirs, ours in FIELDS.items()},
        "dropout": config.hidden_dropout_prob,
    }


def _classifier(model: Any, backbone: dict[str, Any], preprocessor: dict[str, Any] | None) -> dict[str, Any]:
    config = {
        "backbone": backbone,
        "preprocessor": preprocessor,
        "name": "bert_text_classifier",
        "num_classes": len(model.labels),
        "activation": "linear",
        "dropout": model.dropout.rate,
    }
    return _object("keras_hub.src.models.bert.bert_text_classifier", "BertTextClassifier", config)


def _preprocessor(tokenizer: Any, config: BertConfig) -> dict[str, Any]:
    tokenizer_config = {
        "name": "bert_tokenizer",
        "trainable": True,
        "dtype": _dtype("int32"),
        "config_file": TOKENIZER_FILE,
        **keras_hub_tokenizer_config(tokenizer),
    }
    return _object(
        "keras_hub.src.models.bert.bert_text_classifier_preprocessor",
        "BertTextClassifierPreprocessor",
        {
            "name": "bert_text_classifier_preprocessor",
            "trainable": True,
            "dtype": _dtype("float32"),
            "tokenizer": _object("keras_hub.src.models.bert.bert_tokenizer", "BertTokenizer", tokenizer_config),
            "config_file": PREPROCESSOR_FILE,
            "sequence_length": config.max_position_embeddings,
            "truncate": "round_robin",
        },
    )


def _metadata(model: Any, found: dict[str, Place], with_classifier: bool) -> dict[str, Any]:
    paths = backbone_paths(model.config.num_hidden_layers)
    said = {"labels": list(model.labels), "problem_type": model.problem_type} if with_classifier else {}
    count = sum(int(np.prod(found[key].variable.shape)) for key in paths)
    return {"parameter_count": count, "tasks": ["MaskedLM", "TextClassifier", "TextEmbedder"], **said}


def _object(module: str, name: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"module": module, "class_name": name, "config": config, "registered_name": f"keras_hub>{name}"}


def _dtype(name: str) -> dict[str, Any]:
    return {"module": "keras", "class_name": "DTypePolicy", "config": {"name": name}, "registered_name": None}


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")
