"""Fine-tuning a real encoder beside Hugging Face's Trainer on PyTorch: the dev metric over seeds.

Of each run the best epoch counts. It takes hours, so it runs only when it is named. `BENCHMARK_TASKS` (names of
`TASKS`) and `BENCHMARK_SEEDS` (5) choose less. With `BENCHMARK_KEEP`, a folder, each run is written down there with its
day and revision, and is not done again; `BENCHMARK_KEEP=benchmarks/measured/finetune` goes on from what is in the
repository. Speed is another benchmark's, `finetune_speed`, since here other work may run beside it.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .finetune_runs import PEER, Task, chosen_tasks, our_run, their_run, write_job
from .row import Row

SEEDS = list(range(1, 1 + int(os.environ.get("BENCHMARK_SEEDS", "5"))))
POINTS = 100  # Metrics are told in points of a hundredth.


def measure() -> list[Row]:
    rows = []
    for name, task in chosen_tasks().items():
        with tempfile.TemporaryDirectory() as folder:
            job = write_job(task, Path(folder))
            ours = list(_kept(f"{name}-keras_bert_impl", job, our_run))
            theirs = list(_kept(f"{name}-hugging_face", job, their_run))
        rows += _rows(name, task, ours, theirs)
    return rows


def _rows(name: str, task: Task, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[Row]:
    import numpy as np
    from scipy import stats

    a, b = (np.array([run["metric"] for run in runs]) * POINTS for runs in (ours, theirs))
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    print(
        f"{name} {task.metric}: {a.mean():.2f} ± {a.std(ddof=1):.2f}, {PEER} {b.mean():.2f} ± {b.std(ddof=1):.2f}, "
        f"difference {a.mean() - b.mean():+.2f}, 95 % from {interval.low:+.2f} to {interval.high:+.2f}",
        file=sys.stderr,
    )
    undecided = interval.low <= -1 < interval.high
    return [
        Row(f"{name}, {task.metric} of {len(a)} seeds", "points", a.mean(), PEER, b.mean(), more_is_better=True),
        Row(
            f"{name}, lower end of the difference's 95 % interval{' (undecided)' if undecided else ''}",
            "points",
            interval.low,
            bound=None if undecided else -1.0,
            more_is_better=True,
        ),
    ]


def _kept(name: str, job: dict[str, Any], run: Callable[[dict[str, Any], int], dict[str, Any]]) -> Iterator[Any]:
    """Yields a result for each seed, those that are kept from an earlier time without running again."""
    folder = os.environ.get("BENCHMARK_KEEP")
    facts = json.dumps({key: value for key, value in job.items() if key != "folder"}, sort_keys=True)
    path = Path(folder or "/nonexistent") / f"{name}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    kept = {result["seed"]: result for result in map(json.loads, lines)}
    for seed in SEEDS:
        if seed not in kept:
            kept[seed] = {"seed": seed, **run(job, seed), "day": time.strftime("%Y-%m-%d"), "revision": _revision()}
            print(f"{name}: {kept[seed]}", file=sys.stderr, flush=True)
            if folder:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(json.dumps(kept[seed]) + "\n")
        yield kept[seed]


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
