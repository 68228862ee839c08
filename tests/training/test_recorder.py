import math
import signal
import types

import keras
import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError, StoppedBySignal
from keras_bert_impl.training.metrics_log import MetricsLog
from keras_bert_impl.training.phases import Milestones, Phase
from keras_bert_impl.training.recorder import Recorder
from keras_bert_impl.training.step_function import InputClock
from keras_bert_impl.training.step_health import StepHealth
from keras_bert_impl.training.step_sums import NAMES, StepSums
from keras_bert_impl.training.stopping import Stopping
from keras_bert_impl.training.throughput import RATES, Throughput

STEP = {
    "mlm_loss_sum": 8.0,
    "mlm_correct": 1.0,
    "mlm_weight": 4.0,
    "nsp_loss_sum": 2.0,
    "nsp_correct": 3.0,
    "nsp_weight": 4.0,
    "tokens": 100.0,
    "examples": 5.0,
}


class Events(list):
    """Notes what was called, in order."""

    def note(self, name, result=None):
        return lambda *arguments: (self.append((name, *arguments)), result)[1]


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def recorder(tmp_path, events):
    trainer = types.SimpleNamespace(
        sums=StepSums(),
        health=StepHealth(loss_scaling=False),
        optimizer=types.SimpleNamespace(skipped=keras.Variable(0, dtype="int64", trainable=False)),
    )
    recorder = Recorder(
        phase=Phase(number=2, length=32, batch_size=4, first_step=10, last_step=20),
        first_step=10,
        milestones=Milestones(log_every=2, evaluate_every=4, save_every=6),
        log=MetricsLog(tmp_path / "metrics.jsonl"),
        throughput=Throughput(InputClock(), lambda counts: 10 * counts["tokens"], peak=1e9),
        learning_rate=lambda step: step / 100,
        evaluate=events.note("evaluate", {"mlm_loss": 5.0}),
        save=events.note("save"),
        listeners=[lambda line: events.append(("line", line["step"]))],
        tell=lambda line: events.append(("tell", line["step"])),
        non_finite_limit=1,
        replicas=3,
        stopping=Stopping(),
    )
    recorder.set_model(trainer)
    return recorder


def make_step(recorder, step, **values):
    recorder.model.sums.update_state(tf.constant([(STEP | values)[name] for name in NAMES]))
    recorder.on_train_batch_begin(step - recorder.first_step)


def skip_step(recorder, step):
    recorder.model.health.update(tf.constant(False), tf.constant(step, tf.int64))
    recorder.model.optimizer.skipped.assign_add(1)
    recorder.on_train_batch_begin(step - recorder.first_step)


def test_lines_evaluations_and_checkpoints_come_in_order(recorder, events):
    for step in range(11, 17):
        make_step(recorder, step)
    assert events == [
        ("evaluate",),
        ("tell", 12),
        ("line", 12),
        ("save", 12),
        ("line", 14),
        ("evaluate",),
        ("tell", 16),
        ("line", 16),
    ]


def test_a_line_holds_the_means_since_the_line_before(recorder):
    make_step(recorder, 11)
    make_step(recorder, 12, mlm_loss_sum=24.0, mlm_correct=3.0, mlm_weight=12.0, nsp_correct=1.0)
    make_step(recorder, 13)
    make_step(recorder, 14)
    first, second = recorder.log.lines()
    assert first["mlm_loss"] == pytest.approx(2.0) and first["mlm_accuracy"] == pytest.approx(0.25)
    assert first["mlm_perplexity"] == pytest.approx(math.exp(2))
    assert first["nsp_loss"] == pytest.approx(0.5) and first["nsp_accuracy"] == pytest.approx(0.5)
    assert first["loss"] == pytest.approx(2.5)
    assert (first["step"], first["phase"], first["length"], first["learning_rate"]) == (12, 2, 32, 0.11)
    assert (first["replicas"], first["examples"], first["tokens"], first["skipped_steps"]) == (3, 10, 200, 0)
    assert first["held_out_mlm_loss"] == 5.0 and "held_out_mlm_loss" not in second
    assert all(first[name] is not None for name in RATES)
    assert second["nsp_accuracy"] == pytest.approx(0.75)
    assert "loss_scale" not in first


def test_without_next_sentence_labels_their_figures_are_left_out(recorder):
    for step in (11, 12):
        make_step(recorder, step, nsp_loss_sum=0.0, nsp_correct=0.0, nsp_weight=0.0)
    assert not [name for name in recorder.log.lines()[0] if "nsp" in name]


def test_the_scale_of_the_loss_is_told(recorder):
    recorder.model.health = StepHealth(loss_scaling=True)
    make_step(recorder, 12)
    assert recorder.log.lines()[0]["loss_scale"] == 2.0**15


def test_skipped_steps_within_the_limit_are_counted_and_the_run_goes_on(recorder):
    skip_step(recorder, 11)
    make_step(recorder, 12)
    line = recorder.log.lines()[0]
    assert line["skipped_steps"] == 1 and line["mlm_loss"] == pytest.approx(2.0)


def test_where_all_steps_were_skipped_a_line_has_no_losses(recorder):
    recorder.non_finite_limit = 2
    skip_step(recorder, 11)
    skip_step(recorder, 12)
    (line,) = recorder.log.lines()
    assert "mlm_loss" not in line and "loss" not in line and line["skipped_steps"] == 2 and line["tokens"] == 0


def test_more_skipped_steps_than_the_limit_stop_the_run_before_anything_is_saved(recorder, events):
    skip_step(recorder, 11)
    with pytest.raises(
        InputError,
        match=r"infinite or not a number in more steps than `non_finite_limit`.*"
        r"no skipped step changed a weight, and there is no checkpoint\. "
        r"Received: 2 such steps, the first 11 and the last 12, at learning_rate=0\.11, non_finite_limit=1$",
    ):
        skip_step(recorder, 12)
    assert events == [] and recorder.log.lines() == []


def test_the_scale_of_the_loss_is_named_when_the_run_stops(recorder):
    recorder.model.health = StepHealth(loss_scaling=True)
    with pytest.raises(InputError, match=r"learning_rate=\S+, loss scale 1, non_finite_limit=1"):
        for step in range(11, 30):  # the first fifteen halve the scale
            skip_step(recorder, step)


def test_a_run_that_is_asked_to_stop_writes_a_line_and_a_checkpoint_first(recorder, events):
    recorder.stopping.signal = signal.SIGTERM
    with pytest.raises(StoppedBySignal):
        make_step(recorder, 11)
    assert events == [("line", 11), ("save", 11)] and recorder.log.lines()[0]["step"] == 11
