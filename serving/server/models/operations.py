"""The operations that a SavedModel needs, beyond those of TensorFlow."""

import importlib
from pathlib import Path

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.python.framework import op_def_registry

from .load_error import LoadError

_PACKAGE = "tensorflow_text"


def register_operations(directory: Path) -> None:
    """Sees to it that the graph's operations are there: those of tensorflow-text are, once it has been imported.

    TensorFlow loads a graph with an operation that it lacks, and only fails when asked.

    Args:
        directory: of the SavedModel.

    Raises:
        LoadError: if one is of another package, or tensorflow-text is not installed.
        DecodeError: if saved_model.pb cannot be read.
    """
    needed = _operations(directory)
    if not _missing(needed):
        return
    try:
        importlib.import_module(_PACKAGE)
    except ImportError as error:
        raise _refusal(directory, _missing(needed), "tensorflow-text, where they may be, is not installed") from error
    if missing := _missing(needed):
        raise _refusal(directory, missing, "neither TensorFlow nor tensorflow-text has them")


def _operations(directory: Path) -> set[str]:
    # Not by the list that the file itself has: it leaves out what is used in functions alone.
    saved_model = SavedModel.FromString((directory / "saved_model.pb").read_bytes())
    names: set[str] = set()
    for meta_graph in saved_model.meta_graphs:
        functions = meta_graph.graph_def.library.function
        names.update(node.op for node in meta_graph.graph_def.node)
        names.update(node.op for function in functions for node in function.node_def)
        names.difference_update(function.signature.name for function in functions)
    return names


def _missing(names: set[str]) -> list[str]:
    return sorted(name for name in names if op_def_registry.get(name) is None)


def _refusal(directory: Path, missing: list[str], why: str) -> LoadError:
    sentence = "The SavedModel{} needs these operations: " + ", ".join(missing) + f"; {why}"
    return LoadError(sentence.format(f" in {str(directory)!r}"), sentence.format(""), "NOT_FOUND")
