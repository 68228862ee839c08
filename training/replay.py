"""Another implementation's training run, done again with ours, step by step."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_bert_impl import optimizers
from keras_bert_impl.checkpoints.hugging_face import open_hugging_face
from keras_bert_impl.models.bert_pretrainer import BertPretrainer

from .exact_step import PretrainingTrainer
from .model_choice import PretrainingModel, pretraining_class
from .reference_run import ReferenceRun
from .reference_settings import ReferenceSettings


def replay_reference_run(
    folder: str | os.PathLike[str],
    *,
    final_model: str | os.PathLike[str] | None = None,
    micro_batches: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> list[float]:
    """Trains from the run's initial weights on its batches, through the trainer and `fit`.

    What can be replayed: any sizes and numbers of steps; GELU in both forms and ReLU; AdamW, the original's Adam and
    LAMB, with and without bias correction; any betas, epsilon, decay and roles without decay; clipping by the global
    norm, or none; any learning rates; with next-sentence prediction or without. All in float32 and without dropout.

    Args:
        folder: as `reference_run` describes it.
        final_model: model directory to write the weights after the last step to, if any.
        micro_batches: parts that each batch is worked through in, of no influence on the result.
        say: takes a line about each thing in the folder that is passed over.

    Returns:
        The loss of every step, before its update: that of masked language modelling and, where the run has it, of
        next-sentence prediction.

    Raises:
        InputError: if the folder holds no such run, or one that cannot be replayed.
    """
    run = ReferenceRun(folder, say)
    model = _initial_model(run)
    trainer = PretrainingTrainer(model, micro_batches=micro_batches)
    trainer.compile(_optimizer(run.settings, _ListedRates(run.learning_rates)), jit_compile=False)
    losses = _Losses()
    batches = tf.data.Dataset.from_tensor_slices(run.batches())
    trainer.fit(batches, steps_per_epoch=run.steps, shuffle=False, verbose=0, callbacks=[losses])
    if final_model is not None:
        model.save_pretrained(final_model)
    return losses.of_steps


class _ListedRates(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate for each step, from a list."""

    def __init__(self, rates: list[float]) -> None:
        super().__init__()
        self._rates = rates

    def __call__(self, step: Any) -> Any:
        # Keras asks for the rate after the last step as well.
        number = ops.minimum(ops.cast(step, "int32"), len(self._rates) - 1)
        return ops.take(ops.convert_to_tensor(self._rates, "float32"), number)


class _Losses(keras.callbacks.Callback):
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.of_steps: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.of_steps.append(float((logs or {})["loss"]))


def _initial_model(run: ReferenceRun) -> PretrainingModel:
    checkpoint = open_hugging_face(run.folder)
    checkpoint = dataclasses.replace(checkpoint, config=run.config(checkpoint.config))
    model_class = BertPretrainer if run.settings.next_sentence else pretraining_class(run.folder)
    model = model_class.from_pretrained(checkpoint)
    if isinstance(model, BertPretrainer) and not run.settings.next_sentence:
        # What the loss does not reach had no gradient there, and so was not decayed either.
        for part in (model.encoder.get_layer("pooler"), model.nsp_head):
            part.trainable = False
    return model


def _optimizer(settings: ReferenceSettings, rates: _ListedRates) -> keras.optimizers.Optimizer:
    made = optimizers.BertLamb if settings.optimizer == "lamb" else optimizers.BertAdamW
    return made(rates, **settings.arguments)
