"""Model directories in Hugging Face's form: `config.json` and `model.safetensors`."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import safetensors
import safetensors.numpy

from keras_bert_impl.atomic import atomic_directory
from keras_bert_impl.checkpoints.load_report import LoadReport
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"

FRESH_PARTS = ("pooler", "mlm_head", "nsp_head")
"""Parts that a load may be allowed to start fresh."""

# What a file means that does not say: "gelu" is erf there, unlike in Google's released code.
_FORMAT_DEFAULTS: dict[str, Any] = {"vocab_size": 30522, "hidden_act": "gelu"}
# Keys that change what the model computes; only these values are the BERT that is built here.
_REQUIRED_VALUES: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_DESCRIPTION_KEYS = {"architectures", "model_type", *_REQUIRED_VALUES}
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a tensor of the file belongs."""

    variable: Any
    transposed: bool = False

    @property
    def shape_in_file(self) -> tuple[int, ...]:
        shape = tuple(self.variable.shape)
        return shape[::-1] if self.transposed else shape

    def read(self, value: np.ndarray) -> None:
        self.variable.assign(value.T if self.transposed else value)

    def write(self) -> np.ndarray:
        value = keras.ops.convert_to_numpy(keras.ops.cast(keras.ops.convert_to_tensor(self.variable), "float32"))
        return np.ascontiguousarray(value.T if self.transposed else value)


