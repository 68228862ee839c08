"""One model, trained from one seed and evaluated on the way.

```
RUN/history.json     a line for each evaluation
RUN/checkpoints/     the last one, and that of the best evaluation
RUN/model/           once it is finished: the best model
RUN/evaluation.json  how it does on the dev examples
RUN/result.json      what came of it, written last
```
"""

import contextlib
import dataclasses
import gc
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none
from keras_bert_impl.models.pretrained_model import PretrainedModel
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tasks.task_model import check_finite_weights

from ..callbacks import AfterSteps, Progress, steps_done
from ..checkpoint_manifest import DamagedError
from ..checkpointing import Checkpoints
from ..configs import FinetuneConfig
from ..corpus.wording import counted
from ..set_aside import set_aside
from ..stopping import Stopping
from .batches import BatchPlan, RowBatches, training_batches
from .json_files import read_own_json, write_json
from .metric_text import words
from .plan import Plan, make_optimizer, make_plan, make_schedule
from .task import Evaluation, FinetuningTask, Say, TrainingRows
from .trainer import FinetuningTrainer

NON_FINITE_LIMIT = 10
"""A run stops after more steps whose loss or gradient was not finite."""

_CHECKED_EVERY = 20
_TOLD_METRICS = 3
# A checkpoint within an epoch, where an epoch takes long.
_SAVE_SECONDS = 600.0

RESULT, EVALUATION, HISTORY, MODEL, CHECKPOINTS = (
    "result.json",
    "evaluation.json",
    "history.json",
    "model",
    "checkpoints",
)

Line = dict[str, Any]


class DivergedError(InputError):
    """Too many steps of a run were not finite."""


@dataclasses.dataclass
class Bench:
    """What the runs of a fine-tuning share.

    Attributes:
        task: the task, after `prepare`.
        rows: what is trained on.
        dev: examples that the best model is chosen by; none for the last one.
        strategy: what the replicas compute under.
        stopping: whether the run has been asked to stop.
        say: takes each line of narration.
    """

    task: FinetuningTask
    rows: TrainingRows
    dev: Sequence[Any]
    strategy: tf.distribute.Strategy
    stopping: Stopping
    say: Say


def run(bench: Bench, config: FinetuneConfig, seed: int, folder: Path, name: str) -> dict[str, Any]:
    """Trains one model, or goes on where it was; returns what `result.json` holds.

    Args:
        bench: what all runs share.
        config: the settings, those of this point of a grid.
        seed: seed of the fresh head, of the order of the examples and of dropout.
        folder: the run's directory.
        name: what the narration calls the run, such as `"Seed 2"`; empty for the only one.

    Raises:
        DivergedError: if too many steps were not finite.
        StoppedBySignal: when the run has been asked to stop, once a checkpoint is written.
    """
    try:
        return _finish(bench, config, seed, folder, name)
    except DamagedError as error:
        aside = set_aside(folder)
        bench.say(
            f"{f'{name}: ' if name else ''}Begins anew, since what was there cannot be used ({error}). "
            f"It is kept as {str(aside)!r} until the model is complete."
        )
    try:
        return _finish(bench, config, seed, folder, name)
    except DamagedError as error:
        raise InputError(
            f"`output` must be on a disk that keeps what is written to it. Received: {str(folder)!r}, where {error}"
        ) from error


def _finish(bench: Bench, config: FinetuneConfig, seed: int, folder: Path, name: str) -> dict[str, Any]:
    if (result := read_own_json(folder / RESULT)) is None:
        settings = bench.task.settings
        try:
            return _Run(bench, config, seed, folder, name).finish()
        finally:
            # What one run chose on the dev examples is not for the next one.
            bench.task.settings = settings
            gc.collect()
    if not {"seed", "metrics", "best_step", "best_epoch", "warnings"} <= result.keys():
        raise DamagedError(f"{RESULT} lacks what a run writes")
    if name:
        bench.say(f"{name} is finished already.")
    return result


