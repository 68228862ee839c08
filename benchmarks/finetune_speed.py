"""Examples a second of fine-tuning a real encoder, beside Hugging Face's Trainer on PyTorch on the same cores.

The examples have their real, mixed lengths, so that padding counts. One epoch each, taking turns, after the clock of
each has left out what comes once (our first step, which compiles; loading, in both). `BENCHMARK_TASKS` chooses less.
"""

import dataclasses
import statistics
import tempfile
from pathlib import Path

from .finetune_runs import PEER, chosen_tasks, our_run, their_run, write_job
from .row import Row

TURNS = 2
ROWS = 1280


def measure() -> list[Row]:
    rows = []
    for name, task in chosen_tasks().items():
        ours, theirs = [], []
        with tempfile.TemporaryDirectory() as folder:
            job = write_job(dataclasses.replace(task, rows=ROWS), Path(folder), dev_rows=64, epochs=1)
            for turn in range(1, 1 + TURNS):
                ours.append(our_run(job, turn)["examples_per_second"])
                theirs.append(their_run(job, turn)["examples_per_second"])
        figures = statistics.median(ours), PEER, statistics.median(theirs)
        rows.append(Row(f"{name}, training", "examples/s", *figures, bound=1.3, more_is_better=True))
    return rows
