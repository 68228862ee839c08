"""Files of labelled examples for tests, and the settings by which they are read."""

from pathlib import Path
from typing import Any

from keras_bert_impl.training.configs import FinetuneConfig


def columns(task: str = "classification", **settings: Any) -> FinetuneConfig:
    """Returns settings of `finetune` of which only those of reading matter."""
    return FinetuneConfig(task=task, model="m", train=("t",), output="o", **settings)


def written(folder: Path, name: str, content: str | bytes) -> str:
    """Writes a file, text as UTF-8 with its line ends as they are; returns its name."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)
