"""Runs a TFLite file's signature on one row, again and again; started by its path, in a process of its own.

    python run_tflite.py MODEL.tflite REQUESTS.npz ANSWERS.npz SIGNATURE THREADS RUNS

Imports nothing but LiteRT and NumPy, so that what runs here runs wherever these are. The inputs are named
`row/NAME`, the outputs come as `row/NAME`; beside them the names of the packages that were imported, as `modules`,
`seconds` of each run after the first two, and memory in bytes: `before`, when the file was not loaded yet, and `peak`.
"""

import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

_WARM_UP = 2


def main(model: str, requests_file: str, answers_file: str, signature: str, threads: str, runs: str) -> None:
    """Runs the row and writes the answers."""
    with np.load(requests_file, allow_pickle=False) as arrays:
        inputs = {key.partition("/")[2]: arrays[key] for key in arrays.files}
    before = _memory("VmRSS")
    interpreter = Interpreter(model_path=model, num_threads=int(threads))
    runner = interpreter.get_signature_runner(signature)
    answers: dict[str, Any] = {f"row/{name}": value for name, value in runner(**inputs).items()}
    seconds = []
    for _ in range(_WARM_UP + int(runs)):
        start = time.perf_counter()
        runner(**inputs)
        seconds.append(time.perf_counter() - start)
    answers["seconds"] = np.array(seconds[_WARM_UP:])
    answers["before"], answers["peak"] = np.array([before]), np.array([_memory("VmHWM")])
    answers["modules"] = np.array(sorted({name.partition(".")[0] for name in sys.modules}))
    np.savez(answers_file, **answers)


def _memory(name: str) -> int:
    """Returns a number of bytes that Linux counts for this process; 0 elsewhere."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    except OSError:
        return 0
    return 1024 * int(found[1]) if found else 0


if __name__ == "__main__":
    main(*sys.argv[1:])
