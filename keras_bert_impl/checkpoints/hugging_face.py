"""Model directories in Hugging Face's form: `config.json` and `model.safetensors`, whole or in shards."""

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from keras_bert_impl.atomic import atomic_directory, give_usual_mode
from keras_bert_impl.checkpoints.architecture import PARTS, PROBLEM_TYPES, part_of
from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor, architecture_of, plain_labels
from keras_bert_impl.checkpoints.load_report import listed
from keras_bert_impl.checkpoints.torch_file import open_torch_file
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.settings import FILE as TASK_FILE
from keras_bert_impl.tokenization.tokenizer_config import write_longest_row

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TORCH_FILE = "pytorch_model.bin"
INDEX = ".index.json"
_WEIGHTS = re.compile(r"(model|pytorch_model)(-\d+-of-\d+)?\.(safetensors|bin)(\.index\.json)?")

# What a file means that does not say: "gelu" is erf there, unlike in Google's released code.
_FORMAT_DEFAULTS: dict[str, Any] = {"vocab_size": 30522, "hidden_act": "gelu"}
# Keys that change what the model computes; only these values are the BERT that is built here.
_REQUIRED_VALUES: dict[str, Any] = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_HEAD_KEYS = ("problem_type", "classifier_dropout")
_DESCRIPTION_KEYS = {"architectures", "model_type", "id2label", "label2id", *_HEAD_KEYS, *_REQUIRED_VALUES}
# Constants that old versions stored, and what they are.
_BUFFERS: dict[str, Callable[[int], np.ndarray]] = {
    "embeddings.position_ids": np.arange,
    "embeddings.token_type_ids": np.zeros,
}
_TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def read_config(path: str | os.PathLike[str]) -> tuple[BertConfig, tuple[str, ...]]:
    """Reads `config.json`.

    Args:
        path: the model directory.

    Returns:
        The config, and the keys of the file that it has no field for.

    Raises:
        InputError: if there is no such file, or it describes another architecture.
    """
    values, file = _read_values(path)
    return _bert_config(values, file)


def open_hugging_face(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a model directory; reads its configuration and the names and shapes of its tensors.

    The weights are those of `model.safetensors`, of its shards, or else of `pytorch_model.bin`, which is only read
    where PyTorch is installed and never unpickled.

    Args:
        path: the model directory.

    Raises:
        InputError: if it is no such directory, or one of its files is damaged or describes another architecture.
    """
    values, file = _read_values(path)
    config, ignored_keys = _bert_config(values, file)
    source, stored = _open_weights(Path(path))
    tensors, passed_over = _sort_out(source, stored)
    labels = _labels(values, file, tensors)
    return Checkpoint(
        source=source,
        format="huggingface",
        config=config,
        tensors=tensors,
        architecture=architecture_of(tensors, _stated_architecture(values)),
        architecture_is_stated=_stated_architecture(values) is not None,
        labels=labels,
        settings=_head_settings(values, file),
        passed_over=passed_over,
        ignored_config_keys=ignored_keys,
    )


def write_model_directory(path: str | os.PathLike[str], model: Any, tokenizer: Any = None) -> None:
    """Writes `config.json`, `model.safetensors` and the tokenizer's files, whole or not at all.

    Args:
        path: directory to write; new, empty, or a model directory, which is replaced.
        model: a `PretrainedModel`.
        tokenizer: `WordPieceTokenizer`, or None.

    Raises:
        InputError: if the directory has content that is not a model.
    """
    from keras_bert_impl.checkpoints.places import places  # opens Keras, which reading does not need

    target = Path(path)
    check_model_target(target)
    config = {
        "architectures": [model.architecture],
        "model_type": "bert",
        **_REQUIRED_VALUES,
        **model.config.to_dict(),
        **model.head_settings(),
    }
    tensors = {
        tensor_name(key, model.architecture): np.ascontiguousarray(
            place.value().T if is_transposed(key) else place.value()
        )
        for key, place in places(model).items()
    }
    with atomic_directory(target, replace=True) as folder:
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        _save(tensors, folder / WEIGHTS_FILE)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
            write_longest_row(model.config.max_position_embeddings, folder)


def check_model_target(target: Path, argument: str = "path") -> None:
    """Raises `InputError` unless a path is new, empty, or a model directory that holds nothing else."""
    if not target.exists() or _is_empty_directory(target):
        return
    # The settings of a task belong to the model that is replaced.
    others = [name for name in other_files(target) if name != TASK_FILE] if target.is_dir() else []
    try:
        is_model = target.is_dir() and _read_json(target / CONFIG_FILE).get("model_type") == "bert"
    except (InputError, OSError, AttributeError):
        is_model = False
    if others or not is_model:
        what = f" ({listed(others)})" if others else ""
        raise InputError(
            f"`{argument}` must be new, empty or a model directory. Received: {str(target)!r}, "
            f"which has other content{what}"
        )


def other_files(path: Path) -> list[str]:
    """Returns what else lies in a model directory: neither weights nor configuration nor the tokenizer's files."""
    known = {CONFIG_FILE, "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    return sorted(
        entry.name for entry in path.iterdir() if entry.name not in known and not _WEIGHTS.fullmatch(entry.name)
    )


def tensor_name(key: str, architecture: str) -> str:
    """Returns the name in a file of the tensor that `architecture.tensor_shapes` calls `key`."""
    headless = architecture == "BertModel" or part_of(key) not in ("encoder", "pooler")
    return key if headless else f"bert.{key}"


def is_transposed(key: str) -> bool:
    """Whether files have this tensor as `(outputs, inputs)`: the kernels of dense layers, not tables."""
    return key.endswith(".weight") and "_embeddings." not in key and "LayerNorm" not in key


def _read_values(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Path]:
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"`path` must be a model directory. Received: {str(folder)!r}, which is not a directory")
    file = folder / CONFIG_FILE
    if not file.is_file():
        raise InputError(f"`path` must be a model directory. Received: {str(folder)!r}, which has no {CONFIG_FILE}")
    values = _read_json(file)
    model_type = values.get("model_type") if isinstance(values, dict) else None
    if model_type != "bert":
        raise InputError(f"`path` must hold a model of type 'bert'. Received: {str(file)!r}, model_type={model_type!r}")
    return values, file


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        fault = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"`path` must hold readable JSON. Received: {str(file)!r}: {fault}") from error


