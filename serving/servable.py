"""One version of a SavedModel, loaded and run as TensorFlow Serving does: through a graph session."""

import contextlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_bert_impl.errors import InputError
from keras_bert_impl.quiet import held_back_error_stream

from .rest_protocol import RequestError, TensorInfo

_STATUS_OF_CODE = {
    tf.errors.INVALID_ARGUMENT: 400,
    tf.errors.FAILED_PRECONDITION: 400,
    tf.errors.OUT_OF_RANGE: 400,
    tf.errors.RESOURCE_EXHAUSTED: 429,
    tf.errors.UNIMPLEMENTED: 501,
}
_NAMES_IN_MESSAGES = {"float32": "float", "float64": "double"}


class Servable:
    """A loaded version.

    Args:
        directory: version directory, whose name is the version's number and which has a `saved_model.pb`.

    Raises:
        InputError: if it cannot be loaded.
    """

    def __init__(self, directory: Path) -> None:
        self.version = int(directory.name)
        self._graph = tf.Graph()
        options = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(allow_growth=True))
        self._session = tf.compat.v1.Session(graph=self._graph, config=options)
        try:
            with self._graph.as_default(), _no_deprecation_notes(), held_back_error_stream():
                meta_graph = tf.compat.v1.saved_model.load(self._session, ["serve"], os.fspath(directory))
        except (tf.errors.OpError, OSError, RuntimeError, ValueError, KeyError) as error:
            self._session.close()
            reason = _first_line(error)
            raise InputError(f"The SavedModel in {str(directory)!r} cannot be loaded: {reason}") from error
        self._definitions = {
            name: definition for name, definition in meta_graph.signature_def.items() if definition.outputs
        }
        self.signatures = {name: _tensors(definition.inputs) for name, definition in self._definitions.items()}

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature on arrays, one for each of its inputs; may be called from several threads at once."""
        outputs = self._definitions[signature].outputs
        fetches = {name: info.name for name, info in sorted(outputs.items())}
        feeds = {info.tensor: inputs[name] for name, info in self.signatures[signature].items()}
        try:
            results = self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            raise RequestError(_first_line(error), _STATUS_OF_CODE.get(error.error_code, 500)) from error
        return {name: np.asarray(result) for name, result in results.items()}

    def metadata(self) -> dict[str, Any]:
        """Returns the signatures as the JSON form of their protocol buffers."""
        return {
            name: json_format.MessageToDict(
                definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            for name, definition in sorted(self._definitions.items())
        }

    def close(self) -> None:
        """Frees the session."""
        self._session.close()


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorInfo]:
    tensors = {}
    for name, info in sorted(infos.items()):
        dims = None if info.tensor_shape.unknown_rank else info.tensor_shape.dim
        shape = None if dims is None else tuple(None if dim.size < 0 else dim.size for dim in dims)
        dtype = tf.as_dtype(info.dtype).name
        tensors[name] = TensorInfo(info.name, _NAMES_IN_MESSAGES.get(dtype, dtype), shape)
    return tensors


def _first_line(error: BaseException) -> str:
    """TensorFlow's own sentence, without node names and without the stack trace, which names files."""
    # The session wraps the runtime's error into one whose message carries a stack trace.
    if isinstance(error.__context__, tf.errors.OpError):
        error = error.__context__
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    lines = [re.sub(r"\{\{node .*?\}\}", "", line).strip() for line in message.splitlines()]
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
