"""Training on batches of rows of similar length."""

import json

import numpy as np
import pytest
import tensorflow as tf
from exact_steps import Logs, make_trainer, tiny_config, weights_of
from pretraining_runs import assert_same_run, lines_of, small_config
from stopping import Stop

from keras_bert_impl.training import open_data, training_batches
from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.pretrain import pretrain

PHASES = (PhaseConfig(length=64, share=1, bucketed=True),)


@pytest.fixture(scope="module")
def data(prepared_again):
    return prepared_again(lengths=(64,))


def padded(inputs, targets):
    """The same rows, filled up to full length and all prediction slots."""
    tokens, slots = ("token_ids", "segment_ids", "padding_mask"), ("mask_positions", "mask_labels", "mask_weights")

    def filled(name, value):
        width = 64 if name in tokens else 10 if name in slots else None
        return value if width is None else tf.pad(value, [[0, 0], [0, width - tf.shape(value)[1]]])

    return tuple({name: filled(name, value) for name, value in part.items()} for part in (inputs, targets))


@pytest.mark.slow
def test_losses_and_weights_equal_those_of_padded_rows(data):
    opened = open_data(data)
    settings = {"batch_size": 8, "seed": 1, "num_steps": 12, "tokenizer": opened.tokenizer, "bucketed": True}
    batches = training_batches(opened.examples("train", 64), **settings)
    assert len({x["token_ids"].shape[1] for x, _ in batches.as_numpy_iterator()}) > 1
    found = []
    for dataset in (batches, batches.map(padded)):
        trainer, logs = make_trainer(config=tiny_config(positions=64)), Logs()
        trainer.fit(dataset, steps_per_epoch=12, shuffle=False, verbose=0, callbacks=[logs])
        found.append(([line["loss"] for line in logs.lines], weights_of(trainer)))
    (losses, weights), (expected_losses, expected_weights) = found
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    for name, value in expected_weights.items():
        np.testing.assert_allclose(weights[name], value, rtol=0, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data):
    run, said = tmp_path_factory.mktemp("bucketed") / "run", []
    pretrain(bucketed_config(data, run), say=said.append)
    return run, said


def bucketed_config(data, run):
    model = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    layout = {"replicas": 2, "micro_batches": 2}
    return small_config(data, run, model=model, phases=PHASES, steps=8, **layout)


@pytest.mark.slow
def test_a_run_says_how_wide_its_batches_are(finished):
    run, said = finished
    (line,) = (line for line in said if line.startswith("Phase 1"))
    assert line.startswith("Phase 1: steps 1 to 8, length 64, 8 examples of similar length, cut to ")
    assert 16 < int(line.split("cut to ")[1].split()[0]) < 64
    assert all(np.isfinite(value) for line in lines_of(run) for value in line.values())
    assert json.loads((run / "config.json").read_text())["phases"][0]["bucketed"] is True


@pytest.mark.slow
def test_a_bucketed_run_that_broke_off_ends_as_the_undisturbed_one(finished, data, tmp_path):
    settings = bucketed_config(data, tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        pretrain(settings, callbacks=[Stop(5)])
    pretrain(settings)
    assert_same_run(finished[0], tmp_path / "run")
