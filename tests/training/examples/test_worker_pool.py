import subprocess
import sys
from pathlib import Path

import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.examples import worker_pool
from keras_bert_impl.training.prepare import prepare

AT_BLOCK_1 = """
import keras_bert_console, keras_bert_impl.training.examples.worker_pool as pool, errno, os
from keras_bert_impl.errors import InputError
work = pool.BlockWorker.__call__
def at_block_1(self, block):
    if block.number == 1:
        {action}
    return work(self, block)
pool.BlockWorker.__call__ = at_block_1
pool.serve()
"""


def prepare_with_workers_that(action: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_START", AT_BLOCK_1.format(action=action))
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 2000)
    config = toy_config(folder, count=60, workers=2)
    try:
        prepare(config)
    finally:
        left = {path.name for path in folder.iterdir()}
        assert left - {".data.unfinished"} == {"corpus.txt", "vocab.txt"}


def test_a_killed_worker_gives_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    message = r"`workers` must be few enough for the memory.* Received: a worker process that ended by SIGKILL in the"
    with pytest.raises(InputError, match=message):
        prepare_with_workers_that("os.kill(os.getpid(), 9)", tmp_path, monkeypatch)


def test_a_worker_that_ends_by_itself_gives_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="a worker process that ended with exit code 3"):
        prepare_with_workers_that("os._exit(3)", tmp_path, monkeypatch)


def test_a_full_disk_in_a_worker_gives_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    message = r"`output` could not be written: No space left on device\. Received: '.*data'; (\d|nothing)"
    with pytest.raises(InputError, match=message):
        prepare_with_workers_that("raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))", tmp_path, monkeypatch)


def test_what_a_worker_says_to_the_user_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="`this` must be so"):
        prepare_with_workers_that("raise InputError('`this` must be so')", tmp_path, monkeypatch)


def test_a_fault_in_a_worker_is_shown_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RuntimeError, match=r"A worker process failed:\n(.*\n)*.*in at_block_1\n(.*\n)*KeyError: 'x'"):
        prepare_with_workers_that("raise KeyError('x')", tmp_path, monkeypatch)


def test_what_a_worker_prints_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_pool, "_START", AT_BLOCK_1.format(action="print('noise'); os.system('echo noise')"))
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 2000)
    assert prepare(toy_config(tmp_path, count=60, workers=2))["documents"]["read"] == 60


def test_workers_open_no_tensorflow():
    script = f"{worker_pool._START.replace('pool.serve()', 'import sys')}; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_worker_ends_with_its_parent():
    worker = subprocess.Popen([sys.executable, "-c", worker_pool._START], stdin=subprocess.PIPE)
    worker.communicate(timeout=60)  # The pipe closes, as it does when the parent is killed.
    assert worker.returncode is not None
