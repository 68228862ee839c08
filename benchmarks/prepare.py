"""From text to prepared examples, whole process, two workers; beside the Model Garden's script on a part of the text.

The Model Garden's holds all text in memory, some 200 MB for each megabyte, so it gets two parts and its rate is that of
what the larger one has more. Its start, seven seconds, is so left out; ours is in the figure.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .novels import VOCABULARY, novels
from .row import Row
from .texts import documentation, vocabulary

_PARTS = (1_000_000, 4_000_000)
# What has to be kept on 96 MB, where our start of a second or two is no longer felt.
_BOUND = 15.0


def measure() -> list[Row]:
    text, vocab = (novels(), VOCABULARY) if novels() else (documentation(), vocabulary())
    assert text is not None
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-"))
    output = ["--output", folder / "data", "--lengths", 128, "--workers", 2]
    seconds = _seconds("keras_bert_console", ["prepare", text, "--vocab", vocab, *output])
    megabytes = text.stat().st_size / 1e6
    first, second = (_seconds_of_the_garden(text, size, vocab, folder) for size in _PARTS)
    garden = (_PARTS[1] - _PARTS[0]) / 1e6 / (second - first)
    return [
        Row(
            f"prepare, whole process, length 128, {megabytes:.0f} MB",
            "MB/s",
            megabytes / seconds,
            "Model Garden (one process)",
            garden,
            _BOUND if novels() else 1.0,
            more_is_better=True,
        )
    ]


def _seconds_of_the_garden(text: Path, size: int, vocab: Path, folder: Path) -> float:
    part = folder / "part.txt"
    with text.open("rb") as file:
        part.write_bytes(file.read(size).rpartition(b"\n")[0])
    options = ["--max_seq_length=128", "--max_predictions_per_seq=20", "--dupe_factor=1", "--do_whole_word_mask=false"]
    files = [f"--input_file={part}", f"--output_file={folder / 'garden.tfrecord'}", f"--vocab_file={vocab}"]
    return _seconds("official.nlp.data.create_pretraining_data", [*files, *options])


def _seconds(module: str, arguments: list[object]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", module, *map(str, arguments)], check=True, capture_output=True)
    return time.perf_counter() - started
