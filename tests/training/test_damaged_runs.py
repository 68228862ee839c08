"""Runs whose directory was damaged, or whose training went wrong: nothing is lost or reported without a word."""

import dataclasses
import json
import math
import shutil

import keras
import numpy as np
import pytest
from pretraining_runs import MODEL, small_config
from stopping import Stop

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.training import pretrain as pretraining
from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.held_out import HeldOut
from keras_bert_impl.training.metrics_log import MetricsLog
from keras_bert_impl.training.pretrain import pretrain, stored_metrics
from keras_bert_impl.training.run_directory import RunDirectory, write_json

ONE_PHASE = (PhaseConfig(length=16, share=1),)


def tiny_config(data, run, **changes):
    values = {"phases": ONE_PHASE, "steps": 6, "evaluate_every": 2, "checkpoint_every": 3, "learning_rate": 1e-4}
    return small_config(data, run, **values | changes)


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory):
    """A finished run."""
    run = tmp_path_factory.mktemp("whole") / "run"
    pretrain(tiny_config(prepared, run))
    return run


@pytest.fixture
def unfinished(whole, tmp_path):
    """A copy that only lacks its last measuring."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    (run / "metrics.json").unlink()
    return run


def contents(run):
    paths = (path for path in sorted(run.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


def flip(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize("with_marker", [True, False], ids=["marker", "lines only"])
@pytest.mark.parametrize("folder", [True, False], ids=["emptied", "removed"])
def test_a_run_whose_checkpoints_are_gone_is_refused_and_left_as_it_is(prepared, unfinished, folder, with_marker):
    shutil.rmtree(unfinished / "checkpoints")
    if folder:
        (unfinished / "checkpoints").mkdir()
    if not with_marker:
        (unfinished / ".saved").unlink()
    before = contents(unfinished)
    with pytest.raises(
        InputError,
        match=r"`run` must have its checkpoints; .* take another `run`, or remove metrics\.jsonl and the run begins "
        r"anew\. Received: '.*run', which has metrics up to step 6 and no checkpoint$",
    ):
        pretrain(tiny_config(prepared, unfinished))
    assert contents(unfinished) == before


@pytest.mark.slow
def test_without_metrics_a_run_without_checkpoints_may_begin_anew(unfinished):
    shutil.rmtree(unfinished / "checkpoints")
    (unfinished / "metrics.jsonl").unlink()
    directory = RunDirectory(unfinished)
    directory.check_progress()
    assert not directory.saved.exists()


def test_a_run_that_never_saved_a_checkpoint_begins_anew(tmp_path):
    directory = RunDirectory(tmp_path)
    for lines in ([{"step": 1}, {"step": 2}], [{"step": 1}, {"step": 2, "held_out_mlm_loss": 3.0}]):
        directory.metrics_log.write_text("".join(json.dumps(line | {"phase": 1}) + "\n" for line in lines))
        directory.check_progress()


@pytest.mark.slow
def test_a_run_that_broke_off_before_its_first_checkpoint_goes_on(prepared, tmp_path, whole):
    config = tiny_config(prepared, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, callbacks=[Stop(2)])
    assert (tmp_path / "run" / "metrics.jsonl").read_text() and not list((tmp_path / "run" / "checkpoints").iterdir())
    pretrain(config)
    assert (tmp_path / "run" / "metrics.json").read_bytes() == (whole / "metrics.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        shutil.rmtree,
        lambda model: (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:900]),
        lambda model: (model / "config.json").write_text("{}"),
        lambda model: flip(model / "model.safetensors"),
        lambda model: (model / "vocab.txt").unlink(),
    ],
    ids=["missing", "truncated", "empty config", "flipped bit", "no vocabulary"],
)
def test_at_the_end_a_damaged_model_is_written_anew_and_told(prepared, whole, unfinished, damage):
    damage(unfinished / "model")
    said = []
    pretrain(tiny_config(prepared, unfinished), say=said.append)
    for name in ("metrics.json", "model/model.safetensors", "model/config.json", "model/vocab.txt"):
        assert (unfinished / name).read_bytes() == (whole / name).read_bytes(), name
    assert len([line for line in said if "written anew from" in line]) == 1


@pytest.mark.slow
def test_the_model_is_that_of_the_best_step_whatever_lay_in_its_place(prepared, whole, unfinished):
    """As after a kill between the model and its checkpoint, and a resume with other evaluations."""
    model = BertPretrainer.from_pretrained(unfinished / "model")
    model.weights[0].assign(model.weights[0] + 1)
    model.save_pretrained(unfinished / "model")
    said = []
    metrics = pretrain(tiny_config(prepared, unfinished), say=said.append)
    assert metrics == json.loads((whole / "metrics.json").read_text())
    assert (
        f"model/ was not the model of step {metrics['best_step']}, the best; it is written anew from its checkpoint."
    ) in said


@pytest.mark.slow
def test_without_the_checkpoint_of_the_best_step_its_model_is_taken_and_that_is_told(prepared, whole, unfinished):
    log, said = MetricsLog(unfinished / "metrics.jsonl"), []
    lines = log.lines()
    log.path.unlink()
    for line in lines:
        log.append(line | ({"held_out_mlm_loss": 1.0} if line["step"] == 4 else {}))
    shutil.rmtree(unfinished / "checkpoints" / "step_00000004")
    assert pretrain(tiny_config(prepared, unfinished), say=said.append)["best_step"] == 4
    assert (
        "The checkpoint of step 4, the best, cannot be used (checkpoint.json is missing); taking model/ instead."
        in said
    )
    assert (unfinished / "model" / "model.safetensors").read_bytes() == (
        whole / "model" / "model.safetensors"
    ).read_bytes()


def make_losses(monkeypatch, losses):
    """Lets the evaluations find these losses; None for what they really find."""
    measure = HeldOut.measure

    def changed(self, trainer):
        loss = losses.pop(0) if losses else None
        return measure(self, trainer) | ({} if loss is None else {"mlm_loss": loss, "mlm_perplexity": loss})

    monkeypatch.setattr(HeldOut, "measure", changed)


def strict_lines(run):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_is_null_and_never_the_best(prepared, tmp_path, monkeypatch):
    make_losses(monkeypatch, [math.nan, 3.0, math.inf])
    run, said = tmp_path / "run", []
    assert pretrain(tiny_config(prepared, run), say=said.append)["best_step"] == 4
    lines = strict_lines(run)
    held_out = [line["held_out_mlm_loss"] for line in lines if "held_out_mlm_loss" in line]
    assert held_out == [None, 3.0, None]
    assert sum("is no finite number, so this model is not kept as the best" in line for line in said) == 2


@pytest.mark.slow
def test_without_any_finite_held_out_loss_the_run_is_not_finished(prepared, tmp_path, monkeypatch):
    make_losses(monkeypatch, [math.nan] * 3)
    run = tmp_path / "run"
    with pytest.raises(
        InputError, match=r"`run` must have an evaluation with a finite held-out loss; .* evaluated at 3 steps$"
    ):
        pretrain(tiny_config(prepared, run))
    assert not (run / "metrics.json").exists() and not (run / "model").exists()


@pytest.mark.slow
def test_batches_that_end_early_do_not_finish_a_run(prepared, tmp_path, monkeypatch):
    batches = pretraining.phase_batches
    monkeypatch.setattr(
        pretraining, "phase_batches", lambda *arguments, **options: batches(*arguments, **options).take(4)
    )
    config = tiny_config(prepared, tmp_path / "run")
    with pytest.raises(InputError, match=r"`data` must have batches for all steps of phase 1, .* ended after step 4$"):
        pretrain(config)
    assert not (tmp_path / "run" / "metrics.json").exists()


class Poison(keras.callbacks.Callback):
    """Makes a weight infinite after some steps."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.after:
            variable = self.model.pretrainer.weights[0]
            variable.assign(np.full(variable.shape, np.inf, "float32"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "after", "limit", "held"), [(2, 3, 0, "finite weights"), (3, 2, 2, "weights that are not finite")]
)
def test_a_run_that_stops_says_what_its_last_checkpoint_holds(prepared, tmp_path, every, after, limit, held):
    config = tiny_config(prepared, tmp_path / "run", non_finite_limit=limit, checkpoint_every=every, evaluate_every=100)
    message = rf"no skipped step changed a weight, and the last checkpoint, of step \d, holds {held}\. Received"
    with pytest.raises(InputError, match=message):
        pretrain(config, callbacks=[Poison(after)])


def test_null_in_place_of_what_is_not_finite(tmp_path):
    write_json(tmp_path / "a.json", {"a": [math.nan, (1, -math.inf)], "b": {"c": math.inf, "d": 1.5}})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": [None, [1, None]], "b": {"c": None, "d": 1.5}}


@pytest.mark.parametrize("held_out", ['{"32": {}}', '{"32": null}', "[]", "null", '{"32": {"mlm_loss": "x"}}'], ids=str)
def test_metrics_of_another_kind_are_refused(tmp_path, held_out):
    (tmp_path / "metrics.json").write_text(f'{{"steps": 4, "best_step": 4, "held_out": {held_out}}}')
    with pytest.raises(InputError, match=r"`run` must hold its own metrics\.json, .*Received: '.*metrics\.json'"):
        stored_metrics(RunDirectory(tmp_path))


@pytest.mark.slow
def test_a_finished_run_says_that_its_model_is_missing(prepared, whole, tmp_path):
    run, said = tmp_path / "run", []
    shutil.copytree(whole, run)
    shutil.rmtree(run / "model")
    pretrain(dataclasses.replace(tiny_config(prepared, run), model=MODEL), say=said.append)
    assert said[-1].startswith("It is missing there; remove ")
