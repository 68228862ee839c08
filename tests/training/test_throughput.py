import pytest

from keras_bert_impl.training import throughput
from keras_bert_impl.training.throughput import RATES, Throughput

COUNTS = {"examples": 40.0, "tokens": 4000.0, "mlm_weight": 600.0}


class Clock:
    """Stands in for both clocks; `now` is moved by hand."""

    def __init__(self):
        self.now = 100.0
        self.waited = 0.0

    def perf_counter(self):
        return self.now

    def seconds(self):
        return self.waited

    def reset(self):
        self.waited = 0.0


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(throughput, "time", clock)
    return clock


def test_rates_are_counts_by_the_seconds_since_the_start(clock):
    speed = Throughput(clock, lambda counts: 3 * counts["tokens"], peak=24_000)
    speed.start(10)
    clock.now, clock.waited = 104.0, 0.5
    assert speed.rates(14, COUNTS, 4) == {
        "examples_per_second": 10.0,
        "tokens_per_second": 1000.0,
        "input_wait_share": 0.125,
        "model_flops_utilisation": 0.125,
    }


def test_steps_before_the_start_are_not_timed(clock):
    """The first step of a `fit` is counted in the sums of its first line, but its time is that of a compilation."""
    speed = Throughput(clock, lambda counts: 0.0, peak=1.0)
    speed.start(11)
    clock.now = 103.0
    assert speed.rates(14, COUNTS, 4)["tokens_per_second"] == 1000.0


def test_a_new_start_forgets_what_was_waited(clock):
    speed = Throughput(clock, lambda counts: 0.0, peak=1.0)
    speed.start(10)
    clock.waited = 5.0
    speed.start(12)
    clock.now = 101.0
    assert speed.rates(13, COUNTS, 1)["input_wait_share"] == 0.0


def test_where_no_step_was_timed_nothing_is_known(clock):
    speed = Throughput(clock, lambda counts: 0.0, peak=1.0)
    assert not speed.runs
    assert speed.rates(11, COUNTS, 1) == dict.fromkeys(RATES)
    speed.start(11)
    assert speed.runs and speed.rates(11, COUNTS, 1) == dict.fromkeys(RATES)
