import json
import random
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.checkpoint_manifest import DamagedError, read_manifest
from keras_bert_impl.training.checkpointing import Checkpoints
from keras_bert_impl.training.distribution import make_strategy

WEIGHTS = "state.data-00000-of-00001"


def make(replicas=1, units=2):
    """The state of a small model and its optimizer."""
    with make_strategy(replicas).scope():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])
        optimizer = BertAdamW(0.1)
        optimizer.build(model.trainable_variables)
    return {"weights": model.weights, "optimizer": optimizer.variables}


@pytest.fixture(scope="module")
def state():
    return make()


def fill(state, number):
    for group in state.values():
        for variable in group:
            variable.assign(np.full(variable.shape, number, variable.dtype))


def values(state):
    return [np.array(variable.value.numpy()) for group in state.values() for variable in group]


def holds(state, number):
    return all((value == number).all() for value in values(state))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def saved(tmp_path, state):
    """Checkpoints of the steps 1, 2 and 3, whose variables all hold this number."""
    checkpoints = Checkpoints(tmp_path, state, keep=3)
    for step in (1, 2, 3):
        fill(state, step)
        checkpoints.save(step)
    fill(state, 9)
    return Checkpoints(tmp_path, state, keep=3)


@pytest.mark.parametrize("replicas", [1, 2], ids="restored into {} replicas".format)
def test_weights_moments_and_step_come_back(tmp_path, state, replicas):
    fill(state, 2)
    Checkpoints(tmp_path, state, keep=2).save(2)
    restored = make(replicas)
    assert Checkpoints(tmp_path, restored, keep=2).restore_last() == 2
    assert holds(restored, 2)


def test_without_a_checkpoint_nothing_changes(tmp_path, state):
    fill(state, 5)
    assert Checkpoints(tmp_path / "checkpoints", state, keep=1).restore_last() == 0
    assert holds(state, 5)


def test_the_last_ones_are_kept_in_order_of_steps(tmp_path, state):
    checkpoints = Checkpoints(tmp_path, state, keep=2)
    for number in (1, 99_999_999, 100_000_000):
        checkpoints.save(number)
    assert checkpoints.steps() == [99_999_999, 100_000_000]
    assert names(tmp_path) == ["step_100000000", "step_99999999"]


def test_the_best_is_kept_beyond_the_last_ones(tmp_path, state):
    checkpoints = Checkpoints(tmp_path, state, keep=2)
    for number in (1, 2, 3, 4, 5):
        checkpoints.save(number)
        if number == 2:
            checkpoints.best = 2
    assert checkpoints.steps() == [2, 4, 5]


