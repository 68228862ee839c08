import pytest
import tensorflow as tf

from keras_bert_impl.training.callbacks import BestModel, Progress, TensorBoard


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
    speed = {"examples_per_second": 81.6, "tokens_per_second": 9040.0}
    progress.show({"loss": 2.0, "mlm_accuracy": 0.25, **speed})
    assert progress.bar.postfix == "loss 2.000, mlm 25.0%, 82 examples/s, 9,040 tokens/s"
    progress.show(speed)
    assert progress.bar.postfix == "82 examples/s, 9,040 tokens/s"
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
