"""Which format a checkpoint is in."""

import json
import os
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.hugging_face import open_hugging_face
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.checkpoints.tensorflow_file import OBJECT_GRAPH, tensorflow_prefix, variable_shapes
from keras_bert_impl.errors import InputError

_EXPECTED = (
    "a model directory (config.json and model.safetensors), a run directory, a TensorFlow checkpoint with its "
    "bert_config.json, a KerasHub preset directory or a .keras file"
)


def open_checkpoint(source: Any) -> Checkpoint:
    """Opens a checkpoint of any format that is known; reads names and shapes, not yet weights.

    Args:
        source: path of a model directory in Hugging Face's form, of a run directory (its best model is meant), of
            a TensorFlow 1 or Model Garden checkpoint (its directory or its prefix), of a KerasHub preset directory
            or of a `.keras` file of this package; or a KerasHub model, a model of this package, or a
            checkpoint that is open already.

    Raises:
        InputError: if it is none of these, or is damaged.
    """
    if isinstance(source, Checkpoint):
        return source
    if not isinstance(source, str | os.PathLike):
        return _open_object(source)
    path = model_directory(source)
    format = format_of(path)
    if format == "keras":
        from keras_bert_impl.checkpoints.keras_file import open_keras_file

        return open_keras_file(path)
    if format == "keras_hub":
        from keras_bert_impl.checkpoints.keras_hub import open_keras_hub

        return open_keras_hub(path)
    if format == "google_tf1":
        from keras_bert_impl.checkpoints.google_tf1 import open_google_tf1

        return open_google_tf1(path)
    if format == "model_garden":
        from keras_bert_impl.checkpoints.model_garden import open_model_garden

        return open_model_garden(path)
    return open_hugging_face(path)


def format_of(path: Path) -> str:
    """Returns the name of a path's format, as `Checkpoint.format` has it.

    Raises:
        InputError: if it is none that is known.
    """
    if path.is_file() and path.suffix == ".keras":
        return "keras"
    if path.is_dir() and (path / "config.json").is_file():
        return "keras_hub" if _is_keras_hub(path / "config.json") else "huggingface"
    if prefix := tensorflow_prefix(path):
        return _tensorflow_format(prefix)
    if path.is_dir():
        raise InputError(f"`path` must be {_EXPECTED}. Received: {str(path)!r}, which has no config.json")
    what = "which is not there; nothing is downloaded"
    if path.exists():
        in_model = path.name in ("config.json", "model.safetensors", "pytorch_model.bin", "vocab.txt")
        what = "which is a file of a model: give its directory" if in_model else "which is none of them"
    raise InputError(f"`path` must be {_EXPECTED}. Received: {str(path)!r}, {what}")


def is_tensorflow_checkpoint(path: Path) -> bool:
    """Whether `path` is, or has in it, a checkpoint in TensorFlow's files; opens none of them."""
    return any(path.glob("*.index")) if path.is_dir() else Path(f"{path}.index").is_file() or path.suffix == ".index"


def _is_keras_hub(config_file: Path) -> bool:
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "registered_name" in config and "model_type" not in config


def _tensorflow_format(prefix: Path) -> str:
    objects = OBJECT_GRAPH in variable_shapes(prefix)
    return "model_garden" if objects else "google_tf1"


def _open_object(model: Any) -> Checkpoint:
    if isinstance(getattr(model, "architecture", None), str) and hasattr(model, "head_settings"):
        from keras_bert_impl.checkpoints.memory import checkpoint_of

        return checkpoint_of(model)
    if type(model).__module__.split(".")[0] in ("keras_hub", "keras_nlp"):
        from keras_bert_impl.checkpoints.keras_hub import open_keras_hub_object

        return open_keras_hub_object(model)
    raise InputError(f"`path` must be a path, a KerasHub model or a model of this package. Received: {type(model)}")
