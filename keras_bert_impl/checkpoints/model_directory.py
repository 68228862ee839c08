"""Where the model is in what a user calls a model."""

import os
from pathlib import Path


def model_directory(path: str | os.PathLike[str]) -> Path:
    """Returns the directory of the model in a run directory (its best), and any other path as it is."""
    inner = Path(path) / "model"
    return inner if (inner / "config.json").is_file() else Path(path)
