"""The novels of the shared data: 96 MB of English, a sentence on each line, a blank line between documents."""

import functools
import lzma
import os
import shutil
import tempfile
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
SHARED = Path(os.environ.get("KERAS_BERT_SHARED", _BESIDE)) / "data"
VOCABULARY = SHARED / "vocab" / "bert-base-uncased-vocab.txt"


@functools.cache
def novels() -> Path | None:
    """Unpacks them once per process and returns their path; None where there is no shared data."""
    packed = SHARED / "corpora" / "en_novels.txt.xz"
    if not packed.is_file():
        return None
    path = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-")) / "novels.txt"
    with lzma.open(packed) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    return path


def write_altered_copies(source: Path, target: Path, copies: int) -> None:
    """Writes the text several times, in each copy with its words in another order.

    Plain repeats would be left out as duplicates. Copy number n has of every sentence each n-th word, beginning with
    the first, then each n-th beginning with the second, and so on, the last word staying where it is. So words, lengths
    and line ends are those of the text, and hardly a run of eight characters across two words is that of another copy.
    """
    with target.open("w", encoding="utf-8") as file:
        for step in range(1, copies + 1):
            with source.open(encoding="utf-8") as lines:
                for line in lines:
                    *words, last = line.split(" ")
                    file.write(" ".join([*(word for start in range(step) for word in words[start::step]), last]))
            file.write("\n")
