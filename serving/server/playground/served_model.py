"""What the page has to know of a model to ask it, from the description that its export carries."""

import json
from pathlib import Path
from typing import Any

from ..models.example_requests import DESCRIPTION

_TEXTS = "serving_default"
_ATTENTION = "attention"


def served_model(directory: Path, version: int) -> dict[str, Any]:
    """Returns what a version's `signature.json` says.

    Args:
        directory: of numbered version directories.
        version: the number.

    Returns:
        A dict:
            kind: kind of its answers, such as `"fill-mask"`; absent, as is the rest, for a SavedModel of elsewhere.
            inputs: names of the inputs of the text signature.
            attention_inputs: those of the signature that shows the attention; absent if there is none.
            example: a row of the example request.
            mask_token: as the tokenizer knows it.
            truncation: what becomes of texts that are too long.
    """
    try:
        # Directories of versions may have leading zeros.
        [folder] = [path for path in directory.iterdir() if path.name.isdigit() and int(path.name) == version]
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        signatures = description["signatures"]
        texts = signatures[_TEXTS]
        [row, *_] = texts["example"]["request"]["instances"]
        inputs = list(texts["inputs"])
        return {
            "kind": description["kind"],
            "inputs": inputs,
            **({"attention_inputs": list(signatures[_ATTENTION]["inputs"])} if _ATTENTION in signatures else {}),
            "example": row if isinstance(row, dict) else {inputs[0]: row},
            "mask_token": description["tokenizer"]["mask_token"],
            "truncation": description["truncation"],
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        return {}
