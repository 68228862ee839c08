"""`metrics.jsonl`: one JSON object per logged step, each step once, also after a resume."""

import contextlib
import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file, to_disk


class MetricsLog:
    """Appends lines to a file and reads them back.

    Args:
        path: the file. It need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: dict[str, Any]) -> None:
        """Writes one line; it has left the process when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def to_disk(self) -> None:
        """Returns when all lines would outlive a loss of power."""
        if self.path.exists():
            to_disk(self.path)

    def lines(self) -> list[dict[str, Any]]:
        """Returns all lines before the first one that is not whole, as a kill or a loss of power leaves it."""
        if not self.path.exists():
            return []
        text = self.path.read_bytes()
        lines: list[dict[str, Any]] = []
        with contextlib.suppress(ValueError):  # of JSON and of UTF-8
            for line in text[: text.rfind(b"\n") + 1].splitlines():
                lines.append(json.loads(line))
        return lines

    def forget_after(self, step: int) -> list[dict[str, Any]]:
        """Drops the lines of later steps, which a resumed run will write anew; returns those that stay."""
        kept = [line for line in self.lines() if line["step"] <= step]
        if self.path.exists():
            with atomic_file(self.path) as file:
                file.writelines(json.dumps(line) + "\n" for line in kept)
        return kept
