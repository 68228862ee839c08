"""Whatever ends a fine-tuning, started again it ends as the undisturbed one."""

import errno
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import tensorflow as tf
from finetuning_runs import ToyTask, assert_same_model, start, toy_settings, write_toy_files
from task_models import toy_tokenizer

import keras_bert_impl.training.finetuning.finetune as finetune_module
from keras_bert_impl.errors import InputError, StoppedBySignal
from keras_bert_impl.models import BertEncoder
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


def files_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


class Kill(ToyTask):
    """Ends as if killed when it is evaluated for the eighth time: in the second seed, after two evaluations."""

    evaluations = 0

    def evaluate(self, model, examples):
        self.evaluations += 1
        if self.evaluations == 8:
            raise KeyboardInterrupt
        return super().evaluate(model, examples)


@pytest.fixture(scope="module")
def killed(folder):
    """A fine-tuning of which one seed is finished and another one has checkpoints."""
    with pytest.raises(KeyboardInterrupt):
        finetune(settings(folder, folder / "killed"), task_type=Kill)
    return folder / ".killed.unfinished"


@pytest.fixture
def broken(folder, killed):
    """A copy of it, to be damaged: settings, and where it lies."""
    place = folder / ".broken.unfinished"
    shutil.copytree(killed, place)
    yield settings(folder, folder / "broken"), place
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(folder / "broken", ignore_errors=True)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("checkpoints/step_*/checkpoint.json", "cannot be used (checkpoint.json has other bytes than were written)"),
        ("history.json", "(history.json cannot be read as JSON). It is kept as"),
        ("checkpoints/step_*/state.data*", "20 bytes short"),
    ],
)
def test_a_seed_whose_files_are_damaged_begins_anew_and_the_finished_ones_stay(whole, broken, folder, damage, said):
    config, place = broken
    finished = files_of(place / "runs" / "seed-1" / "model")
    paths = list((place / "runs" / "seed-2").glob(damage))
    assert paths and finished
    for path in paths:
        cut(path)
    lines = []

    def seen(line):
        lines.append(line)
        if "Begins anew" in line:
            assert files_of(place / "runs" / "seed-1" / "model") == finished

    finetune(config, seen, task_type=ToyTask)
    assert "Seed 1 is finished already." in lines
    (line,) = [line for line in lines if "Begins anew" in line]
    assert line.startswith("Seed 2: Begins anew, since what was there cannot be used (") and said in line
    assert_same_model(whole, folder / "broken")
    assert not place.exists()


def test_a_finished_seed_whose_result_is_damaged_is_made_anew(whole, broken, folder):
    config, place = broken
    cut(place / "runs" / "seed-1" / "result.json")
    said = []
    finetune(config, said.append, task_type=ToyTask)
    assert any(
        line.startswith("Seed 1: Begins anew, since what was there cannot be used (result.json cannot") for line in said
    )
    assert any(line.startswith("Seed 2: Goes on from step ") for line in said)
    assert_same_model(whole, folder / "broken")


def test_a_damaged_command_is_no_other_command(broken):
    config, place = broken
    cut(place / "command.json")
    before = files_of(place)
    with pytest.raises(
        InputError,
        match=r"`output` must have a whole command\.json where it is unfinished, .*; remove '.*\.broken\.unfinished' "
        r"to begin anew\. Received: '.*broken', where command\.json cannot be read as JSON",
    ):
        finetune(config, task_type=ToyTask)
    assert files_of(place) == before


@pytest.mark.parametrize("name", ["evaluation.json", "history.json"])
def test_a_damaged_file_of_a_finished_seed_is_named_with_what_to_remove(whole, broken, folder, name):
    config, place = broken
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finetune_module, "write_report", failing)
        with pytest.raises(OSError, match="no report"):
            finetune(config, task_type=ToyTask)
    best = next(path.parent for path in (place / "runs").glob("*/evaluation.json"))
    cut(best / name)
    said = []
    with pytest.raises(
        InputError,
        match=rf"`output` must have whole files where it is unfinished; remove the directory named here and .*\. "
        rf"Received: '{best}', where {name} cannot be read as JSON",
    ):
        finetune(config, said.append, task_type=ToyTask)
    assert said[-1] == f"What is finished is kept in {str(place)!r}, from where the same command goes on."
    shutil.rmtree(best)
    finetune(config, task_type=ToyTask)
    assert_same_model(whole, folder / "broken")


def failing(*arguments, **options):
    raise OSError("no report")


@pytest.mark.parametrize("kind", [InputError, OSError])
def test_an_error_at_the_end_leaves_what_is_finished(whole, broken, folder, monkeypatch, kind):
    def fails(*arguments, **options):
        raise kind("no report")

    config, place = broken
    monkeypatch.setattr(finetune_module, "write_report", fails)
    with pytest.raises(kind, match="no report"):
        finetune(config, task_type=ToyTask)
    assert len(list((place / "runs").glob("*/result.json"))) == 2
    monkeypatch.undo()
    said = []
    finetune(config, said.append, task_type=ToyTask)
    assert "Seed 1 is finished already." in said and "Seed 2 is finished already." in said
    assert_same_model(whole, folder / "broken")


def test_a_seed_that_diverges_leaves_the_finished_ones(folder, tmp_path):
    def diverges(self):
        if self.run.seed == 2:
            raise one_run.DivergedError("`learning_rate` is too high.")

    config = settings(folder, tmp_path / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_run._Watch, "_refuse_bad_steps", diverges)
        with pytest.raises(one_run.DivergedError):
            finetune(config, task_type=ToyTask)
    assert (tmp_path / ".out.unfinished" / "runs" / "seed-1" / "model").is_dir()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EFBIG, "File too large"),
        tf.errors.OutOfRangeError(None, None, "state; File too large [Op:SaveV2]"),
    ],
    ids=["system", "TensorFlow"],
)
def test_a_file_that_is_too_large_is_said_in_a_sentence(whole, broken, folder, monkeypatch, error):
    def save(self, step):
        raise error

    config, _ = broken
    monkeypatch.setattr(one_run.Checkpoints, "save", save)
    with pytest.raises(
        InputError,
        match=r"`output` must have room on its disk; .* Received: '.*broken', a file larger than the system lets this",
    ):
        finetune(config, task_type=ToyTask)
    monkeypatch.undo()
    finetune(config, task_type=ToyTask)
    assert_same_model(whole, folder / "broken")


def test_a_model_to_start_from_whose_weights_are_not_finite_is_refused(folder, tmp_path):
    model = BertEncoder.from_pretrained(folder / "model")
    weights = model.weights[3]
    weights.assign(np.full(weights.shape, np.nan))
    model.save_pretrained(tmp_path / "model", tokenizer=toy_tokenizer())
    with pytest.raises(
        InputError,
        match=rf"`model` must have weights that are finite\. Received: '.*model', where .*{weights.name} has",
    ):
        finetune(settings(folder, tmp_path / "out", model=str(tmp_path / "model")), task_type=ToyTask)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
