"""One version of a SavedModel, loaded and run as TensorFlow Serving does: through a graph session."""

import contextlib
import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.framework.ops import dismantle_graph

from ..request_error import RequestError
from .load_error import LoadError
from .operations import register_operations
from .signature import Signature, TensorInfo


class Servable:
    """A loaded version; its methods may be called from several threads at once.

    Attributes:
        name: the model's.
        version: its number.
        signatures: what it can be asked, by name.

    Args:
        directory: version directory, whose name is the version's number and which has a `saved_model.pb`.
        name: the model's name; that of the directory above when not given.

    Raises:
        LoadError: if it cannot be loaded.
    """

    def __init__(self, directory: Path, name: str | None = None) -> None:
        self.name = directory.parent.name if name is None else name
        self.version = int(directory.name)
        self._graph = tf.Graph()
        options = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(allow_growth=True))
        self._session = tf.compat.v1.Session(graph=self._graph, config=options)
        try:
            register_operations(directory)
            with self._graph.as_default(), _no_deprecation_notes():
                meta_graph = tf.compat.v1.saved_model.load(self._session, ["serve"], os.fspath(directory))
        except LoadError:
            self.close()
            raise
        except Exception as error:  # whatever a damaged file may bring about
            self.close()
            raise _load_error(directory, error) from error
        self.signatures: Mapping[str, Signature] = {
            name: Signature(
                definition.method_name, _tensors(definition.inputs), _tensors(definition.outputs), definition
            )
            for name, definition in sorted(meta_graph.signature_def.items())
            if _is_asked(definition)
        }

    def run(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
            signature: its name.
            inputs: an array for each of its inputs; strings are bytes in an array of objects.
            outputs: names of those that are wanted; all when not given.

        Raises:
            RequestError: if the arrays do not suit the signature, or the graph refuses them.
        """
        known = self.signatures[signature]
        _check_dtypes(known, inputs)
        fetches = {name: info.tensor for name, info in known.outputs.items() if outputs is None or name in outputs}
        feeds = {info.tensor: inputs[name] for name, info in known.inputs.items()}
        try:
            results = self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            raise RequestError(_first_line(error), _code_name(error.error_code)) from error
        except (TypeError, ValueError) as error:  # shapes that the placeholders cannot have
            raise RequestError(_first_line(error)) from error
        return {name: np.asarray(result) for name, result in results.items()}

    def metadata(self) -> dict[str, Any]:
        """Returns the signatures as the JSON form of their protocol buffers."""
        return {
            name: json_format.MessageToDict(
                signature.definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            for name, signature in self.signatures.items()
        }

    def signature_def_map(self) -> Any:
        """Returns the signatures as TensorFlow Serving's `SignatureDefMap`."""
        from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

        definitions = {name: signature.definition for name, signature in self.signatures.items()}
        return SignatureDefMap(signature_def=definitions)

    def close(self) -> None:
        """Frees what it holds; it cannot be asked any more."""
        self._session.close()
        # A graph and its operations know one another, and Python looks for such circles too seldom.
        dismantle_graph(self._graph)


def _is_asked(definition: Any) -> bool:
    """Whether a signature gives tensors; what a SavedModel does when it is loaded stands among them too."""
    dtypes = [info.dtype for info in definition.outputs.values()]
    return bool(dtypes) and types_pb2.DT_INVALID not in dtypes


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    tensors = {}
    for name, info in sorted(infos.items()):
        dims = None if info.tensor_shape.unknown_rank else info.tensor_shape.dim
        shape = None if dims is None else tuple(None if dim.size < 0 else dim.size for dim in dims)
        tensors[name] = TensorInfo(info.name, _dtype_name(info.dtype), shape)
    return tensors


def _dtype_name(dtype: int) -> str:
    return types_pb2.DataType.Name(dtype).removeprefix("DT_").lower()


def _check_dtypes(signature: Signature, inputs: Mapping[str, np.ndarray]) -> None:
    for position, (name, info) in enumerate(signature.inputs.items()):
        got = _dtype_name(tf.as_dtype(inputs[name].dtype).as_datatype_enum)
        if got != info.dtype:
            raise RequestError(f"Expects arg[{position}] to be {info.dtype} but {got} is provided")


def _code_name(code: int) -> str:
    return error_codes_pb2.Code.Name(code)


def _load_error(directory: Path, error: Exception) -> LoadError:
    reason = "saved_model.pb cannot be read" if isinstance(error, DecodeError) else _first_line(error)
    code = _code_name(error.error_code) if isinstance(error, tf.errors.OpError) else "INTERNAL"
    return LoadError(
        f"The SavedModel in {str(directory)!r} cannot be loaded: {reason}",
        f"The SavedModel cannot be loaded: {reason.replace(str(directory), directory.name)}",
        code,
    )


def _first_line(error: BaseException) -> str:
    """TensorFlow's own sentence, without node names and without the stack trace, which names files."""
    # The session wraps the runtime's error into one whose message carries a stack trace.
    if isinstance(error.__context__, tf.errors.OpError):
        error = error.__context__
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    # Node names go, and the mark of Python's bytes before a file's name.
    lines = [re.sub(r"\{\{node .*?\}\}|\bb(?=')", "", line).strip() for line in message.splitlines()]
    return next((line for line in lines if line and not line.startswith("[[")), type(error).__name__)


@contextlib.contextmanager
def _no_deprecation_notes() -> Iterator[None]:
    """Loading through a session is what the real server does; TensorFlow advises against it in its log."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
