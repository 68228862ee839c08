from keras_bert_impl.training.metrics_log import MetricsLog


def test_lines_come_back(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    assert log.lines() == []
    for step in (1, 2):
        log.append({"step": step, "loss": 0.1 * step})
    assert log.lines() == [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}]


def test_an_unfinished_last_line_is_passed_over_and_removed(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.append({"step": 1})
    with log.path.open("a") as file:
        file.write('{"step": 2, "lo')
    assert log.lines() == [{"step": 1}]
    assert log.forget_after(5) == [{"step": 1}]
    log.append({"step": 2})
    assert log.path.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_later_steps_are_forgotten(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in range(1, 6):
        log.append({"step": step})
    assert log.forget_after(3) == [{"step": step} for step in (1, 2, 3)] == log.lines()


def test_lines_end_before_what_a_loss_of_power_left(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in range(1, 4):
        log.append({"step": step})
    whole = log.path.read_bytes()
    for rest in (b"\0" * 20, b"\0" * 20 + b'\n{"step": 5}\n', b'\xff\n{"step": 5}\n'):
        log.path.write_bytes(whole + rest)
        assert log.forget_after(9) == [{"step": 1}, {"step": 2}, {"step": 3}]
        assert log.path.read_bytes() == whole
