"""Runs an export in a process of its own that has TensorFlow alone."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_RUNNER = Path(__file__).with_name("run_export.py")
FORBIDDEN_IMPORTS = ("keras_bert_impl", "tensorflow_text")


class ExportError(Exception):
    """The export does not answer as the model does."""


Arrays = dict[str, dict[str, np.ndarray]]
"""By `CASE/SIGNATURE`, then by name of input or output."""


class Run(NamedTuple):
    """What a process did.

    Attributes:
        answers: the export's.
        modules: packages that were imported.
        other_ops: operations of the export that are not TensorFlow's own.
    """

    answers: Arrays
    modules: list[str]
    other_ops: list[str]


def run(export: Path, requests: Arrays, *, text_ops: bool = False) -> Run:
    """Runs an export on requests.

    Args:
        export: version directory.
        requests: what it is asked.
        text_ops: whether the process may have tensorflow-text.

    Raises:
        ExportError: if the export cannot be run, or the process has imported this package.
    """
    forbidden = [name for name in FORBIDDEN_IMPORTS if not (text_ops and name == "tensorflow_text")]
    answers, facts = in_clean_process(
        _RUNNER, export, requests, *(["text"] if text_ops else []), alone="TensorFlow", forbidden=forbidden
    )
    return Run(answers, facts["modules"], facts["other_ops"])


def in_clean_process(
    runner: Path, export: Path, requests: Arrays, *options: str, alone: str, forbidden: Sequence[str]
) -> tuple[Arrays, dict[str, list[str]]]:
    """Runs an export by a script that takes it, the files of the requests and of the answers, and options.

    Args:
        runner: the script.
        export: what it runs.
        requests: what the export is asked.
        *options: what else the script is given.
        alone: what the process needs, as an error says it.
        forbidden: packages that the process must not import.

    Returns:
        The answers, and what else the script tells: the arrays whose names hold no `/`, as lists.

    Raises:
        ExportError: if the export cannot be run, or the process has imported a forbidden package.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "requests.npz", Path(folder) / "answers.npz"]
        named: dict[str, Any] = {
            f"{key}/{name}": array for key, case in requests.items() for name, array in case.items()
        }
        np.savez(files[0], **named)
        # On the CPU, where float32 products are not shortened; -P: no folder of ours on the import path.
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-P", str(runner), str(export), *map(str, files), *options]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            last = result.stderr.strip().splitlines()[-1:]
            raise ExportError(f"The export was not put in place: it cannot be run by {alone} alone: {''.join(last)}")
        answers: Arrays = {}
        facts: dict[str, list[str]] = {}
        with np.load(files[1], allow_pickle=False) as arrays:
            for name in arrays.files:
                key, separator, output = name.rpartition("/")
                if separator:
                    answers.setdefault(key, {})[output] = arrays[name]
                else:
                    facts[name] = arrays[name].tolist()
    if imported := sorted(set(facts["modules"]) & set(forbidden)):
        raise ExportError(f"The export was not put in place: its proof imported {', '.join(imported)}")
    return answers, facts
