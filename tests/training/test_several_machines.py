"""Two machines, played by two processes on 127.0.0.1."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from machines import free_addresses
from pretraining_runs import MODEL, assert_same_run, last_state_of, lines_of, small_config

from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.pretrain import pretrain

pytestmark = pytest.mark.slow

STEPS = 20
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def settings(data, run, **changes):
    values = {"model": MODEL | NO_DROPOUT, "steps": STEPS, "checkpoint_every": 1, "peak_flops": 1e11, "replicas": None}
    return small_config(data, run, **values | changes)


class Machines:
    """Both processes of a training; the second has a run directory of its own, which nothing may be written to."""

    def __init__(self, folder: Path, data: Path, *, both: dict | None = None, second: dict | None = None) -> None:
        self.run, self.own_of_second = folder / "run", folder / "of-second"
        addresses = ",".join(free_addresses(2))
        self.outputs = [folder / "first.txt", folder / "second.txt"]
        self.processes = []
        folder.mkdir(exist_ok=True)
        for number, run in enumerate([self.run, self.own_of_second]):
            changes = {"cluster": addresses, "worker": number, **(both or {}), **((second or {}) if number else {})}
            file = folder / f"{number}.json"
            config = settings(data, run, **changes).to_dict()
            given = {name: value for name, value in config.items() if value is not None}
            file.write_text(json.dumps(given), encoding="utf-8")
            command = [sys.executable, "-m", "keras_bert_console", "pretrain", "--config", str(file)]
            with self.outputs[number].open("w", encoding="utf-8") as output:
                self.processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT))

    def wait_for_step(self, step: int) -> None:
        """Waits until a checkpoint of this step or a later one is there."""
        deadline = time.monotonic() + 400
        while not any(int(path.name[5:]) >= step for path in self.run.glob("checkpoints/step_*")):
            assert time.monotonic() < deadline, self.said()
            assert all(process.poll() is None for process in self.processes), self.said()
            time.sleep(0.02)

    def codes(self, seconds: float = 400) -> list[int]:
        try:
            return [process.wait(seconds) for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()

    def said(self) -> list[str]:
        return [output.read_text(encoding="utf-8") for output in self.outputs]


@pytest.fixture(scope="module")
def undisturbed(prepared, tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("undisturbed"), prepared)
    assert machines.codes() == [0, 0], machines.said()
    return machines


def assert_same_learning(run: Path, other: Path) -> None:
    """Weights, optimizer and all sums over the steps are equal to what the order of additions leaves open."""
    ours, theirs = last_state_of(run), last_state_of(other)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, atol=1e-5, rtol=0, err_msg=name)
    lines = {line["step"]: line for line in lines_of(other)}
    for line in lines_of(run):
        for name in ("loss", "held_out_mlm_loss", "held_out_nsp_accuracy"):
            assert line.get(name) == pytest.approx(lines[line["step"]].get(name), abs=1e-5), (line["step"], name)
        assert line["tokens"] == lines[line["step"]]["tokens"]


def test_two_machines_learn_what_one_device_learns(undisturbed, prepared, tmp_path):
    pretrain(settings(prepared, tmp_path / "run", replicas=1))
    assert_same_learning(undisturbed.run, tmp_path / "run")


def test_so_they_do_with_lamb_parts_of_batches_buckets_and_packed_rows(prepared, tmp_path):
    phases = (
        PhaseConfig(length=16, steps=10, bucketed=True),
        PhaseConfig(length=32, steps=10, batch_size=4, packed=True),
    )
    changes = {
        "phases": phases,
        "optimizer": "lamb",
        "clip_norm": 0.1,
        "log_every": 5,
        "evaluate_every": 5,
        "checkpoint_every": 5,
    }
    pretrain(settings(prepared, tmp_path / "one", replicas=1, **changes))
    two = Machines(tmp_path / "two", prepared, both={**changes, "micro_batches": 2, "steps_per_execution": 5})
    assert two.codes() == [0, 0], two.said()
    assert_same_learning(two.run, tmp_path / "one")


def test_only_the_chief_writes(undisturbed):
    first, second = undisturbed.said()
    assert not undisturbed.own_of_second.exists()
    assert "it writes the run directory." in first
    assert "follows worker 0 (127.0.0.1:" in second
    assert "Report: " in first
    assert "Report: " not in second


def test_losses_and_signals_end_both_and_the_run_goes_on(undisturbed, prepared, tmp_path):
    lost = Machines(tmp_path, prepared)
    lost.wait_for_step(3)
    lost.processes[1].kill()
    assert lost.codes(60) == [75, -signal.SIGKILL], lost.said()
    assert "Worker 1 (127.0.0.1:" in lost.said()[0]
    assert "its process or its machine ended; start the same command on every machine again" in lost.said()[0]

    stopped = Machines(tmp_path, prepared)
    stopped.wait_for_step(8)
    stopped.processes[1].terminate()
    assert stopped.codes(60) == [143, 143], stopped.said()
    assert "Goes on from the checkpoint of step " in stopped.said()[0]
    sentences = [text[text.index("Stopped by SIGTERM after step ") :] for text in stopped.said()]
    assert sentences[0] == sentences[1]
    assert f"step_{int(sentences[0].split()[5].rstrip(',')):08d}" in [p.name for p in stopped.run.glob("checkpoints/*")]

    headless = Machines(tmp_path, prepared)
    headless.wait_for_step(13)
    headless.processes[0].kill()
    assert headless.codes(60) == [-signal.SIGKILL, 75], headless.said()
    assert "Worker 0 (127.0.0.1:" in headless.said()[1]
    assert "the run goes on from its last checkpoint." in headless.said()[1]

    last = Machines(tmp_path, prepared)
    assert last.codes() == [0, 0], last.said()
    assert_same_run(undisturbed.run, tmp_path / "run")


def test_a_machine_that_hangs_is_lost(prepared, tmp_path):
    machines = Machines(tmp_path, prepared)
    machines.wait_for_step(2)
    machines.processes[1].send_signal(signal.SIGSTOP)
    try:
        assert machines.processes[0].wait(60) == 75, machines.said()
    finally:
        machines.processes[1].kill()
    assert "Worker 1 (127.0.0.1:" in machines.said()[0]
    assert "it no longer answers; start the same command" in machines.said()[0]


def test_machines_with_other_settings_are_refused(prepared, tmp_path):
    machines = Machines(tmp_path, prepared, second={"learning_rate": 1e-4})
    assert machines.codes() == [2, 2]
    for said in machines.said():
        assert (
            "`cluster` must have the same settings, data and versions on all machines. Received: learning_rate" in said
        )
    assert not machines.run.exists()
