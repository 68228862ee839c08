"""JSON files of a fine-tuning."""

import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file

from ..checkpoint_manifest import DamagedError


def write_json(path: Path, values: Any) -> None:
    """Writes JSON, whole or not at all."""
    with atomic_file(path) as file:
        json.dump(values, file, indent=2, ensure_ascii=False)
        file.write("\n")


def read_json(path: Path) -> Any:
    """Reads JSON; None if there is no such file, or it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def read_own_json(path: Path) -> Any:
    """Reads a JSON object that `write_json` wrote; None if there is no such file.

    Raises:
        DamagedError: if there is one, and it is none.
    """
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path.name} cannot be read as JSON") from error
    if not isinstance(values, dict):
        raise DamagedError(f"{path.name} holds no JSON object")
    return values
