"""How fast a TFLite file is and what memory it takes, in a process that has LiteRT alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..proof.clean_process import ExportError, in_clean_process
from .signature_names import SIGNATURE

THREADS = (1, 2)
_RUNS = 20
_RUNNER = Path(__file__).with_name("run_tflite.py")
_FORBIDDEN = ("keras_bert_impl", "keras", "tensorflow")


class Measured(NamedTuple):
    """What was seen of a file that answers one row.

    Attributes:
        milliseconds: by number of threads, the median of the runs.
        peak_bytes: most memory of the process, with Python, NumPy and LiteRT; at one thread.
        added_bytes: by how much that is more than before the file was loaded.
        columns: of the row.
    """

    milliseconds: dict[int, float]
    peak_bytes: int
    added_bytes: int
    columns: int

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {
            "columns": self.columns,
            "milliseconds": {str(threads): round(value, 3) for threads, value in self.milliseconds.items()},
            "peak_bytes": self.peak_bytes,
            "added_bytes": self.added_bytes,
        }


def measure_tflite(
    model: Path, inputs: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], runs: int = _RUNS
) -> Measured:
    """Runs one row in a process for each number of threads.

    Args:
        model: the file.
        inputs: of the id signature, by name.
        expected: what this process has got for them, which the other must get as well.
        runs: how often the row is run.

    Raises:
        ExportError: if the file cannot be run there, or answers otherwise.
    """
    milliseconds: dict[int, float] = {}
    memory: dict[int, tuple[int, int]] = {}
    for threads in THREADS:
        options = (SIGNATURE, str(threads), str(runs))
        answers, facts = in_clean_process(
            _RUNNER, model, {"row": dict(inputs)}, *options, alone="LiteRT", forbidden=_FORBIDDEN
        )
        for name, value in expected.items():
            # Threads may share sums out otherwise.
            if not np.allclose(answers["row"][name], value, rtol=1e-4, atol=1e-4 * float(np.abs(value).max(initial=1))):
                raise ExportError(
                    f"The export was not put in place: with LiteRT alone and {threads} threads it answers otherwise, "
                    f"in {name}"
                )
        milliseconds[threads] = 1000 * float(np.median(np.array(facts["seconds"], "float64")))
        before, peak = int(facts["before"][0]), int(facts["peak"][0])
        memory[threads] = peak, peak - before
    return Measured(milliseconds, *memory[THREADS[0]], columns=next(iter(inputs.values())).shape[-1])
