"""Requests that come together are run together, and nobody can tell from the answers."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from fake_servables import FakeServable, texts, wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_impl.serving.server.batching import Batching
from keras_bert_impl.serving.server.request_error import RequestError


class Gate:
    """Holds runs back until it is opened."""

    def __init__(self):
        self.entered = threading.Event()
        self._open = threading.Event()

    def __call__(self, inputs):
        self.entered.set()
        assert self._open.wait(20)

    def open(self):
        self._open.set()


def closing(batching):
    """Ends the threads with the block, whatever it did."""

    class Closing:
        def __enter__(self):
            return batching

        def __exit__(self, *exception):
            batching.close()

    return Closing()


def ids(*rows):
    token_ids = np.array(rows, np.int32)
    return {"token_ids": token_ids, "segment_ids": np.ones_like(token_ids)}


def held_back(batching, servable, gate, requests):
    """Submits requests while a first one is being run; returns their futures once the gate is open."""
    first = batching.submit(servable, "total", {"x": np.float32([0])})
    assert gate.entered.wait(20)
    futures = [batching.submit(servable, *request) for request in requests]
    gate.open()
    first.result(20)
    wait(futures, timeout=20)
    return futures


def test_requests_that_wait_are_run_together_and_each_gets_its_rows():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1)) as batching:
        requests = [("serving_default", texts("a", "bb")), ("serving_default", texts("ccc"))]
        one, two = held_back(batching, servable, gate, requests)
    assert servable.runs[1:] == [{"text": [b"a", b"bb", b"ccc"]}]
    assert one.result()["length"].tolist() == [1, 2]
    assert two.result()["upper"].tolist() == [b"CCC"]


def test_only_arrays_of_like_rows_are_joined():
    gate = Gate()
    servable, other = FakeServable(before_run=gate), FakeServable(version=2)
    with closing(Batching(threads=1)) as batching:
        held = [("sums", ids([1, 2])), ("sums", ids([1, 2, 3])), ("sums", ids([3, 4])), ("serving_default", texts("a"))]
        held += [("serving_default", texts("b"), ["length"]), ("total", {"x": np.float32([1])})]
        first = batching.submit(servable, "total", {"x": np.float32([0])})
        assert gate.entered.wait(20)
        futures = [batching.submit(servable, *request) for request in held]
        futures.append(batching.submit(other, "serving_default", texts("c")))
        gate.open()
        first.result(20)
        wait(futures, timeout=20)
    rows = [next(iter(run.values())) for run in servable.runs[1:]]
    assert rows == [[[1, 2], [3, 4]], [[1, 2, 3]], [b"a"], [b"b"], [1.0]]
    assert other.runs == [{"text": [b"c"]}]
    assert futures[4].result().keys() == {"length"}


def test_no_run_has_more_rows_than_allowed_unless_a_request_has():
    gate, sizes = Gate(), []
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1, max_rows=4, on_run=lambda *run: sizes.append(run))) as batching:
        counts = [2, 1, 3, 9, 1, 3, 1]
        held_back(batching, servable, gate, [("serving_default", texts(*"x" * count)) for count in counts])
    assert sizes[1:] == [(3, 2), (3, 1), (9, 1), (4, 2), (1, 1)]


def test_an_error_is_its_own_requests_alone():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1)) as batching:
        requests = [("serving_default", texts(text)) for text in ("a", "bad one", "b", "bad two")]
        futures = held_back(batching, servable, gate, requests)
    assert [future.result()["upper"].tolist() for future in futures[::2]] == [[b"A"], [b"B"]]
    assert [str(future.exception()) for future in futures[1::2]] == ["No such text: bad one", "No such text: bad two"]


def test_outputs_that_turn_out_to_have_no_rows_are_not_cut_apart():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1)) as batching:
        requests = [("says_rows", {"x": np.float32([value, 1])}) for value in (1, 2)]
        futures = held_back(batching, servable, gate, requests)
    assert [float(future.result()["total"]) for future in futures] == [2.0, 3.0]


def test_arrays_with_unequal_rows_meet_the_models_own_words():
    def refuse(inputs):
        if len(inputs["token_ids"]) != len(inputs["segment_ids"]):
            raise RequestError("Incompatible shapes: [2,1] vs. [1,1]")

    unequal = {**ids([1], [2]), "segment_ids": np.ones((1, 1), np.int32)}
    with (
        closing(Batching(threads=1)) as batching,
        pytest.raises(RequestError, match="Incompatible shapes"),
    ):
        batching.run(FakeServable(before_run=refuse), "sums", unequal)


def test_the_oldest_request_comes_first_whatever_its_kind():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1, max_rows=2)) as batching:
        requests = [("serving_default", texts(text)) for text in "abcde"]
        requests.insert(1, ("sums", ids([7])))
        held_back(batching, servable, gate, requests)
    assert [next(iter(run.values())) for run in servable.runs[1:]] == [[b"a", b"b"], [[7]], [b"c", b"d"], [b"e"]]


def test_a_request_without_company_is_not_kept_waiting():
    with closing(Batching(wait_seconds=30)) as batching:
        started = time.monotonic()
        batching.run(FakeServable(), "serving_default", texts("a"))
        assert time.monotonic() - started < 10


def test_beside_others_a_request_waits_for_company():
    gate = Gate()
    servable = FakeServable(before_run=lambda inputs: inputs["text"][0] == b"first" and gate(inputs))
    with closing(Batching(threads=2, wait_seconds=30, max_rows=3)) as batching:
        first = batching.submit(servable, "serving_default", texts("first"))
        assert gate.entered.wait(20)
        others = [batching.submit(servable, "serving_default", texts(text)) for text in "abc"]
        assert [future.result(20)["length"].tolist() for future in others] == [[1]] * 3
        gate.open()
        first.result(20)
    assert [len(run["text"]) for run in servable.runs] == [1, 3]


def test_waiting_ends_after_its_time():
    gate = Gate()
    servable = FakeServable(before_run=lambda inputs: inputs["text"][0] == b"first" and gate(inputs))
    with closing(Batching(threads=2, wait_seconds=0.01)) as batching:
        first = batching.submit(servable, "serving_default", texts("first"))
        assert gate.entered.wait(20)
        assert batching.submit(servable, "serving_default", texts("a")).result(20)["length"].tolist() == [1]
        gate.open()
        first.result(20)


def test_too_many_waiting_requests_are_refused_as_the_real_server_does():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1, max_waiting=2)) as batching:
        running = batching.submit(servable, "serving_default", texts("a"))
        assert gate.entered.wait(20)
        waiting = [batching.submit(servable, "serving_default", texts("a")) for _ in range(2)]
        message = "The batch scheduling queue to which this task was submitted is full"
        with pytest.raises(RequestError, match=message) as error:
            batching.run(servable, "serving_default", texts("a"))
        assert error.value.code == "UNAVAILABLE"
        gate.open()
        assert all(future.result(20) for future in (running, *waiting))


def test_closing_answers_what_waits_and_refuses_what_comes():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    batching = Batching(threads=1)
    futures = [batching.submit(servable, "serving_default", texts("a")) for _ in range(5)]
    assert gate.entered.wait(20)
    closer = threading.Thread(target=batching.close)
    closer.start()
    wait_until(lambda: batching.closed)
    with pytest.raises(RequestError, match="The server is stopping") as error:
        batching.run(servable, "serving_default", texts("a"))
    assert error.value.code == "UNAVAILABLE"
    gate.open()
    closer.join(20)
    assert all(future.done() and future.result()["length"].tolist() == [1] for future in futures)


def test_what_waits_can_be_abandoned():
    gate = Gate()
    servable = FakeServable(before_run=gate)
    batching = Batching(threads=1)
    running = batching.submit(servable, "serving_default", texts("a"))
    assert gate.entered.wait(20)
    waiting = [batching.submit(servable, "serving_default", texts("a")) for _ in range(2)]
    threading.Timer(0.05, gate.open).start()
    batching.close(abandon=True)
    assert running.result()["length"].tolist() == [1]
    assert [str(future.exception()) for future in waiting] == ["The server is stopping"] * 2
    assert len(servable.runs) == 1


def test_a_request_that_nobody_waits_for_any_more_is_not_run():
    gate, gone = Gate(), threading.Event()
    servable = FakeServable(before_run=gate)
    with closing(Batching(threads=1)) as batching:
        running = batching.submit(servable, "serving_default", texts("a"))
        assert gate.entered.wait(20)
        left = batching.submit(servable, "serving_default", texts("b"), wanted=lambda: not gone.is_set())
        kept = batching.submit(servable, "serving_default", texts("c"))
        gone.set()
        gate.open()
        assert kept.result(20)["upper"].tolist() == [b"C"]
        assert running.result(20)["upper"].tolist() == [b"A"]
    assert servable.runs == [{"text": [b"a"]}, {"text": [b"c"]}]
    error = left.exception()
    assert isinstance(error, RequestError)
    assert (str(error), error.code) == ("The client is gone", "CANCELLED")


_TEXTS = st.lists(st.sampled_from(["a", "bb", "ccc", "bad", "bad two", ""]), min_size=0, max_size=4)
_IDS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 9), min_size=width, max_size=width), min_size=1, max_size=4)
)
_REQUESTS = st.one_of(
    st.builds(lambda rows: ("serving_default", texts(*rows)), _TEXTS),
    st.builds(lambda rows: ("sums", ids(*rows)), _IDS),
    st.builds(lambda values: ("total", {"x": np.float32(values)}), st.lists(st.integers(0, 9), max_size=4)),
)


def answer(run, servable, request):
    try:
        return {name: array.tolist() for name, array in run(servable, *request).items()}
    except RequestError as error:
        return str(error)


@settings(max_examples=30, deadline=None)
@given(
    requests=st.lists(st.tuples(_REQUESTS, st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=24),
    max_rows=st.integers(1, 8),
    threads=st.integers(1, 3),
    wait_seconds=st.sampled_from([0, 0.001]),
)
def test_answers_are_those_of_requests_run_alone_whatever_their_order(requests, max_rows, threads, wait_seconds):
    def slow(inputs):
        time.sleep(0.0005)

    servables = [FakeServable(version=version, before_run=slow) for version in (1, 2)]
    expected = [answer(FakeServable.run, servables[which], request) for request, which, _ in requests]
    with closing(Batching(threads=threads, max_rows=max_rows, wait_seconds=wait_seconds)) as batching:

        def ask(item):
            request, which, delay = item
            time.sleep(delay * 0.0003)
            return answer(batching.run, servables[which], request)

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(ask, requests)) == expected
