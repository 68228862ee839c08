"""Batches for training, masks drawn anew: how many there are without any model, and how long a step waits for them."""

import tempfile
import time
from pathlib import Path
from typing import Any

import keras

from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.exact_step import PretrainingTrainer
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.input_pipeline import training_batches
from keras_bert_impl.training.prepare import prepare

from .row import Row
from .texts import documentation, vocabulary

BATCH_SIZE, STEPS, RATE = 256, 200, 15_000
# What is measured, by its name in the table.
KINDS: dict[str, dict[str, Any]] = {
    "": {},
    ", whole words masked": {"masking": "whole-word"},
    ", n-grams masked": {"masking": "n-gram"},
    ", length buckets": {"bucketed": True},
}
WARM_UP, TRAINING_STEPS, TRAINING_BATCH = 5, 40, 16


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-")) / "data"
    prepare(PrepareConfig(inputs=(str(documentation()),), vocab=str(vocabulary()), output=str(folder), lengths=(128,)))
    data = PreparedData(folder)
    rates = [
        Row(
            f"input pipeline, length 128, batch {BATCH_SIZE}{name}",
            "examples/s",
            _rate(data, settings),
            bound=RATE,
            more_is_better=True,
        )
        for name, settings in KINDS.items()
    ]
    what = f"share of a training step spent waiting for input, 4 x 256, length 128, batch {TRAINING_BATCH}"
    return [*rates, Row(what, "of the time", _waiting_share(data), bound=0.03)]


def _rate(data: PreparedData, settings: dict[str, Any]) -> float:
    batches = training_batches(
        data.examples("train", 128),
        batch_size=BATCH_SIZE,
        seed=1,
        num_steps=STEPS + 1,
        tokenizer=data.tokenizer,
        **settings,
    )
    iterator = iter(batches)
    next(iterator)
    started = time.perf_counter()
    for _ in range(STEPS):
        next(iterator)
    return STEPS * BATCH_SIZE / (time.perf_counter() - started)


def _waiting_share(data: PreparedData) -> float:
    """Returns the share of training time, after the first steps, that the trainer's clock saw no batch in."""
    steps = WARM_UP + TRAINING_STEPS
    batches = training_batches(
        data.examples("train", 128), batch_size=TRAINING_BATCH, seed=1, num_steps=steps, tokenizer=data.tokenizer
    )
    trainer = PretrainingTrainer(BertPretrainer.from_preset("mini", vocab_size=data.tokenizer.vocab_size))
    trainer.compile(BertAdamW(1e-4))
    started = []

    def begin(batch: int, logs: Any) -> None:
        if batch == WARM_UP - 1:
            trainer.input_clock.reset()
            started.append(time.perf_counter())

    callback = keras.callbacks.LambdaCallback(on_train_batch_end=begin)
    trainer.fit(batches, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[callback])
    return trainer.input_clock.seconds() / (time.perf_counter() - started[0])
