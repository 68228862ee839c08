"""`pretrain`: from prepared data to a model, with everything a run leaves behind."""

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none
from keras_bert_impl.progress import progress_bar

from .callbacks import BestModel, Line, Progress, TensorBoard
from .checkpoint_manifest import DamagedError, checksum_of
from .checkpointing import saved_steps
from .chief_state import take_from_chief
from .cluster import find_cluster, place_of_run
from .configs import PretrainConfig
from .corpus.wording import counted
from .disk_space import check_room, plain_full_disk, run_size
from .distribution import make_deterministic, make_strategy, resolve_replicas
from .dry_run import dry_run
from .freed_memory import keep_freed_memory
from .held_out import HeldOut, describe
from .metrics_log import MetricsLog
from .model_choice import PretrainingModel, check_fit, choose_model
from .narrator import Narrator
from .performance import describe_peak, flops_of, peak_flops
from .phases import Milestones, Phase, plan_phases
from .pretraining_data import open_data
from .recorder import Recorder
from .report import write_report
from .run import Run, Say, decided, fit_steps, phase_batches, start_run
from .run_directory import RunDirectory, read_json, write_json
from .run_lock import sole_trainer
from .shared_facts import shared_facts
from .sicknesses import Doctor, Sicknesses, sicknesses_of
from .stopping import Stopping, stop_after_step
from .team import assembled
from .throughput import Throughput
from .worker_loss import plain_losses


