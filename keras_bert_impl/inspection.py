"""Says what a file or directory holds, without reading a weight, and TensorFlow only for TensorFlow's own files."""

import json
import math
import os
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.architecture import PARTS, part_of, tensor_shapes
from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.formats import format_of, is_tensorflow_checkpoint, open_checkpoint
from keras_bert_impl.checkpoints.load import compare
from keras_bert_impl.checkpoints.load_report import LoadReport
from keras_bert_impl.checkpoints.tokenizer_files import tokenizer_beside
from keras_bert_impl.errors import InputError

_SHOWN_ITEMS = 8
_KINDS = {
    "huggingface": "model directory",
    "google_tf1": "TensorFlow 1 checkpoint",
    "keras_hub": "KerasHub preset",
    "model_garden": "Model Garden checkpoint",
    "keras": ".keras file",
}


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what `path` is and holds, as plain JSON values.

    Args:
        path: a model in any format that `open_checkpoint` opens, or a run, prepared data or export directory.

    Raises:
        InputError: if it is none of them, or one of its files cannot be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        format_of(folder)
        return _inspect_model(folder)
    if (folder / "manifest.json").is_file():
        manifest = _read_object(folder / "manifest.json")
        kind = "TFRecord files" if "TFRecord" in str(manifest.get("format")) else "prepared data"
        return {"path": str(folder), "kind": kind, "manifest": manifest}
    if (folder / "checkpoints").is_dir():
        return _inspect_run(folder)
    if (folder / "saved_model.pb").is_file():
        return _inspect_export(folder.parent, [folder])
    if versions := sorted((p for p in folder.iterdir() if (p / "saved_model.pb").is_file()), key=lambda p: p.name):
        return _inspect_export(folder, versions)
    if (folder / "config.json").is_file() or is_tensorflow_checkpoint(folder):
        return _inspect_model(folder)
    if (folder / "command.json").is_file() and (folder / "finished").is_dir():
        parts = sum(1 for _ in (folder / "finished").glob("*.json"))
        return {"path": str(folder), "kind": "unfinished preparation", "finished parts": parts}
    raise InputError(
        f"`path` must be a model, run, prepared data or export directory. Received: {str(folder)!r}, "
        "which has no config.json, manifest.json or saved_model.pb"
    )


def needs_tensorflow(path: str | os.PathLike[str]) -> bool:
    """Whether `inspect` will import TensorFlow, whose own log lines a caller may want to hold back."""
    folder = Path(path)
    return folder.suffix == ".keras" or (not (folder / "config.json").is_file() and is_tensorflow_checkpoint(folder))


def describe(facts: dict[str, Any]) -> str:
    """Turns what `inspect` returned into indented lines for a reader."""
    return "\n".join(_lines(facts))


def _inspect_run(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {"path": str(folder), "kind": "run"}
    if (folder / "config.json").is_file():
        facts["settings"] = _read_json(folder / "config.json")
    facts["checkpoints"] = sorted(p.name for p in (folder / "checkpoints").glob("step_*"))
    if (folder / "metrics.json").is_file():
        facts["metrics"] = _read_json(folder / "metrics.json")
    if (folder / "model" / "config.json").is_file():
        facts["model"] = _inspect_model(folder / "model")
    return facts


def _inspect_model(path: Path) -> dict[str, Any]:
    checkpoint = open_checkpoint(path)
    facts: dict[str, Any] = {
        "path": str(path),
        "kind": "model",
        "format": _KINDS[checkpoint.format],
        "architecture": checkpoint.architecture,
        "configuration": {**checkpoint.config.to_dict(), **checkpoint.settings},
    }
    if checkpoint.labels:
        facts["labels"] = list(checkpoint.labels)
    facts["parameters"] = _count_parameters(checkpoint)
    tokenizer = tokenizer_beside(checkpoint, path)
    if tokenizer is not None:
        facts["vocabulary"] = {
            "tokens": tokenizer.vocab_size,
            "first": list(tokenizer.vocabulary[:8]),
            "lower-cased": tokenizer.lowercase,
        }
    facts["load"] = _load(checkpoint)
    return facts


def _load(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns what a load of the checkpoint as what it is would say."""
    parts = PARTS[checkpoint.architecture]
    if checkpoint.architecture == "BertModel" and "pooler" not in checkpoint.parts:
        parts = ("encoder",)
    report = compare(checkpoint, tensor_shapes(checkpoint.config, parts, len(checkpoint.labels)))
    return {"loaded": len(report.loaded), "complete": report.complete, **_left_over(report)}


def _left_over(report: LoadReport) -> dict[str, Any]:
    reasons: dict[str, list[str]] = {}
    for name, reason in report.passed_over:
        reasons.setdefault(reason, []).append(name)
    lists = {
        "newly initialised": list(report.newly_initialised),
        "unused": list(report.unused),
        "wrong shape": [f"{o.name}: {o.stored} in the file, {o.expected} in the model" for o in report.wrong_shape],
        "computes something else": [f"{part}, {reason}" for part, reason in report.inexact],
        "widened": [f"{name} ({dtype})" for name, dtype in report.widened],
        "passed over": reasons,
        "configuration keys passed over": list(report.ignored_config_keys),
    }
    return {name: names for name, names in lists.items() if names}


def _inspect_export(folder: Path, versions: list[Path]) -> dict[str, Any]:
    facts: dict[str, Any] = {"path": str(folder), "kind": "export", "versions": {}}
    for version in versions:
        signature = version / "assets.extra" / "signature.json"
        facts["versions"][version.name] = {
            "bytes": sum(p.stat().st_size for p in version.rglob("*") if p.is_file()),
            **(_read_object(signature) if signature.is_file() else {}),
        }
    return facts


def _count_parameters(checkpoint: Checkpoint) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key, tensor in checkpoint.tensors.items():
        part = "embeddings" if key.startswith("embeddings.") else part_of(key)
        counts[part] = counts.get(part, 0) + math.prod(tensor.shape)
    return {"total": sum(counts.values()), **counts}


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"`path` must hold readable JSON. Received: {str(path)!r}: {error}") from error


def _read_object(path: Path) -> dict[str, Any]:
    content = _read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"`path` must hold a JSON object. Received: {str(path)!r}")
    return content


def _lines(value: Any, indent: str = "") -> list[str]:
    lines = []
    for key, item in value.items():
        if isinstance(item, dict) and item:
            lines += [f"{indent}{key}:", *_lines(item, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {_shown(item)}")
    return lines


def _shown(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, list) and len(item) > _SHOWN_ITEMS:
        return f"{json.dumps(item[:_SHOWN_ITEMS], ensure_ascii=False)} and {len(item) - _SHOWN_ITEMS:,} more"
    if isinstance(item, float):
        return f"{item:.6g}"
    return f"{item:,}" if type(item) is int else json.dumps(item, ensure_ascii=False)