class _Run:
    def __init__(self, bench: Bench, config: FinetuneConfig, seed: int, folder: Path, name: str) -> None:
        self.bench, self.config, self.seed, self.folder, self.name = bench, config, seed, folder, name
        self.plan = make_plan(config, len(bench.rows.token_ids))
        self.schedule = make_schedule(config, self.plan.steps)
        self.trainer = _make_trainer(bench, config, seed, self.plan)
        self.order = BatchPlan([len(ids) for ids in bench.rows.token_ids], batch_size=config.batch_size, seed=seed)
        self.batches = RowBatches(
            bench.rows, per_token=bench.task.per_token, pad_token_id=bench.task.tokenizer.pad_token_id
        )
        self.evaluation_of_best: tuple[int, Evaluation] | None = None
        self.watch: _Watch | None = None
        # The sums of a checkpoint between two evaluations, by its step.
        self.carried: dict[int, dict[str, float]] = {}
        self.checkpoints, self.lines, self.sums_before = self._restore()
        self.checkpoints.best = self.best["step"] if self.best else None

    @property
    def model(self) -> PretrainedModel:
        return self.trainer.trained

    @property
    def step(self) -> int:
        return steps_done(self.trainer.optimizer)

    @property
    def best(self) -> Line | None:
        """The line of the first of the best evaluations, the last line without any."""
        if not self.lines or not self.bench.dev:
            return self.lines[-1] if self.lines else None
        return max(self.lines, key=lambda line: as_score(line.get(self._main)))  # the first of several

    @property
    def _main(self) -> str:
        return f"dev_{self.config.main_metric}"

    def finish(self) -> dict[str, Any]:
        """Trains to the end and writes all that comes of it."""
        if skipped := self._train():
            self.bench.say(
                f"{self._prefix}{counted(skipped, 'step')} of {self.plan.steps:,} "
                f"{'was' if skipped == 1 else 'were'} skipped, since the loss or its gradient was not finite."
            )
        best = self.best
        assert best is not None
        if best["step"] != self.step:
            self._take_weights_of(best["step"])
        evaluation = self._final_evaluation(best["step"])
        for warning in evaluation.warnings:
            self.bench.say(f"Warning: {self._prefix}{warning}")
        result = finite_or_none(
            {
                "seed": self.seed,
                "best_step": best["step"],
                "best_epoch": best["epoch"],
                "steps": self.step,
                "skipped_steps": skipped,
                "metrics": evaluation.metrics,
                "warnings": evaluation.warnings,
            }
        )
        # One that a kill left before the result was written.
        shutil.rmtree(self.folder / MODEL, ignore_errors=True)
        self.model.save_pretrained(self.folder / MODEL, tokenizer=self.bench.task.tokenizer)
        self.bench.task.settings.save(self.folder / MODEL)
        write_json(self.folder / EVALUATION, finite_or_none(dataclasses.asdict(evaluation)))
        write_json(self.folder / RESULT, result)
        shutil.rmtree(self.folder / CHECKPOINTS)
        return result

    def _train(self) -> int:
        """Trains and evaluates until the plan, or the patience, is at its end; returns the number of skipped steps."""
        config, plan = self.config, self.plan
        bar = progress_bar(plan.steps, "step", self.name or "Fine-tuning", initial=self.step)
        with contextlib.closing(bar):
            while True:
                step = self.step
                if step in plan.evaluations and (not self.lines or self.lines[-1]["step"] < step):
                    self._evaluate(bar)
                if step == plan.steps:
                    break
                if self._is_out_of_patience():
                    bar.clear()
                    self.bench.say(
                        f"{self._prefix}Ends after step {step:,}: {counted(config.patience or 0, 'evaluation')} "
                        "without a better one."
                    )
                    break
                self._fit(plan.next_evaluation(step), bar)
        return self.trainer.health.non_finite_steps()

    def _fit(self, until: int, bar: Any) -> None:
        first = self.step
        batches = training_batches(
            self.order, self.batches, first_step=first, num_steps=until - first, strategy=self.bench.strategy
        )
        self.watch = _Watch(first, self)
        self.trainer.fit(
            batches,
            steps_per_epoch=until - first,
            shuffle=False,
            verbose=0,
            callbacks=[Progress(bar, first), self.watch],
        )

    def _evaluate(self, bar: Any) -> None:
        """Appends a line for this step, saves, and tells it."""
        step = self.step
        counts = self._counts()
        self.sums_before = {}
        line: Line = {
            "seed": self.seed,
            "step": step,
            "epoch": round(self.plan.epoch(step), 4),
            "loss": counts["loss_sum"] / counts["weight"] if counts.get("weight") else None,
            "learning_rate": float(self.schedule(step - 1)),
            "examples": round(counts.get("examples", 0)),
            "tokens": round(counts.get("tokens", 0)),
            "examples_per_second": self.watch.rate() if self.watch else None,
            "skipped_steps": self.trainer.health.non_finite_steps(),
        }
        if self.bench.dev:
            evaluation = self.bench.task.evaluate(self.model, self.bench.dev)
            numbers = {name: value for name, value in evaluation.metrics.items() if not isinstance(value, Mapping)}
            line |= {f"dev_{name}": value for name, value in numbers.items()}
        before = self.best
        self.lines.append(finite_or_none(line))
        better = self.best is not before
        if better and self.bench.dev:
            self.evaluation_of_best = step, evaluation
        self._save()
        bar.clear()
        self.bench.say(self._told(line, better))

    def _told(self, line: Line, better: bool) -> str:
        loss = "no step taken" if line["loss"] is None else f"loss {line['loss']:.4f}"
        told = [loss]
        if self.bench.dev:
            main = self.config.main_metric
            names = [main, *(name for name in self.bench.task.metric_names if name != main)]
            values = [(name, line[f"dev_{name}"]) for name in names if f"dev_{name}" in line][:_TOLD_METRICS]
            told += [f"dev {words(name)} {_number(value)}" for name, value in values]
        if line["examples_per_second"]:
            told.append(f"{line['examples_per_second']:.0f} examples/s")
        mark = " (best so far)" if better and self.bench.dev and len(self.lines) > 1 else ""
        return (
            f"{self._prefix}Epoch {line['epoch']:g} of {self.config.epochs:g}, step {line['step']:,} of "
            f"{self.plan.steps:,}: {', '.join(told)}{mark}"
        )

    def _final_evaluation(self, step: int) -> Evaluation:
        """Completes the settings and measures the best model, whose weights are in place."""
        task, dev = self.bench.task, self.bench.dev
        if not dev:
            return Evaluation({}, [])
        seen = self.evaluation_of_best
        if type(task).finish is FinetuningTask.finish and seen is not None and seen[0] == step:
            return seen[1]
        task.finish(self.model, dev)
        return task.evaluate(self.model, dev)

    def _take_weights_of(self, step: int) -> None:
        try:
            self.checkpoints.read_group(step, "weights")
        except DamagedError as error:
            raise DamagedError(f"of the best evaluation, step {step}, the checkpoint: {error}") from error

    def _is_out_of_patience(self) -> bool:
        best, patience = self.best, self.config.patience
        if patience is None or best is None or not self.bench.dev:
            return False
        return sum(line["step"] > best["step"] for line in self.lines) >= patience

    def save_within_epoch(self) -> None:
        """Saves where there is no evaluation; the sums of the loss since the last one are kept."""
        self.carried = {self.step: self._counts()}
        self._save()

    def _save(self) -> None:
        # First: a checkpoint without its line would be one evaluation less.
        carried = {str(step): counts for step, counts in self.carried.items()}
        write_json(self.folder / HISTORY, {"lines": self.lines, "carried": carried})
        self.checkpoints.best = self.best["step"] if self.best else None
        self.checkpoints.save(self.step)

    def _counts(self) -> dict[str, float]:
        """The sums of all steps since the last line."""
        counts = self.trainer.sums.counts()
        return {name: value + self.sums_before.get(name, 0.0) for name, value in counts.items()}

    @property
    def _prefix(self) -> str:
        return f"{self.name}: " if self.name else ""

    def _restore(self) -> tuple[Checkpoints, list[Line], dict[str, float]]:
        """Restores the last checkpoint; returns also the lines up to it, and the sums since the last of them."""
        say = self.bench.say
        checkpoints = Checkpoints(self.folder / CHECKPOINTS, self.trainer.state(), keep=1)
        history = read_own_json(self.folder / HISTORY)
        if history is None and checkpoints.steps():
            raise DamagedError(f"{HISTORY} is missing")
        try:
            step = checkpoints.restore_last(say)
        except InputError as error:
            raise DamagedError(str(error).partition("Received: ")[2]) from error
        try:
            history = history or {"lines": [], "carried": {}}
            lines = [line for line in history["lines"] if line["step"] <= step]
            self.carried = {int(at): dict(counts) for at, counts in history["carried"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedError(f"{HISTORY} lacks what a run writes") from error
        if step:
            say(f"{self._prefix}Goes on from step {step:,} of {self.plan.steps:,}.")
        return checkpoints, lines, self.carried.get(step, {})


class _Watch(AfterSteps):
    """Takes the time; stops the run when it is asked to, or when too much is not finite; saves within long epochs."""

    def __init__(self, first_step: int, run: _Run) -> None:
        super().__init__(first_step)
        self.run = run
        self._saved = time.monotonic()
        self._since: tuple[float, int] | None = None
        self._until: tuple[float, int] | None = None

    def after(self, step: int, *, end: bool = False) -> None:
        """Does what is due after a step."""
        now = time.perf_counter()
        # The first step holds the compilation.
        self._since = self._since or (now, step)
        self._until = now, step
        if end or step % _CHECKED_EVERY == 0:
            self._refuse_bad_steps()
        stop = self.run.bench.stopping.due(step)
        if stop or (not end and time.monotonic() - self._saved > _SAVE_SECONDS):
            self.run.save_within_epoch()
            self._saved = time.monotonic()
        if stop:
            self.run.bench.stopping.stop(step)

    def rate(self) -> float | None:
        """Returns the examples a second, without the first step; None for a single step."""
        if self._since is None or self._until is None or self._until[1] == self._since[1]:
            return None
        examples = sum(len(self.run.order.rows_of_step(step)) for step in range(self._since[1], self._until[1]))
        return examples / (self._until[0] - self._since[0])

    def _refuse_bad_steps(self) -> None:
        health = self.run.trainer.health
        bad = health.non_finite_steps()
        if bad <= NON_FINITE_LIMIT:
            return
        first, last = health.first_and_last_non_finite_step()
        rate = float(self.run.schedule(last - 1))
        raise DivergedError(
            "`learning_rate` or the data made the loss or its gradient infinite or not a number in more than "
            f"{NON_FINITE_LIMIT} steps, so the training stopped; no skipped step changed a weight. Received: {bad} "
            f"such steps, the first {first} and the last {last}, at learning_rate={rate:.3g}"
        )


def _make_trainer(bench: Bench, config: FinetuneConfig, seed: int, plan: Plan) -> FinetuningTrainer:
    with bench.strategy.scope():
        model = bench.task.make_model(seed)
        check_finite_weights(model, config.model)
        trainer = FinetuningTrainer(
            model,
            bench.task.loss_sums,
            targets=tuple(bench.rows.targets),
            seed=seed,
            micro_batches=config.micro_batches,
        )
        optimizer = make_optimizer(config, make_schedule(config, plan.steps))
        optimizer.build(model.trainable_variables)
        trainer.compile(optimizer)
    return trainer


def as_score(value: Any) -> float:
    """Returns a metric as something to compare: what is not defined is the worst."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else -math.inf


def _number(value: Any) -> str:
    return "not defined" if value is None else f"{value:.4f}"
