"""What a checkpoint holds, noted in it, so that one that is not whole is known before anything is read from it."""

import json
import zlib
from pathlib import Path
from typing import Any

from .corpus.wording import counted

MANIFEST = "checkpoint.json"
_PART = 1 << 22

# Of each group of variables, data type and shape of every one, in order.
Structure = dict[str, list[list[Any]]]


class DamagedError(Exception):
    """A checkpoint is not whole. The message is a clause on what is wrong with it."""


def write_manifest(directory: Path, step: int, structure: Structure) -> None:
    """Describes the files of a checkpoint that has just been written.

    Args:
        directory: the checkpoint.
        step: steps done in it.
        structure: what the variables in it are.
    """
    facts: dict[str, Any] = {
        "step": step,
        "variables": structure,
        "files": {
            path.name: {"bytes": path.stat().st_size, "crc32": checksum_of(path)}
            for path in sorted(directory.iterdir())
        },
    }
    facts["crc32"] = _checksum_of_facts(facts)
    (directory / MANIFEST).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def read_manifest(directory: Path, step: int) -> Structure:
    """Checks every byte of a checkpoint and returns what the variables in it are.

    Raises:
        DamagedError: if it is not as it was written.
    """
    try:
        facts = _facts(directory, step)
        for name, file in facts["files"].items():
            difference = (directory / name).stat().st_size - file["bytes"]
            if difference:
                raise DamagedError(
                    f"{name} is {counted(abs(difference), 'byte')} {'short' if difference < 0 else 'too long'}"
                )
        for name, file in facts["files"].items():
            if checksum_of(directory / name) != file["crc32"]:
                raise DamagedError(f"{name} has other bytes than were written")
    except PermissionError:
        raise  # not damage: the user may read it after all
    except FileNotFoundError as error:
        raise DamagedError(f"{Path(error.filename).name} is missing") from error
    except OSError as error:
        raise DamagedError(f"{Path(error.filename or directory).name} cannot be read: {error.strerror}") from error
    return facts["variables"]


def _facts(directory: Path, step: int) -> dict[str, Any]:
    text = (directory / MANIFEST).read_bytes()
    try:
        facts = json.loads(text)
        whole = facts.pop("crc32") == _checksum_of_facts(facts)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise DamagedError(f"{MANIFEST} has other bytes than were written")
    if facts["step"] != step:
        raise DamagedError(f"{MANIFEST} is that of step {facts['step']}")
    return facts


def _checksum_of_facts(facts: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def checksum_of(path: Path) -> int:
    """Returns the CRC-32 of a file."""
    checksum = 0
    with path.open("rb") as file:
        while part := file.read(_PART):
            checksum = zlib.crc32(part, checksum)
    return checksum
