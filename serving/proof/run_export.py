"""Loads an export as TensorFlow Serving does and runs requests; started by its path, in a process of its own.

    python run_export.py EXPORT_VERSION REQUESTS.npz ANSWERS.npz

Imports nothing but TensorFlow and NumPy, so that what runs here runs in any server. Arrays are named
`CASE/SIGNATURE/TENSOR`. The answers carry the names of the packages that were imported, as `modules`.
"""

import sys

import numpy as np
import tensorflow as tf


def main(export: str, requests_file: str, answers_file: str) -> None:
    """Runs every request and writes the answers."""
    requests: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    with np.load(requests_file, allow_pickle=False) as arrays:
        for key in arrays.files:
            case, signature, tensor = key.split("/")
            requests.setdefault((case, signature), {})[tensor] = arrays[key]
    answers = {}
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], export).signature_def
        for (case, signature), inputs in requests.items():
            definition = signatures[signature]
            feeds = {definition.inputs[name].name: value for name, value in inputs.items()}
            fetches = {name: info.name for name, info in definition.outputs.items()}
            for name, value in session.run(fetches, feeds).items():
                # Strings come as objects, which only pickling could store.
                answers[f"{case}/{signature}/{name}"] = value.astype("S") if value.dtype == object else value
    answers["modules"] = np.array(sorted({name.partition(".")[0] for name in sys.modules}))
    np.savez(answers_file, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
