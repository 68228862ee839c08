"""The files of a KerasHub preset, and how they call the tensors of a BERT."""

import json
from collections.abc import Iterable
from pathlib import Path

from keras_bert_impl.checkpoints.load_report import listed
from keras_bert_impl.errors import InputError

CONFIG_FILE = "config.json"
METADATA_FILE = "metadata.json"
PREPROCESSOR_FILE = "preprocessor.json"
TASK_FILE = "task.json"
TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "assets/tokenizer/vocabulary.txt"
WEIGHTS_FILE = "model.weights.h5"
SHARDS_FILE = "model.weights.json"
TASK_WEIGHTS_FILE = "task.weights.h5"

BLOCK = "layers/transformer_encoder"

HEADS: dict[str, dict[str, str]] = {
    "BertForMaskedLM": {
        "cls.predictions.transform.dense.weight": "layers/masked_lm_head/_intermediate_dense/vars/0",
        "cls.predictions.transform.dense.bias": "layers/masked_lm_head/_intermediate_dense/vars/1",
        "cls.predictions.transform.LayerNorm.weight": "layers/masked_lm_head/_intermediate_layer_norm/vars/0",
        "cls.predictions.transform.LayerNorm.bias": "layers/masked_lm_head/_intermediate_layer_norm/vars/1",
        "cls.predictions.bias": "layers/masked_lm_head/vars/0",
    },
    "BertForSequenceClassification": {
        "classifier.weight": "layers/dense/vars/0",
        "classifier.bias": "layers/dense/vars/1",
    },
}
"""Path in `task.weights.h5` of every tensor of an architecture's head."""


def backbone_paths(num_layers: int) -> dict[str, str]:
    """Returns the path in `model.weights.h5` of every tensor of encoder and pooler."""
    paths = {
        "embeddings.word_embeddings.weight": "layers/reversible_embedding/vars/0",
        "embeddings.position_embeddings.weight": "layers/position_embedding/vars/0",
        "embeddings.token_type_embeddings.weight": "layers/embedding/vars/0",
        **_pair("embeddings.LayerNorm", "layers/layer_normalization"),
        **_pair("pooler.dense", "layers/dense"),
    }
    for i in range(num_layers):
        key, path = f"encoder.layer.{i}", f"{BLOCK}_{i}" if i else BLOCK
        paths |= {
            **_pair(f"{key}.attention.self.query", f"{path}/_self_attention_layer/query_dense"),
            **_pair(f"{key}.attention.self.key", f"{path}/_self_attention_layer/key_dense"),
            **_pair(f"{key}.attention.self.value", f"{path}/_self_attention_layer/value_dense"),
            **_pair(f"{key}.attention.output.dense", f"{path}/_self_attention_layer/output_dense"),
            **_pair(f"{key}.attention.output.LayerNorm", f"{path}/_self_attention_layer_norm"),
            **_pair(f"{key}.intermediate.dense", f"{path}/_feedforward_intermediate_dense"),
            **_pair(f"{key}.output.dense", f"{path}/_feedforward_output_dense"),
            **_pair(f"{key}.output.LayerNorm", f"{path}/_feedforward_layer_norm"),
        }
    return paths


def blocks_among(paths: Iterable[str]) -> int:
    """Returns how many transformer blocks the paths belong to."""
    return len({path.split("/")[1] for path in paths if path.startswith(BLOCK)})


def split_shape(key: str, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...]:
    """Returns the shape that KerasHub gives a tensor: in attention, the axis of heads is apart."""
    if ".attention.self." in key:
        return (*shape[:-1], num_heads, shape[-1] // num_heads)
    if key.endswith(".attention.output.dense.weight"):
        return (num_heads, shape[0] // num_heads, *shape[1:])
    return shape


def joined_shape(key: str, shape: tuple[int, ...], num_heads: int) -> tuple[int, ...] | None:
    """Returns the shape with the axis of heads joined, or None if it has not that many heads."""
    if ".attention.self." in key:
        joined = (*shape[:-2], shape[-2] * shape[-1]) if len(shape) > 1 else shape
    elif key.endswith(".attention.output.dense.weight"):
        joined = (shape[0] * shape[1], *shape[2:]) if len(shape) > 1 else shape
    else:
        return shape
    return joined if joined and shape == split_shape(key, joined, num_heads) else None


def _pair(key: str, path: str) -> dict[str, str]:
    return {f"{key}.weight": f"{path}/vars/0", f"{key}.bias": f"{path}/vars/1"}


def check_preset_target(target: Path, argument: str = "path") -> None:
    """Raises `InputError` unless a path is new, empty, or a preset directory that holds nothing else."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    written = {CONFIG_FILE, METADATA_FILE, PREPROCESSOR_FILE, TASK_FILE, TOKENIZER_FILE, WEIGHTS_FILE}
    written |= {SHARDS_FILE, TASK_WEIGHTS_FILE, VOCABULARY_FILE.split("/")[0]}
    others = sorted({entry.name for entry in target.iterdir()} - written) if target.is_dir() else []
    try:
        content = json.loads((target / CONFIG_FILE).read_text(encoding="utf-8"))
        is_preset = "registered_name" in content
    except (OSError, ValueError, RecursionError, TypeError):
        is_preset = False
    if others or not is_preset:
        raise InputError(
            f"`{argument}` must be new, empty or a KerasHub preset. Received: {str(target)!r}, which has other content"
            + (f" ({listed(others)})" if others else "")
        )
