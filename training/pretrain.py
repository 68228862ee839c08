"""`pretrain`: from prepared data to a model, with everything a run leaves behind."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_bert_impl.progress import progress_bar

from .callbacks import BestModel, Line, Progress, Recorder, TensorBoard
from .configs import PretrainConfig
from .distribution import make_strategy
from .held_out import HeldOut, describe
from .input_pipeline import training_batches
from .metrics_log import MetricsLog
from .model_choice import PretrainingModel, check_fit, choose_model
from .narrator import Narrator
from .phases import Milestones, Phase, plan_phases
from .pretraining_data import open_data
from .report import write_report
from .run import Run, Say, decided, examples_per_row, start_run
from .run_directory import RunDirectory, read_json, write_json
from .run_lock import sole_trainer


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

    Raises:
        InputError: if settings, data and model do not fit one another, the run directory belongs to another
            run, or the loss is no longer a finite number.
    """
    data = open_data(config.data)
    strategy = make_strategy(config.replicas)
    config = decided(config, strategy.num_replicas_in_sync, data)
    phases = plan_phases(config)
    model_config = choose_model(config, data)
    check_fit(config, model_config, phases, data)
    directory = RunDirectory(config.run)
    directory.check(config, model_config, data.digest)
    if directory.metrics.exists():
        return _tell_finished(directory, say)

    with sole_trainer(directory.path):
        run = start_run(config, data, directory, phases, model_config, strategy, say)
        with data.plain_errors():
            train(run, callbacks)
            return finish(run)


def train(run: Run, callbacks: Sequence[keras.callbacks.Callback] = ()) -> None:
    """Trains through the phases that are not yet done; ends early if a callback says so."""
    best = BestModel(run.save_model, run.earlier)
    board = TensorBoard(run.directory.tensorboard, run.earlier)
    bar = progress_bar(run.config.total_steps, "step", "Pretraining", initial=run.step)
    narrator = Narrator(
        run.say,
        clear=bar.clear,
        vocab_size=run.trainer.pretrainer.config.vocab_size,
        warmup_steps=run.config.warmup_steps or 0,
    )
    with contextlib.closing(bar):
        for phase in run.phases:
            if run.step >= phase.last_step:
                continue
            progress = Progress(bar, run.step)
            recorder = make_recorder(run, phase, [board.write, best.consider, progress.show], narrator)
            train_phase(run, phase, [*callbacks, progress, recorder])
            if run.trainer.stop_training:
                run.say(f"A callback ended the training after step {run.step}.")
                break


def train_phase(run: Run, phase: Phase, callbacks: list[keras.callbacks.Callback]) -> None:
    """Trains for the steps of a phase that are left, on the batches of just these steps."""
    step = run.step
    steps_left = phase.last_step - step
    batches = training_batches(
        run.data.examples("train", phase.length),
        batch_size=phase.batch_size,
        seed=run.config.seed,
        first_step=step - phase.first_step,
        num_steps=steps_left,
        tokenizer=run.data.tokenizer,
        masked_share=run.config.masked_share,
        masking=run.config.masking,
        max_ngram=run.config.max_ngram,
        packed=phase.packed,
    )
    # A step function for every length would be traced for unknown lengths, which is slower.
    run.trainer.make_train_function(force=True)
    run.trainer.make_test_function(force=True)
    # The number of steps must be known: a step tried after the last batch would still count as one.
    run.trainer.fit(batches, steps_per_epoch=steps_left, shuffle=False, verbose=0, callbacks=callbacks)


def make_recorder(
    run: Run, phase: Phase, listeners: list[Callable[[Line], Any]], tell: Callable[[Line], None]
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
        examples_per_row=examples_per_row(run.data, phase),
        first_step=run.step,
        milestones=Milestones(
            log_every=config.log_every or 1,
            evaluate_every=config.evaluate_every or 1,
            save_every=config.checkpoint_every or 1,
        ),
        log=run.log,
        learning_rate=lambda step: float(run.learning_rate(step)),
        evaluate=evaluate,
        save=run.checkpoints.save,
        listeners=listeners,
        tell=tell,
    )


def finish(run: Run) -> dict[str, Any]:
    """Measures the best model on all held-out examples, and writes metrics and report."""
    lines = run.log.lines()
    best = BestModel(lambda: None, lines).best
    if best is None:
        run.say(
            "The data has no held-out documents at the last length, so the model is that of the last step, "
            f"training MLM loss {lines[-1]['mlm_loss']:.4f}."
        )
        run.save_model()
    else:
        _load_weights(run.trainer.pretrainer, run)
    best_step = best["step"] if best else run.step
    longest = run.trainer.pretrainer.config.max_position_embeddings
    lengths = [length for length in run.data.lengths if run.data.count("held_out", length) and length <= longest]
    if lengths:
        run.say(f"Measuring the {'best ' if best else ''}model (step {best_step}) on all held-out examples …")
    held_out = {}
    for length in lengths:
        record = held_out[str(length)] = _held_out(run, length, limit=0).full_record(run.trainer)
        run.say(describe(length, record))
    metrics = {"steps": run.step, "best_step": best_step, "held_out": held_out}
    run.say(write_report(run.directory.report, run.config, lines, metrics))
    write_json(run.directory.metrics, metrics)
    run.say(_where(run.directory, metrics))
    return metrics


def _tell_finished(directory: RunDirectory, say: Say) -> dict[str, Any]:
    metrics = read_json(directory.metrics)
    say(f"Run {str(directory.path)!r} is finished; its stored metrics:")
    for length, record in metrics["held_out"].items():
        say(describe(length, record))
    if not metrics["held_out"]:
        say(f"Training MLM loss {MetricsLog(directory.metrics_log).lines()[-1]['mlm_loss']:.4f}")
    say(_where(directory, metrics))
    return metrics


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


def _load_weights(pretrainer: PretrainingModel, run: Run) -> None:
    stored = type(pretrainer).from_pretrained(run.directory.model, dtype=run.config.dtype)
    for variable, value in zip(pretrainer.weights, stored.weights, strict=True):
        variable.assign(value)
