"""A few steps of each phase on real data, to tell what a run will take; nothing is written."""

import dataclasses
import math
import resource
import statistics
import sys
import time
from typing import Any

import tensorflow as tf

from keras_bert_impl.config import BertConfig

from .callbacks import AfterSteps, steps_done, steps_skipped
from .configs import PretrainConfig
from .corpus.wording import size_in_words
from .disk_space import free_bytes, run_size
from .distribution import local_devices
from .exact_step import PretrainingTrainer
from .performance import describe_peak, flops_of, peak_flops
from .phases import Phase
from .pretraining_data import PretrainingData
from .run import Say, build_trainer, fit_steps, phase_batches, say_beginning
from .run_directory import RunDirectory
from .sicknesses import replicas_slower

STEPS = 6
"""Steps of a phase that are tried; the first of them holds the compilation."""

_ENOUGH_SECONDS = 60.0


class Stopwatch(AfterSteps):
    """Takes the time of each step, as it ends on the device.

    Args:
        first_step: steps done before this `fit`.
        patience: seconds after which there are enough steps, once there are two.
    """

    def __init__(self, first_step: int, patience: float) -> None:
        super().__init__(first_step)
        self.patience = patience
        self._begun = time.perf_counter()
        self._ends: list[float] = []

    def after(self, step: int, *, end: bool = False) -> None:
        """Notes the end of a step; ends the trial if it takes long."""
        self.model.sums.counts()  # waits for the device
        self._ends.append(time.perf_counter())
        if len(self._ends) > 1 and self._ends[-1] - self._begun > self.patience:
            self.model.stop_training = True

    @property
    def first(self) -> float:
        """Seconds of the first step, with the compilation."""
        return self._ends[0] - self._begun

    @property
    def median(self) -> float:
        """Median of the seconds of the steps after the first."""
        pairs = zip(self._ends[:-1], self._ends[1:], strict=True)
        return statistics.median(end - begin for begin, end in pairs)


def dry_run(
    config: PretrainConfig,
    data: PretrainingData,
    directory: RunDirectory,
    phases: list[Phase],
    model_config: BertConfig,
    strategy: tf.distribute.Strategy,
    say: Say,
) -> dict[str, Any]:
    """Builds the model, makes a few steps of each phase and tells their speed, memory and what the run will take.

    Returns:
        `parameters`, `weights_bytes`, `optimizer_bytes`, `peak_flops` (of all replicas), `phases` (a list of what
        `try_phase` returns and `model_flops_utilisation`), `tokens_per_second_of_one_replica` alone in the first
        phase (None if there is but one, or several machines), `expected_seconds` of all steps, `checkpoint_bytes`,
        `disk_bytes` and `free_bytes`.
    """
    config = dataclasses.replace(config, steps_per_execution=1)
    trainer, _ = build_trainer(config, data, phases, model_config, strategy)
    say_beginning(config, data, phases, trainer, say)
    say(f"Layout: {describe_layout(config, strategy)}.")
    weights, optimizer = (_bytes(trainer.state()[group]) for group in ("weights", "optimizer"))
    say(f"Memory on each replica: weights {size_in_words(weights)}, optimizer state {size_in_words(optimizer)}.")
    peak = peak_flops(strategy, config.dtype, config.peak_flops)
    say(describe_peak(peak, config))

    tried = []
    for phase in phases:
        say(f"Trying phase {phase.number} for at most {STEPS} steps …")
        facts = try_phase(config, data, trainer, phase)
        tried.append(facts | {"model_flops_utilisation": facts["flops"] / facts["seconds_per_step"] / peak})
        say(_describe(phase, tried[-1]))
    alone = None
    if strategy.num_replicas_in_sync > 1 and not _on_several_machines(strategy):
        alone = _try_alone(config, data, phases[0], model_config, strategy)["tokens_per_second"]
        say(_compare(strategy.num_replicas_in_sync, tried[0]["tokens_per_second"], alone))

    steps = [phase.last_step - phase.first_step for phase in phases]
    seconds = sum(count * facts["seconds_per_step"] for count, facts in zip(steps, tried, strict=True))
    size, free = run_size(config, model_config, next_sentence=_has_next_sentence(trainer)), free_bytes(directory.path)
    say(f"All {sum(steps):,} steps would take {duration_in_words(seconds)}; evaluations and checkpoints come on top.")
    say(
        f"Disk: at most {size_in_words(size.total)}, of that {size.checkpoints} checkpoints of "
        f"{size_in_words(size.checkpoint)}; {size_in_words(free)} are free. Nothing was written."
    )
    return {
        "parameters": trainer.pretrainer.count_params(),
        "weights_bytes": weights,
        "optimizer_bytes": optimizer,
        "peak_flops": peak,
        "phases": tried,
        "tokens_per_second_of_one_replica": alone,
        "expected_seconds": seconds,
        "checkpoint_bytes": size.checkpoint,
        "disk_bytes": size.total,
        "free_bytes": free,
    }


