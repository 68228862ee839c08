"""`.keras` files of this package's models as checkpoints.

Such a file is a zip archive with the model's configuration and an HDF5 file of its weights. The configuration may
name any class or function of the reader's machine, so it is never given to Keras: its plain values are checked and
taken, and the arrays are read straight from where they lie.
"""

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.architecture import part_of
from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor
from keras_bert_impl.checkpoints.hdf5_file import FilePart, check_float, open_hdf5
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

_PACKAGE = "keras_bert_impl"
_CONFIG = "config.json"
_WEIGHTS = "model.weights.h5"
_LARGEST_CONFIG = 1 << 24
_ENCODER = "layers/bert_encoder/"
_BLOCK = "layers/transformer_block"
# What a model's configuration has besides `config`; only labels and head settings are of use here.
_HEAD_KEYS = ("problem_type", "classifier_dropout")
_KNOWN_KEYS = {
    *("name", "trainable", "dtype", "config", "seed", "pooler", "return_attention", "return_hidden_states"),
    *("packed", "labels"),
    *_HEAD_KEYS,
}


def open_keras_file(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a `.keras` file that `save` of one of this package's models wrote.

    Args:
        path: the file.

    Raises:
        InputError: if it is no such file, is damaged, or holds another model; also when a tensor is read.
    """
    file = Path(path)
    architecture, values, weights = _open_archive(file)
    config = _bert_config(values, file)
    tensors, passed_over = _by_key(file, open_hdf5(file, weights), architecture, config)
    return Checkpoint(
        source=str(file),
        format="keras",
        config=config,
        tensors=tensors,
        architecture=architecture,
        labels=_labels(values, tensors, file),
        settings={key: values[key] for key in _HEAD_KEYS if values.get(key) is not None},
        passed_over=passed_over,
        ignored_config_keys=tuple(sorted(values.keys() - _KNOWN_KEYS)),
    )


@dataclasses.dataclass(frozen=True)
class _PartOpener:
    """Opens the weights inside the archive, which Keras puts there uncompressed."""

    file: Path
    start: int
    size: int

    def __call__(self) -> FilePart:
        return FilePart(self.file, self.start, self.size)


def _open_archive(file: Path) -> tuple[str, dict[str, Any], _PartOpener]:
    """Returns the model's architecture and configuration, and what opens its weights."""
    try:
        with zipfile.ZipFile(file) as archive:
            architecture, values = _model(_read_config(archive, file), file)
            return architecture, values, _weights(archive, file)
    except InputError:
        raise
    except (OSError, EOFError, KeyError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"`path` must be a whole .keras file. Received: {str(file)!r}, which is cut off or damaged ({error})"
        ) from error


def _read_config(archive: zipfile.ZipFile, file: Path) -> Any:
    info = archive.getinfo(_CONFIG)
    if info.file_size > _LARGEST_CONFIG:
        raise InputError(
            f"`path` must have a {_CONFIG} of at most {_LARGEST_CONFIG} bytes. Received: {str(file)!r}, "
            f"{info.file_size} bytes"
        )
    with archive.open(info) as member:
        content = member.read(_LARGEST_CONFIG)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`path` must hold readable JSON. Received: {str(file)!r}, {_CONFIG}: {error}") from error


def _model(content: Any, file: Path) -> tuple[str, dict[str, Any]]:
    from keras_bert_impl.models.architectures import ARCHITECTURES  # models are made from checkpoints

    known = {f"{_PACKAGE}>{cls.__name__}": architecture for architecture, cls in ARCHITECTURES.items()}
    registered = content.get("registered_name") if isinstance(content, dict) else None
    architecture = known.get(registered) if isinstance(registered, str) else None
    values = content.get("config") if isinstance(content, dict) else None
    if architecture is None or not isinstance(values, dict):
        what = registered or (content.get("class_name") if isinstance(content, dict) else None)
        raise InputError(
            f"`path` must hold a model of this package: {', '.join(name.split('>')[1] for name in known)}. "
            f"Received: {str(file)!r}, of class {what!r}"
        )
    return architecture, values


def _weights(archive: zipfile.ZipFile, file: Path) -> _PartOpener:
    info = archive.getinfo(_WEIGHTS)
    if info.compress_type != zipfile.ZIP_STORED:
        raise InputError(
            f"`path` must hold its weights uncompressed, as Keras writes them. Received: {str(file)!r}, whose "
            f"{_WEIGHTS} is compressed"
        )
    with archive.open(info) as member:
        # To the end, since only then the checksum is compared.
        while member.read(1 << 20):
            pass
    with file.open("rb") as raw:
        # The archive's directory does not say where the values begin: the local header before them does.
        raw.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(raw.read(2), "little") for _ in range(2))
    return _PartOpener(file, info.header_offset + 30 + name + extra, info.file_size)


