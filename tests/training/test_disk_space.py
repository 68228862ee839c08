import errno
import types

import pytest
from harness import small_config as small_bert
from pretraining_runs import small_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.presets import get_preset
from keras_bert_impl.training import disk_space
from keras_bert_impl.training.checkpointing import Checkpoints
from keras_bert_impl.training.disk_space import check_room, count_parameters, plain_full_disk, run_size

GB = 10**9


@pytest.mark.parametrize("next_sentence", [True, False])
def test_parameters_are_counted_as_the_built_model_has_them(next_sentence):
    model = (BertPretrainer if next_sentence else BertMaskedLM)(small_bert())
    assert count_parameters(small_bert(), next_sentence=next_sentence) == model.count_params()


def test_bert_base_has_its_110_million():
    assert count_parameters(get_preset("base", vocab_size=30522)) == 110_106_428


def test_a_checkpoint_has_the_foretold_size(tmp_path):
    bert = small_bert(vocab_size=3000, hidden_size=96)
    model = BertPretrainer(bert)
    optimizer = BertAdamW(0.1)
    optimizer.build(model.trainable_variables)
    path = Checkpoints(tmp_path, {"weights": model.weights, "optimizer": optimizer.variables}, keep=1).save(1)
    size = run_size(small_config("data", "run"), bert)
    assert sum(file.stat().st_size for file in path.iterdir()) == pytest.approx(size.checkpoint, rel=0.02)


@pytest.fixture
def size():
    """BERT-base, three checkpoints kept, a thousand lines."""
    config = small_config("data", "run", steps=1000, log_every=1, keep_checkpoints=3)
    return run_size(config, get_preset("base", vocab_size=30522))


def test_a_run_takes_what_is_kept_what_is_best_and_what_is_being_written(size):
    assert size.checkpoint == 12 * size.parameters
    assert size.total == pytest.approx(5 * size.checkpoint + 2 * size.checkpoint / 3 + 3e6, rel=0.01)


def has_free(monkeypatch, free):
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=free))


def test_a_disk_that_is_too_small_is_refused_with_both_figures(size, monkeypatch, tmp_path):
    has_free(monkeypatch, 7 * GB)
    with pytest.raises(
        InputError,
        match=r"`run` must be on a disk with room for the run, 7\.5 GB: 5 checkpoints of 1\.3 GB \(110,106,428 "
        r"parameters with two running means each\), two models of 440\.4 MB, and logs of 3\.0 MB; .*"
        r"Received: '.*/new/run', where 7\.0 GB are free",
    ):
        check_room(tmp_path / "new" / "run", size)
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_has_written_already_counts(size, monkeypatch, tmp_path):
    has_free(monkeypatch, 7 * GB)
    with (tmp_path / "model").open("wb") as file:
        file.truncate(GB)
    check_room(tmp_path, size)
    has_free(monkeypatch, 6 * GB)
    (tmp_path / "checkpoints" / "damaged_step_00000005").mkdir(parents=True)
    (tmp_path / "checkpoints" / "damaged_step_00000005" / "state").write_bytes(b"0" * 60_000_000)
    with pytest.raises(InputError, match=r"room for the run, 6\.5 GB: .*, less what is there already; "):
        check_room(tmp_path, size)


def test_a_disk_that_is_large_enough_is_taken(size, monkeypatch, tmp_path):
    has_free(monkeypatch, 8 * GB)
    check_room(tmp_path / "run", size)


FULL = [
    OSError(errno.ENOSPC, "No space left on device", "/run/metrics.jsonl"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    RuntimeError("{{function_node __wrapped__SaveV2}} /run/state; No space left on device [Op:SaveV2]"),
    OSError(errno.EFBIG, "File too large"),
    RuntimeError("{{function_node __wrapped__SaveV2}} /run/state; File too large [Op:SaveV2]"),
]


@pytest.mark.parametrize("error", FULL, ids=["system", "quota", "TensorFlow", "limit", "TensorFlow at a limit"])
def test_a_full_disk_is_said_with_where_the_run_goes_on(error, monkeypatch, tmp_path):
    has_free(monkeypatch, 1000)
    with (
        pytest.raises(
            InputError,
            match=r"`run` must have room on its disk; nothing was left half-written, and once there is room the same "
            r"command goes on from the checkpoint of step 6\. Received: .*, (no space left|a file larger than "
            r"the system lets this process write \(`ulimit -f`\) or the disk can hold).*, 1\.0 kB free",
        ),
        plain_full_disk(tmp_path, lambda: [3, 6]),
    ):
        raise error
    with pytest.raises(InputError, match="goes on from the beginning"), plain_full_disk(tmp_path, list):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), InputError("`x` must be"), ValueError()])
def test_other_errors_stay_what_they_are(error, tmp_path):
    with pytest.raises(type(error)) as caught, plain_full_disk(tmp_path, list):
        raise error
    assert caught.value is error
