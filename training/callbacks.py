"""What happens beside the steps of a run: the progress bar, TensorBoard, the best model."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

Line = dict[str, Any]


def steps_done(optimizer: keras.optimizers.Optimizer) -> int:
    """Returns the number of steps that the optimizer has made, under any strategy."""
    return int(optimizer.iterations.value.numpy())


def steps_skipped(optimizer: keras.optimizers.Optimizer) -> int:
    """Returns the number of steps that the optimizer has not taken, since something was not finite."""
    return int(optimizer.skipped.value.numpy())


class AfterSteps(keras.callbacks.Callback):
    """Calls `after` with the global number of steps done, after every execution of the step function.

    It hangs on the beginning of the next batch: a callback at the end of one makes Keras fetch the losses
    from the device at every step.
    """

    def __init__(self, first_step: int) -> None:
        super().__init__()
        self.first_step = first_step

    def after(self, step: int, *, end: bool = False) -> None:
        """Does what is to be done after `step` steps; `end`: this `fit` makes no more."""
        raise NotImplementedError

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Comes before batch `batch` of this `fit`, so that many steps are done."""
        if batch:
            self.after(self.first_step + batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Comes after the last step of this `fit`."""
        self.after(steps_done(self.model.optimizer), end=True)


class Progress(AfterSteps):
    """Moves a progress bar.

    Args:
        bar: from `keras_bert_impl.progress.progress_bar`, over all steps of the run.
        first_step: steps done before this `fit`.
    """

    def __init__(self, bar: Any, first_step: int) -> None:
        super().__init__(first_step)
        self.bar = bar

    def after(self, step: int, *, end: bool = False) -> None:
        """Moves the bar to `step`."""
        self.bar.update(step - self.bar.n)

    def show(self, line: Line) -> None:
        """Shows the values of a line beside the bar."""
        shown = [f"loss {line['loss']:.3f}"] if line.get("loss") is not None else []
        if line.get("mlm_accuracy") is not None:
            shown.append(f"mlm {line['mlm_accuracy']:.1%}")
        if line["examples_per_second"]:
            shown += [f"{line['examples_per_second']:.0f} examples/s", f"{line['tokens_per_second']:,.0f} tokens/s"]
        self.bar.set_postfix_str(", ".join(shown), refresh=False)


class TensorBoard:
    """Writes lines as TensorBoard scalars; earlier lines are written anew, so none is there twice.

    Args:
        directory: where the event files go.
        earlier: lines of the run so far.
    """

    def __init__(self, directory: Path, earlier: Sequence[Line] = ()) -> None:
        for old in directory.glob("events.*"):
            old.unlink()
        self._writer = tf.summary.create_file_writer(str(directory))
        for line in earlier:
            self.write(line)

    def write(self, line: Line) -> None:
        """Writes the numbers of a line, at its step."""
        with self._writer.as_default(step=line["step"]):
            for name, value in line.items():
                if name not in ("step", "phase") and value is not None:
                    group = "held_out" if name.startswith("held_out_") else "train"
                    tf.summary.scalar(f"{group}/{name.removeprefix('held_out_')}", value)
        self._writer.flush()


class BestModel:
    """Keeps the weights with the lowest held-out loss of masked language modelling.

    Losses at different lengths cannot be compared, so only evaluations of the same phase compete: the first
    evaluation of a phase takes the place of all earlier ones. After the run the best of the last phase
    stands. A loss that is not finite is never the best.

    Args:
        save: called when a line is the best so far.
        earlier: lines of the run so far.
    """

    def __init__(self, save: Callable[[], Any], earlier: Sequence[Line] = ()) -> None:
        self.save = save
        self.best: Line | None = None
        for line in earlier:
            self._is_better(line)

    def consider(self, line: Line) -> None:
        """Saves the weights if the line has the lowest held-out loss of its phase."""
        if self._is_better(line):
            self.save()

    def _is_better(self, line: Line) -> bool:
        loss = line.get("held_out_mlm_loss")
        if loss is None or not math.isfinite(loss):
            return False
        best = self.best
        if best and best["phase"] == line["phase"] and best["held_out_mlm_loss"] <= loss:
            return False
        self.best = line
        return True
