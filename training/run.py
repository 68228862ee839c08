"""A run put together: configuration, data, model, optimizer and what it has already done."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from keras_bert_impl.config import BertConfig
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.schedules import LinearWarmupDecay

from .callbacks import Line, steps_done
from .checkpointing import Checkpoints
from .configs import PhaseConfig, PretrainConfig
from .exact_step import PretrainingTrainer
from .examples.packing import PACKED_FROM
from .metrics_log import MetricsLog
from .model_choice import PretrainingModel, make_model
from .phases import Phase
from .pretraining_data import PretrainingData
from .run_directory import RunDirectory

Say = Callable[[str], None]


def decided(config: PretrainConfig, replicas: int, data: PretrainingData) -> PretrainConfig:
    """Returns the configuration with a value for every setting that was left open."""
    phases = tuple(
        dataclasses.replace(phase, packed=_is_packed(phase, data) if phase.packed is None else phase.packed)
        for phase in config.phases
    )
    evaluate_every = config.evaluate_every or max(1, config.total_steps // 10)
    return dataclasses.replace(
        config,
        replicas=replicas,
        phases=phases,
        warmup_steps=config.total_steps // 100 if config.warmup_steps is None else config.warmup_steps,
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
    learning_rate: LinearWarmupDecay
    checkpoints: Checkpoints
    log: MetricsLog
    earlier: list[Line]
    say: Say

    @property
    def step(self) -> int:
        """Steps done."""
        return steps_done(self.trainer.optimizer)

    def save_model(self) -> None:
        """Puts the present weights into the run's model directory."""
        self.trainer.pretrainer.save_pretrained(self.directory.model, tokenizer=self.data.tokenizer)


def start_run(
    config: PretrainConfig,
    data: PretrainingData,
    directory: RunDirectory,
    phases: list[Phase],
    model_config: BertConfig,
    strategy: tf.distribute.Strategy,
    say: Say,
) -> Run:
    """Builds everything under the strategy, then begins the run or restores its last checkpoint."""
    learning_rate = LinearWarmupDecay(config.learning_rate, config.warmup_steps or 0, config.total_steps)
    with strategy.scope():
        pretrainer = make_model(config, model_config, data)
        trainer = PretrainingTrainer(
            pretrainer,
            seed=config.seed,
            micro_batches=config.micro_batches,
            packed=any(phase.packed for phase in phases),
        )
        optimizer = make_optimizer(config, learning_rate)
        optimizer.build(pretrainer.trainable_variables)
        trainer.compile(optimizer, steps_per_execution=config.steps_per_execution)
    directory.begin(config, model_config, data.digest)
    checkpoints = Checkpoints(directory.checkpoints, pretrainer, optimizer, keep=config.keep_checkpoints)
    step = checkpoints.restore_last()
    log = MetricsLog(directory.metrics_log)
    _say_beginning(config, data, phases, pretrainer, step, say)
    return Run(config, data, directory, phases, trainer, learning_rate, checkpoints, log, log.forget_after(step), say)


def make_optimizer(config: PretrainConfig, learning_rate: LinearWarmupDecay) -> BertAdamW:
    """Returns the optimizer that the settings describe."""
    return BertAdamW(
        learning_rate,
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm or None,
    )


def _is_packed(phase: PhaseConfig, data: PretrainingData) -> bool:
    known = phase.length in data.lengths
    return known and phase.length >= PACKED_FROM and data.packed_rows("train", phase.length) > 0


def examples_per_row(data: PretrainingData, phase: Phase) -> float:
    """Returns how many examples a row of a phase's batches holds, on average if they are packed."""
    return data.count("train", phase.length) / data.packed_rows("train", phase.length) if phase.packed else 1.0


def _say_beginning(
    config: PretrainConfig, data: PretrainingData, phases: list[Phase], model: PretrainingModel, step: int, say: Say
) -> None:
    size = model.config
    say(
        f"BERT with {size.num_hidden_layers} layers of {size.hidden_size}, vocabulary {size.vocab_size}: "
        f"{model.count_params():,} parameters, on {config.replicas} replica{'s' if config.replicas != 1 else ''}."
    )
    for phase in phases:
        rows = f"{phase.batch_size} examples"
        if phase.packed:
            rows = f"{phase.batch_size} packed rows of {examples_per_row(data, phase):.1f} examples"
        say(
            f"Phase {phase.number}: steps {phase.first_step + 1} to {phase.last_step}, length {phase.length}, "
            f"{rows} per step"
        )
    if step:
        say(f"Goes on from the checkpoint of step {step}.")
