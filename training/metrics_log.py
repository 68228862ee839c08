"""`metrics.jsonl`: one JSON object per logged step, each step once, also after a resume."""

import contextlib
import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file, to_disk
from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none


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
            file.write(_text(line))

    def to_disk(self) -> None:
        """Returns when all lines would outlive a loss of power."""
        if self.path.exists():
            to_disk(self.path)

    def lines(self) -> list[dict[str, Any]]:
        """Returns all lines before the first one that is not whole, as a kill or a loss of power leaves it.

        Raises:
            InputError: if a whole line is none that a run writes.
        """
        if not self.path.exists():
            return []
        text = self.path.read_bytes()
        lines: list[dict[str, Any]] = []
        with contextlib.suppress(ValueError):  # of JSON and of UTF-8
            for line in text[: text.rfind(b"\n") + 1].splitlines():
                lines.append(json.loads(line))
        for number, values in enumerate(lines, 1):
            if not _is_line(values):
                raise InputError(
                    f"`run` must hold its own {self.path.name}, as it was written; put a copy in its place, or take "
                    f"the line out. Received: line {number} of {str(self.path)!r}, which is {json.dumps(values)[:80]}"
                )
        return lines

    def forget_after(self, step: int) -> list[dict[str, Any]]:
        """Drops the lines of later steps, which a resumed run will write anew; returns those that stay."""
        kept = [line for line in self.lines() if line["step"] <= step]
        if self.path.exists():
            with atomic_file(self.path) as file:
                file.writelines(_text(line) for line in kept)
        return kept


def _text(line: dict[str, Any]) -> str:
    return json.dumps(finite_or_none(line), allow_nan=False) + "\n"


def _is_line(values: Any) -> bool:
    """Whether these are a step, its phase and numbers, of which some may be null."""
    if not isinstance(values, dict) or type(values.get("step")) is not int or type(values.get("phase")) is not int:
        return False
    return all(value is None or type(value) in (int, float) for value in values.values())
