"""What a load does, and what it leaves."""

import dataclasses
from collections.abc import Collection
from typing import Any, NamedTuple

from keras_bert_impl.checkpoints.architecture import Shape, part_of


class WrongShape(NamedTuple):
    """A tensor whose shape is not the model's; both shapes are oriented as in the checkpoint.

    Attributes:
        name: in the checkpoint.
        stored: its shape there.
        expected: the shape it would have to have.
        key: its name in `architecture.tensor_shapes`.
    """

    name: str
    stored: Shape
    expected: Shape
    key: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What becomes of every tensor, under its name in the checkpoint where it has one.

    Attributes:
        source: the file or directory.
        format: its format, for example `"huggingface"`.
        loaded: read into the model.
        newly_initialised: in the model, not in the checkpoint; they start fresh.
        unused: in the checkpoint, not in the model.
        wrong_shape: in both, with different shapes; a load stops at them.
        widened: name and dtype of those read that the checkpoint has in half precision.
        passed_over: name and reason of what holds nothing new: optimizer slots, buffers, copies of tied tensors.
        ignored_config_keys: keys of the configuration that are not fields of `BertConfig`.
        inexact: part and reason of heads that compute something else there than here.
    """

    source: str
    format: str = "huggingface"
    loaded: tuple[str, ...] = ()
    newly_initialised: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    wrong_shape: tuple[WrongShape, ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    passed_over: tuple[tuple[str, str], ...] = ()
    ignored_config_keys: tuple[str, ...] = ()
    inexact: tuple[tuple[str, str], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every tensor of the checkpoint is loaded and every tensor of the model comes from it."""
        return not (self.newly_initialised or self.unused or self.wrong_shape)

    @property
    def fresh_parts(self) -> tuple[str, ...]:
        """Parts of the model that do not come from the checkpoint, for example `("classifier",)`."""
        return tuple(dict.fromkeys(part_of(name) for name in self.newly_initialised))

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain JSON values."""
        shapes = [{"name": o.name, "stored": list(o.stored), "expected": list(o.expected)} for o in self.wrong_shape]
        return {"complete": self.complete, **dataclasses.asdict(self), "wrong_shape": shapes}

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.loaded)} tensors loaded"]
        lines += [f"  newly initialised: {name}" for name in self.newly_initialised]
        lines += [f"  unused: {name}" for name in self.unused]
        lines += [
            f"  wrong shape: {one.name}, {one.stored} in the file, {one.expected} in the model{remedy(one.key)}"
            for one in self.wrong_shape
        ]
        lines += [f"  widened from {dtype}: {name}" for name, dtype in self.widened]
        reasons = dict.fromkeys(reason for _, reason in self.passed_over)
        for reason in reasons:
            names = [name for name, why in self.passed_over if why == reason]
            lines.append(f"  passed over, {reason}: {listed(names)}")
        lines += [f"  computes something else: {part}, {reason}" for part, reason in self.inexact]
        if self.ignored_config_keys:
            lines.append(f"  configuration keys passed over: {', '.join(self.ignored_config_keys)}")
        return "\n".join(lines)


def remedy(key: str) -> str:
    """Says which setting the wrong shape of a tensor most likely belongs to, and what can be done."""
    if key == "embeddings.word_embeddings.weight" or key == "cls.predictions.bias":
        return " (another vocabulary: see `vocab_size`)"
    if key == "embeddings.position_embeddings.weight":
        return " (another length: see `max_position_embeddings`)"
    if part_of(key) == "classifier":
        return " (another number of labels: see `labels`)"
    return ""


def listed(names: Collection[str], shown: int = 4) -> str:
    """Returns the first names, and how many more there are."""
    more = len(names) - shown
    return ", ".join(list(names)[:shown]) + (f" and {more} more" if more > 0 else "")
