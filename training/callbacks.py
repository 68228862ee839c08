"""What happens beside the steps of a run: progress, metrics, evaluation, checkpoints."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.errors import InputError

from .metrics_log import MetricsLog
from .phases import Milestones, Phase

Line = dict[str, Any]


def steps_done(optimizer: keras.optimizers.Optimizer) -> int:
    """Returns the number of steps that the optimizer has made, under any strategy."""
    return int(optimizer.iterations.value.numpy())


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
        rate = line["examples_per_second"]
        speed = f", {rate:.0f} examples/s" if rate else ""
        self.bar.set_postfix_str(f"loss {line['loss']:.3f}, mlm {line['mlm_accuracy']:.1%}{speed}", refresh=False)


class Recorder(AfterSteps):
    """At milestones writes a line of metrics, evaluates, hands the line on and saves, in this order.

    The losses and accuracies of a line are those of all tokens and examples since the line before it.

    Args:
        phase: the phase that this `fit` is.
        examples_per_row: how many examples a row of a batch holds.
        first_step: steps done before this `fit`.
        milestones: when what is due.
        log: where lines go.
        learning_rate: function of the steps done before a step.
        evaluate: returns held-out metrics; called when an evaluation is due.
        save: called with the step when a checkpoint is due.
        listeners: called with every line.
        tell: called with the lines of steps after which an evaluation is due, also without held-out metrics.

    Raises:
        InputError: at the first milestone after a loss that is not a finite number, before anything is
            saved.
    """

    def __init__(
        self,
        *,
        phase: Phase,
        examples_per_row: float = 1.0,
        first_step: int,
        milestones: Milestones,
        log: MetricsLog,
        learning_rate: Callable[[int], float],
        evaluate: Callable[[], Line],
        save: Callable[[int], Any],
        listeners: Sequence[Callable[[Line], Any]] = (),
        tell: Callable[[Line], None] = lambda line: None,
    ) -> None:
        super().__init__(first_step)
        self.phase = phase
        self.examples_per_step = phase.batch_size * examples_per_row
        self.milestones = milestones
        self.log = log
        self.learning_rate = learning_rate
        self.evaluate = evaluate
        self.save = save
        self.listeners = listeners
        self.tell = tell
        self._previous = first_step
        self._clock: tuple[float, int] | None = None

    def after(self, step: int, *, end: bool = False) -> None:
        """Does what is due."""
        previous, self._previous = self._previous, step
        due = self.milestones.due(previous, step, end=end) if step > previous else set()
        if due:
            line = self._line(step)
            if "evaluate" in due:
                line |= {f"held_out_{name}": value for name, value in self.evaluate().items()}
            self.log.append(line)
            for listener in self.listeners:
                listener(line)
            if "evaluate" in due:
                self.tell(line)
            if "save" in due:
                self.save(step)
            self.model.sums.reset_state()
        if due or self._clock is None:
            # The first execution holds the compilation, evaluations and checkpoints their own time: not counted.
            self._clock = time.perf_counter(), step

    def _line(self, step: int) -> Line:
        values = {name: float(value) for name, value in self.model.sums.result().items()}
        if self.model.health.non_finite_steps():
            self._refuse_non_finite(step)
        since, at = self._clock or (time.perf_counter(), step)
        seconds = time.perf_counter() - since
        rate = (step - at) * self.examples_per_step / seconds if step > at else None
        return {
            "step": step,
            "phase": self.phase.number,
            "length": self.phase.length,
            # What nothing was counted for, next-sentence prediction without labels, is left out.
            **{name: value for name, value in values.items() if not math.isnan(value)},
            "learning_rate": self.learning_rate(step - 1),
            "examples_per_second": rate,
        }

    def _refuse_non_finite(self, step: int) -> None:
        first, _ = self.model.health.first_and_last_non_finite_step()
        raise InputError(
            "`learning_rate` or the data made the loss or its gradient infinite or not a number, so the run stopped; "
            "its last checkpoint is sound. "
            f"Received: step {first}, learning_rate={self.learning_rate(first - 1):.3g}"
        )


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
    stands.

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
        if loss is None:
            return False
        best = self.best
        if best and best["phase"] == line["phase"] and best["held_out_mlm_loss"] <= loss:
            return False
        self.best = line
        return True
