"""KerasHub: preset directories as checkpoints, and beside them its models, its tokenizer and the writer.

A preset names the classes that it was made of. They are never made here: the plain values of the encoder's
configuration are checked and taken, and the arrays are read straight from the HDF5 file. So nothing that a file says
is run, KerasHub need not be installed, and no second model fills the memory.
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor, architecture_of, plain_labels
from keras_bert_impl.checkpoints.hdf5_file import check_float, open_hdf5
from keras_bert_impl.checkpoints.keras_hub_config import (
    ARCHITECTURES,
    bert_config,
    class_and_values,
    inexact_heads,
    read_json,
)
from keras_bert_impl.checkpoints.keras_hub_names import (
    CONFIG_FILE,
    HEADS,
    METADATA_FILE,
    SHARDS_FILE,
    TASK_FILE,
    TASK_WEIGHTS_FILE,
    WEIGHTS_FILE,
    backbone_paths,
    blocks_among,
    joined_shape,
)
from keras_bert_impl.checkpoints.keras_hub_object import open_keras_hub_object
from keras_bert_impl.checkpoints.keras_hub_tokenizer import keras_hub_tokenizer
from keras_bert_impl.checkpoints.keras_hub_writer import write_keras_hub
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

__all__ = ["keras_hub_tokenizer", "open_keras_hub", "open_keras_hub_object", "write_keras_hub"]

_TASK_KEYS = {"backbone", "preprocessor", "name", "trainable", "dtype", "num_classes", "activation", "dropout"}
# What files of Keras 2.13 have in place of "layers".
_OLD_LAYERS = "_layer_checkpoint_dependencies"

_Reasons = tuple[tuple[str, str], ...]


def open_keras_hub(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a preset directory that `save_to_preset` of a BERT backbone or task wrote.

    Args:
        path: the directory.

    Raises:
        InputError: if it is no such directory, one of its files is damaged or points elsewhere, or the files do not
            fit one another; also when a tensor is read, if it is damaged.
    """
    folder = Path(path)
    file = folder / CONFIG_FILE
    name, values = class_and_values(file)
    if name != "BertBackbone":
        raise InputError(f"`path` must hold a KerasHub BertBackbone. Received: {str(file)!r}, of class {name!r}")
    config, ignored_keys = bert_config(values, str(file))
    source, stored = _open_weights(folder)
    tensors, passed_over = _backbone_tensors(source, stored, config)
    task = _open_task(folder, config) if (folder / TASK_FILE).is_file() else _Task()
    return Checkpoint(
        source=str(source),
        format="keras_hub",
        config=config,
        tensors={**tensors, **task.tensors},
        architecture=architecture_of([*tensors, *task.tensors], task.architecture),
        labels=task.labels,
        settings=task.settings,
        passed_over=(*passed_over, *task.passed_over),
        ignored_config_keys=tuple(sorted({*ignored_keys, *task.ignored_keys})),
        inexact=task.inexact,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
    """What a preset has beside its backbone."""

    architecture: str = "BertModel"
    tensors: dict[str, StoredTensor] = dataclasses.field(default_factory=dict)
    labels: tuple[str, ...] = ()
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    passed_over: _Reasons = ()
    ignored_keys: tuple[str, ...] = ()
    inexact: _Reasons = ()


def _open_task(folder: Path, config: BertConfig) -> _Task:
    file, weights = folder / TASK_FILE, folder / TASK_WEIGHTS_FILE
    name, values = class_and_values(file)
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        raise InputError(
            f"`path` must hold a KerasHub task of {', '.join(ARCHITECTURES)}. Received: {str(file)!r}, of class "
            f"{name!r}"
        )
    _check_same_backbone(values, config, file)
    tensors, passed_over = _by_key(
        weights, open_hdf5(weights) if weights.is_file() else [], HEADS.get(architecture, {}), config
    )
    labels: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    inexact = inexact_heads(architecture, values.get("activation"))
    if architecture == "BertForSequenceClassification":
        settings["classifier_dropout"] = _dropout(values, file)
        if "classifier.weight" in tensors:
            labels, said = _labels(folder, _num_classes(values, tensors["classifier.weight"], config, file))
            settings |= said
    return _Task(
        architecture=architecture,
        tensors=tensors,
        labels=labels,
        settings=settings,
        passed_over=passed_over,
        ignored_keys=tuple(values.keys() - _TASK_KEYS),
        inexact=inexact,
    )


def _check_same_backbone(values: dict[str, Any], config: BertConfig, file: Path) -> None:
    backbone = values.get("backbone")
    inner = backbone.get("config") if isinstance(backbone, dict) else None
    if not isinstance(inner, dict) or bert_config(inner, str(file))[0] != config:
        raise InputError(
            f"`path` must hold a task made for its backbone. Received: {str(file)!r}, whose backbone is not that of "
            f"{CONFIG_FILE}"
        )


def _open_weights(folder: Path) -> tuple[Path, list[StoredTensor]]:
    """Returns the file that the weights are in, and the tensors of it or of the shards that it lists."""
    if (folder / WEIGHTS_FILE).is_file():
        return folder / WEIGHTS_FILE, open_hdf5(folder / WEIGHTS_FILE)
    index = folder / SHARDS_FILE
    if not index.is_file():
        raise InputError(f"`path` must be a KerasHub preset. Received: {str(folder)!r}, which has no {WEIGHTS_FILE}")
    where = read_json(index).get("weight_map")
    listed = where.values() if isinstance(where, dict) else [None]
    names = {str(name) for found in listed for name in (found if isinstance(found, list) else [found])}
    stored: list[StoredTensor] = []
    for name in sorted(names):
        if Path(name).name != name or not (folder / name).is_file():
            raise InputError(f"`path` must have the shards of its index beside it. Received: {str(index)!r}, {name!r}")
        stored += open_hdf5(folder / name)
    return index, stored


def _backbone_tensors(
    source: Path, stored: list[StoredTensor], config: BertConfig
) -> tuple[dict[str, StoredTensor], _Reasons]:
    paths = [tensor.name.replace(_OLD_LAYERS, "layers") for tensor in stored]
    blocks = blocks_among(paths)
    if blocks != config.num_hidden_layers:
        raise InputError(
            f"`path` must hold as many blocks as its configuration says. Received: {str(source)!r}, with {blocks}, "
            f"num_layers={config.num_hidden_layers}"
        )
    return _by_key(source, stored, backbone_paths(blocks), config)


def _by_key(
    source: Path, stored: list[StoredTensor], paths: dict[str, str], config: BertConfig
) -> tuple[dict[str, StoredTensor], _Reasons]:
    """Returns the tensors by the names of `architecture.tensor_shapes`, and what of them holds nothing new."""
    keys = {path: key for key, path in paths.items()}
    tensors: dict[str, StoredTensor] = {}
    passed_over = []
    for tensor in stored:
        path = tensor.name.replace(_OLD_LAYERS, "layers")
        if path.startswith("optimizer/"):
            passed_over.append((tensor.name, "optimizer state"))
            continue
        # One that no BERT has is known by its file: "model.layers/…", "task.layers/…".
        key = keys.get(path, f"{source.name.split('.')[0]}.{path}")
        if key in tensors:
            raise InputError(f"`path` must hold every tensor once. Received: {str(source)!r}, with {path} twice")
        tensors[key] = _checked(key, tensor, config, source) if path in keys else tensor
    # In the order of a model, not of the file.
    return {key: tensors[key] for key in [*paths, *tensors] if key in tensors}, tuple(passed_over)


def _checked(key: str, tensor: StoredTensor, config: BertConfig, source: Path) -> StoredTensor:
    check_float(tensor, source)
    shape = joined_shape(key, tensor.shape, config.num_attention_heads)
    if shape is None:
        raise InputError(
            f"`path` must hold attention of {config.num_attention_heads} heads, as its configuration says. "
            f"Received: {str(source)!r}, {tensor.name} is {tensor.shape}"
        )
    return dataclasses.replace(tensor, shape=shape)


def _dropout(values: dict[str, Any], file: Path) -> float:
    dropout = values.get("dropout", 0.1)
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise InputError(
            f"`path` must have a dropout of at least 0 and less than 1. Received: {str(file)!r}, dropout={dropout!r}"
        )
    return dropout


def _num_classes(values: dict[str, Any], kernel: StoredTensor, config: BertConfig, file: Path) -> int:
    count = values.get("num_classes")
    if type(count) is not int or count < 1 or kernel.shape != (config.hidden_size, count):
        raise InputError(
            f"`path` must hold a classifier of as many outputs as its configuration says. Received: {str(file)!r}, "
            f"num_classes={count!r}, {kernel.name} is {kernel.shape}"
        )
    return count


def _labels(folder: Path, count: int) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the names of the outputs and what they mean, where `write_keras_hub` put them beside, else numbers."""
    file = folder / METADATA_FILE
    said = read_json(file) if file.is_file() else {}
    settings = {"problem_type": said["problem_type"]} if isinstance(said.get("problem_type"), str) else {}
    labels = said.get("labels")
    if labels is None:
        return plain_labels(count), settings
    if not isinstance(labels, list) or len(labels) != count or not all(isinstance(label, str) for label in labels):
        raise InputError(
            f"`path` must have one name in `labels` for each output of its classifier. Received: {str(file)!r}, "
            f"{count} outputs, labels={labels!r}"
        )
    return tuple(labels), settings
