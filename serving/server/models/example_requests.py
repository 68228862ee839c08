"""The example requests that an export carries in its description."""

import json
from pathlib import Path
from typing import Any

from .load_error import LoadError

DESCRIPTION = Path("assets.extra", "signature.json")
"""Within a version directory."""


def example_requests(directory: Path) -> dict[str, Any]:
    """Returns the example requests of a version, by signature; none if it has no description.

    Raises:
        LoadError: if the description is damaged.
    """
    description = directory / DESCRIPTION
    if not description.is_file():
        return {}
    try:
        signatures = json.loads(description.read_text(encoding="utf-8"))["signatures"]
        requests = {name: signature["example"]["request"] for name, signature in signatures.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise badly_described(directory) from None
    if not all(isinstance(request, dict) for request in requests.values()):
        raise badly_described(directory)
    return requests


def badly_described(directory: Path) -> LoadError:
    """Returns the error of a version whose description does not fit it."""
    return not_whole(directory / DESCRIPTION, "which does not describe its signatures")


def not_whole(file: Path, fault: str) -> LoadError:
    """Returns the error of a version of which one file does not fit the rest."""
    return LoadError(
        f"`export_dir` must hold a whole export; export it anew. Received: {str(file)!r}, {fault}",
        f"The export is not whole: it has a {file.name} {fault}",
        "FAILED_PRECONDITION",
    )
