import json
import os
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
from pretraining_runs import assert_same_run, lines_of, small_config
from stopping import Stop

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.training.configs import DEFAULT_PHASES, EvaluateConfig, PhaseConfig, PrepareConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.pretrain import pretrain
from keras_bert_impl.training.throughput import RATES

ONE_PHASE = (PhaseConfig(length=16, share=1),)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, prepared):
    """A run of two replicas through both phases, what it said and what it returned."""
    run, said = tmp_path_factory.mktemp("finished") / "run", []
    metrics = pretrain(small_config(prepared, run, replicas=2), say=said.append)
    return run, said, metrics


def copied(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "run")
    return tmp_path / "run"


def test_a_run_leaves_all_its_parts(finished):
    run, said, metrics = finished
    names = {"config.json", "run.json", "metrics.jsonl", "metrics.json", "report.html", "tensorboard", "checkpoints"}
    assert names | {"model", ".lock", ".saved"} == {path.name for path in run.iterdir()}
    assert json.loads((run / "metrics.json").read_text()) == metrics
    # Step 8 was the best of its time; every third one is due.
    assert [path.name for path in sorted((run / "checkpoints").iterdir())] == [f"step_{n:08d}" for n in (8, 9, 12)]
    assert any("Phase 2: steps 10 to 12, length 32, 4 examples per step" in line for line in said)


def test_every_step_has_one_line_with_finite_values_and_its_phase(finished):
    lines = lines_of(finished[0])
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert [line["length"] for line in lines] == [16] * 9 + [32] * 3
    assert all(np.isfinite(value) for line in lines for value in line.values())
    assert [line["step"] for line in lines if "held_out_mlm_loss" in line] == [4, 8, 9, 12]


def test_every_line_tells_what_was_read_and_all_but_the_first_of_a_phase_how_fast(finished):
    lines = [json.loads(line) for line in (finished[0] / "metrics.jsonl").read_text().splitlines()]
    assert [line["examples"] for line in lines] == [8] * 9 + [4] * 3
    for line in lines:
        assert line["examples"] * 6 < line["tokens"] <= line["examples"] * line["length"]
        assert (line["replicas"], line["skipped_steps"]) == (2, 0)
        assert line["mlm_perplexity"] == pytest.approx(np.exp(line["mlm_loss"]))
        assert ("held_out_mlm_perplexity" in line) == ("held_out_mlm_loss" in line)
        if line["step"] in (1, 10):
            assert all(line[name] is None for name in RATES)
        else:
            assert line["tokens_per_second"] > line["examples_per_second"] > 0
            assert 0 <= line["input_wait_share"] <= 1 and 0 < line["model_flops_utilisation"] < 1


def test_the_peak_and_replicas_that_share_a_cpu_are_said_once_and_nothing_is_warned_of(finished):
    said = finished[1]
    assert said[1] == "2 replicas share the cores of one CPU, so together they are seldom faster than one."
    assert sum(line.startswith("Peak of 2 replicas: ") for line in said) == 1
    assert not [line for line in said if line.startswith("Warning")]


def test_one_schedule_runs_over_both_phases(finished):
    rates = [line["learning_rate"] for line in lines_of(finished[0])]
    expected = [0, 2.5e-3] + [5e-3 * (1 - step / 12) for step in range(2, 12)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def test_losses_start_at_the_logarithm_of_the_vocabulary(finished):
    first = lines_of(finished[0])[0]
    vocabulary = BertPretrainer.from_pretrained(finished[0] / "model").config.vocab_size
    assert first["mlm_loss"] == pytest.approx(np.log(vocabulary), abs=0.1)
    assert first["nsp_loss"] == pytest.approx(np.log(2), abs=0.1)


def test_stored_metrics_are_what_evaluate_measures(finished, prepared):
    run, _, metrics = finished
    measured = evaluate(EvaluateConfig(model=str(run), data=str(prepared)))
    assert measured.keys() == metrics["held_out"].keys() == {"16", "32"}
    for length, record in metrics["held_out"].items():
        assert measured[length] == pytest.approx(record, rel=1e-5)


def test_a_finished_run_is_not_run_again(finished, tmp_path, prepared):
    run, said = copied(finished, tmp_path), []
    assert pretrain(small_config(prepared, run, replicas=2), say=said.append) == finished[2]
    assert said[0] == f"Run {str(run)!r} is finished; its stored metrics:"
    told = [line for line in finished[1] if line.startswith("Held-out, length ")]
    assert len(told) == 2 and said[1:3] == told
    assert said[3:] == [f"Model: {run / 'model'}, of step {finished[2]['best_step']}"]


def test_every_evaluation_and_the_long_last_one_are_told(finished):
    said = finished[1]
    steps = [line.split(",")[0] for line in said if line.startswith("Step ")]
    assert steps == ["Step 4", "Step 8", "Step 9", "Step 12"]
    last = next(n for n, line in enumerate(said) if line.startswith("Step 12,"))
    assert "always the commoner label" in said[last]
    assert said[last + 1].startswith("Measuring the best model (step ")
    assert said[last + 1].endswith(") on all held-out examples …")
    assert said[last + 2].startswith("Held-out, length 16")


def test_a_run_that_diverges_says_so_once(prepared, tmp_path):
    said = []
    config = small_config(prepared, tmp_path / "run", phases=ONE_PHASE, steps=8, learning_rate=5)
    pretrain(config, say=said.append)
    warnings = [line for line in said if line.startswith("Warning: the held-out MLM loss is above 3.258")]
    assert len(warnings) == 1 and "lower `learning_rate`" in warnings[0]


@pytest.mark.parametrize("at", [8, *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 11))])
def test_a_run_that_broke_off_ends_as_the_undisturbed_one(finished, prepared, tmp_path, at):
    """Broken off between a checkpoint and the next, before the first one, and in the second phase."""
    config = small_config(prepared, tmp_path / "run", replicas=2)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config, callbacks=[Stop(at)])
    pretrain(config)
    assert_same_run(finished[0], tmp_path / "run")