def _bert_config(values: dict[str, Any], file: Path) -> tuple[BertConfig, tuple[str, ...]]:
    for key, required in _REQUIRED_VALUES.items():
        if values.get(key, required) != required:
            raise InputError(
                f"`path` must hold a BERT encoder with {key}={required!r}. "
                f"Received: {str(file)!r}, {key}={values[key]!r}"
            )
    known = {field.name for field in dataclasses.fields(BertConfig)}
    given = {key: value for key, value in values.items() if key in known and value is not None}
    config = BertConfig.from_dict({**_FORMAT_DEFAULTS, **given})
    return config, tuple(sorted(values.keys() - known - _DESCRIPTION_KEYS))


def _stated_architecture(values: dict[str, Any]) -> str | None:
    stated = values.get("architectures")
    first = stated[0] if isinstance(stated, list) and stated else None
    return first if isinstance(first, str) and first in PARTS else None


def _head_settings(values: dict[str, Any], file: Path) -> dict[str, Any]:
    settings = {key: values[key] for key in _HEAD_KEYS if values.get(key) is not None}
    dropout = settings.get("classifier_dropout", 0.0)
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise InputError(
            "`path` must have a `classifier_dropout` of at least 0 and less than 1. "
            f"Received: {str(file)!r}, classifier_dropout={dropout!r}"
        )
    if (problem := settings.get("problem_type", PROBLEM_TYPES[0])) not in PROBLEM_TYPES:
        raise InputError(
            f"`path` must have a `problem_type` of {', '.join(PROBLEM_TYPES)}. "
            f"Received: {str(file)!r}, problem_type={problem!r}"
        )
    return settings


def _labels(values: dict[str, Any], file: Path, tensors: dict[str, StoredTensor]) -> tuple[str, ...]:
    """Returns the names of the classifier's outputs: those of `id2label`, else numbered ones."""
    kernel = tensors.get("classifier.weight")
    if kernel is None or len(kernel.shape) != 2:
        return ()
    count = kernel.shape[0]
    given = values.get("id2label")
    if given is None:
        return plain_labels(count)
    by_id = {str(key): value for key, value in given.items()} if isinstance(given, dict) else {}
    labels = tuple(by_id.get(str(i)) for i in range(count))
    named = len(by_id) == count and all(isinstance(label, str) and label for label in labels)
    if not named or len(set(labels)) < count:
        raise InputError(
            f"`path` must have one name in `id2label` for each output of its classifier. Received: {str(file)!r}, "
            f"{count} outputs, id2label={given!r:.200}"
        )
    for label in map(str, labels):
        if any("\ud800" <= character <= "\udfff" for character in label):
            raise InputError(
                "`path` must have labels of whole characters in `id2label`. "
                f"Received: {str(file)!r}, {label!r}, with half of one"
            )
    _check_numbers(values.get("label2id"), labels, file)
    return labels  # type: ignore[return-value]


def _check_numbers(given: Any, labels: Sequence[str | None], file: Path) -> None:
    """Refuses numbers of labels that are not those of `id2label`; names that are not there say nothing."""
    numbers = given if isinstance(given, dict) else {}
    for i, label in enumerate(labels):
        if label in numbers and str(numbers[label]) != str(i):
            raise InputError(
                "`path` must have the same numbers in `label2id` and `id2label`. "
                f"Received: {str(file)!r}, {label!r} with {numbers[label]!r} and {i}"
            )


