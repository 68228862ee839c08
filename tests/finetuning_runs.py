"""A toy task of two labels, and small fine-tuning runs of it, in this process or in one of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.tasks.examples import TextExample
from keras_bert_impl.tasks.rows import batch_inputs, text_row
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.configs.finetune import METRICS
from keras_bert_impl.training.finetuning.task import Evaluation, FinetuningTask, TrainingRows

GOOD, BAD = "good fine great nice".split(), "bad dull poor awful".split()
REST = "film book play song a the was very and i it".split()


class ToyTask(FinetuningTask[TextExample]):
    """Is a text good or bad? Answers without compiling, which takes longer than a toy model's answers."""

    per_token = ()
    metric_names = METRICS["classification"]
    labels = ("bad", "good")

    def read(self, files, argument):
        lines = [line for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]
        parts = [line.split("\t") for line in lines]
        if any(label not in self.labels for label, _ in parts):
            raise InputError(f"`{argument}` must have the labels bad and good. Received: another")
        return [TextExample(text, label=label) for label, text in parts]

    def prepare(self, train, dev):
        self.settings = TaskSettings(task="classification", max_length=self.config.max_length or 16)
        self.say(f"{len(train)} examples, {len(dev)} of them dev.")

    def make_model(self, seed):
        return BertClassifier.from_pretrained(
            self.config.model, labels=self.labels, seed=seed, dtype=self.config.dtype, fresh=("classifier",)
        )

    def rows(self, examples):
        rows = [text_row(self.tokenizer, self.settings.max_length, example.text) for example in examples]
        return TrainingRows(
            token_ids=[np.array(row.token_ids, "int32") for row in rows],
            segment_ids=[np.array(row.segment_ids, "int32") for row in rows],
            targets={
                "label": np.array([self.labels.index(example.label) for example in examples], "int32"),
                "weight": np.array([1 + len(example.text) % 3 for example in examples], "float32"),
            },
        )

    def loss_sums(self, outputs, targets):
        losses = -ops.sum(ops.one_hot(targets["label"], 2) * ops.log_softmax(outputs), axis=-1)
        return ops.sum(targets["weight"] * losses), ops.sum(targets["weight"])

    def evaluate(self, model, examples):
        rows = [text_row(self.tokenizer, self.settings.max_length, example.text) for example in examples]
        logits = ops.convert_to_numpy(model(batch_inputs(rows, self.tokenizer.pad_token_id), training=False))
        return self.measure([self.labels[place] for place in logits.argmax(-1)], examples)

    def measure(self, answers, examples):
        right = [answer == example.label for answer, example in zip(answers, examples, strict=True)]
        metrics = {"accuracy": float(np.mean(right)), "matthews": None, "per_class": {"good": {"support": 3}}}
        predictions = [
            {"text": example.text, "label": answer, "right": example.label, "correct": correct}
            for example, answer, correct in zip(examples, answers, right, strict=True)
        ]
        warnings = ["Gives one class alone."] if len(set(answers)) == 1 else []
        return Evaluation(metrics, predictions, warnings)


def toy_texts(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Returns (label, text); no text comes twice."""
    random = np.random.default_rng(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        label, words = [("good", GOOD), ("bad", BAD)][int(random.integers(2))]
        text = [str(word) for word in random.choice(REST, int(random.integers(1, 9)))]
        text.insert(int(random.integers(len(text) + 1)), str(random.choice(words)))
        found[" ".join(text)] = label
    return [(label, text) for text, label in found.items()]


def write_toy_files(folder: Path, train: int = 60, dev: int = 20, **fields: Any) -> Path:
    """Writes `model/` with these fields of its configuration, `train.tsv` and `dev.tsv`; returns the folder."""
    tokenizer = toy_tokenizer()
    BertEncoder(toy_bert_config(tokenizer, **{"num_hidden_layers": 1, **fields}), seed=1).save_pretrained(
        folder / "model", tokenizer=tokenizer
    )
    texts = toy_texts(train + dev)
    for name, part in (("train", texts[:train]), ("dev", texts[train:])):
        text = "".join(f"{label}\t{text}\n" for label, text in part)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


def toy_settings(folder: Path, output: Path, **changes: Any) -> FinetuneConfig:
    values = {
        "task": "classification",
        "model": str(folder / "model"),
        "train": (str(folder / "train.tsv"),),
        "dev": (str(folder / "dev.tsv"),),
        "output": str(output),
        "epochs": 2.0,
        "batch_size": 8,
        "learning_rate": 3e-3,
        "replicas": 1,
    }
    return FinetuneConfig(**values | changes)


def weights_in(output: Path) -> bytes:
    return (output / "model.safetensors").read_bytes()


def lines_of(output: Path) -> list[dict[str, Any]]:
    """The lines of metrics, without the speeds."""
    lines = [json.loads(line) for line in (output / "finetuning" / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "examples_per_second"} for line in lines]


def assert_same_model(one: Path, other: Path) -> None:
    """Weights, lines of metrics, predictions and metrics are equal."""
    assert weights_in(one) == weights_in(other)
    assert lines_of(one) == lines_of(other)
    name = "finetuning/dev_predictions.jsonl"
    assert (one / name).read_bytes() == (other / name).read_bytes()
    metrics, others = (json.loads((place / "finetuning" / "metrics.json").read_text()) for place in (one, other))
    assert metrics == others


def start(config: FinetuneConfig) -> subprocess.Popen:
    """Begins a run in a process of its own."""
    # Appended: this folder has a `keras_bert_impl` of its own, the tests.
    script = (
        "import json, sys, keras_bert_impl.config; sys.path.append(sys.argv[1]); import finetuning_runs as runs; "
        "from keras_bert_impl.training import finetune; "
        "finetune(runs.FinetuneConfig.from_dict(json.loads(sys.argv[2])), say=print, task_type=runs.ToyTask)"
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-c", script, str(Path(__file__).parent), json.dumps(config.to_dict())],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.DEVNULL,
    )
