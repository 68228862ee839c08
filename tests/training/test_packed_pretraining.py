"""Runs whose second phase is packed."""

import json

import numpy as np
import pytest
from pretraining_runs import MODEL, assert_same_run, lines_of, small_config
from stopping import Stop

from keras_bert_impl.training.configs import EvaluateConfig, PhaseConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.pretrain import pretrain


@pytest.fixture(scope="module")
def data(prepared_again):
    return prepared_again()


def config(data, run, **changes):
    values = {
        "model": MODEL | {"max_position_embeddings": 256},
        "phases": (PhaseConfig(length=16, share=0.5), PhaseConfig(length=256, share=0.5, batch_size=4)),
        "steps": 8,
    }
    return small_config(data, run, **values | changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data):
    run, said = tmp_path_factory.mktemp("finished") / "run", []
    metrics = pretrain(config(data, run, replicas=2, micro_batches=2), say=said.append)
    return run, said, metrics


def test_a_packed_phase_takes_its_steps(prepared, tmp_path):
    said = []
    phases = (PhaseConfig(length=32, share=1, packed=True),)
    pretrain(small_config(prepared, tmp_path / "run", phases=phases, steps=2), say=said.append)
    assert "Phase 1: steps 1 to 2, length 32, 8 packed rows of 1.0 examples per step" in said
    assert all(np.isfinite(value) for line in lines_of(tmp_path / "run") for value in line.values())


@pytest.mark.slow
def test_a_run_says_which_phase_is_packed_and_stores_it(finished, data):
    run, said, _ = finished
    rows = PreparedData(data).manifest["examples"]["train"]["256"]
    pairs = rows["examples"] / rows["packed_rows"]
    assert pairs > 3
    assert f"Phase 2: steps 5 to 8, length 256, 4 packed rows of {pairs:.1f} examples per step" in said
    assert "Phase 1: steps 1 to 4, length 16, 8 examples per step" in said
    phases = json.loads((run / "config.json").read_text())["phases"]
    assert [phase["packed"] for phase in phases] == [False, True]


@pytest.mark.slow
def test_both_phases_learn_and_are_measured_on_unpacked_rows(finished, data):
    run, _, metrics = finished
    lines = lines_of(run)
    assert [line["length"] for line in lines] == [16] * 4 + [256] * 4
    assert all(np.isfinite(value) for line in lines for value in line.values())
    assert metrics["held_out"]["256"]["examples"] == PreparedData(data).count("held_out", 256)
    measured = evaluate(EvaluateConfig(model=str(run), data=str(data)))
    assert measured["256"] == pytest.approx(metrics["held_out"]["256"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 7])
def test_a_packed_run_that_broke_off_ends_as_the_undisturbed_one(finished, data, tmp_path, at):
    """Broken off in the unpacked phase, and between a checkpoint and the next in the packed one."""
    settings = config(data, tmp_path / "run", replicas=2, micro_batches=2)
    with pytest.raises(KeyboardInterrupt):
        pretrain(settings, callbacks=[Stop(at)])
    pretrain(settings)
    assert_same_run(finished[0], tmp_path / "run")


@pytest.mark.slow
def test_the_losses_of_a_packed_phase_do_not_depend_on_the_layout(data, tmp_path):
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = MODEL | still | {"max_position_embeddings": 256}
    phases = (PhaseConfig(length=256, share=1, batch_size=8),)
    runs = []
    for name, layout in (("one", {}), ("two", {"replicas": 2}), ("parts", {"replicas": 2, "micro_batches": 4})):
        pretrain(config(data, tmp_path / name, model=model, phases=phases, steps=4, **layout))
        runs.append([line["loss"] for line in lines_of(tmp_path / name)])
    np.testing.assert_allclose(runs[1:], [runs[0]] * 2, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_chunks_without_next_sentence_labels_are_packed_too(prepared_again, tmp_path):
    data = prepared_again(examples="chunks")
    said = []
    pretrain(config(data, tmp_path / "run"), say=said.append)
    pairs = PreparedData(data).count("train", 256) / PreparedData(data).packed_rows("train", 256)
    assert pairs > 3 and any(f"4 packed rows of {pairs:.1f} examples per step" in line for line in said)
    for line in lines_of(tmp_path / "run"):
        assert all(np.isfinite(value) for value in line.values())
        assert line["loss"] == line["mlm_loss"] and not any("nsp" in name for name in line)
