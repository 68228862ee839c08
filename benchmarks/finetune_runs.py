"""A fine-tuning told to this library and to Hugging Face's Trainer on PyTorch alike: same examples, hyper-parameters
and number of epochs."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.data import read_tagged_sentences, read_text_examples

SHARED = Path(os.environ.get("KERAS_BERT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
MODEL = SHARED / "models" / "all-MiniLM-L6-v2"
SETTINGS = {"batch_size": 32, "epochs": 3, "warmup_share": 0.1, "weight_decay": 0.01}
PEER = "Hugging Face on PyTorch"


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


def chosen_tasks() -> dict[str, Task]:
    """Returns the tasks that `BENCHMARK_TASKS` names; without it all."""
    return {name: TASKS[name] for name in os.environ.get("BENCHMARK_TASKS", " ".join(TASKS)).split()}


def write_job(task: Task, folder: Path, *, dev_rows: int | None = None, **settings: Any) -> dict[str, Any]:
    """Writes the examples for both, and returns what both are told; `settings` stand before the usual ones."""
    rows = {"train": task.rows, "dev": dev_rows}
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
        parts[part] = examples[: rows[part]]
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
        "metric": task.metric,
        "labels": labels,
        **parts,
        **SETTINGS,
        "learning_rate": task.learning_rate,
        "max_length": task.max_length,
        **settings,
    }


def their_run(job: dict[str, Any], seed: int) -> dict[str, Any]:
    """Returns metric and examples a second of a run of Hugging Face's."""
    python = os.environ.get("BENCHMARK_TORCH_PYTHON", sys.executable)
    path = Path(job["folder"]) / "job.json"
    path.write_text(json.dumps({**job, "seed": seed, "threads": len(os.sched_getaffinity(0))}), encoding="utf-8")
    script = Path(__file__).with_name("torch_finetune.py")
    done = subprocess.run([python, script, path], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def our_run(job: dict[str, Any], seed: int) -> dict[str, Any]:
    """Returns metric and examples a second of a run of ours."""
    from keras_bert_impl.training.finetuning.finetune import finetune

    folder = Path(job["folder"])
    output = folder / f"model-{seed}-{time.time_ns()}"
    config = FinetuneConfig(
        task=job["task"],
        model=job["model"],
        train=(str(folder / "train.jsonl"),),
        dev=(str(folder / "dev.jsonl"),),
        output=str(output),
        metric=job["metric"],
        seeds=(seed,),
        **{name: job[name] for name in (*SETTINGS, "learning_rate", "max_length")},
    )
    told = finetune(config, say=lambda line: print(line, file=sys.stderr))
    lines = [json.loads(line) for line in (output / "finetuning" / "metrics.jsonl").read_text().splitlines()]
    # Without the first step, which holds the compilation.
    rate = statistics.harmonic_mean([line["examples_per_second"] for line in lines])
    return {"metric": told["metrics"][job["metric"]], "examples_per_second": rate}
