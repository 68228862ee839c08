"""From text to prepared examples, both lengths, two workers; beside the Model Garden's script on a part of it."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.prepare import prepare

from .row import Row
from .texts import documentation, vocabulary


def measure() -> list[Row]:
    text, vocab = documentation(), vocabulary()
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-"))
    started = time.perf_counter()
    prepare(
        PrepareConfig(inputs=(str(text),), vocab=str(vocab), output=str(folder / "data"), lengths=(128,), workers=2)
    )
    ours = text.stat().st_size / 1e6 / (time.perf_counter() - started)

    part = folder / "part.txt"
    part.write_text(text.read_text(encoding="utf-8")[:1_000_000], encoding="utf-8")
    started = time.perf_counter()
    options = ["--max_seq_length=128", "--max_predictions_per_seq=20", "--dupe_factor=1", "--do_whole_word_mask=false"]
    script = "official.nlp.data.create_pretraining_data"
    files = [f"--input_file={part}", f"--output_file={folder / 'garden.tfrecord'}", f"--vocab_file={vocab}"]
    subprocess.run([sys.executable, "-m", script, *files, *options], check=True, capture_output=True)
    garden = part.stat().st_size / 1e6 / (time.perf_counter() - started)
    return [
        Row(
            "prepare, whole process, length 128",
            "MB/s",
            ours,
            "Model Garden (one process)",
            garden,
            1.0,
            more_is_better=True,
        )
    ]
