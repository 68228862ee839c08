"""Four logical CPU devices for the whole process, and small prepared data."""

import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.prepare import prepare

# Before anything is computed: later it is too late.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
)

WORDS = "the a cat dog bird fish tree house river stone sees finds takes leaves old young red blue near far".split()


def write_corpus(path: Path, documents: int, seed: int) -> None:
    """Sentences of words whose choice depends on the word before, so that there is something to learn."""
    random = np.random.default_rng(seed)
    lines = []
    for _ in range(documents):
        for _ in range(int(random.integers(4, 9))):
            word = int(random.integers(len(WORDS)))
            sentence = []
            for _ in range(int(random.integers(4, 9))):
                sentence.append(WORDS[word])
                word = (3 * word + int(random.integers(1, 4))) % len(WORDS)
            lines.append(" ".join(sentence) + ".")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="session")
def corpus_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, corpus_vocabulary: Path) -> Path:
    """Prepared data of lengths 16 and 32 with a held-out part."""
    folder = tmp_path_factory.mktemp("prepared")
    write_corpus(folder / "corpus.txt", documents=300, seed=1)
    prepare(
        PrepareConfig(
            inputs=(str(folder / "corpus.txt"),),
            vocab=str(corpus_vocabulary),
            output=str(folder / "data"),
            lengths=(16, 32),
            held_out_share=0.1,
            workers=1,
        )
    )
    return folder / "data"


@pytest.fixture(scope="module")
def prepared_again(tmp_path_factory, prepared, corpus_vocabulary):
    """Makes the small corpus again, by default in rows of 256 tokens that hold several documents."""
    inputs = json.loads((prepared / "manifest.json").read_text())["settings"]["inputs"]

    def make(**settings):
        folder = tmp_path_factory.mktemp("packed") / "data"
        values = {"lengths": (16, 256), "held_out_share": 0.1, "workers": 1, **settings}
        prepare(PrepareConfig(inputs=tuple(inputs), vocab=str(corpus_vocabulary), output=str(folder), **values))
        return folder

    return make
