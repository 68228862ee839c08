"""Batches for training, masks drawn anew, without any model behind them."""

import tempfile
import time
from pathlib import Path

from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.input_pipeline import training_batches
from keras_bert_impl.training.prepare import prepare

from .row import Row
from .texts import documentation, vocabulary

BATCH_SIZE, STEPS = 256, 200
# By the kind of masks: the name in the table, and the rate to be reached.
KINDS = {"token": ("", 15_000), "whole-word": (", whole words masked", 15_000), "n-gram": (", n-grams masked", 15_000)}


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-")) / "data"
    prepare(PrepareConfig(inputs=(str(documentation()),), vocab=str(vocabulary()), output=str(folder), lengths=(128,)))
    data = PreparedData(folder)
    return [
        Row(
            f"input pipeline, length 128, batch {BATCH_SIZE}{name}",
            "examples/s",
            _rate(data, masking),
            bound=bound,
            more_is_better=True,
        )
        for masking, (name, bound) in KINDS.items()
    ]


def _rate(data: PreparedData, masking: str) -> float:
    batches = training_batches(
        data.examples("train", 128),
        batch_size=BATCH_SIZE,
        seed=1,
        first_step=0,
        num_steps=STEPS + 1,
        tokenizer=data.tokenizer,
        masked_share=0.15,
        masking=masking,
    )
    iterator = iter(batches)
    next(iterator)
    started = time.perf_counter()
    for _ in range(STEPS):
        next(iterator)
    return STEPS * BATCH_SIZE / (time.perf_counter() - started)
