"""Progress on the error stream."""

import errno
import os
import sys

import pytest

from keras_bert_impl.progress import progress_bar


class Closed:
    """A stream whose reader has gone."""

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def flush(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_work_goes_on_where_nobody_reads_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Closed())
    with progress_bar(3, "step", "Working") as bar:
        bar.delay = bar.mininterval = 0
        for _ in range(3):
            bar.update()
            bar.refresh()
    assert bar.n == 3
