"""Whatever ends the trainer, started again it ends as the undisturbed run."""

import dataclasses
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pretraining_runs
import pytest
from pretraining_runs import MODEL, assert_same_run, last_state_of, lines_of, small_config
from stopping import Stop

from keras_bert_impl.errors import InputError, StoppedBySignal
from keras_bert_impl.training.pretrain import pretrain

pytestmark = pytest.mark.slow

KILLS = 10


def long_config(data, run):
    return small_config(data, run, steps=300, checkpoint_every=5, evaluate_every=60)


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory):
    """A long run that nothing disturbs."""
    run = tmp_path_factory.mktemp("whole") / "run"
    pretrain(long_config(prepared, run))
    return run


def start(config):
    # -P: this folder has a `keras_bert_impl` of its own, the tests.
    command = [sys.executable, "-P", pretraining_runs.__file__, json.dumps(config.to_dict())]
    return subprocess.Popen(command, env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"})


def lines_in(run):
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def half_written(run):
    return list((run / "checkpoints").glob(".step_*.partial"))


def wait_until(process, reached):
    deadline = time.monotonic() + 240
    while not reached():
        assert process.poll() is None, "the trainer ended before its time"
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_ten_kills_at_random_moments_change_nothing(whole, prepared, tmp_path):
    """kill -9 at the start, between steps, and while a checkpoint is being written."""
    run, moments = tmp_path / "run", random.Random(5)
    config, halves = long_config(prepared, run), 0
    for kill in range(KILLS):
        process = start(config)
        if kill == 0:
            time.sleep(moments.uniform(0, 8))
        else:
            # First it drops the lines after its checkpoint.
            last = max((int(path.name[5:]) for path in run.glob("checkpoints/step_*")), default=0)
            goal = last + moments.randint(1, 12)
            wait_until(process, lambda last=last: lines_in(run) <= last)
            wait_until(process, lambda goal=goal: lines_in(run) >= goal)
            if kill % 2:
                wait_until(process, lambda: half_written(run))
            else:
                time.sleep(moments.uniform(0, 0.03))
        process.kill()
        process.wait()
        halves += bool(half_written(run))
        assert not (run / "metrics.json").exists()
    assert halves
    assert start(config).wait() == 0
    assert_same_run(whole, run)
    assert [line["step"] for line in lines_of(run)] == list(range(1, 301))


@pytest.mark.parametrize(("number", "code", "name"), [(signal.SIGTERM, 143, "SIGTERM"), (signal.SIGINT, 130, "Ctrl-C")])
def test_a_stopped_command_has_saved_its_last_step_and_goes_on(whole, prepared, tmp_path, number, code, name):
    run = tmp_path / "run"
    (tmp_path / "settings.json").write_text(json.dumps(long_config(prepared, run).to_dict()))
    command = [sys.executable, "-m", "keras_bert_console", "pretrain", "--config", str(tmp_path / "settings.json")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: lines_in(run) >= 7)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    step = lines_of(run)[-1]["step"]
    assert 7 <= step < 300
    assert errors.splitlines()[-1] == (
        f"keras-bert: Stopped by {name} after step {step}, whose checkpoint is written; "
        "the same command goes on from there."
    )
    assert "Traceback" not in errors
    assert (run / "checkpoints" / f"step_{step:08d}" / "checkpoint.json").exists()
    pretrain(long_config(prepared, run))
    assert_same_run(whole, run)


class Send(keras.callbacks.Callback):
    """Sends this process a signal in a step."""

    def __init__(self, number, at):
        super().__init__()
        self.number, self.at, self.seen = number, at, 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), self.number)


@pytest.fixture(scope="module")
def undisturbed(prepared, tmp_path_factory):
    """The last state of a short run that nothing disturbs."""
    config = small_config(prepared, tmp_path_factory.mktemp("undisturbed") / "run", log_every=5)
    pretrain(config)
    return last_state_of(Path(config.run))


@pytest.mark.parametrize("at", [1, 9, 12], ids="in step {}".format)
def test_from_python_a_signal_ends_the_run_after_its_step(prepared, tmp_path, undisturbed, at):
    """In the first step, in the last one of a phase, and in the last one of all."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    config = small_config(prepared, tmp_path / "run", log_every=5)
    with pytest.raises(StoppedBySignal, match=rf"Stopped by SIGTERM after step {at}, whose checkpoint is written"):
        pretrain(config, callbacks=[Send(signal.SIGTERM, at)])
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert lines_of(tmp_path / "run")[-1]["step"] == at
    said = []
    pretrain(config, say=said.append)
    assert f"Goes on from the checkpoint of step {at}." in said
    for name, value in undisturbed.items():
        np.testing.assert_array_equal(last_state_of(tmp_path / "run")[name], value, err_msg=name)


def test_after_a_truncated_and_an_incomplete_checkpoint_the_run_ends_the_same(whole, prepared, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    (run / "metrics.json").unlink()
    *_, one, other = sorted((run / "checkpoints").glob("step_*"))
    weights = other / "state.data-00000-of-00001"
    weights.write_bytes(weights.read_bytes()[:-10])
    (one / "state.index").unlink()
    said = []
    pretrain(long_config(prepared, run), say=said.append)
    assert [line for line in said if line.startswith("Checkpoint of step")] == [
        "Checkpoint of step 300 cannot be used (state.data-00000-of-00001 is 10 bytes short); going on from step 290. "
        f"It is kept as {str(run / 'checkpoints' / 'damaged_step_00000300')!r}.",
        "Checkpoint of step 295 cannot be used (state.index is missing); going on from step 290. "
        f"It is kept as {str(run / 'checkpoints' / 'damaged_step_00000295')!r}.",
    ]
    assert "Goes on from the checkpoint of step 290." in said
    assert_same_run(whole, run)


def test_lost_lines_of_metrics_are_told(prepared, tmp_path):
    config = small_config(prepared, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, callbacks=[Stop(8)])
    log = tmp_path / "run" / "metrics.jsonl"
    log.write_bytes(b"\n".join(log.read_bytes().splitlines()[:2]) + b"\n" + b"\0" * 50)
    said = []
    pretrain(config, say=said.append)
    assert "metrics.jsonl is damaged: its lines of the steps 3 to 6 are lost." in said
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [1, 2, *range(7, 13)]


def test_without_dropout_a_run_may_go_on_with_other_replicas(prepared, tmp_path):
    model = {**MODEL, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = small_config(prepared, tmp_path / "one", model=model, learning_rate=1e-3)
    pretrain(config)
    broken = dataclasses.replace(config, run=str(tmp_path / "several"))
    for replicas in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            pretrain(dataclasses.replace(broken, replicas=replicas), callbacks=[Stop(5)])
    pretrain(broken)
    for name, value in last_state_of(tmp_path / "one").items():
        np.testing.assert_allclose(last_state_of(tmp_path / "several")[name], value, atol=1e-5, err_msg=name)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, of 3 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=False).returncode:
        pytest.skip("needs the right to mount a disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_on_a_full_disk_checkpoints_stay_whole_and_the_run_goes_on_later(whole, prepared, small_disk, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.training.pretrain.check_room", lambda directory, size: None)
    config = long_config(prepared, small_disk / "run")
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, callbacks=[Stop(30)])
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space left"), ballast.open("wb") as file:
        while True:
            file.write(b"0" * 4096)
            file.flush()
    with pytest.raises(
        InputError, match=r"`run` must have room on its disk; .* goes on from the checkpoint of step \d+"
    ):
        pretrain(config)
    assert not half_written(small_disk / "run")
    ballast.unlink()
    pretrain(config)
    assert_same_run(whole, Path(config.run))