def _bert_config(values: dict[str, Any], file: Path) -> BertConfig:
    config = values.get("config")
    if not isinstance(config, dict):
        raise InputError(f"`path` must hold a `config` of its model. Received: {str(file)!r}, config={config!r}")
    try:
        return BertConfig.from_dict(config)
    except InputError as error:
        raise InputError(f"`path` must hold a usable configuration. Received: {str(file)!r}: {error}") from error


def _by_key(
    file: Path, stored: list[StoredTensor], architecture: str, config: BertConfig
) -> tuple[dict[str, StoredTensor], tuple[tuple[str, str], ...]]:
    """Returns the tensors by the names of `architecture.tensor_shapes`, and what of them holds nothing new."""
    prefix = "" if architecture == "BertModel" else _ENCODER
    blocks = {tensor.name.removeprefix(prefix).split("/")[1] for tensor in stored if prefix + _BLOCK in tensor.name}
    if len(blocks) != config.num_hidden_layers:
        raise InputError(
            f"`path` must hold as many blocks as its configuration says. Received: {str(file)!r}, with {len(blocks)}, "
            f"num_hidden_layers={config.num_hidden_layers}"
        )
    paths = dict(_paths(architecture, prefix, len(blocks)))
    keys = {path: key for key, path in paths.items()}
    tensors: dict[str, StoredTensor] = {}
    passed_over = []
    for tensor in stored:
        if tensor.name.startswith("optimizer/"):
            passed_over.append((tensor.name, "optimizer state"))
            continue
        if tensor.name in keys:
            check_float(tensor, file)
        tensors[keys.get(tensor.name, tensor.name)] = tensor
    # In the order of a model, not of the file.
    return {key: tensors[key] for key in [*paths, *tensors] if key in tensors}, tuple(passed_over)


def _paths(architecture: str, prefix: str, num_layers: int) -> Iterator[tuple[str, str]]:
    """Yields name and path of every tensor that a model of an architecture can have."""
    yield "embeddings.word_embeddings.weight", f"{prefix}layers/embeddings/token_embedding/vars/0"
    yield "embeddings.position_embeddings.weight", f"{prefix}layers/embeddings/position_embedding/vars/0"
    yield "embeddings.token_type_embeddings.weight", f"{prefix}layers/embeddings/segment_embedding/vars/0"
    yield from _pair("embeddings.LayerNorm", f"{prefix}layers/embeddings/layer_norm")
    for i in range(num_layers):
        key, path = f"encoder.layer.{i}", f"{prefix}{_BLOCK}_{i}" if i else f"{prefix}{_BLOCK}"
        yield from _pair(f"{key}.attention.self.query", f"{path}/attention/query")
        yield from _pair(f"{key}.attention.self.key", f"{path}/attention/key")
        yield from _pair(f"{key}.attention.self.value", f"{path}/attention/value")
        yield from _pair(f"{key}.attention.output.dense", f"{path}/attention/output_projection")
        yield from _pair(f"{key}.attention.output.LayerNorm", f"{path}/attention_norm")
        yield from _pair(f"{key}.intermediate.dense", f"{path}/feed_forward/intermediate")
        yield from _pair(f"{key}.output.dense", f"{path}/feed_forward/output_projection")
        yield from _pair(f"{key}.output.LayerNorm", f"{path}/feed_forward_norm")
    yield from _pair("pooler.dense", f"{prefix}layers/pooler/dense")
    if architecture in ("BertForPreTraining", "BertForMaskedLM"):
        yield from _pair("cls.predictions.transform.dense", "layers/masked_lm_head/dense")
        yield from _pair("cls.predictions.transform.LayerNorm", "layers/masked_lm_head/layer_norm")
        yield "cls.predictions.bias", "layers/masked_lm_head/vars/0"
    # Keras names the parts of a model by their classes; no model here has two dense layers of its own.
    dense = {"BertForPreTraining": "cls.seq_relationship", "BertForQuestionAnswering": "qa_outputs"}
    if architecture not in ("BertModel", "BertForMaskedLM"):
        yield from _pair(dense.get(architecture, "classifier"), "layers/dense")


def _pair(key: str, path: str) -> Iterator[tuple[str, str]]:
    yield f"{key}.weight", f"{path}/vars/0"
    yield f"{key}.bias", f"{path}/vars/1"


def _labels(values: dict[str, Any], tensors: dict[str, StoredTensor], file: Path) -> tuple[str, ...]:
    from keras_bert_impl.models.labelled_model import checked_labels  # models are made from checkpoints

    if "classifier" not in {part_of(key) for key in tensors}:
        return ()
    try:
        return checked_labels(values.get("labels"))
    except InputError as error:
        raise InputError(f"`path` must name its classifier's outputs. Received: {str(file)!r}: {error}") from error
