"""The toy corpus as prepared data, for the tests of everything that reads such."""

from pathlib import Path
from typing import Any

from texts import toy_documents, write_toy_corpus

from keras_bert_impl.training.configs import PrepareConfig


def write_toy_vocabulary(path: Path) -> Path:
    """Writes a vocabulary of all words of the toy corpus."""
    words = {word.lower().rstrip(".") for text in toy_documents(200) for line in text for word in line.split()}
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *sorted(words)]
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return path


def toy_config(folder: Path, *, count: int = 150, **settings: Any) -> PrepareConfig:
    """Writes the toy corpus and its vocabulary into the folder; returns how to prepare it into `folder / "data"`."""
    return PrepareConfig(
        **{
            "inputs": (str(write_toy_corpus(folder / "corpus.txt", count=count)),),
            "vocab": str(write_toy_vocabulary(folder / "vocab.txt")),
            "output": str(folder / "data"),
            "lengths": (16, 64),
            "held_out_share": 0.2,
            "workers": 1,
            **settings,
        }
    )
