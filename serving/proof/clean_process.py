"""Runs an export in a process of its own that has TensorFlow alone."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_RUNNER = Path(__file__).with_name("run_export.py")
FORBIDDEN_IMPORTS = ("keras_bert_impl", "tensorflow_text")


class ExportError(Exception):
    """The export does not answer as the model does."""


Arrays = dict[str, dict[str, np.ndarray]]
"""By `CASE/SIGNATURE`, then by name of input or output."""


def run(export: Path, requests: Arrays) -> tuple[Arrays, list[str]]:
    """Returns the export's answers to requests, and the packages that the process imported.

    Raises:
        ExportError: if the export cannot be run, or the process has imported this package.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "requests.npz", Path(folder) / "answers.npz"]
        named: dict[str, Any] = {
            f"{key}/{name}": array for key, case in requests.items() for name, array in case.items()
        }
        np.savez(files[0], **named)
        # On the CPU, where float32 products are not shortened; -P: no folder of ours on the import path.
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-P", str(_RUNNER), str(export), *map(str, files)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            last = result.stderr.strip().splitlines()[-1:]
            raise ExportError(f"The export was not put in place: it cannot be run by TensorFlow alone: {''.join(last)}")
        answers: Arrays = {}
        with np.load(files[1], allow_pickle=False) as arrays:
            modules = arrays["modules"].tolist()
            for name in arrays.files:
                if name != "modules":
                    key, _, output = name.rpartition("/")
                    answers.setdefault(key, {})[output] = arrays[name]
    if imported := sorted(set(modules) & set(FORBIDDEN_IMPORTS)):
        raise ExportError(f"The export was not put in place: its proof imported {', '.join(imported)}")
    return answers, modules