def try_phase(
    config: PretrainConfig, data: PretrainingData, trainer: PretrainingTrainer, phase: Phase
) -> dict[str, Any]:
    """Makes a few steps of a phase.

    Returns:
        `number` and `length` of the phase; `rows` of a step and the means over the steps of `tokens`, `examples` and
        `predictions`, padding left out, and of `flops`, the floating-point operations that they need;
        `compile_seconds` of the first step; `seconds_per_step`, the median of the others; `tokens_per_second`; and
        `peak_bytes` of memory.
    """
    strategy = trainer.distribute_strategy
    # One step more where the phase has but one: the first holds the compilation.
    steps = max(2, min(STEPS, phase.last_step - phase.first_step))
    before, skipped = steps_done(trainer.optimizer), steps_skipped(trainer.optimizer)
    _forget_peak()
    stopwatch = Stopwatch(before, patience=math.inf if _on_several_machines(strategy) else _ENOUGH_SECONDS)
    batches = phase_batches(config, data, phase, strategy, done=0, steps=steps)
    fit_steps(trainer, batches, steps, [stopwatch])
    taken = steps_done(trainer.optimizer) - before - (steps_skipped(trainer.optimizer) - skipped)
    counts = {name: value / max(1, taken) for name, value in trainer.sums.counts().items()}
    return {
        "number": phase.number,
        "length": phase.length,
        "rows": phase.batch_size,
        "tokens": counts["tokens"],
        "examples": counts["examples"],
        "predictions": counts["mlm_weight"],
        "flops": flops_of(trainer.pretrainer)(counts),
        "compile_seconds": stopwatch.first,
        "seconds_per_step": stopwatch.median,
        "tokens_per_second": counts["tokens"] / stopwatch.median,
        "peak_bytes": _peak_bytes(),
    }


def describe_layout(config: PretrainConfig, strategy: tf.distribute.Strategy) -> str:
    """Returns the strategy, its devices and how a batch is divided, in words."""
    name = type(strategy).__name__ if strategy.num_replicas_in_sync > 1 else "one device, no strategy"
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        name = "MultiWorkerMirroredStrategy"  # The class has another name.
    return (
        f"{name} ({', '.join(local_devices(strategy))}), {config.dtype}, XLA {'on' if config.xla else 'off'}, "
        f"padding {'left out' if config.skip_padding else 'computed'}, "
        f"micro-batches on each replica: {config.micro_batches}"
    )


def duration_in_words(seconds: float) -> str:
    """Returns a time span as text, such as `'2.5 hours'`."""
    for unit, length, next_length in (("seconds", 1, 120), ("minutes", 60, 7200), ("hours", 3600, 172_800)):
        if seconds < next_length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 86_400:,.3g} days"


def _describe(phase: Phase, facts: dict[str, Any]) -> str:
    padding = 1 - facts["tokens"] / (facts["rows"] * phase.length)
    return (
        f"Phase {phase.number}, a step: {facts['rows']} rows of {phase.length} with {facts['examples']:,.1f} examples, "
        f"{facts['tokens']:,.0f} real tokens ({padding:.0%} padding), {facts['predictions']:,.0f} predictions; "
        f"{facts['seconds_per_step']:.3g} s ({facts['compile_seconds']:.3g} s with compilation), "
        f"{facts['tokens_per_second']:,.0f} tokens/s, utilisation {facts['model_flops_utilisation']:.1%}; "
        f"{size_in_words(facts['peak_bytes'])} of {'GPU memory' if _gpus() else 'memory'} at its peak."
    )


def _try_alone(
    config: PretrainConfig,
    data: PretrainingData,
    phase: Phase,
    model_config: BertConfig,
    strategy: tf.distribute.Strategy,
) -> dict[str, Any]:
    """Tries one replica with its share of the rows."""
    alone = dataclasses.replace(config, replicas=1)
    share = dataclasses.replace(phase, batch_size=phase.batch_size // strategy.num_replicas_in_sync)
    trainer, _ = build_trainer(alone, data, [share], model_config, tf.distribute.get_strategy())
    return try_phase(alone, data, trainer, share)


def _compare(replicas: int, tokens: float, alone: float) -> str:
    if sentence := replicas_slower(1, alone, replicas, tokens):
        return f"Warning: {sentence}"
    return f"One replica alone makes {alone:,.0f} tokens/s, {replicas} make {tokens / alone:.2f} times as many."


def _on_several_machines(strategy: tf.distribute.Strategy) -> bool:
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _has_next_sentence(trainer: PretrainingTrainer) -> bool:
    return "nsp_logits" in trainer.pretrainer.output


def _bytes(variables: list[Any]) -> int:
    return sum(math.prod(variable.shape) * tf.as_dtype(variable.dtype).size for variable in variables)


def _gpus() -> list[str]:
    return [device.name.removeprefix("/device:") for device in tf.config.list_logical_devices("GPU")]


def _forget_peak() -> None:
    for name in _gpus():
        tf.config.experimental.reset_memory_stats(name)


def _peak_bytes() -> int:
    """The most memory of any GPU, or else of this process since it began."""
    if gpus := _gpus():
        return max(tf.config.experimental.get_memory_info(name)["peak"] for name in gpus)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
