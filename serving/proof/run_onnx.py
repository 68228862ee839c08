"""Runs requests by ONNX Runtime; started by its path, in a process of its own.

    python run_onnx.py MODEL.onnx REQUESTS.npz ANSWERS.npz

Imports nothing but ONNX Runtime and NumPy, so that what runs here runs wherever these are. Arrays are named
`CASE/SIGNATURE/TENSOR`. The answers carry the names of the packages that were imported, as `modules`, and the version
of ONNX Runtime, as `version`.
"""

import sys
from typing import Any

import numpy as np
import onnxruntime


def main(model: str, requests_file: str, answers_file: str) -> None:
    """Runs every request and writes the answers."""
    requests: dict[str, dict[str, np.ndarray]] = {}
    with np.load(requests_file, allow_pickle=False) as arrays:
        for key in arrays.files:
            case, _, tensor = key.rpartition("/")
            requests.setdefault(case, {})[tensor] = arrays[key]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    answers: dict[str, Any] = {}
    for case, inputs in requests.items():
        for name, value in zip(names, session.run(names, inputs), strict=True):
            # Strings come as objects, which only pickling could store.
            is_text = value.dtype == object
            answers[f"{case}/{name}"] = np.char.encode(value.astype("U"), "utf-8") if is_text else value
    answers["version"] = np.array([onnxruntime.__version__])
    answers["modules"] = np.array(sorted({name.partition(".")[0] for name in sys.modules}))
    np.savez(answers_file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
