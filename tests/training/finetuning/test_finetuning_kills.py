"""Whatever ends a fine-tuning, started again it ends as the undisturbed one."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from finetuning_runs import ToyTask, assert_same_model, start, toy_settings, write_toy_files

from keras_bert_impl.errors import InputError, StoppedBySignal
from keras_bert_impl.training.finetuning import one_run
from keras_bert_impl.training.finetuning.finetune import finetune
from keras_bert_impl.training.finetuning.json_files import write_json

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_toy_files(tmp_path_factory.mktemp("toy"))


def settings(folder, output, **changes):
    return toy_settings(folder, output, seeds=(1, 2), epochs=5, learning_rate=1e-2, **changes)


@pytest.fixture(scope="module")
def whole(folder):
    """A fine-tuning that nothing disturbs."""
    finetune(settings(folder, folder / "whole"), task_type=ToyTask)
    return folder / "whole"


class SignalTask(ToyTask):
    """Sends this process a signal when it is evaluated for the third time."""

    evaluations = 0

    def evaluate(self, model, examples):
        self.evaluations += 1
        if self.evaluations == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().evaluate(model, examples)


def test_a_signal_ends_the_run_after_its_step_and_the_same_call_goes_on(folder, whole, tmp_path):
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(
        StoppedBySignal,
        match=r"Stopped by SIGTERM after step 25, whose checkpoint is written; the same command goes on",
    ):
        finetune(settings(folder, tmp_path / "out"), task_type=SignalTask)
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert not (tmp_path / "out").exists()
    with pytest.raises(
        InputError,
        match=r"`output` must not have the unfinished model of another command beside it; .*where metric was None",
    ):
        finetune(settings(folder, tmp_path / "out", metric="f1"), task_type=ToyTask)
    said = []
    finetune(settings(folder, tmp_path / "out"), said.append, task_type=ToyTask)
    assert "Seed 1: Goes on from step 25 of 40." in said
    assert_same_model(whole, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def wait_until(process, reached):
    deadline = time.monotonic() + 300
    while not reached():
        assert process.poll() is None, "it ended before its time"
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_kills_change_nothing(folder, whole, tmp_path):
    """kill -9 after the first checkpoint, and while the second seed trains."""
    config = settings(folder, tmp_path / "out")
    runs = tmp_path / ".out.unfinished" / "runs"
    for place in ("seed-1/checkpoints/step_*", "seed-2/checkpoints/.step_*.partial"):
        process = start(config)
        wait_until(process, lambda place=place: any(runs.glob(place)))
        process.kill()
        process.wait()
        assert not (tmp_path / "out").exists()
    assert (runs / "seed-1" / "result.json").exists()
    said = []
    finetune(config, said.append, task_type=ToyTask)
    assert "Seed 1 is finished already." in said
    assert_same_model(whole, tmp_path / "out")


def test_a_kill_between_the_model_and_its_result_changes_nothing(folder, whole, tmp_path, monkeypatch):
    def killed(path, values):
        if path.name == one_run.RESULT:
            raise KeyboardInterrupt
        write_json(path, values)

    config = settings(folder, tmp_path / "out")
    monkeypatch.setattr(one_run, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        finetune(config, task_type=ToyTask)
    monkeypatch.undo()
    finetune(config, task_type=ToyTask)
    assert_same_model(whole, tmp_path / "out")


def test_two_at_once_are_refused(folder, tmp_path):
    config = settings(folder, tmp_path / "out")

    class Nested(ToyTask):
        def make_model(self, seed):
            finetune(config, task_type=ToyTask)

    with pytest.raises(InputError, match=r"`output` must not be in use by another process\."):
        finetune(config, task_type=Nested)


def test_a_kill_after_the_model_was_complete_is_cleared_up(folder, whole, tmp_path):
    config = settings(folder, tmp_path / "out")
    finetune(config, task_type=ToyTask)
    rest = tmp_path / ".out.unfinished"
    (rest / "runs").mkdir(parents=True)
    (rest / "lock").touch()
    finetune(config, task_type=ToyTask)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_is_said_in_a_sentence_and_the_same_call_goes_on_later(folder, whole, small_disk):
    config = settings(folder, small_disk / "out")
    ballast = small_disk / "ballast"

    class Filling(ToyTask):
        def evaluate(self, model, examples):
            if (small_disk / ".out.unfinished" / "runs" / "seed-1" / "history.json").exists() and not ballast.exists():
                with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:
                    while True:
                        file.write(b"0" * 4096)
            return super().evaluate(model, examples)

    with pytest.raises(
        InputError, match=r"`output` must have room on its disk; nothing was left half-written, and once"
    ):
        finetune(config, task_type=Filling)
    ballast.unlink()
    said = []
    finetune(config, said.append, task_type=ToyTask)
    assert "Seed 1: Goes on from step 8 of 40." in said
    assert_same_model(whole, small_disk / "out")
