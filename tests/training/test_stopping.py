import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from keras_bert_impl.errors import StoppedBySignal
from keras_bert_impl.training import stopping
from keras_bert_impl.training.stopping import stop_after_step

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


class EarlierHandlerError(Exception):
    """What the handler from before the training raises."""


@pytest.fixture(autouse=True)
def earlier_handlers():
    """The handlers that a program has of its own."""

    def earlier(number, frame):
        raise EarlierHandlerError

    before = {number: signal.signal(number, earlier) for number in stopping.SIGNALS}
    yield earlier
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number):
    os.kill(os.getpid(), number)
    time.sleep(0.01)


@BOTH
def test_a_first_signal_is_a_request(number):
    with stop_after_step() as asked:
        assert not asked.requested
        send(number)
        assert asked.requested


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_the_end_names_signal_and_step(number, name):
    with stop_after_step() as asked, pytest.raises(StoppedBySignal) as caught:
        send(number)
        asked.stop(7)
    assert str(caught.value) == (
        f"Stopped by {name} after step 7, whose checkpoint is written; the same command goes on from there."
    )
    assert caught.value.number == number
    assert isinstance(caught.value, KeyboardInterrupt)


@BOTH
def test_a_second_signal_does_what_it_always_did(number, monkeypatch):
    monkeypatch.setattr(stopping, "ONCE_SECONDS", 0)
    with stop_after_step() as asked:
        send(signal.SIGTERM)
        assert asked.requested
        with pytest.raises(EarlierHandlerError):
            send(number)


def test_a_signal_that_comes_twice_at_once_is_one():
    with stop_after_step() as asked:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert asked.requested


@BOTH
def test_earlier_handlers_are_put_back(number, earlier_handlers):
    with stop_after_step():
        pass
    with pytest.raises(RuntimeError), stop_after_step():
        raise RuntimeError
    assert signal.getsignal(number) is earlier_handlers
    with pytest.raises(EarlierHandlerError):
        send(number)


def test_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_after_step() as asked:
        send(signal.SIGINT)
        assert not asked.requested


def test_outside_the_main_thread_nothing_changes(earlier_handlers):
    seen = []

    def work():
        with stop_after_step() as asked:
            seen.append((signal.getsignal(signal.SIGTERM), asked.requested))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(earlier_handlers, False)]


def test_of_several_machines_a_signal_here_after_one_elsewhere_is_no_second_one(monkeypatch):
    monkeypatch.setattr(stopping, "ONCE_SECONDS", 0)
    with stop_after_step(lambda step, wanted: signal.SIGINT if step == 3 else wanted) as asked:
        assert not asked.due(2)
        assert asked.due(3)
        send(signal.SIGTERM)
        with pytest.raises(StoppedBySignal, match=r"Stopped by Ctrl-C after step 3"):
            asked.stop(3)


LONG_STEP = """
import sys
import keras_bert_console
from keras_bert_impl.training import stopping
stopping.ONCE_SECONDS = stopping.PATIENCE_SECONDS = 0.05
with stopping.sure_to_stop(), stopping.stop_after_step():
    import hashlib
    print("in a step", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_a_command_in_the_middle_of_a_long_step(number, code):
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", LONG_STEP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "in a step\n"
    process.send_signal(number)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (code, "Interrupted.\n")


def test_one_signal_ends_no_command_and_nothing_is_left_watching(monkeypatch):
    monkeypatch.setattr(stopping, "ONCE_SECONDS", 0)
    monkeypatch.setattr(stopping.os, "_exit", lambda code: pytest.fail("ended"))
    with stopping.sure_to_stop(), stop_after_step() as asked:
        send(signal.SIGTERM)
        assert asked.requested
    assert signal.set_wakeup_fd(-1) == -1
    deadline = time.monotonic() + 5
    while any(thread.name.endswith("(_end_at_second_signal)") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