def pretrain(
    config: PretrainConfig,
    say: Say = lambda line: None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains BERT in the run directory, from the beginning or from where the run stopped.

    A run that was killed and is started again ends with the weights, bit for bit, that it would have had.

    Args:
        config: the settings.
        say: takes each line of narration.
        callbacks: Keras callbacks of the user's, called in every phase's `fit`.

    Returns:
        What `metrics.json` in the run directory holds: `steps`, `best_step` and under `held_out`, by length,
        the full held-out evaluation of the best model. The best is the one with the lowest held-out MLM
        loss among the evaluations of the last phase, since losses at different lengths cannot be compared.
        For a dry run, which writes nothing, what `dry_run.dry_run` returns.

    Raises:
        InputError: if settings, data and model do not fit one another, the run directory belongs to another
            run, the loss is no longer a finite number, or the disk is full.
        StoppedBySignal: (a `KeyboardInterrupt`) at Ctrl-C or SIGTERM while it trains, once the step in progress has
            ended and its checkpoint is written; a second one stops at once.
    """
    data = open_data(config.data)
    cluster = find_cluster(config.cluster, config.worker, os.environ)
    config = decided(config, resolve_replicas(config.replicas, len(cluster.addresses) if cluster else 1), data)
    phases = plan_phases(config)
    model_config = choose_model(config, data)
    check_fit(config, model_config, phases, data)
    with contextlib.ExitStack() as stack:
        directory = RunDirectory(stack.enter_context(place_of_run(config.run, cluster)))
        directory.check(config, model_config, data.digest)
        facts = shared_facts(config, model_config, data.digest)
        team = stack.enter_context(assembled(cluster, facts, say))
        stack.enter_context(plain_losses(team))
        say = team.voice(say)
        if not config.dry_run and (metrics := team.from_chief(stored_metrics(directory))):
            return _tell_finished(directory, metrics, say)
        keep_freed_memory()
        make_deterministic(config.deterministic)
        strategy = make_strategy(config.replicas, cluster)
        if config.dry_run:
            with data.plain_errors():
                return dry_run(config, data, directory, phases, model_config, strategy, say)

        may_predict_next_sentence = data.next_sentence or config.init is not None
        if team.is_chief:
            check_room(directory.path, run_size(config, model_config, next_sentence=may_predict_next_sentence))
        stack.enter_context(sole_trainer(directory.path))
        stack.enter_context(plain_full_disk(directory.path, lambda: saved_steps(directory.checkpoints)))
        run = start_run(config, data, directory, phases, model_config, strategy, say, team)
        with data.plain_errors():
            train(run, callbacks)
            return finish(run)


def train(run: Run, callbacks: Sequence[keras.callbacks.Callback] = ()) -> None:
    """Trains through the phases that are not yet done; ends early if a callback says so."""
    best = BestModel(run.save_best, run.earlier)
    run.checkpoints.best = best.best["step"] if best.best else None
    board = TensorBoard(run.directory.tensorboard, run.earlier)
    bar = progress_bar(run.config.total_steps, "step", "Pretraining", initial=run.step)
    narrator = Narrator(run.say, clear=bar.clear)
    doctor = Doctor(run.say, bar.clear, Sicknesses(**what_is_judged(run)), run.earlier)
    peak = peak_flops(run.trainer.distribute_strategy, run.config.dtype, run.config.peak_flops)
    run.say(describe_peak(peak, run.config))
    with contextlib.closing(bar), stop_after_step(run.team.agreed_stop) as stopping:
        for phase in run.phases:
            if run.step >= phase.last_step:
                continue
            progress = Progress(bar, run.step)
            listeners: list[Callable[[Line], Any]] = [board.write, best.consider, progress.show, doctor]
            recorder = make_recorder(run, phase, listeners, narrator, stopping, peak=peak)
            train_phase(run, phase, [*callbacks, progress, recorder])
            if run.trainer.stop_training:
                run.say(f"A callback ended the training after step {run.step}.")
                break
            if run.step < phase.last_step:
                raise InputError(
                    f"`data` must have batches for all steps of phase {phase.number}, up to step {phase.last_step}; "
                    "without an error the training ended before them, so the run is not finished and the same command "
                    f"goes on. Received: {run.config.data!r}, whose batches ended after step {run.step}"
                )


def train_phase(run: Run, phase: Phase, callbacks: list[keras.callbacks.Callback]) -> None:
    """Trains for the steps of a phase that are left, on the batches of just these steps."""
    step = run.step
    steps_left = phase.last_step - step
    strategy = run.trainer.distribute_strategy
    batches = phase_batches(run.config, run.data, phase, strategy, done=step - phase.first_step, steps=steps_left)
    fit_steps(run.trainer, batches, steps_left, callbacks)


def make_recorder(
    run: Run,
    phase: Phase,
    listeners: list[Callable[[Line], Any]],
    tell: Callable[[Line], None],
    stopping: Stopping | None = None,
    *,
    peak: float,
) -> Recorder:
    """Returns the callback that logs, evaluates and saves in a phase."""
    config = run.config
    held_out = None
    if run.data.count("held_out", phase.length):
        held_out = _held_out(run, phase.length, limit=config.evaluation_examples)

    def evaluate() -> Line:
        if held_out is None:
            return {}
        names = {"unigram_loss", "nsp_majority_share"} & held_out.facts.keys()
        return {**held_out.measure(run.trainer), **{name: held_out.facts[name] for name in sorted(names)}}

    return Recorder(
        phase=phase,
        throughput=Throughput(run.trainer.input_clock, flops_of(run.trainer.pretrainer), peak),
        replicas=run.trainer.distribute_strategy.num_replicas_in_sync,
        non_finite_limit=config.non_finite_limit,
        first_step=run.step,
        milestones=Milestones(
            log_every=config.log_every or 1,
            evaluate_every=config.evaluate_every or 1,
            save_every=config.checkpoint_every or 1,
        ),
        log=run.log,
        learning_rate=lambda step: float(run.learning_rate(step)),
        evaluate=evaluate,
        save=run.save_checkpoint,
        stopping=stopping,
        last_checkpoint=run.last_checkpoint,
        listeners=listeners,
        tell=tell,
    )


def what_is_judged(run: Run) -> dict[str, int]:
    """Returns the facts of a run that its sicknesses are judged by."""
    warmups = [phase.warmup_steps for phase in run.config.phases] + [run.config.warmup_steps]
    return {
        "vocab_size": run.trainer.pretrainer.config.vocab_size,
        "warmup_steps": max(steps or 0 for steps in warmups),
    }


def finish(run: Run) -> dict[str, Any]:
    """Measures the best model on all held-out examples, and writes metrics and report."""
    lines = run.log.lines()
    steps = run.step
    best_step = run.team.from_chief(_take_best_weights(run, lines) if run.team.is_chief else None)
    best = best_step is not None
    if best:
        weights = {"weights": run.trainer.pretrainer.weights}
        take_from_chief(run.team, run.trainer.distribute_strategy, weights)
    else:
        best_step = steps
        run.say(
            "The data has no held-out documents at the last length, so the model is that of the last step, "
            f"training MLM loss {_last_loss(lines):.4f}."
        )
        run.save_model()
    longest = run.trainer.pretrainer.config.max_position_embeddings
    lengths = [length for length in run.data.lengths if run.data.count("held_out", length) and length <= longest]
    if lengths:
        run.say(f"Measuring the {'best ' if best else ''}model (step {best_step}) on all held-out examples …")
    held_out = {}
    for length in lengths:
        record = held_out[str(length)] = _held_out(run, length, limit=0).full_record(run.trainer)
        run.say(describe(length, record))
    metrics = finite_or_none({"steps": steps, "best_step": best_step, "held_out": held_out})
    sicknesses = sicknesses_of(lines, **what_is_judged(run))
    run.say(write_report(run.directory.report, run.config, lines, metrics, run.phases, sicknesses))
    write_json(run.directory.metrics, metrics)
    run.say(_where(run.directory, metrics))
    return metrics


def stored_metrics(directory: RunDirectory) -> dict[str, Any] | None:
    """Returns the metrics of a finished run, and None of one that is not finished."""
    if not directory.metrics.exists():
        return None
    metrics = read_json(directory.metrics)
    try:
        told = [metrics[name] for name in ("steps", "best_step")]
        told += [describe(length, record) for length, record in metrics["held_out"].items()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"`run` must hold its own {directory.metrics.name}, as the run wrote it when it was finished; remove that "
            f"file, and the same command measures the best model again. Received: {str(directory.metrics)!r}, in which "
            f"something is missing or of another kind: {error}"
        ) from error
    return metrics


def _tell_finished(directory: RunDirectory, metrics: dict[str, Any], say: Say) -> dict[str, Any]:
    say(f"Run {str(directory.path)!r} is finished; its stored metrics:")
    for length, record in metrics["held_out"].items():
        say(describe(length, record))
    if not metrics["held_out"] and (lines := MetricsLog(directory.metrics_log).lines()):
        say(f"Training MLM loss {_last_loss(lines):.4f}")
    say(_where(directory, metrics))
    if not directory.model.is_dir():
        say(f"It is missing there; remove {directory.metrics}, and the same command writes it anew.")
    return metrics


def _last_loss(lines: list[Line]) -> float:
    """Returns the last training loss; a line has none where every step was skipped."""
    return next((line["mlm_loss"] for line in reversed(lines) if line.get("mlm_loss") is not None), math.nan)


def _where(directory: RunDirectory, metrics: dict[str, Any]) -> str:
    return f"Model: {directory.model}, of step {metrics['best_step']}"


def _held_out(run: Run, length: int, *, limit: int) -> HeldOut:
    batch_sizes = {phase.length: phase.batch_size for phase in run.phases}
    return HeldOut(
        run.data,
        length,
        batch_size=batch_sizes.get(length, run.phases[-1].batch_size),
        limit=limit,
        seed=run.config.seed,
        masked_share=run.config.masked_share,
        masking=run.config.masking,
        max_ngram=run.config.max_ngram,
    )


def _take_best_weights(run: Run, lines: list[Line]) -> int | None:
    """Gives the model the weights of the best evaluation, puts them into the model directory and returns their step.

    They come from the checkpoint of that step, which alone is known to be of it. None: nothing was evaluated.
    """
    best = BestModel(lambda: None, lines).best
    phase, name = run.phases[-1].number, "held_out_mlm_loss"
    in_last_phase = [line for line in lines if line["phase"] == phase and name in line]
    if best is None and any(name in line for line in lines):
        raise InputError(
            "`run` must have an evaluation with a finite held-out loss; in all of them the loss was infinite or not a "
            "number, so no model is the best and the run is not finished; take another `run` with a lower "
            f"`learning_rate`. Received: {str(run.directory.path)!r}, evaluated at "
            f"{counted(sum(name in line for line in lines), 'step')}"
        )
    if best is None:
        return None
    if in_last_phase and best["phase"] != phase:
        run.say(
            f"No evaluation of phase {phase} gave a finite held-out MLM loss, so the best model is that of step "
            f"{best['step']}, in phase {best['phase']}."
        )
    try:
        run.checkpoints.read_group(best["step"], "weights")
    except DamagedError as fault:
        run.say(f"The checkpoint of step {best['step']}, the best, cannot be used ({fault}); taking model/ instead.")
        _load_weights(run.trainer.pretrainer, run)
        return best["step"]
    before = _contents(run.directory.model)
    run.save_model()
    if before and before != _contents(run.directory.model):
        run.say(f"model/ was not the model of step {best['step']}, the best; it is written anew from its checkpoint.")
    elif not before:
        run.say(f"model/ was missing; it is written anew from the checkpoint of step {best['step']}.")
    return best["step"]


def _contents(directory: Path) -> dict[str, int]:
    """Returns a checksum of every file of a directory; nothing if there is none."""
    if not directory.is_dir():
        return {}
    return {path.name: checksum_of(path) for path in sorted(directory.iterdir()) if path.is_file()}


def _load_weights(pretrainer: PretrainingModel, run: Run) -> None:
    stored = type(pretrainer).from_pretrained(run.directory.model, dtype=run.config.dtype)
    for variable, value in zip(pretrainer.weights, stored.weights, strict=True):
        variable.assign(value)
