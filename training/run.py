"""A run put together: configuration, data, model, optimizer and what it has already done."""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_bert_impl.config import BertConfig

from .batches import BatchPart
from .callbacks import Line, steps_done
from .checkpointing import Checkpoints
from .chief_state import take_from_chief
from .configs import PhaseConfig, PretrainConfig
from .corpus.wording import counted
from .distribution import batches_for, replicas_on_one_cpu
from .exact_step import PretrainingTrainer
from .examples.packing import PACKED_FROM
from .input_pipeline import buckets_of, training_batches
from .metrics_log import MetricsLog
from .model_choice import make_model
from .optimization import Schedule, make_optimizer, make_schedule, with_learning_rates
from .phases import Phase
from .pretraining_data import PretrainingData
from .run_directory import RunDirectory
from .team import Team

Say = Callable[[str], None]


def decided(config: PretrainConfig, replicas: int, data: PretrainingData) -> PretrainConfig:
    """Returns the configuration with a value for every setting that was left open."""
    phases = tuple(
        dataclasses.replace(phase, packed=_is_packed(phase, data) if phase.packed is None else phase.packed)
        for phase in config.phases
    )
    evaluate_every = config.evaluate_every or max(1, config.total_steps // 10)
    config = with_learning_rates(dataclasses.replace(config, phases=phases))
    xla = config.xla
    if xla is None:
        xla = bool(tf.config.list_physical_devices("GPU")) and not config.skip_padding
    return dataclasses.replace(
        config,
        replicas=replicas,
        xla=xla,
        skip_padding=not xla if config.skip_padding is None else config.skip_padding,
        log_every=config.log_every or min(100, max(1, config.total_steps // 200)),
        evaluate_every=evaluate_every,
        checkpoint_every=config.checkpoint_every or evaluate_every,
    )


@dataclasses.dataclass
class Run:
    """What the parts of a run work on."""

    config: PretrainConfig
    data: PretrainingData
    directory: RunDirectory
    phases: list[Phase]
    trainer: PretrainingTrainer
    learning_rate: Schedule
    checkpoints: Checkpoints
    log: MetricsLog
    earlier: list[Line]
    say: Say
    team: Team = dataclasses.field(default_factory=Team)

    @property
    def step(self) -> int:
        """Steps done."""
        return steps_done(self.trainer.optimizer)

    def save_model(self) -> None:
        """Puts the present weights into the run's model directory; sets aside what is no model there."""
        if self.team.is_chief:
            if aside := self.directory.set_damaged_model_aside():
                self.say(f"{self.directory.model} held something else than a model; that is kept as {aside}.")
            self.trainer.pretrainer.save_pretrained(self.directory.model, tokenizer=self.data.tokenizer)

    def save_best(self) -> None:
        """Puts the present weights into the run's model directory and keeps their checkpoint, as those of the best."""
        self.save_model()
        self.checkpoints.best = self.step
        self.save_checkpoint(self.step)

    def save_checkpoint(self, step: int) -> None:
        """Writes the checkpoint of a step, after which nothing from before it can be lost."""
        if self.team.is_chief:
            self.log.to_disk()
            self.checkpoints.save(step)
            self.directory.note_checkpoint()
        self.team.saved_step = step

    def last_checkpoint(self) -> str:
        """Returns a clause on what the last checkpoint holds, as far as that is known on this machine."""
        steps = self.checkpoints.steps()
        if not steps:
            return "there is no checkpoint" + ("" if self.team.is_chief else " on this machine")
        held = "finite weights" if self.checkpoints.is_finite(steps[-1], "weights") else "weights that are not finite"
        return f"the last checkpoint, of step {steps[-1]}, holds {held}"


def start_run(
    config: PretrainConfig,
    data: PretrainingData,
    directory: RunDirectory,
    phases: list[Phase],
    model_config: BertConfig,
    strategy: tf.distribute.Strategy,
    say: Say,
    team: Team | None = None,
) -> Run:
    """Builds everything under the strategy, then begins the run or restores its last checkpoint.

    Of several machines only the chief has a checkpoint to restore; the others take what it has.
    """
    team = team or Team()
    if team.is_chief:
        directory.check_progress()
    trainer, learning_rate = build_trainer(config, data, phases, model_config, strategy)
    directory.begin(config, model_config, data.digest)
    checkpoints = Checkpoints(directory.checkpoints, trainer.state(), keep=config.keep_checkpoints)
    if checkpoints.restore_last(say):
        directory.note_checkpoint()
    take_from_chief(team, strategy, trainer.state())
    step = team.saved_step = steps_done(trainer.optimizer)
    log = MetricsLog(directory.metrics_log)
    earlier = team.from_chief(log.forget_after(step))
    last_line = earlier[-1]["step"] if earlier else 0
    if last_line < step:  # every checkpoint has a line
        say(f"{log.path.name} is damaged: its lines of the steps {last_line + 1} to {step} are lost.")
    if not team.is_chief:
        for line in earlier:
            log.append(line)
    say_beginning(config, data, phases, trainer, say)
    if step:
        say(f"Goes on from the checkpoint of step {step}.")
    return Run(config, data, directory, phases, trainer, learning_rate, checkpoints, log, earlier, say, team)


def build_trainer(
    config: PretrainConfig,
    data: PretrainingData,
    phases: list[Phase],
    model_config: BertConfig,
    strategy: tf.distribute.Strategy,
) -> tuple[PretrainingTrainer, Schedule]:
    """Returns the trainer of a run, with model and optimizer under the strategy, and its schedule."""
    learning_rate = make_schedule(config)
    with strategy.scope():
        pretrainer = make_model(config, model_config, data)
        trainer = PretrainingTrainer(
            pretrainer,
            seed=config.seed,
            micro_batches=config.micro_batches,
            packed=any(phase.packed for phase in phases),
            xla=bool(config.xla),
            skip_padding=bool(config.skip_padding),
        )
        optimizer = make_optimizer(config, learning_rate)
        optimizer.build(pretrainer.trainable_variables)
        trainer.compile(optimizer, steps_per_execution=config.steps_per_execution)
    return trainer, learning_rate


def _is_packed(phase: PhaseConfig, data: PretrainingData) -> bool:
    known = phase.length in data.lengths and not phase.bucketed
    return known and phase.length >= PACKED_FROM and data.packed_rows("train", phase.length) > 0


def examples_per_row(data: PretrainingData, phase: Phase) -> float:
    """Returns how many examples a row of a phase's batches holds, on average if they are packed."""
    return data.count("train", phase.length) / data.packed_rows("train", phase.length) if phase.packed else 1.0


def phase_batches(
    config: PretrainConfig,
    data: PretrainingData,
    phase: Phase,
    strategy: tf.distribute.Strategy,
    *,
    done: int,
    steps: int,
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Returns the batches of a phase's next steps, for `fit` under the strategy.

    Args:
        done: steps of the phase that are done.
        steps: number of batches.
    """

    def make(part: BatchPart) -> tf.data.Dataset:
        return training_batches(
            data.examples("train", phase.length),
            batch_size=phase.batch_size,
            seed=config.seed,
            first_step=done,
            num_steps=steps,
            tokenizer=data.tokenizer,
            masked_share=config.masked_share,
            masking=config.masking,
            max_ngram=config.max_ngram,
            packed=phase.packed,
            bucketed=phase.bucketed,
            part=part,
        )

    return batches_for(strategy, make)


def fit_steps(
    trainer: PretrainingTrainer, batches: tf.data.Dataset, steps: int, callbacks: list[keras.callbacks.Callback]
) -> None:
    """Trains on a number of batches of one shape."""
    # A step function for every length would be traced for unknown lengths, which is slower.
    trainer.make_train_function(force=True)
    trainer.make_test_function(force=True)
    # The number of steps must be known: a step tried after the last batch would still count as one.
    trainer.fit(batches, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=callbacks)


def say_beginning(
    config: PretrainConfig, data: PretrainingData, phases: list[Phase], trainer: PretrainingTrainer, say: Say
) -> None:
    """Tells what is trained, on what and in which phases."""
    size, strategy = trainer.pretrainer.config, trainer.distribute_strategy
    say(
        f"BERT with {size.num_hidden_layers} layers of {size.hidden_size}, vocabulary {size.vocab_size}: "
        f"{trainer.pretrainer.count_params():,} parameters, on {counted(config.replicas or 1, 'replica')}."
    )
    if (replicas := replicas_on_one_cpu(strategy)) > 1:
        say(f"{replicas} replicas share the cores of one CPU, so together they are seldom faster than one.")
    for phase in phases:
        rows = f"{phase.batch_size} examples"
        if phase.packed:
            rows = f"{phase.batch_size} packed rows of {examples_per_row(data, phase):.1f} examples"
        if phase.bucketed:
            buckets = buckets_of(data.examples("train", phase.length), batch_size=phase.batch_size, seed=config.seed)
            rows += f" of similar length, cut to {buckets.mean_width():.0f} tokens on average,"
        say(
            f"Phase {phase.number}: steps {phase.first_step + 1} to {phase.last_step}, length {phase.length}, "
            f"{rows} per step"
        )
