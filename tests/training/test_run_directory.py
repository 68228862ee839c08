import dataclasses
import json

import pytest
from pretraining_runs import small_config

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.run_directory import RunDirectory

MODEL = BertConfig(vocab_size=30, hidden_size=16, num_attention_heads=2)


DIGEST = "0123"


@pytest.fixture
def place(tmp_path):
    """A run directory that has begun, its configuration and the data's digest."""
    config = small_config(tmp_path / "data", tmp_path / "run")
    RunDirectory(config.run).begin(config, MODEL, DIGEST)
    return config, DIGEST


def test_config_is_stored_as_it_can_be_given_again(place):
    config, _ = place
    stored = json.loads(RunDirectory(config.run).config.read_text())
    assert type(config).from_dict(stored) == config


def test_the_same_configuration_is_accepted(place):
    config, digest = place
    RunDirectory(config.run).check(config, MODEL, digest)


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 2},
        {"micro_batches": 2},
        {"steps_per_execution": 5},
        {"checkpoint_every": 1},
        {"evaluate_every": 1},
        {"log_every": 2},
        {"keep_checkpoints": 1},
        {"cluster": "a:1,b:1", "worker": 1},
        {"xla": True},
        {"skip_padding": False},
        {"non_finite_limit": 0},
        {"peak_flops": 1e12},
        {"dry_run": True},
    ],
    ids=str,
)
def test_layout_and_bookkeeping_may_change(place, changes):
    config, digest = place
    RunDirectory(config.run).check(dataclasses.replace(config, **changes), MODEL, digest)


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"steps": 13}, r"steps is 12 there\. Received: steps=13"),
        ({"seed": 2}, r"seed is 1 there\. Received: seed=2"),
        ({"learning_rate": 1e-3}, r"learning_rate is 0\.005 there\. Received: learning_rate=0\.001"),
        ({"masked_share": 0.3}, r"masked_share is 0\.15"),
        ({"evaluation_examples": 5}, r"evaluation_examples is 20"),
        (
            {"phases": (PhaseConfig(length=16, share=1),)},
            r'phases is \[\{"length": 16, "share": 0\.75.*"steps": null',
        ),
    ],
    ids=str,
)
def test_another_configuration_is_refused_by_its_first_difference(place, changes, message):
    config, digest = place
    with pytest.raises(InputError, match=r"`run` holds a run of another configuration: " + message):
        RunDirectory(config.run).check(dataclasses.replace(config, **changes), MODEL, digest)


def test_another_model_is_refused(place):
    config, digest = place
    with pytest.raises(InputError, match=r"model\.hidden_size is 16 there\. Received: model\.hidden_size=32"):
        RunDirectory(config.run).check(config, dataclasses.replace(MODEL, hidden_size=32), digest)


def test_changed_data_is_refused(place):
    config, _ = place
    with pytest.raises(InputError, match=r"`data` has changed since the run began"):
        RunDirectory(config.run).check(config, MODEL, "another")


def test_a_directory_of_something_else_is_refused(tmp_path, place):
    config, digest = place
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match=r"`run` must be a new or empty directory, or one in which a run began"):
        RunDirectory(tmp_path / "other").check(config, MODEL, digest)


def test_a_beginning_that_was_killed_half_way_can_be_made_again(place):
    config, digest = place
    RunDirectory(config.run).config.unlink()
    RunDirectory(config.run).check(config, MODEL, digest)
    RunDirectory(config.run).begin(config, MODEL, digest)
    assert RunDirectory(config.run).config.exists()


def test_steps_may_be_given_or_follow_from_the_phases(tmp_path):
    phases = (PhaseConfig(length=16, steps=9), PhaseConfig(length=32, steps=3))
    config = small_config(tmp_path / "data", tmp_path / "run", phases=phases, steps=None)
    RunDirectory(config.run).begin(config, MODEL, DIGEST)
    RunDirectory(config.run).check(dataclasses.replace(config, steps=12), MODEL, DIGEST)


@pytest.mark.parametrize(
    "damage",
    [
        {"phases": None},
        {"zzz": 1},
        {"learning_rate": "abc"},
        {"init": 5},
        {"steps": [1]},
        {"not_decayed": None},
        {"model": 5},
        None,
    ],
    ids=str,
)
def test_a_damaged_config_is_called_the_runs_own(place, damage):
    config, digest = place
    directory = RunDirectory(config.run)
    stored = json.loads(directory.config.read_text())
    directory.config.write_text(json.dumps({} if damage is None else stored | damage))
    with pytest.raises(
        InputError, match=r"`run` must hold its own config\.json, as the run wrote it.*'.*config\.json'"
    ):
        directory.check(config, MODEL, digest)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: {},
        lambda facts: facts | {"model": 5},
        lambda facts: facts | {"model": None},
        lambda facts: facts | {"model": facts["model"] | {"zzz": 5}},
        lambda facts: facts | {"model": facts["model"] | {"hidden_size": "a"}},
    ],
    ids=["empty", "model 5", "model null", "unknown key", "wrong type"],
)
def test_damaged_facts_are_refused(place, change):
    config, digest = place
    directory = RunDirectory(config.run)
    directory.facts.write_text(json.dumps(change(json.loads(directory.facts.read_text()))))
    with pytest.raises(InputError, match=r"`run` must hold its own run\.json, as the run wrote it.*'.*run\.json'"):
        directory.check(config, MODEL, digest)


def test_values_in_a_difference_are_json(place):
    config, digest = place
    changed = dataclasses.replace(config, bias_correction=not config.bias_correction)
    now, then = json.dumps(changed.bias_correction), json.dumps(config.bias_correction)
    with pytest.raises(InputError, match=rf"bias_correction is {then} there\. Received: bias_correction={now} for"):
        RunDirectory(config.run).check(changed, MODEL, digest)
