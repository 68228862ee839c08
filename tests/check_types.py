"""Runs mypy on the package as it is installed: the rooms inside it, under their one name."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("training", "serving")


def check_types(root: Path = ROOT) -> int:
    """Lays the package out as the wheel does and type-checks it; returns mypy's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "keras_bert_impl"
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "keras_bert_impl", package, ignore=skip)
        for room in ROOMS:
            shutil.copytree(root / room, package / room, ignore=skip)
        shutil.copy(root / "keras_bert_console.py", folder)
        options = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache")]
        return subprocess.run(
            [sys.executable, "-m", "mypy", *options, "-p", "keras_bert_impl", "-m", "keras_bert_console"],
            cwd=folder,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(check_types())
