"""What is kept of a finished block beside its shards, so that a stopped preparation need not make it again."""

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


def write_record(path: Path, counts: BlockCounts, directory: Path, shards: Iterable[Path]) -> None:
    """Writes a block's counts, with size and checksum of its shards; the record appears whole or not at all.

    Args:
        path: the record.
        counts: what the block gave.
        directory: what the shards' paths are relative to.
        shards: the files of the block.
    """
    files = {shard.relative_to(directory).as_posix(): _checksum(shard) for shard in shards}
    with atomic_file(path) as file:
        json.dump({"counts": to_plain(counts), "files": files}, file)


def read_record(path: Path, directory: Path) -> BlockCounts | None:
    """Returns the counts of a finished block; None if the record is damaged or a shard is not what it was."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if any(_checksum(directory / name) != wanted for name, wanted in record["files"].items()):
            return None
        return from_plain(BlockCounts, record["counts"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zlib.error):
        return None


def _checksum(path: Path) -> list[int]:
    content = path.read_bytes()
    return [len(content), zlib.crc32(content)]


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