def _open_weights(folder: Path) -> tuple[str, list[StoredTensor]]:
    """Returns the file that the weights are in, and the tensors of it or of the shards that it lists."""
    openers: tuple[tuple[str, Callable[[Path], list[StoredTensor]]], ...] = (
        (WEIGHTS_FILE, _open_safetensors),
        (TORCH_FILE, open_torch_file),
    )
    for name, opener in openers:
        if (folder / name).is_file():
            return str(folder / name), opener(folder / name)
        if (folder / (name + INDEX)).is_file():
            return str(folder / (name + INDEX)), _open_shards(folder / (name + INDEX), opener)
    raise InputError(f"`path` must be a model directory. Received: {str(folder)!r}, which has no {WEIGHTS_FILE}")


def _open_shards(index: Path, opener: Callable[[Path], list[StoredTensor]]) -> list[StoredTensor]:
    content = _read_json(index)
    where = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(where, dict) or not all(isinstance(name, str) for name in where.values()):
        raise InputError(f"`path` must have an index with a `weight_map`. Received: {str(index)!r}, which has none")
    tensors: list[StoredTensor] = []
    for name in sorted(set(where.values())):
        shard = index.parent / name
        if Path(name).name != name:
            raise InputError(
                f"`path` must have its shards beside their index. Received: {str(index)!r}, shard {name!r}"
            )
        if not shard.is_file():
            raise InputError(f"`path` must hold every shard of its index. Received: {str(index)!r}, without {name!r}")
        tensors += opener(shard)
    if absent := sorted(where.keys() - {tensor.name for tensor in tensors}):
        raise InputError(
            f"`path` must hold every tensor of its index. Received: {str(index)!r}, whose shards lack {absent[0]}"
        )
    return tensors


def _open_safetensors(file: Path) -> list[StoredTensor]:
    tensors = []
    with _opened(file) as handle:
        for name in handle.keys():  # noqa: SIM118 (not a dict)
            part = handle.get_slice(name)
            tensors.append(
                StoredTensor(
                    name=name,
                    shape=tuple(part.get_shape()),
                    dtype=_DTYPES.get(part.get_dtype(), part.get_dtype().lower()),
                    read=_SafetensorsRead(file, name),
                )
            )
    return tensors


_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I8": "int8"}


@dataclasses.dataclass(frozen=True)
class _SafetensorsRead:
    """Reads one tensor. The file is mapped for as long as that takes, so that its pages do not add up in memory."""

    file: Path
    name: str

    def __call__(self) -> np.ndarray:
        with _opened(self.file) as handle:
            return handle.get_tensor(self.name)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safetensors.safe_open(file, framework="numpy") as handle:
            yield handle
    except safetensors.SafetensorError as error:
        raise InputError(
            f"`path` must hold whole weights. Received: {str(file)!r}, which is cut off or damaged ({error})"
        ) from error


def _sort_out(source: str, stored: Iterable[StoredTensor]) -> tuple[dict[str, StoredTensor], tuple]:
    """Returns the tensors by today's names without prefix, and what of them holds nothing new."""
    named: dict[str, StoredTensor] = {}
    for tensor in stored:
        key = _canonical(tensor.name)
        if key in named:
            raise InputError(
                f"`path` must hold every tensor once. Received: {source!r}, with {named[key].name} and {tensor.name}"
            )
        named[key] = dataclasses.replace(tensor, transposed=True) if is_transposed(key) else tensor
    passed_over = []
    for copy, original in _TIED.items():
        if copy in named and original not in named:
            named[original] = dataclasses.replace(named.pop(copy), transposed=False)
        elif copy in named:
            tied = named.pop(copy)
            if tied.shape != named[original].shape or not np.array_equal(tied.read(), named[original].read()):
                raise InputError(
                    f"`path` must hold a model whose output kernel is its token table. Received: {source!r}, "
                    f"where {tied.name} differs from {named[original].name}"
                )
            passed_over.append((tied.name, f"a copy of {named[original].name}"))
    for buffer, usual in _BUFFERS.items():
        if buffer in named:
            values = named[buffer].read().ravel()
            if not np.array_equal(values, usual(values.size)):
                raise InputError(
                    f"`path` must number its positions 0, 1, 2, … and its segments 0. Received: {source!r}, "
                    f"where {named[buffer].name} says otherwise"
                )
            passed_over.append((named.pop(buffer).name, "a buffer"))
    return named, tuple(passed_over)


def _canonical(name: str) -> str:
    """Returns today's name of a tensor: no prefix, and LayerNorm's parts no longer gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _save(tensors: dict[str, np.ndarray], file: Path) -> None:
    try:
        # Other readers refuse a file that does not name its format.
        safetensors.numpy.save_file(tensors, file, metadata={"format": "pt"})
    except safetensors.SafetensorError as error:
        # A full disk comes as one of these.
        if number := re.search(r"os error (\d+)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(file)) from error
        raise
    give_usual_mode(file)  # safetensors makes it for its owner alone


def _is_empty_directory(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
