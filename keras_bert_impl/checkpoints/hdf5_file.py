"""Weights in Keras' HDF5 form: plain arrays by path, read without a model."""

import contextlib
import dataclasses
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np

from keras_bert_impl.checkpoints.checkpoint import WEIGHT_DTYPES, StoredTensor
from keras_bert_impl.errors import InputError

# What h5py raises over a damaged file, by where the damage is.
_DAMAGE = (OSError, KeyError, RuntimeError, ValueError, TypeError)


def open_hdf5(file: Path, opener: Callable[[], Any] | None = None) -> list[StoredTensor]:
    """Returns every array of a file; values are read when asked for.

    Only arrays that lie in the file itself, whole and uncompressed as Keras writes them, are taken. HDF5 can also
    point to other files of the reader's machine, and can promise arrays far larger than itself.

    Args:
        file: the file, for messages, and to open where there is no `opener`.
        opener: opens the bytes of the HDF5 file where they lie inside another one.

    Raises:
        InputError: if it is damaged, or anything in it is no such array; also when a value is read.
    """
    opener = opener or _FileOpener(file)
    with _opened(file, opener) as root:
        return [
            StoredTensor(
                name=name, shape=tuple(dataset.shape), dtype=_dtype_name(dataset), read=_Read(file, opener, name)
            )
            for name, dataset in sorted(_datasets(file, root), key=lambda found: found[0])
        ]


def check_float(tensor: StoredTensor, file: Path) -> None:
    """Raises `InputError` unless an array holds weights as they are, not whole numbers that stand for them."""
    if tensor.dtype not in WEIGHT_DTYPES:
        raise InputError(
            f"`path` must hold weights in {', '.join(WEIGHT_DTYPES)}. Received: {str(file)!r}, {tensor.name} is "
            f"{tensor.dtype}"
        )


def write_hdf5(file: Path, tensors: Iterable[tuple[str, np.ndarray]]) -> None:
    """Writes arrays under their paths, one after the other."""
    with h5py.File(file, "w") as root:
        for name, value in tensors:
            root[name] = value


class FilePart(io.RawIOBase):
    """A stretch of a file as a file by itself.

    Args:
        file: the whole file.
        start: its first byte.
        size: its length in bytes.
    """

    def __init__(self, file: Path, start: int, size: int) -> None:
        super().__init__()
        self._file = file.open("rb")
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it has positions: always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a position; returns it."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        """Returns the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as the stretch goes; returns how many bytes that was."""
        count = max(0, min(len(buffer), self._size - self._position))
        self._file.seek(self._start + self._position)
        read = self._file.readinto(memoryview(buffer)[:count])
        self._position += read
        return read

    def close(self) -> None:
        """Closes the whole file."""
        self._file.close()
        super().close()


@dataclasses.dataclass(frozen=True)
class _FileOpener:
    file: Path

    def __call__(self) -> Any:
        return self.file.open("rb")


@dataclasses.dataclass(frozen=True)
class _Read:
    """Reads one array. The file is open only for as long as that takes."""

    file: Path
    opener: Callable[[], Any]
    name: str

    def __call__(self) -> np.ndarray:
        with _opened(self.file, self.opener) as root:
            dataset = root[self.name]
            value = dataset[()]
            if _dtype_name(dataset) == "bfloat16":
                return value.view(ml_dtypes.bfloat16)
            return value.astype(value.dtype.newbyteorder("="), copy=False)


@contextlib.contextmanager
def _opened(file: Path, opener: Callable[[], Any]) -> Iterator[h5py.File]:
    try:
        with opener() as stream, h5py.File(stream, "r") as root:
            yield root
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"`path` must hold whole weights. Received: {str(file)!r}, which is cut off or damaged ({error})"
        ) from error


def _datasets(file: Path, root: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yields path and dataset of every array."""
    size = file.stat().st_size
    met = set()
    groups: list[tuple[str, h5py.Group]] = [("", root)]
    while groups:
        prefix, group = groups.pop()
        address = h5py.h5o.get_info(group.id).addr
        if address in met:
            raise _not_plain(file, prefix, "a group that is met twice")
        met.add(address)
        for name in group:
            path = f"{prefix}/{name}" if prefix else name
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise _not_plain(file, path, "a link")
            found = group[name]
            if isinstance(found, h5py.Group):
                groups.append((path, found))
            else:
                _check_plain(file, path, found, size)
                yield path, found


def _check_plain(file: Path, path: str, found: Any, file_size: int) -> None:
    if not isinstance(found, h5py.Dataset) or found.shape is None:
        raise _not_plain(file, path, "no array")
    if found.external or found.is_virtual:
        raise _not_plain(file, path, "an array whose values are in other files")
    if found.chunks is not None:
        raise _not_plain(file, path, "an array that is compressed or in chunks")
    if found.id.get_storage_size() != found.nbytes or found.nbytes > file_size:
        raise _not_plain(file, path, f"an array of {found.nbytes} bytes that are not all there")


def _not_plain(file: Path, path: str, what: str) -> InputError:
    return InputError(f"`path` must hold plain arrays in its own file. Received: {str(file)!r}, {path!r} is {what}")


def _dtype_name(dataset: h5py.Dataset) -> str:
    # HDF5 has no bfloat16: Keras writes two bytes of no kind, and says beside them what they are.
    said = dataset.attrs.get("dtype") if dataset.dtype == np.dtype("V2") else None
    return "bfloat16" if said == "bfloat16" else dataset.dtype.name
