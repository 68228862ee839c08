"""Checkpoints of a run: each a directory of its own that appears whole or not at all."""

import os
import re
import shutil
from pathlib import Path

import keras
import tensorflow as tf

from keras_bert_impl.atomic import atomic_directory
from keras_bert_impl.errors import InputError

_NAME = re.compile(r"step_(\d+)")


class Checkpoints:
    """Saves and restores weights, optimizer state and, within it, the number of the step.

    That is all the state a run has: dropout, the order of the examples and their masks are functions of
    the step.

    Args:
        directory: where the checkpoints lie, as `step_00000300/`.
        model: the model, whose weights are saved.
        optimizer: its optimizer, built.
        keep: how many of the last checkpoints are kept.
    """

    def __init__(
        self, directory: Path, model: keras.Model, optimizer: keras.optimizers.Optimizer, *, keep: int
    ) -> None:
        self.directory = directory
        self.keep = keep
        self._state = tf.train.Checkpoint(
            weights=[variable.value for variable in model.weights],
            optimizer=[variable.value for variable in optimizer.variables],
        )
        directory.mkdir(parents=True, exist_ok=True)

    def steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, in order."""
        matches = (_NAME.fullmatch(path.name) for path in self.directory.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def save(self, step: int) -> Path:
        """Writes the state after `step` steps, then drops the oldest checkpoints."""
        path = self.directory / f"step_{step:08d}"
        with atomic_directory(path, replace=True) as temporary:
            self._state.write(str(temporary / "state"))
            for file in temporary.iterdir():
                _to_disk(file)
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.directory / f"step_{old:08d}")
        return path

    def restore_last(self) -> int:
        """Restores the last checkpoint and returns its step; 0 if there is none.

        What a killed process left half-written is removed.
        """
        for rest in self.directory.glob(".step_*"):
            shutil.rmtree(rest, ignore_errors=True)
        if not (steps := self.steps()):
            return 0
        path = self.directory / f"step_{steps[-1]:08d}"
        try:
            self._state.read(str(path / "state")).assert_consumed()
        except Exception as error:  # TensorFlow has a different error for every kind of damage
            raise InputError(
                f"`run` must have whole checkpoints. Received: {str(path)!r}, which cannot be read; "
                "take it away and the run goes on from the one before"
            ) from error
        return steps[-1]


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