def read_config(path: str | os.PathLike[str]) -> tuple[BertConfig, tuple[str, ...]]:
    """Reads `config.json`.

    Args:
        path: the model directory.

    Returns:
        The config, and the keys of the file that it has no field for.

    Raises:
        InputError: if there is no such file, or it describes another architecture.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"`path` must be a model directory. Received: {str(folder)!r}, which is not a directory")
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise InputError(f"`path` must be a model directory. Received: {str(folder)!r}, which has no {CONFIG_FILE}")
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"`path` must hold readable JSON. Received: {str(file)!r}: {error}") from error
    model_type = values.get("model_type") if isinstance(values, dict) else None
    if model_type != "bert":
        raise InputError(f"`path` must hold a model of type 'bert'. Received: {str(file)!r}, model_type={model_type!r}")
    for key, required in _REQUIRED_VALUES.items():
        if values.get(key, required) != required:
            raise InputError(
                f"`path` must hold a BERT encoder with {key}={required!r}. "
                f"Received: {str(file)!r}, {key}={values[key]!r}"
            )
    known = {field.name for field in dataclasses.fields(BertConfig)}
    config = BertConfig.from_dict({**_FORMAT_DEFAULTS, **{k: v for k, v in values.items() if k in known}})
    return config, tuple(sorted(values.keys() - known - _DESCRIPTION_KEYS))


def read_weights(
    path: str | os.PathLike[str],
    model: Any,
    *,
    allow_missing: Collection[str] = (),
    allow_unused: Collection[str] = (),
    ignored_config_keys: tuple[str, ...] = (),
) -> LoadReport:
    """Reads `model.safetensors` into a model, tensor by tensor; or raises and changes nothing.

    Args:
        path: the model directory.
        model: a `PretrainedModel` whose shapes the file has.
        allow_missing: of `FRESH_PARTS`, those that may be absent as a whole.
        allow_unused: first names of tensors that may be left, for example `"classifier"`.
        ignored_config_keys: what `read_config` passed over, for the report.

    Raises:
        InputError: if the file is absent or damaged, or a tensor is missing, unused or of another
            shape without being allowed.
    """
    if unknown := sorted(set(allow_missing) - set(FRESH_PARTS)):
        raise InputError(f"`allow_missing` must be of {', '.join(FRESH_PARTS)}. Received: allow_missing={unknown}")
    file = Path(path) / WEIGHTS_FILE
    if not file.is_file():
        raise InputError(f"`path` must be a model directory. Received: {str(path)!r}, which has no {WEIGHTS_FILE}")
    places = _places(model)
    with _opened(file) as tensors:
        names = {_canonical(name): name for name in tensors.keys()}  # noqa: SIM118 (not a dict)
        for copy, original in _TIED.items():
            if copy in names and original not in names:
                names[original] = names.pop(copy)
        report = _compare(file, tensors, names, places, ignored_config_keys)
        _check_shapes(report)
        _check_missing(report, places, allow_missing)
        _check_unused(report, model, allow_unused)
        for name, place in places.items():
            if name in names:
                place.read(tensors.get_tensor(names[name]))
    return report


def write_model_directory(path: str | os.PathLike[str], model: Any, tokenizer: Any = None) -> None:
    """Writes `config.json`, `model.safetensors` and the tokenizer's files, whole or not at all.

    Args:
        path: directory to write; new, empty, or a model directory, which is replaced.
        model: a `PretrainedModel`.
        tokenizer: `WordPieceTokenizer`, or None.

    Raises:
        InputError: if the directory has content that is not a model.
    """
    target = Path(path)
    if target.exists() and not (target / CONFIG_FILE).is_file() and not _is_empty_directory(target):
        raise InputError(
            f"`path` must be new, empty or a model directory. Received: {str(target)!r}, which has other content"
        )
    config = {
        "architectures": [model.architecture],
        "model_type": "bert",
        **_REQUIRED_VALUES,
        **model.config.to_dict(),
    }
    prefix = "" if model.architecture == "BertModel" else "bert."
    tensors = {
        name if name.startswith("cls.") else prefix + name: place.write() for name, place in _places(model).items()
    }
    with atomic_directory(target, replace=True) as folder:
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        # Other readers refuse a file that does not name its format.
        safetensors.numpy.save_file(tensors, folder / WEIGHTS_FILE, metadata={"format": "pt"})
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)


def _places(model: Any) -> dict[str, _Place]:
    """Returns the place of every tensor, under its name without the prefix `bert.`."""
    encoder = getattr(model, "encoder", model)
    places = {
        "embeddings.word_embeddings.weight": _Place(encoder.embeddings.token_embedding.table),
        "embeddings.position_embeddings.weight": _Place(encoder.embeddings.position_embedding.table),
        "embeddings.token_type_embeddings.weight": _Place(encoder.embeddings.segment_embedding.table),
        **_layer_norm("embeddings.LayerNorm", encoder.embeddings.layer_norm),
    }
    for i, block in enumerate(encoder.blocks):
        name = f"encoder.layer.{i}"
        places |= _dense(f"{name}.attention.self.query", block.attention.query)
        places |= _dense(f"{name}.attention.self.key", block.attention.key)
        places |= _dense(f"{name}.attention.self.value", block.attention.value)
        places |= _dense(f"{name}.attention.output.dense", block.attention.output_projection)
        places |= _layer_norm(f"{name}.attention.output.LayerNorm", block.attention_norm)
        places |= _dense(f"{name}.intermediate.dense", block.feed_forward.intermediate)
        places |= _dense(f"{name}.output.dense", block.feed_forward.output_projection)
        places |= _layer_norm(f"{name}.output.LayerNorm", block.feed_forward_norm)
    if encoder.pooler is not None:
        places |= _dense("pooler.dense", encoder.pooler.dense)
    if model is not encoder:
        places |= _dense("cls.predictions.transform.dense", model.mlm_head.dense)
        places |= _layer_norm("cls.predictions.transform.LayerNorm", model.mlm_head.layer_norm)
        places["cls.predictions.bias"] = _Place(model.mlm_head.bias)
        places |= _dense("cls.seq_relationship", model.nsp_head)
    return places


def _dense(name: str, layer: Any) -> dict[str, _Place]:
    return {f"{name}.weight": _Place(layer.kernel, transposed=True), f"{name}.bias": _Place(layer.bias)}


def _layer_norm(name: str, layer: Any) -> dict[str, _Place]:
    return {f"{name}.weight": _Place(layer.gamma), f"{name}.bias": _Place(layer.beta)}


def _canonical(name: str) -> str:
    """Returns today's name of a tensor: no prefix, and LayerNorm's parts no longer gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _part(name: str) -> str:
    prefixes = {"pooler.": "pooler", "cls.predictions.": "mlm_head", "cls.seq_relationship.": "nsp_head"}
    return next((part for prefix, part in prefixes.items() if name.startswith(prefix)), "encoder")


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safetensors.safe_open(file, framework="numpy") as tensors:
            yield tensors
    except safetensors.SafetensorError as error:
        raise InputError(
            f"`path` must hold whole weights. Received: {str(file)!r}, which is cut off or damaged ({error})"
        ) from error


