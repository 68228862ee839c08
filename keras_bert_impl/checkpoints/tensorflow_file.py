"""TensorFlow's checkpoint files, by the names of their variables; no graph is built."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.checkpoint import StoredTensor
from keras_bert_impl.errors import InputError

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def tensorflow_prefix(path: Path) -> Path | None:
    """Returns the prefix of the TensorFlow checkpoint that `path` is or has in it, if there is one.

    Raises:
        InputError: if a directory has several and does not say which is meant.
    """
    if not path.is_dir():
        index = path if path.suffix == ".index" else Path(f"{path}.index")
        return index.with_suffix("") if index.is_file() else None
    prefixes = {index.stem: index.with_suffix("") for index in sorted(path.glob("*.index"))}
    if len(prefixes) < 2:
        return next(iter(prefixes.values()), None)
    latest = _latest(path)
    if latest not in prefixes:
        raise InputError(
            f"`path` must name one checkpoint where a directory has several. "
            f"Received: {str(path)!r}, with {', '.join(prefixes)}"
        )
    return prefixes[latest]


def checked_prefix(path: Path) -> Path:
    """Returns what `tensorflow_prefix` does; raises `InputError` if there is no checkpoint."""
    prefix = tensorflow_prefix(path)
    if prefix is None:
        raise InputError(f"`path` must be a TensorFlow checkpoint. Received: {str(path)!r}, which has no .index file")
    return prefix


def object_graph(prefix: Path) -> bytes:
    """Returns the serialised `TrackableObjectGraph` of an object-based checkpoint.

    Raises:
        InputError: if a file of it is absent or damaged.
    """
    return _read(prefix, _reader(prefix), OBJECT_GRAPH)


def variable_shapes(prefix: Path) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every variable of a checkpoint.

    Args:
        prefix: path of the checkpoint without `.index`.

    Raises:
        InputError: if a file of it is absent or damaged.
    """
    return {name: tuple(shape) for name, shape in _reader(prefix).get_variable_to_shape_map().items()}


def stored_tensors(prefix: Path) -> dict[str, StoredTensor]:
    """Returns every variable of a checkpoint, by name; values are read when asked for.

    Raises:
        InputError: if a file of it is absent or damaged; also when a value is read.
    """
    reader = _reader(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    return {
        name: StoredTensor(name=name, shape=tuple(shape), dtype=dtypes[name].name, read=_Read(prefix, reader, name))
        for name, shape in reader.get_variable_to_shape_map().items()
    }


@dataclasses.dataclass(frozen=True)
class _Read:
    prefix: Path
    reader: Any
    name: str

    def __call__(self) -> np.ndarray:
        return np.asarray(_read(self.prefix, self.reader, self.name))


def _latest(folder: Path) -> str | None:
    """Returns the name of the newest checkpoint of a directory, as its `checkpoint` file says it."""
    import tensorflow as tf

    state = tf.train.get_checkpoint_state(str(folder))
    # The file may say where the directory once was: only the name counts.
    return Path(state.model_checkpoint_path).name if state else None


def _read(prefix: Path, reader: Any, name: str) -> Any:
    try:
        return reader.get_tensor(name)
    except Exception as error:  # the reader has no class of its own for a damaged file
        raise _damaged(prefix) from error


def _reader(prefix: Path) -> Any:
    import tensorflow as tf

    try:
        return tf.train.load_checkpoint(str(prefix))
    except Exception as error:
        raise _damaged(prefix) from error


def _damaged(prefix: Path) -> InputError:
    return InputError(
        f"`path` must hold a whole TensorFlow checkpoint. Received: {str(prefix)!r}, of which a file is absent, "
        "cut off or damaged"
    )
