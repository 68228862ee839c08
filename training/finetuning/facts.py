"""All that a fine-tuned model depends on, so that a command is known for the same."""

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.model_directory import model_directory

from ..checkpoint_manifest import checksum_of
from ..configs import FinetuneConfig

_PART = 1 << 22


def first_difference(before: Any, now: Mapping[str, Any]) -> str:
    """Returns a clause on the first fact that is not what it was before, empty if there is none."""
    before = before if isinstance(before, dict) else {}
    for name, value in now.items():
        earlier = before.get(name)
        if isinstance(value, Mapping) and isinstance(earlier, dict):
            for setting, of_setting in value.items():
                if earlier.get(setting) != of_setting:
                    return f"where {setting} was {earlier.get(setting)!r}"
        elif earlier != value:
            return f"where {name.replace('_', ' ')} had another content"
    return ""


def facts_of(config: FinetuneConfig, examples: Any = None) -> dict[str, Any]:
    """Returns all that a model depends on, as JSON values.

    Args:
        config: the settings.
        examples: those that take the place of the files, if any.
    """
    settings = {name: value for name, value in config.to_dict().items() if name != "output"}
    # As JSON has them, to be compared with what was read.
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    if examples is not None:
        digest = hashlib.blake2b(repr(examples).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    else:
        digest = _digest_of_files([*config.train, *config.dev])
    return {"settings": settings, "examples": digest, "initial_weights": _checksum_of_model(config.model)}


def _digest_of_files(names: list[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        with Path(name).open("rb") as file:
            while part := file.read(_PART):
                digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()


def _checksum_of_model(name: str) -> int:
    path = model_directory(name)
    files = path.iterdir() if path.is_dir() else path.parent.glob(f"{path.name}*")
    checksum = 0
    for file in sorted(file for file in files if file.is_file()):
        checksum = zlib.crc32(f"{file.name} {checksum_of(file)}".encode(), checksum)
    return checksum
