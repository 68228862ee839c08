"""What a fine-tuned model needs to be asked as it was trained, kept in `task.json` beside its weights."""

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any, Self

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

FILE = "task.json"
TASKS = ("classification", "multilabel", "regression", "tagging", "qa")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """How texts become rows for a model, and its scores answers.

    Attributes:
        task: of `TASKS`.
        max_length: ids in a row, with `[CLS]` and `[SEP]`; None for as many as the model has positions.
        pair: whether it was trained on pairs of texts; None if that is not known, and both are answered.
        stride: tagging, qa: pieces by which one window begins after another; None for half a window, or for qa 128.
        labelled_pieces: tagging: whether a word's label is that of its `"first"` piece, or the mean of `"all"`.
        max_question_length: qa: pieces of a question that are kept.
        max_answer_length: qa: pieces that an answer may have.
        may_have_no_answer: qa: whether "no answer" is one of the answers.
        null_threshold: qa: how much better than the best answer "no answer" must score to be given.
        label_threshold: multilabel: probability from which a label holds.
    """

    task: str
    max_length: int | None = None
    pair: bool | None = None
    stride: int | None = None
    labelled_pieces: str = "first"
    max_question_length: int = 64
    max_answer_length: int = 30
    may_have_no_answer: bool = False
    null_threshold: float = 0.0
    label_threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise InputError(f"`task` must be one of {', '.join(TASKS)}. Received: task={self.task!r}")
        if self.labelled_pieces not in ("first", "all"):
            raise InputError(
                f"`labelled_pieces` must be 'first' or 'all'. Received: labelled_pieces={self.labelled_pieces!r}"
            )
        for name in ("pair", "may_have_no_answer"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (value is None and name == "pair"):
                raise InputError(f"`{name}` must be true or false. Received: {name}={value!r}")
        for name, low in (("max_length", 3), ("stride", 1), ("max_question_length", 1), ("max_answer_length", 1)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and value >= low) and not (value is None and name in ("max_length", "stride")):
                raise InputError(f"`{name}` must be a whole number of at least {low}. Received: {name}={value!r}")
        for name in ("null_threshold", "label_threshold"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
                raise InputError(f"`{name}` must be a finite number. Received: {name}={value!r}")

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes `task.json` into a model directory."""
        with atomic_file(Path(directory) / FILE) as file:
            json.dump(dataclasses.asdict(self), file, indent=2)
            file.write("\n")

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self | None:
        """Reads `task.json` of a model directory; None if it has none.

        Raises:
            InputError: if it cannot be read, has a key that is not known, or a value that cannot be.
        """
        path = Path(directory) / FILE
        try:
            values: Any = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"`model` must have a {FILE} that is JSON. Received: {str(path)!r}") from error
        known = {field.name for field in dataclasses.fields(cls)}
        fault = ""
        if not isinstance(values, dict):
            fault = "which holds no JSON object"
        elif unknown := [name for name in values if name not in known]:
            fault = f"with the key {unknown[0]!r}, which is not known"
        elif "task" not in values:
            fault = "without the key 'task'"
        if fault:
            raise InputError(
                f"`model` must have a {FILE} with keys of {', '.join(sorted(known))}. Received: {str(path)!r}, {fault}"
            )
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{error}, in {str(path)!r}") from error
