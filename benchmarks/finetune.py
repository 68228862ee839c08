"""Fine-tuning a real encoder beside Hugging Face's Trainer on PyTorch: dev metric over seeds, and training examples a
second.

The same examples, hyper-parameters and number of epochs; of each run the best epoch counts. It takes hours, so it runs
only when it is named. `BENCHMARK_TASKS` (names of `TASKS`) and `BENCHMARK_SEEDS` (5) choose less; with
`BENCHMARK_KEEP`, a folder, what is measured stays there and is not measured again.
"""

import dataclasses
import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.data import read_tagged_sentences, read_text_examples

from .row import Row

SHARED = Path(os.environ.get("KERAS_BERT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
MODEL = SHARED / "models" / "all-MiniLM-L6-v2"
SEEDS = list(range(1, 1 + int(os.environ.get("BENCHMARK_SEEDS", "5"))))
SETTINGS = {"batch_size": 32, "epochs": 3, "warmup_share": 0.1, "weight_decay": 0.01}
POINTS = 100  # Metrics are told in points of a hundredth.


@dataclasses.dataclass(frozen=True)
class Task:
    """Args:
    kind: the task of `finetune`.
    metric: what is compared.
    train, dev: files below the shared data.
    rows: training rows that are used; None for all.
    learning_rate, max_length: as both have it.
    """

    kind: str
    metric: str
    train: str
    dev: str
    rows: int | None
    learning_rate: float = 1e-4
    max_length: int = 128


TASKS = {
    "SST-2": Task("classification", "accuracy", "glue/SST-2/train_part1.tsv", "glue/SST-2/dev.tsv", 3000),
    "MRPC": Task("classification", "accuracy", "glue/MRPC/train.tsv", "glue/MRPC/dev.tsv", 2000),
    "STS-B": Task("regression", "pearson", "glue/STS-B/train.tsv", "glue/STS-B/dev.tsv", 2000),
    "wnut17": Task("tagging", "f1", "ner/wnut17/train.conll", "ner/wnut17/dev.conll", None, learning_rate=2e-4),
}


def measure() -> list[Row]:
    chosen = os.environ.get("BENCHMARK_TASKS", " ".join(TASKS)).split()
    rows = []
    for name in chosen:
        task = TASKS[name]
        with tempfile.TemporaryDirectory() as folder:
            job = _write_job(task, Path(folder))
            ours = list(_kept(f"{name}-keras_bert_impl", job, functools.partial(_our_runs, job, task)))
            theirs = list(_kept(f"{name}-hugging_face", job, functools.partial(_their_runs, job)))
        rows += _rows(name, task, ours, theirs)
    return rows


def _rows(name: str, task: Task, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[Row]:
    import numpy as np
    from scipy import stats

    peer = "Hugging Face on PyTorch"
    a, b = (np.array([run["metric"] for run in runs]) * POINTS for runs in (ours, theirs))
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    print(
        f"{name} {task.metric}: {a.mean():.2f} ± {a.std(ddof=1):.2f}, {peer} {b.mean():.2f} ± {b.std(ddof=1):.2f}, "
        f"difference {a.mean() - b.mean():+.2f}, 95 % from {interval.low:+.2f} to {interval.high:+.2f}",
        file=sys.stderr,
    )
    undecided = interval.low <= -1 < interval.high
    rates = [float(np.median([run["examples_per_second"] for run in runs])) for runs in (ours, theirs)]
    return [
        Row(f"{name}, {task.metric} of {len(a)} seeds", "points", a.mean(), peer, b.mean(), more_is_better=True),
        Row(
            f"{name}, lower end of the difference's 95 % interval{' (undecided)' if undecided else ''}",
            "points",
            interval.low,
            bound=None if undecided else -1.0,
            more_is_better=True,
        ),
        Row(f"{name}, training", "examples/s", rates[0], peer, rates[1], bound=1.3, more_is_better=True),
    ]


def _write_job(task: Task, folder: Path) -> dict[str, Any]:
    """Writes the examples for both, and returns what both are told."""
    parts = {}
    for part, file in (("train", task.train), ("dev", task.dev)):
        config = FinetuneConfig(task=task.kind, model="-", train=("-",), output="-")
        path = [SHARED / "data" / file]
        if task.kind == "tagging":
            read = read_tagged_sentences(path, config, argument=part, labelled=True, say=lambda line: None)
            examples = [{"words": list(e.words), "tags": list(e.tags or ())} for e in read]
        else:
            read = read_text_examples(path, config, argument=part, kind=task.kind, say=lambda line: None)
            examples = [{"text": e.text, "text_pair": e.text_pair, "label": e.label} for e in read]
            examples = [{key: value for key, value in e.items() if value is not None} for e in examples]
        parts[part] = examples[: task.rows] if part == "train" else examples
        lines = [json.dumps(example, ensure_ascii=False) + "\n" for example in parts[part]]
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    if task.kind == "tagging":
        labels = sorted({tag for example in parts["train"] for tag in example["tags"]})
    else:
        labels = ["score"] if task.kind == "regression" else sorted({e["label"] for e in parts["train"]})
    return {
        "folder": str(folder),
        "model": str(MODEL),
        "task": task.kind,
        "labels": labels,
        **parts,
        **SETTINGS,
        "learning_rate": task.learning_rate,
        "max_length": task.max_length,
        "threads": os.cpu_count(),
    }


def _kept(name: str, job: dict[str, Any], run: Callable[[list[int]], Iterator[dict[str, Any]]]) -> Iterator[Any]:
    """Yields a result for each seed, those that are kept from an earlier time without running again."""
    folder = os.environ.get("BENCHMARK_KEEP")
    facts = json.dumps({key: value for key, value in job.items() if key != "folder"}, sort_keys=True)
    path = Path(folder or "/nonexistent") / f"{name}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.jsonl"
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    yield from (result for result in kept if result["seed"] in SEEDS)
    for seed in SEEDS:
        if any(result["seed"] == seed for result in kept):
            continue
        for result in run([seed]):
            print(f"{name}: {result}", file=sys.stderr, flush=True)
            if folder:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            yield result


def _their_runs(job: dict[str, Any], seeds: list[int]) -> Iterator[dict[str, Any]]:
    python = os.environ.get("BENCHMARK_TORCH_PYTHON", sys.executable)
    path = Path(job["folder"]) / "job.json"
    path.write_text(json.dumps({**job, "seeds": seeds}), encoding="utf-8")
    script = Path(__file__).with_name("torch_finetune.py")
    done = subprocess.run([python, script, path], stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def _our_runs(job: dict[str, Any], task: Task, seeds: list[int]) -> Iterator[dict[str, Any]]:
    from keras_bert_impl.training.finetuning.finetune import finetune

    folder = Path(job["folder"])
    for seed in seeds:
        output = folder / f"model-{seed}-{time.time_ns()}"
        config = FinetuneConfig(
            task=task.kind,
            model=job["model"],
            train=(str(folder / "train.jsonl"),),
            dev=(str(folder / "dev.jsonl"),),
            output=str(output),
            metric=task.metric,
            learning_rate=task.learning_rate,
            max_length=task.max_length,
            seeds=(seed,),
            **SETTINGS,
        )
        told = finetune(config, say=lambda line: print(line, file=sys.stderr))
        lines = [json.loads(line) for line in (output / "finetuning" / "metrics.jsonl").read_text().splitlines()]
        # Without the first step, which holds the compilation.
        rate = statistics.harmonic_mean([line["examples_per_second"] for line in lines])
        yield {"seed": seed, "metric": told["metrics"][task.metric], "examples_per_second": rate}
