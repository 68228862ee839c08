"""At milestones of a run: a line of metrics, an evaluation, a checkpoint."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none

from .callbacks import AfterSteps, Line, steps_skipped
from .held_out import perplexity
from .metrics_log import MetricsLog
from .phases import Milestones, Phase
from .stopping import Stopping
from .throughput import Throughput


class Recorder(AfterSteps):
    """At milestones writes a line of metrics, evaluates, hands the line on and saves, in this order.

    The losses, accuracies and counts of a line are those of all tokens and examples since the line before it; steps
    that were skipped count for nothing.

    Args:
        phase: the phase that this `fit` is.
        first_step: steps done before this `fit`.
        milestones: when what is due.
        log: where lines go.
        throughput: takes the time.
        learning_rate: function of the steps done before a step.
        evaluate: returns held-out metrics; called when an evaluation is due.
        save: called with the step when a checkpoint is due.
        tell: called with the lines of steps after which an evaluation is due, also without held-out metrics.
        listeners: called with every line.
        last_checkpoint: returns a clause on what the last checkpoint holds, for the message of a run that stops.
        non_finite_limit: steps of the run that may be skipped since their loss or gradient was not finite.
        replicas: over which a batch is divided.
        stopping: whether the run has been asked to stop; a line and a checkpoint are due then.

    Raises:
        InputError: at the first milestone after more such steps, before anything is saved.
        StoppedBySignal: when the run has been asked to stop, after everything that is due.
    """

    def __init__(
        self,
        *,
        phase: Phase,
        first_step: int,
        milestones: Milestones,
        log: MetricsLog,
        throughput: Throughput,
        learning_rate: Callable[[int], float],
        evaluate: Callable[[], Line],
        save: Callable[[int], Any],
        tell: Callable[[Line], None] = lambda line: None,
        listeners: Sequence[Callable[[Line], Any]] = (),
        last_checkpoint: Callable[[], str] = lambda: "there is no checkpoint",
        non_finite_limit: int = 0,
        replicas: int = 1,
        stopping: Stopping | None = None,
    ) -> None:
        super().__init__(first_step)
        self.phase = phase
        self.milestones = milestones
        self.log = log
        self.throughput = throughput
        self.learning_rate = learning_rate
        self.evaluate = evaluate
        self.save = save
        self.tell = tell
        self.listeners = listeners
        self.last_checkpoint = last_checkpoint
        self.non_finite_limit = non_finite_limit
        self.replicas = replicas
        self.stopping = stopping or Stopping()
        self._previous = self._recorded = first_step

    def after(self, step: int, *, end: bool = False) -> None:
        """Does what is due."""
        previous, self._previous = self._previous, step
        due = self.milestones.due(previous, step, end=end) if step > previous else set()
        stop = step > previous and self.stopping.due(step)
        if stop:
            due |= {"log", "save"}
        if due:
            self._refuse_bad_steps()
            line = self._line(step)
            if "evaluate" in due:
                line |= {f"held_out_{name}": value for name, value in self.evaluate().items()}
            line = finite_or_none(line)
            self.log.append(line)
            if "evaluate" in due:
                self.tell(line)
            for listener in self.listeners:
                listener(line)
            if "save" in due:
                self.save(step)
            self.model.sums.reset_state()
            self._recorded = step
        if stop:
            self.stopping.stop(step)
        if due or not self.throughput.runs:
            # The first execution holds the compilation, evaluations and checkpoints their own time: not counted.
            self.throughput.start(step)

    def _line(self, step: int) -> Line:
        values = {name: float(value) for name, value in self.model.sums.result().items()}
        counts = self.model.sums.counts()
        if math.isfinite(values["mlm_loss"]):
            values["mlm_perplexity"] = perplexity(values["mlm_loss"])
        line = {
            "step": step,
            "phase": self.phase.number,
            "length": self.phase.length,
            "replicas": self.replicas,
            # What nothing was counted for, next-sentence prediction without labels, is left out.
            **{name: value for name, value in values.items() if not math.isnan(value)},
            "learning_rate": self.learning_rate(step - 1),
            "examples": round(counts["examples"]),
            "tokens": round(counts["tokens"]),
            **self.throughput.rates(step, counts, step - self._recorded),
            "skipped_steps": steps_skipped(self.model.optimizer),
        }
        loss_scale = self.model.health.loss_scale()
        return line if loss_scale is None else line | {"loss_scale": loss_scale}

    def _refuse_bad_steps(self) -> None:
        bad = self.model.health.non_finite_steps()
        if bad <= self.non_finite_limit:
            return
        first, last = self.model.health.first_and_last_non_finite_step()
        loss_scale = self.model.health.loss_scale()
        scale = "" if loss_scale is None else f", loss scale {loss_scale:g}"
        raise InputError(
            "`learning_rate` or the data made the loss or its gradient infinite or not a number in more steps than "
            f"`non_finite_limit`, so the run stopped; no skipped step changed a weight, and {self.last_checkpoint()}. "
            f"Received: {bad} such step{'s' if bad != 1 else ''}, the first {first} and the last {last}, at "
            f"learning_rate={self.learning_rate(last - 1):.3g}{scale}, non_finite_limit={self.non_finite_limit}"
        )
