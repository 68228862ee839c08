"""Loads an export as TensorFlow Serving does and runs requests; started by its path, in a process of its own.

    python run_export.py EXPORT_VERSION REQUESTS.npz ANSWERS.npz [text]

Imports nothing but TensorFlow and NumPy, so that what runs here runs in any server; with `text`, tensorflow-text, too.
Arrays are named `CASE/SIGNATURE/TENSOR`. The answers carry the names of the packages that were imported, as `modules`,
and those of the operations that TensorFlow alone does not have, as `other_ops`.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.framework import op_def_registry


def main(export: str, requests_file: str, answers_file: str, text: str = "") -> None:
    """Runs every request and writes the answers."""
    other_ops = [name for name in _operations(export) if op_def_registry.get(name) is None]
    if text:
        import tensorflow_text  # noqa: F401
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
    answers["other_ops"] = np.array(other_ops, dtype="U")
    answers["modules"] = np.array(sorted({name.partition(".")[0] for name in sys.modules}))
    np.savez(answers_file, **answers)


def _operations(export: str) -> list[str]:
    """Returns the names of the operations that the graph and its functions use."""
    saved_model = SavedModel.FromString(Path(export, "saved_model.pb").read_bytes())
    names: set[str] = set()
    for meta_graph in saved_model.meta_graphs:
        library = meta_graph.graph_def.library.function
        nodes = [node for function in library for node in function.node_def]
        names |= {node.op for node in [*meta_graph.graph_def.node, *nodes]}
        names -= {function.signature.name for function in library}
    return sorted(names)


if __name__ == "__main__":
    main(*sys.argv[1:])
