"""What is kept of a finished part beside its files, so that a stopped preparation need not make it again."""

import base64
import dataclasses
import json
import typing
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.atomic import atomic_file

from .block_worker import BlockCounts

# TFRecord files are too large to be held in memory.
_PIECE = 2**20


def write_record(path: Path, facts: Any, directory: Path, files: Iterable[Path]) -> None:
    """Writes what a part gave, with size and checksum of its files; the record appears whole or not at all.

    Args:
        path: the record.
        facts: what the part gave, as JSON values.
        directory: what the files' paths are relative to.
        files: the files of the part.
    """
    checksums = {file.relative_to(directory).as_posix(): _checksum(file) for file in files}
    content = {"facts": facts, "files": checksums}
    with atomic_file(path) as record:
        json.dump({**content, "checksum": _checksum_of_values(content)}, record)


def read_record(path: Path, directory: Path) -> Any:
    """Returns the facts of a finished part; None if the record is damaged or a file is not what it was."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("checksum") != _checksum_of_values(content):
            return None
        if any(_checksum(directory / name) != wanted for name, wanted in content["files"].items()):
            return None
        return content["facts"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def read_counts(path: Path, directory: Path) -> BlockCounts | None:
    """Returns the counts of a finished block, whose record has them by `to_plain`; None as `read_record` does."""
    try:
        facts = read_record(path, directory)
        return None if facts is None else from_plain(BlockCounts, facts)
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error):  # Of another version of the package.
        return None


def _checksum(path: Path) -> list[int]:
    size = checksum = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
    return [size, checksum]


def _checksum_of_values(values: Any) -> int:
    return zlib.crc32(json.dumps(values).encode())


def to_plain(value: Any) -> Any:
    """Returns a dataclass of numbers, texts, arrays, mappings and further dataclasses as JSON values."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(zlib.compress(value.tobytes(), 1)).decode()
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": data}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return [[to_plain(key), to_plain(item)] for key, item in value.items()]
    return value


def from_plain(kind: Any, plain: Any) -> Any:
    """Returns what `to_plain` was given, which the type `kind` describes."""
    origin: Any = typing.get_origin(kind) or kind
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        hints = typing.get_type_hints(origin)
        return origin(**{name: from_plain(hints[name], item) for name, item in plain.items()})
    if issubclass(origin, np.ndarray):
        content = zlib.decompress(base64.b64decode(plain["data"]))
        return np.frombuffer(content, np.dtype(plain["dtype"])).reshape(plain["shape"]).copy()
    if issubclass(origin, dict):
        key_kind, item_kind = (*typing.get_args(kind), int)[:2]  # A Counter names the kind of its keys alone.
        return origin({from_plain(key_kind, key): from_plain(item_kind, item) for key, item in plain})
    return plain
