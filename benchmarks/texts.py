"""The text that benchmarks work on: documentation that the installed packages carry."""

import functools
import tempfile
from pathlib import Path

from keras_bert_impl.training.corpus.installed_docs import write_installed_docs


@functools.cache
def documentation(max_bytes: int = 4_000_000) -> Path:
    """Writes the text once per process and returns its path."""
    path = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-")) / "docs.txt"
    write_installed_docs(path, max_bytes=max_bytes)
    return path


@functools.cache
def vocabulary(size: int = 8000) -> Path:
    """Learns a vocabulary from the text once per process and returns its path."""
    from keras_bert_impl.training.configs import VocabConfig
    from keras_bert_impl.training.vocab import learn_vocab

    path = documentation().with_name("vocab.txt")
    learn_vocab(VocabConfig(inputs=(str(documentation()),), output=str(path), size=size))
    return path