def _compare(
    file: Path, tensors: Any, names: dict[str, str], places: dict[str, _Place], ignored_config_keys: tuple[str, ...]
) -> LoadReport:
    loaded, wrong_shape, unused, passed_over = [], [], [], []
    for name, name_in_file in names.items():
        if name in places:
            shape = tuple(tensors.get_slice(name_in_file).get_shape())
            if shape == places[name].shape_in_file:
                loaded.append(name_in_file)
            else:
                wrong_shape.append((name_in_file, shape, places[name].shape_in_file))
        elif name in _BUFFERS:
            passed_over.append(name_in_file)
        elif name in _TIED and _TIED[name] in places:
            _check_tied(file, tensors, name_in_file, names[_TIED[name]])
            passed_over.append(name_in_file)
        else:
            unused.append(name_in_file)
    return LoadReport(
        source=str(file),
        loaded=tuple(loaded),
        newly_initialised=tuple(name for name in places if name not in names),
        unused=tuple(unused),
        wrong_shape=tuple(wrong_shape),
        passed_over=tuple(passed_over),
        ignored_config_keys=ignored_config_keys,
    )


def _check_tied(file: Path, tensors: Any, copy: str, original: str) -> None:
    if not np.array_equal(tensors.get_tensor(copy), tensors.get_tensor(original)):
        raise InputError(
            f"`path` must hold a model whose output kernel is its token table. Received: {str(file)!r}, "
            f"where {copy} differs from {original}"
        )


def _check_shapes(report: LoadReport) -> None:
    if report.wrong_shape:
        name, there, here = report.wrong_shape[0]
        raise InputError(
            f"`path` must hold tensors of the shapes that its {CONFIG_FILE} says. Received: {report.source!r}, "
            f"{name} is {there} in the file and {here} in the model"
            + (f", and {len(report.wrong_shape) - 1} more" if len(report.wrong_shape) > 1 else "")
            + _remedy(name)
        )


def _remedy(name: str) -> str:
    """Says which setting a wrong shape most likely belongs to."""
    if "word_embeddings" in name or name.startswith("cls.predictions.bias"):
        return " (another vocabulary: see `vocab_size`)"
    if "position_embeddings" in name:
        return " (another length: see `max_position_embeddings`)"
    return ""


def _check_missing(report: LoadReport, places: dict[str, _Place], allowed: Collection[str]) -> None:
    missing = set(report.newly_initialised)
    whole = {part for part in allowed if all(name in missing for name in places if _part(name) == part)}
    if refused := [name for name in report.newly_initialised if _part(name) not in whole]:
        parts = sorted({_part(name) for name in refused})
        hint = ""
        if set(parts) <= set(FRESH_PARTS) - set(allowed):
            hint = f"; `allow_missing={tuple(parts)!r}` starts with fresh ones"
        raise InputError(
            f"`path` must hold every tensor of the model. Received: {report.source!r}, "
            f"which lacks {_listed(refused)} ({', '.join(parts)}){hint}"
        )


def _check_unused(report: LoadReport, model: Any, allowed: Collection[str]) -> None:
    def may_stay(name: str) -> bool:
        first = name.removeprefix("bert.").split(".")[0]
        if first == "pooler":
            return model.leaves_heads or first in allowed
        return first in allowed or (model.leaves_heads and first not in ("embeddings", "encoder"))

    if refused := [name for name in report.unused if not may_stay(name)]:
        raise InputError(
            f"`path` must hold no tensor that the model has no place for. Received: {report.source!r}, "
            f"which also has {_listed(refused)}; `allow_unused` names those to leave"
        )


def _listed(names: Collection[str], shown: int = 4) -> str:
    more = len(names) - shown
    return ", ".join(list(names)[:shown]) + (f" and {more} more" if more > 0 else "")


def _is_empty_directory(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
