"""Checkpoints of a run: each a directory that appears whole or not at all, and is checked before it is read."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.atomic import atomic_directory
from keras_bert_impl.errors import InputError

from .checkpoint_manifest import DamagedError, Structure, read_manifest, write_manifest
from .set_aside import set_aside

_NAME = re.compile(r"step_(\d+)")
_STATE = "state"


class Checkpoints:
    """Saves and restores all variables that a run has, the number of the step among them.

    That is all the state there is: dropout, the order of the examples and their masks are functions of the step.

    Args:
        directory: where the checkpoints lie, as `step_00000300/`.
        state: the variables by group, such as the weights; the same groups and shapes in every process of a run,
            under whatever strategy.
        keep: how many of the last checkpoints are kept.

    Attributes:
        best: step whose checkpoint is kept beyond the last ones, or None.
    """

    def __init__(self, directory: Path, state: Mapping[str, Sequence[Any]], *, keep: int) -> None:
        self.directory = directory
        self.keep = keep
        self.best: int | None = None
        groups = {name: [_value(variable) for variable in variables] for name, variables in state.items()}
        self._structure: Structure = {
            name: [[value.dtype.name, value.shape.as_list()] for value in values] for name, values in groups.items()
        }
        self._groups = groups
        self._state = tf.train.Checkpoint(**groups)
        self._written: int | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, in order."""
        return saved_steps(self.directory)

    def path(self, step: int) -> Path:
        """Returns where the checkpoint of a step lies."""
        return self.directory / f"step_{step:08d}"

    def save(self, step: int) -> Path:
        """Writes the state after `step` steps unless that was just done, then drops the oldest checkpoints.

        When this returns, the checkpoint would outlive a loss of power.
        """
        path = self.path(step)
        if step != self._written:
            with atomic_directory(path, replace=True) as temporary:
                self._state.write(str(temporary / _STATE))
                write_manifest(temporary, step, self._structure)
            self._written = step
        steps = self.steps()
        for old in set(steps[: -self.keep]) - {self.best}:
            # Under another name first, so that a kill in the middle leaves no half of a checkpoint.
            dropped = self.path(old).rename(self.directory / f".{self.path(old).name}.dropped")
            shutil.rmtree(dropped)
        return path

    def restore_last(self, say: Callable[[str], None] = lambda line: None) -> int:
        """Restores the last whole checkpoint and returns its step; 0 if there is none at all.

        Later ones that are not whole are set aside under another name, and what a killed process left half-written
        is removed.

        Args:
            say: takes a sentence for each checkpoint that cannot be used.

        Raises:
            InputError: if there are checkpoints but no whole one, or the last whole one is of another model or
                optimizer. Nothing is set aside then.
        """
        for rest in self.directory.glob(".step_*"):
            shutil.rmtree(rest, ignore_errors=True)
        faults: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                self._restore(step)
            except DamagedError as error:
                faults[step] = str(error)
                continue
            for damaged, fault in faults.items():
                aside = set_aside(self.path(damaged))
                say(
                    f"Checkpoint of step {damaged} cannot be used ({fault}); going on from step {step}. "
                    f"It is kept as {str(aside)!r}."
                )
            self._written = step
            return step
        if faults:
            raise InputError(
                "`run` must have a whole checkpoint; put a copy of one in its place, or take the directory away and "
                f"the run begins anew. Received: {str(self.directory)!r}, where "
                + ", and ".join(f"that of step {step} cannot be used ({fault})" for step, fault in faults.items())
            )
        return 0

    def read_group(self, step: int, group: str) -> None:
        """Gives the variables of one group the values they have in the checkpoint of a step, and leaves the others.

        Raises:
            DamagedError: if the checkpoint is not there, not whole, or of another model or optimizer.
        """
        path = self.path(step)
        if difference := _difference(read_manifest(path, step), self._structure):
            raise DamagedError(f"it is one {difference}")
        tf.train.Checkpoint(**{group: self._groups[group]}).read(str(path / _STATE)).expect_partial()

    def is_finite(self, step: int, group: str) -> bool:
        """Returns whether every value of a group in the checkpoint of a step is finite."""
        reader = tf.train.load_checkpoint(str(self.path(step) / _STATE))
        names = [name for name in reader.get_variable_to_shape_map() if name.startswith(f"{group}/")]
        return all(bool(np.isfinite(np.asarray(reader.get_tensor(name), "float32")).all()) for name in names)

    def _restore(self, step: int) -> None:
        path = self.path(step)
        structure = read_manifest(path, step)
        if difference := _difference(structure, self._structure):
            raise InputError(
                "`run` must have checkpoints of this model and optimizer, as this version of the package makes them. "
                f"Received: {str(path)!r}, {difference}"
            )
        try:
            # In part read is as good as not at all: an earlier one is read over it, or the run does not begin.
            self._state.read(str(path / _STATE)).assert_consumed()
        except Exception as error:  # TensorFlow has a different error for everything that a device may do
            raise DamagedError(f"{_STATE} cannot be read: {str(error).splitlines()[0]}") from error


def saved_steps(directory: Path) -> list[int]:
    """Returns the steps that have a checkpoint in a directory, in order; none if it is not there."""
    matches = (_NAME.fullmatch(path.name) for path in directory.glob("step_*"))
    return sorted(int(match[1]) for match in matches if match)


def _value(variable: Any) -> Any:
    return variable.value if isinstance(variable, keras.Variable) else variable


def _difference(stored: Structure, ours: Structure) -> str:
    """Returns a clause on the first difference between what is stored and what is to be restored, if any."""
    if stored.keys() != ours.keys():
        return f"which has {', '.join(stored)} instead of {', '.join(ours)}"
    for group, variables in ours.items():
        if len(stored[group]) != len(variables):
            return f"which has {len(stored[group])} variables as {group} instead of {len(variables)}"
        for number, (theirs, variable) in enumerate(zip(stored[group], variables, strict=True)):
            if theirs != variable:
                return f"where variable {number} of {group} is {theirs[0]} {theirs[1]} instead of {variable}"
    return ""
