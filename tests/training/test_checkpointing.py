import keras
import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.checkpointing import Checkpoints
from keras_bert_impl.training.distribution import make_strategy


def make(replicas=1):
    with make_strategy(replicas).scope():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        optimizer = BertAdamW(0.1)
        optimizer.build(model.trainable_variables)
    return model, optimizer


def step(model, optimizer):
    optimizer.apply([np.ones(variable.shape, "float32") for variable in model.trainable_variables])


def state(model, optimizer):
    return [np.array(variable.value.numpy()) for variable in (*model.weights, *optimizer.variables)]


@pytest.mark.parametrize("replicas", [1, 2], ids="restored into {} replicas".format)
def test_weights_moments_and_step_come_back(tmp_path, replicas):
    model, optimizer = make()
    step(model, optimizer)
    step(model, optimizer)
    Checkpoints(tmp_path, model, optimizer, keep=2).save(2)
    restored = make(replicas)
    assert Checkpoints(tmp_path, *restored, keep=2).restore_last() == 2
    for before, after in zip(state(model, optimizer), state(*restored), strict=True):
        np.testing.assert_array_equal(before, after)
    assert int(restored[1].iterations.value.numpy()) == 2


def test_without_a_checkpoint_nothing_changes(tmp_path):
    model, optimizer = make()
    before = state(model, optimizer)
    assert Checkpoints(tmp_path / "checkpoints", model, optimizer, keep=1).restore_last() == 0
    for one, other in zip(before, state(model, optimizer), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_last_ones_are_kept_in_order_of_steps(tmp_path):
    checkpoints = Checkpoints(tmp_path, *make(), keep=2)
    for number in (1, 99_999_999, 100_000_000):
        checkpoints.save(number)
    assert checkpoints.steps() == [99_999_999, 100_000_000]


def test_what_a_killed_process_left_half_written_is_not_a_checkpoint(tmp_path):
    checkpoints = Checkpoints(tmp_path, *make(), keep=2)
    checkpoints.save(1)
    (tmp_path / ".step_00000002.x1.partial").mkdir()
    (tmp_path / ".step_00000002.x1.partial" / "state.index").write_bytes(b"half")
    assert checkpoints.restore_last() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000001"]


def test_a_failed_save_leaves_the_former_checkpoint(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path, *make(), keep=1)
    checkpoints.save(1)

    def fail(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("keras_bert_impl.training.checkpointing._to_disk", fail)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(2)
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000001"]


@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_a_damaged_checkpoint_is_named(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path, *make(), keep=2)
    for file in checkpoints.save(1).iterdir():
        if damage == "empty":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(InputError, match=r"whole checkpoints\. Received: .*step_00000001.*take it away"):
        Checkpoints(tmp_path, *make(), keep=2).restore_last()