def test_what_a_killed_process_left_half_written_is_not_a_checkpoint(saved, tmp_path):
    for name in (".step_00000004.x1.partial", ".step_00000001.dropped"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.index").write_bytes(b"half")
    assert saved.restore_last() == 3
    assert names(tmp_path) == ["step_00000001", "step_00000002", "step_00000003"]


def test_a_failed_save_leaves_the_former_checkpoints(saved, tmp_path, state, monkeypatch):
    def fail(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_bert_impl.atomic.to_disk", fail)
    with pytest.raises(OSError, match="No space left"):
        saved.save(4)
    monkeypatch.undo()
    assert names(tmp_path) == ["step_00000001", "step_00000002", "step_00000003"]
    assert saved.restore_last() == 3 and holds(state, 3)


def shorten(file):
    file.write_bytes(file.read_bytes()[:-10])


def lengthen(file):
    file.write_bytes(file.read_bytes() + b"1")


def flip(file):
    content = bytearray(file.read_bytes())
    content[random.Random(1).randrange(len(content))] ^= 4
    file.write_bytes(content)


DAMAGES = [
    (WEIGHTS, shorten, f"{WEIGHTS} is 10 bytes short"),
    (WEIGHTS, lengthen, f"{WEIGHTS} is 1 byte too long"),
    (WEIGHTS, flip, f"{WEIGHTS} has other bytes than were written"),
    ("state.index", Path.unlink, "state.index is missing"),
    ("state.index", flip, "state.index has other bytes than were written"),
    ("checkpoint.json", Path.unlink, "checkpoint.json is missing"),
    ("checkpoint.json", shorten, "checkpoint.json has other bytes than were written"),
    ("checkpoint.json", flip, "checkpoint.json has other bytes than were written"),
]


@pytest.mark.parametrize(("file", "damage", "fault"), DAMAGES, ids=[fault for *_, fault in DAMAGES])
def test_the_last_whole_checkpoint_takes_the_place_of_a_damaged_one(saved, tmp_path, state, file, damage, fault):
    damage(tmp_path / "step_00000003" / file)
    said = []
    assert saved.restore_last(said.append) == 2
    assert holds(state, 2)
    aside = tmp_path / "damaged_step_00000003"
    assert said == [
        f"Checkpoint of step 3 cannot be used ({fault}); going on from step 2. It is kept as {str(aside)!r}."
    ]
    assert names(tmp_path) == ["damaged_step_00000003", "step_00000001", "step_00000002"]


def test_any_flipped_bit_is_found(saved, tmp_path):
    """64 places in each file."""
    directory = tmp_path / "step_00000003"
    read_manifest(directory, 3)
    for file in directory.iterdir():
        content = file.read_bytes()
        for place in random.Random(1).choices(range(len(content)), k=64):
            bit = 1 << place % 8
            file.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
            with pytest.raises(DamagedError, match=file.name):
                read_manifest(directory, 3)
        file.write_bytes(content)


def test_every_damaged_checkpoint_is_told_and_none_is_lost(saved, tmp_path, state):
    shorten(tmp_path / "step_00000003" / WEIGHTS)
    (tmp_path / "damaged_step_00000003").mkdir()
    shutil.copytree(tmp_path / "step_00000001", tmp_path / "step_00000002", dirs_exist_ok=True)
    said = []
    assert saved.restore_last(said.append) == 1
    assert holds(state, 1)
    assert [line.split(";")[0] for line in said] == [
        f"Checkpoint of step 3 cannot be used ({WEIGHTS} is 10 bytes short)",
        "Checkpoint of step 2 cannot be used (checkpoint.json is that of step 1)",
    ]
    assert names(tmp_path) == [
        *("damaged_step_00000002", "damaged_step_00000003", "damaged_step_00000003.2", "step_00000001")
    ]


def test_without_a_whole_checkpoint_the_run_does_not_begin_anew(saved, tmp_path, state):
    for step in (1, 2, 3):
        shorten(tmp_path / f"step_0000000{step}" / WEIGHTS)
    before = names(tmp_path)
    for _ in range(2):
        with pytest.raises(
            InputError,
            match=r"`run` must have a whole checkpoint; put a copy .* or take the directory away and the run begins "
            r"anew\. Received: .*that of step 3 cannot be used \(state.*10 bytes short\), and that of step 2",
        ):
            saved.restore_last()
    assert holds(state, 9)
    assert names(tmp_path) == before


def test_a_checkpoint_of_other_variables_is_refused_and_left(saved, tmp_path, state):
    others = make(units=4)
    fill(others, 7)
    with pytest.raises(
        InputError, match=r"checkpoints of this model .* variable 0 of weights is float32 \[3, 2\] inst"
    ):
        Checkpoints(tmp_path, others, keep=3).restore_last()
    fewer = {**others, "optimizer": others["optimizer"][:-1]}
    with pytest.raises(InputError, match=r"which has \d variables as optimizer instead of \d"):
        Checkpoints(tmp_path, {**state, "optimizer": fewer["optimizer"]}, keep=3).restore_last()
    with pytest.raises(InputError, match=r"which has weights, optimizer instead of weights$"):
        Checkpoints(tmp_path, {"weights": state["weights"]}, keep=3).restore_last()
    assert holds(others, 7)
    assert names(tmp_path) == ["step_00000001", "step_00000002", "step_00000003"]


def test_what_cannot_be_read_for_its_permissions_is_not_damaged(saved, monkeypatch):
    def refuse(path, *arguments):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(PermissionError):
        saved.restore_last()


def test_a_step_is_written_once(saved, tmp_path, state):
    assert saved.restore_last() == 3
    facts = (tmp_path / "step_00000003" / "checkpoint.json").stat()
    saved.save(3)
    assert (tmp_path / "step_00000003" / "checkpoint.json").stat() == facts


def test_the_manifest_says_what_is_there(saved, tmp_path):
    facts = json.loads((tmp_path / "step_00000003" / "checkpoint.json").read_text())
    assert facts["step"] == 3
    assert facts["variables"]["weights"] == [["float32", [3, 2]], ["float32", [2]]]
    assert facts["files"].keys() == {WEIGHTS, "state.index"}
