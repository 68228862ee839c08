"""A base-sized checkpoint into a model: time and memory, beside reading the file and assigning what is in it."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors.numpy

from keras_bert_impl.checkpoints.hugging_face import is_transposed
from keras_bert_impl.models.bert_encoder import BertEncoder

from .row import Row, interleaved

_ONLY_TENSORFLOW = "import tensorflow"
_LOAD = "from keras_bert_impl.models.bert_encoder import BertEncoder; BertEncoder.from_pretrained({path!r})"


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "base")
        model = BertEncoder.from_preset("base")
        model.save_pretrained(path)
        file = Path(path) / "model.safetensors"
        variables = _variables(model, file)

        def read_and_assign() -> None:
            for name, value in safetensors.numpy.load_file(file).items():
                variables[name].assign(value.T if is_transposed(name) else value)

        seconds = interleaved([lambda: BertEncoder.from_pretrained(path), read_and_assign], rounds=7)
        size = file.stat().st_size
        grown = _peak(_LOAD.format(path=path)) - _peak(_ONLY_TENSORFLOW)
    return [
        Row("base-sized `from_pretrained`", "s", seconds[0], "`load_file` and assignment", seconds[1], 2.0),
        Row("its peak memory over TensorFlow's own", "MB", grown / 1e6, "the file", size / 1e6, 2.2),
    ]


def _variables(model: BertEncoder, file: Path) -> dict:
    """Variables of their own, so that what is assigned is not shared with the model that is measured."""
    return {
        name: model.weights[0].__class__(np.zeros(value.shape[::-1] if is_transposed(name) else value.shape, "float32"))
        for name, value in safetensors.numpy.load_file(file).items()
    }


def _peak(script: str) -> int:
    """Returns the largest resident memory of a fresh process, in bytes."""
    # Not getrusage: its figure starts at that of the process that started this one.
    report = f"{script}\nprint(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", report], check=True, capture_output=True, text=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
