import types

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.callbacks import BestModel, Progress, Recorder, TensorBoard
from keras_bert_impl.training.metrics_log import MetricsLog
from keras_bert_impl.training.phases import Milestones, Phase
from keras_bert_impl.training.step_sums import StepSums


class Events(list):
    """Notes what was called, in order."""

    def note(self, name, result=None):
        return lambda *arguments: (self.append((name, *arguments)), result)[1]


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def recorder(tmp_path, events):
    recorder = Recorder(
        phase=Phase(number=2, length=32, batch_size=4, first_step=10, last_step=20),
        first_step=10,
        milestones=Milestones(log_every=2, evaluate_every=4, save_every=6),
        log=MetricsLog(tmp_path / "metrics.jsonl"),
        learning_rate=lambda step: step / 100,
        evaluate=events.note("evaluate", {"mlm_loss": 5.0}),
        save=events.note("save"),
        listeners=[lambda line: events.append(("line", line["step"]))],
        tell=lambda line: events.append(("tell", line["step"])),
    )
    recorder.set_model(types.SimpleNamespace(sums=StepSums()))
    return recorder


def make_step(recorder, step, values=(8.0, 1.0, 4.0, 2.0, 3.0, 4.0), non_finite=0.0):
    recorder.model.sums.update_state(tf.constant(values), non_finite)
    recorder.on_train_batch_begin(step - recorder.first_step)


def test_lines_evaluations_and_checkpoints_come_in_order(recorder, events):
    for step in range(11, 17):
        make_step(recorder, step)
    assert events == [
        ("evaluate",),
        ("line", 12),
        ("tell", 12),
        ("save", 12),
        ("line", 14),
        ("evaluate",),
        ("line", 16),
        ("tell", 16),
    ]


def test_a_line_holds_the_means_since_the_line_before(recorder):
    make_step(recorder, 11)
    make_step(recorder, 12, (24.0, 3.0, 12.0, 2.0, 1.0, 4.0))
    make_step(recorder, 13)
    make_step(recorder, 14)
    first, second = recorder.log.lines()
    assert first["mlm_loss"] == pytest.approx(2.0) and first["mlm_accuracy"] == pytest.approx(0.25)
    assert first["nsp_loss"] == pytest.approx(0.5) and first["nsp_accuracy"] == pytest.approx(0.5)
    assert first["loss"] == pytest.approx(2.5)
    assert (first["step"], first["phase"], first["length"], first["learning_rate"]) == (12, 2, 32, 0.11)
    assert first["held_out_mlm_loss"] == 5.0 and "held_out_mlm_loss" not in second
    assert first["examples_per_second"] > 0
    assert second["nsp_accuracy"] == pytest.approx(0.75)


def test_a_bad_loss_stops_before_anything_is_saved_and_names_its_step(recorder, events):
    make_step(recorder, 11, (np.nan, 1.0, 4.0, 2.0, 3.0, 4.0), non_finite=1.0)
    with pytest.raises(InputError, match=r"infinite or not a number.*Received: step 11, learning_rate=0\.1$"):
        make_step(recorder, 12, (np.nan, 1.0, 4.0, 2.0, 3.0, 4.0), non_finite=1.0)
    assert events == [] and recorder.log.lines() == []


def test_a_gradient_that_is_not_finite_stops_too(recorder):
    make_step(recorder, 11)
    with pytest.raises(InputError, match="step 12"):
        make_step(recorder, 12, non_finite=1.0)


def test_best_is_the_lowest_loss_of_the_last_phase():
    saved = []
    best = BestModel(lambda: saved.append(best.best["step"]))
    for step, phase, loss in [(1, 1, 5.0), (2, 1, 4.0), (3, 1, 4.5), (4, 2, 6.0), (5, 2, 5.5), (6, 2, 5.6)]:
        best.consider({"step": step, "phase": phase, "held_out_mlm_loss": loss})
        best.consider({"step": step, "phase": phase})
    assert saved == [1, 2, 4, 5]


def test_best_of_earlier_lines_is_known_after_a_resume():
    best = BestModel(lambda: pytest.fail("saved"), [{"step": 1, "phase": 1, "held_out_mlm_loss": 4.0}, {"step": 2}])
    best.consider({"step": 3, "phase": 1, "held_out_mlm_loss": 4.1})
    assert best.best["step"] == 1


def test_progress_bar_follows_the_global_step():
    class Bar:
        n, postfix = 10, ""

        def update(self, steps):
            self.n += steps

        def set_postfix_str(self, text, refresh):
            self.postfix = text

    progress = Progress(Bar(), first_step=10)
    for batch in (0, 1, 5):
        progress.on_train_batch_begin(batch)
    assert progress.bar.n == 15
    progress.show({"loss": 2.0, "mlm_accuracy": 0.25, "examples_per_second": 81.6})
    assert progress.bar.postfix == "loss 2.000, mlm 25.0%, 82 examples/s"
    progress.show({"loss": 2.0, "mlm_accuracy": 0.25, "examples_per_second": None})
    assert progress.bar.postfix == "loss 2.000, mlm 25.0%"


def scalars_in(directory):
    found = []
    for path in directory.glob("events.*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.append((event.step, value.tag, float(tf.make_ndarray(value.tensor))))
    return found


def test_tensorboard_holds_every_line_once_also_after_a_resume(tmp_path):
    lines = [{"step": n, "phase": 1, "loss": float(n), "examples_per_second": None} for n in (1, 2)]
    board = TensorBoard(tmp_path)
    board.write(lines[0])
    board.write({"step": 7, "phase": 1, "loss": 9.0})
    TensorBoard(tmp_path, lines).write({"step": 3, "phase": 1, "held_out_mlm_loss": 3.0})
    assert scalars_in(tmp_path) == [(1, "train/loss", 1.0), (2, "train/loss", 2.0), (3, "held_out/mlm_loss", 3.0)]
