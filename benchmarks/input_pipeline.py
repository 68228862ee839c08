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


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-")) / "data"
    prepare(PrepareConfig(inputs=(str(documentation()),), vocab=str(vocabulary()), output=str(folder), lengths=(128,)))
    data = PreparedData(folder)
    steps, batch_size = 200, 256
    batches = training_batches(
        data.examples("train", 128),
        batch_size=batch_size,
        seed=1,
        first_step=0,
        num_steps=steps + 1,
        tokenizer=data.tokenizer,
        masked_share=0.15,
    )
    iterator = iter(batches)
    next(iterator)
    started = time.perf_counter()
    for _ in range(steps):
        next(iterator)
    rate = steps * batch_size / (time.perf_counter() - started)
    return [Row("input pipeline, length 128, batch 256", "examples/s", rate, bound=15_000, more_is_better=True)]
