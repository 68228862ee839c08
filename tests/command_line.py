"""Runs `keras-bert` as a person does: in a process of its own."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Finished:
    """What a command left: its exit code and both streams."""

    code: int
    out: str
    err: str


def keras_bert(*arguments: object, cwd: Path | None = None, timeout: float = 300) -> Finished:
    """Runs one command to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-m", "keras_bert_console", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)
