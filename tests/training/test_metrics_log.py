import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.metrics_log import MetricsLog


def test_lines_come_back(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    assert log.lines() == []
    for step in (1, 2):
        log.append({"phase": 1, "step": step, "loss": 0.1 * step})
    assert log.lines() == [{"phase": 1, "step": 1, "loss": 0.1}, {"phase": 1, "step": 2, "loss": 0.2}]


def test_an_unfinished_last_line_is_passed_over_and_removed(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append({"phase": 1, "step": 1})
    with log.path.open("a") as file:
        file.write('{"phase": 1, "step": 2, "lo')
    assert log.lines() == [{"phase": 1, "step": 1}]
    assert log.forget_after(5) == [{"phase": 1, "step": 1}]
    log.append({"phase": 1, "step": 2})
    assert log.path.read_text() == '{"phase": 1, "step": 1}\n{"phase": 1, "step": 2}\n'


def test_later_steps_are_forgotten(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in range(1, 6):
        log.append({"phase": 1, "step": step})
    assert log.forget_after(3) == [{"phase": 1, "step": step} for step in (1, 2, 3)] == log.lines()


def test_lines_end_before_what_a_loss_of_power_left(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in range(1, 4):
        log.append({"phase": 1, "step": step})
    whole = log.path.read_bytes()
    for rest in (b"\0" * 20, b"\0" * 20 + b'\n{"phase": 1, "step": 5}\n', b'\xff\n{"phase": 1, "step": 5}\n'):
        log.path.write_bytes(whole + rest)
        assert log.forget_after(9) == [{"phase": 1, "step": 1}, {"phase": 1, "step": 2}, {"phase": 1, "step": 3}]
        assert log.path.read_bytes() == whole


@pytest.mark.parametrize(
    "first", ["null", "{}", "5", '{"step": "a", "phase": 1}', '{"step": 1}', '{"step": 1, "phase": 1, "loss": "x"}']
)
def test_a_line_that_no_run_writes_is_refused(tmp_path, first):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.path.write_text(first + "\n")
    log.append({"phase": 1, "step": 1})
    with pytest.raises(
        InputError, match=r"`run` must hold its own metrics\.jsonl.*Received: line 1 of '.*metrics\.jsonl"
    ):
        log.lines()


def test_what_is_not_finite_is_written_as_null(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append({"phase": 1, "step": 1, "loss": float("nan")})
    assert log.path.read_text() == '{"phase": 1, "step": 1, "loss": null}\n'