@pytest.mark.slow
def test_a_resumed_run_may_have_another_layout(finished, prepared, tmp_path):
    """Dropout differs then, the course of the run does not."""
    with pytest.raises(KeyboardInterrupt):
        pretrain(small_config(prepared, tmp_path / "run", replicas=2), callbacks=[Stop(8)])
    changed = small_config(prepared, tmp_path / "run", replicas=1, micro_batches=2, steps_per_execution=2)
    pretrain(changed)
    lines = lines_of(tmp_path / "run")
    assert lines[-1]["step"] == 12
    assert lines[-1]["learning_rate"] == lines_of(finished[0])[-1]["learning_rate"]


def in_its_own_process(config, **options):
    script = Path(pretraining_runs.__file__)
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    # -P: this folder has a `keras_bert_impl` of its own, the tests.
    arguments = [sys.executable, "-P", str(script), json.dumps(config.to_dict())]
    return subprocess.Popen(arguments, env=environment, **options)


@pytest.mark.slow
def test_a_killed_run_ends_as_the_undisturbed_one_in_new_processes(prepared, tmp_path):
    """kill -9 as soon as the first checkpoint has appeared."""
    configs = [small_config(prepared, tmp_path / name, replicas=2, steps=60) for name in ("whole", "killed")]
    assert in_its_own_process(configs[0]).wait() == 0
    process = in_its_own_process(configs[1])
    while not list((tmp_path / "killed" / "checkpoints").glob("step_*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "metrics.json").exists()
    assert in_its_own_process(configs[1]).wait() == 0
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_stock_callbacks_get_losses_and_can_end_the_run(prepared, tmp_path):
    class EndAfterThree(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            assert logs["loss"] > 0
            self.model.stop_training = batch == 2

    said = []
    config = small_config(prepared, tmp_path / "run", phases=ONE_PHASE)
    metrics = pretrain(config, say=said.append, callbacks=[EndAfterThree()])
    assert metrics["steps"] == metrics["best_step"] == 3
    assert metrics["held_out"].keys() == {"16", "32"}
    assert "A callback ended the training after step 3." in said


def test_init_starts_from_the_weights_of_a_model(finished, prepared, tmp_path):
    config = small_config(
        prepared,
        tmp_path / "run",
        model=None,
        init=str(finished[0]),
        phases=ONE_PHASE,
        steps=2,
        warmup_steps=0,
        learning_rate=1e-9,
    )
    pretrain(config)
    start, end = (BertPretrainer.from_pretrained(run / "model") for run in (finished[0], tmp_path / "run"))
    for before, after in zip(start.weights, end.weights, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-6)


def test_data_without_held_out_documents_still_trains(tmp_path, prepared, corpus_vocabulary):
    settings = json.loads((prepared / "manifest.json").read_text())["settings"]
    data = tmp_path / "data"
    prepare(
        PrepareConfig(
            inputs=tuple(settings["inputs"]),
            vocab=str(corpus_vocabulary),
            output=str(data),
            lengths=(16,),
            held_out_share=0,
            workers=1,
        )
    )
    said = []
    config = small_config(data, tmp_path / "run", phases=ONE_PHASE, steps=2)
    assert pretrain(config, say=said.append) == {"steps": 2, "best_step": 2, "held_out": {}}
    loss = lines_of(tmp_path / "run")[-1]["mlm_loss"]
    assert f"Step 2, length 16: MLM loss {loss:.3f} in training, accuracy " in "".join(said)
    assert any(
        "no held-out documents" in line and line.endswith(f"of the last step, training MLM loss {loss:.4f}.")
        for line in said
    )
    assert not any(line.startswith("Measuring") for line in said)
    again = []
    pretrain(config, say=again.append)
    assert again[1:] == [f"Training MLM loss {loss:.4f}", f"Model: {tmp_path / 'run' / 'model'}, of step 2"]
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"phases": (PhaseConfig(length=24, share=1),)}, r"`phases` must have lengths that the data.*16, 32\. .*24"),
        (
            {"phases": DEFAULT_PHASES},
            r"prepared for: 16, 32; the default ones are of 128 and 512 tokens, others are given as in "
            r"--phases '\[\{\"length\": 16, \"share\": 1\}\]'\. Received: length=128",
        ),
        (
            {"model": pretraining_runs.MODEL | {"max_position_embeddings": 31}},
            r"`max_position_embeddings`, 31\. Received: length=32",
        ),
        (
            {"model": pretraining_runs.MODEL | {"vocab_size": 300}},
            r"tokens for at least half the rows of its table; .* Received: 26 tokens, 300 rows",
        ),
        (
            {"model": pretraining_runs.MODEL | {"vocab_size": 7}},
            r"`data` must not have a larger vocabulary.* Received: 26 tokens in .*, vocab_size=7",
        ),
        ({"model": {"hiden_size": 16}}, r"Unknown `BertConfig` keys: \['hiden_size'\]"),
        ({"batch_size": 6, "micro_batches": 4}, r"`batch_size` must be a multiple .*batch_size=6"),
        ({"steps": 1, "warmup_steps": 0}, r"`steps` must be at least the number of phases, 2\. Received: steps=1"),
        ({"warmup_steps": 13}, r"`warmup_steps`.*13"),
        ({"data": "nowhere"}, r"`data` must be a directory that.*nowhere"),
        ({"init": "somewhere"}, r"`model` cannot be given with `init`"),
        ({"init": "somewhere", "model": None, "preset": "base"}, r"`preset` cannot be given with `init`.*'base'"),
        ({"allow_missing": ("pooler",)}, r"`allow_missing` must go with `init`. Received: allow_missing=\('pooler',\)"),
        ({"max_ngram": 2}, r"`max_ngram` must go with `masking` n-gram. Received: max_ngram=2, masking='token'"),
        ({"init": "somewhere", "model": None}, r"must be a model directory.*somewhere"),
        ({"dtype": "float16"}, r"`dtype` must be float32, mixed_bfloat16 or mixed_float16. Received: dtype='float16'"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_nothing_is_left(prepared, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        pretrain(small_config(**{"data": prepared, "run": tmp_path / "run"} | changes))
    assert list(tmp_path.iterdir()) == []


def test_init_with_another_vocabulary_is_refused(finished, prepared, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(finished[0] / "model", model)
    tokens = (model / "vocab.txt").read_text().splitlines()
    tokens[8], tokens[9] = tokens[9], tokens[8]
    (model / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    with pytest.raises(InputError, match=r"`init` must have the vocabulary.*differs from token 8 on"):
        pretrain(small_config(prepared, tmp_path / "run", init=str(model), model=None))


def test_init_with_other_lower_casing_is_refused(finished, prepared, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(finished[0] / "model", model)
    options = model / "tokenizer_config.json"
    options.write_text(json.dumps(json.loads(options.read_text()) | {"do_lower_case": False}))
    with pytest.raises(InputError, match=r"`init` must have the lower-casing .*lowercase=False.*lowercase=True"):
        pretrain(small_config(prepared, tmp_path / "run", init=str(model), model=None))


def test_a_larger_vocabulary_of_the_model_is_kept(prepared, tmp_path):
    model = pretraining_runs.MODEL | {"vocab_size": 40}
    pretrain(small_config(prepared, tmp_path / "run", model=model, phases=ONE_PHASE, steps=2))
    assert BertPretrainer.from_pretrained(tmp_path / "run" / "model").config.vocab_size == 40


def test_losses_that_stay_infinite_stop_the_run_within_the_limit(prepared, tmp_path):
    config = small_config(prepared, tmp_path / "run", phases=ONE_PHASE, non_finite_limit=1)
    with pytest.raises(InputError, match=r"infinite or not a number.*the first 6 and the last 7, at learning_rate=\d"):
        pretrain(config, callbacks=[Poison(at=5)])
    lines = lines_of(tmp_path / "run")
    assert [line["skipped_steps"] for line in lines] == [0, 0, 0, 0, 0, 1]
    assert ["mlm_loss" in line for line in lines] == [True] * 5 + [False]


class Poison(keras.callbacks.Callback):
    """Makes a weight infinite after some steps."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.at:
            variable = self.model.pretrainer.weights[0]
            variable.assign(np.full(variable.shape, np.inf, "float32"))
