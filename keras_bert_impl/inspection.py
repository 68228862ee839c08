"""Says what a directory holds, without opening TensorFlow or reading a weight."""

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

_PARTS = (
    ("embeddings.", "embeddings"),
    ("encoder.layer.", "blocks"),
    ("pooler.", "pooler"),
    ("cls.predictions.", "masked-LM head"),
    ("cls.seq_relationship.", "next-sentence head"),
    ("classifier.", "classifier"),
)


def inspect(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what `path` is and holds, as plain JSON values.

    Args:
        path: a model directory, run directory, prepared data directory or export directory.

    Raises:
        InputError: if it is none of them, or one of its files cannot be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"`path` must be a directory. Received: {str(folder)!r}, which is not there or not one")
    if (folder / "manifest.json").is_file():
        return {"path": str(folder), "kind": "prepared data", "manifest": _read_json(folder / "manifest.json")}
    if (folder / "checkpoints").is_dir():
        return _inspect_run(folder)
    if (folder / "config.json").is_file():
        return _inspect_model(folder)
    if (folder / "saved_model.pb").is_file():
        return _inspect_export(folder.parent, [folder])
    if versions := sorted((p for p in folder.iterdir() if (p / "saved_model.pb").is_file()), key=lambda p: p.name):
        return _inspect_export(folder, versions)
    raise InputError(
        f"`path` must be a model, run, prepared data or export directory. Received: {str(folder)!r}, "
        "which has no config.json, manifest.json or saved_model.pb"
    )


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


def _inspect_model(folder: Path) -> dict[str, Any]:
    config = _read_json(folder / "config.json")
    facts: dict[str, Any] = {
        "path": str(folder),
        "kind": "model",
        "architectures": config.get("architectures", []),
        "configuration": {k: v for k, v in config.items() if k not in ("architectures", "id2label", "label2id")},
    }
    if "id2label" in config:
        facts["labels"] = config["id2label"]
    weights = folder / "model.safetensors"
    if weights.is_file():
        facts["parameters"] = _count_parameters(weights)
    if (folder / "vocab.txt").is_file():
        from keras_bert_impl.tokenization.wordpiece import load_vocabulary

        vocabulary = load_vocabulary(folder / "vocab.txt")
        facts["vocabulary"] = {"tokens": len(vocabulary), "first": vocabulary[:8]}
    return facts


def _inspect_export(folder: Path, versions: list[Path]) -> dict[str, Any]:
    facts: dict[str, Any] = {"path": str(folder), "kind": "export", "versions": {}}
    for version in versions:
        signature = version / "assets.extra" / "signature.json"
        facts["versions"][version.name] = {
            "bytes": sum(p.stat().st_size for p in version.rglob("*") if p.is_file()),
            **(_read_json(signature) if signature.is_file() else {}),
        }
    return facts


def _count_parameters(weights: Path) -> dict[str, int]:
    """Counts parameters by part from the file's header: its length (8 bytes, little endian), then JSON."""
    with weights.open("rb") as file:
        try:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length)) if length <= weights.stat().st_size else None
        except (struct.error, ValueError):
            header = None
    if header is None:
        raise InputError(f"`path` must hold whole weights. Received: {str(weights)!r}, whose header cannot be read")
    counts: dict[str, int] = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            name = name.removeprefix("bert.")
            part = next((part for prefix, part in _PARTS if name.startswith(prefix)), "other")
            counts[part] = counts.get(part, 0) + math.prod(tensor["shape"])
    return {"total": sum(counts.values()), **counts}


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"`path` must hold readable JSON. Received: {str(path)!r}: {error}") from error


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
    if isinstance(item, float):
        return f"{item:.6g}"
    return f"{item:,}" if type(item) is int else json.dumps(item, ensure_ascii=False)
