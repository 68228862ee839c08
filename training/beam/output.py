"""Where the prepared data appears: a local directory, or a folder of one of Beam's file systems."""

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from apache_beam.io.filesystems import FileSystems

from keras_bert_impl.atomic import atomic_directory, check_new_directory
from keras_bert_impl.errors import InputError

from ..examples.prepared_data import MANIFEST
from .files import is_remote, join, write_file

_PARTS = ".parts"


class Output:
    """A local directory that comes into being.

    Attributes:
        folder: local directory for what this machine writes.
        parts: path of the folder where workers write.
    """

    def __init__(self, folder: Path, parts: str):
        self.folder, self.parts = folder, parts

    def complete(self, shards: Mapping[str, str]) -> None:
        """Puts the parts into their places.

        Args:
            shards: the paths of what workers wrote, by their names in the output.
        """
        for name, path in shards.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            Path(path).rename(self.folder / name)
        shutil.rmtree(self.parts)


class _RemoteOutput(Output):
    """Files in a folder of one of Beam's file systems; the manifest, by which it is prepared data, comes last."""

    def __init__(self, folder: Path, parts: str, target: str):
        super().__init__(folder, parts)
        self.target = target

    def complete(self, shards: Mapping[str, str]) -> None:
        FileSystems.rename(list(shards.values()), [join(self.target, name) for name in shards])
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name == MANIFEST):
            write_file(join(self.target, path.name), path.read_bytes())


def check_new_output(path: str) -> None:
    """Raises `InputError` unless the output is absent or empty."""
    if not is_remote(path):
        check_new_directory(path, "output")
        return
    try:
        (match,) = FileSystems.match([join(path, "**")], limits=[1])
    except (OSError, ValueError) as error:
        raise InputError(f"`output` must be a place that can be written. Received: {path!r} ({error})") from None
    if match.metadata_list:
        raise InputError(f"`output` must be a new or empty directory. Received: {path!r}, which has content")


@contextlib.contextmanager
def new_output(path: str) -> Iterator[Output]:
    """Yields an output that the block has to complete; if it raises, nothing is left."""
    if not is_remote(path):
        with atomic_directory(Path(path).absolute()) as folder:
            yield Output(folder, str(folder / _PARTS))
        return
    work = f"{path.rstrip('/')}.{uuid.uuid4().hex}.partial/"
    try:
        with tempfile.TemporaryDirectory(prefix="keras-bert-") as room:
            yield _RemoteOutput(Path(room), join(work, _PARTS), path)
    except BaseException:
        _delete(f"{path.rstrip('/')}/")
        raise
    finally:
        _delete(work)


def _delete(folder: str) -> None:
    with contextlib.suppress(OSError):
        FileSystems.delete([folder])
