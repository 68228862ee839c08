"""How far the reading of a corpus is."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from keras_bert_impl.progress import progress_bar

from .readers import SourceFile

_MEGABYTE = 1_000_000


@contextlib.contextmanager
def reading_progress(files: Sequence[SourceFile]) -> Iterator[Callable[[int], None]]:
    """Shows a bar in megabytes; yields the function to be called with every number of bytes read."""
    read = 0
    with progress_bar(-(-sum(file.size for file in files) // _MEGABYTE), "megabyte", "Reading text") as bar:

        def advance(size: int) -> None:
            nonlocal read
            read += size
            if read >= (bar.n + 1) * _MEGABYTE:
                bar.update(read // _MEGABYTE - bar.n)

        yield advance
