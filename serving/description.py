"""What `signature.json` of every form of export says of a model."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from .loaded_model import LoadedModel

# Outputs of the id signature that would make the description unreadable.
LARGE_OUTPUTS = ("mlm_logits", "sequence_output", "pooled_output", "attention")


def model_facts(loaded: LoadedModel) -> dict[str, Any]:
    """Returns what was exported, as plain JSON values."""
    tokenizer = loaded.tokenizer
    return {
        "architecture": type(loaded.model).__name__,
        "parameters": loaded.num_parameters,
        "config": loaded.model.config.to_dict(),
        **({} if loaded.settings is None else {"task": dataclasses.asdict(loaded.settings)}),
        **({"labels": list(loaded.model.labels)} if hasattr(loaded.model, "labels") else {}),
        "tokenizer": {"vocab_size": tokenizer.vocab_size, **tokenizer.options},
        "weights_sha256": weights_sha256(loaded.directory),
    }


def purpose(kind: str, task: str | None) -> str:
    """Returns what a model is for, in words.

    Args:
        kind: of its answers, such as `"classification"`.
        task: that of its settings, if it has some.
    """
    other = {"multilabel": "multilabel classification", "regression": "regression"}
    return other.get(task or "", kind) if kind == "classification" else kind


def json_array(array: np.ndarray) -> list[Any]:
    """Returns an array as lists; bytes as texts."""
    return np.char.decode(array, "utf-8").tolist() if array.dtype.kind == "S" else array.tolist()


def weights_sha256(directory: Path) -> str:
    """Returns the checksum of the weights' file, or of its shards one after another."""
    files = sorted(directory.glob("model*.safetensors")) or sorted(directory.glob("pytorch_model*.bin"))
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Writes a file for people and programs."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
