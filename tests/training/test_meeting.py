import socket
import time

import pytest
from machines import at_once, free_addresses

from keras_bert_impl.errors import InputError, WorkerLostError
from keras_bert_impl.training import meeting
from keras_bert_impl.training.cluster import Cluster
from keras_bert_impl.training.meeting import meet


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(meeting, "_REFUSING_SECONDS", 0.5)
    monkeypatch.setattr(meeting, "PORT_SECONDS", 0.3)
    monkeypatch.setattr(meeting, "_HELLO_SECONDS", 0.5)
    monkeypatch.setattr(meeting, "_POLL_SECONDS", 0.02)


def machine(addresses, number, facts=None, say=lambda line: None, **times):
    return lambda: meet(Cluster(addresses, number), facts or {}, say, **{"seconds": 10, **times})


def test_machines_meet_whatever_comes_first():
    addresses = free_addresses(3)
    chief = machine(addresses, 0)
    met = at_once(machine(addresses, 2), machine(addresses, 1), lambda: time.sleep(0.1) or chief())
    assert [sorted(peers) for peers in met] == [[0], [0], [1, 2]]


def test_machines_that_differ_all_hear_in_what():
    addresses = free_addresses(3)
    same, other = {"seed": 1, "learning_rate": 1e-4}, {"seed": 1, "learning_rate": 2e-4}
    refused = at_once(*(machine(addresses, number, facts) for number, facts in enumerate([same, same, other])))
    assert {type(error) for error in refused} == {InputError}
    sentence = (
        "`cluster` must have the same settings, data and versions on all machines. "
        f"Received: learning_rate is 0.0001 on worker 0 ({addresses[0]}) and 0.0002 on worker 2 ({addresses[2]})"
    )
    assert {str(error) for error in refused} == {sentence}


def test_lists_of_other_machines_are_a_difference():
    addresses = free_addresses(2)
    refused = at_once(machine(addresses, 0), machine((*addresses, "127.0.0.1:1"), 1))
    assert all("cluster is" in str(error) for error in refused)


def test_a_fact_that_one_has_not_got_is_a_difference():
    addresses = free_addresses(2)
    refused = at_once(machine(addresses, 0), machine(addresses, 1, {"new setting": 3}))
    assert all("new setting is None on worker 0" in str(error) for error in refused)


def test_two_with_the_same_number_are_refused(monkeypatch):
    monkeypatch.setattr(meeting, "_own_port", meeting.contextlib.nullcontext)
    addresses = free_addresses(3)
    with socket.create_server(("127.0.0.1", int(addresses[0].split(":")[1]))) as listener:
        chief = Cluster(addresses, 0)
        tell = meeting._Repeated(lambda line: None, 10, 10)
        refused = at_once(
            lambda: meeting._gather(chief, {"cluster": list(addresses)}, listener, time.monotonic() + 10, tell),
            machine(addresses, 1),
            machine(addresses, 1),
        )
    text = r"`worker` must be another number on each machine.*Received: two that say they are worker 1"
    for error in refused:
        with pytest.raises(InputError, match=text):
            raise error


def test_a_chief_says_whom_it_waits_for_and_ends():
    addresses = free_addresses(3)
    said = []
    text = rf"Worker 2 \({addresses[2]}\) did not appear within 0.6 s; start the same command on every machine"
    waiting = machine(addresses, 0, say=said.append, seconds=0.6, tell_seconds=0.1)
    for error in at_once(waiting, machine(addresses, 1)):
        with pytest.raises(WorkerLostError, match=text):
            raise error
    assert said[0].startswith("Waiting for worker 1")
    assert f"Waiting for worker 2 ({addresses[2]}), up to 0.6 s …" in said


def test_a_worker_says_that_it_waits_for_the_chief_and_ends():
    addresses = free_addresses(2)
    said = []
    with pytest.raises(WorkerLostError, match=r"Worker 0 .* did not appear within 0.2 s"):
        machine(addresses, 1, say=said.append, seconds=0.2)()
    assert said == [f"Waiting for worker 0 ({addresses[0]}), up to 0.2 s …"]


def test_a_chief_that_leaves_ends_the_wait():
    addresses = free_addresses(2)

    def leave():
        with socket.create_server(("127.0.0.1", int(addresses[0].split(":")[1]))) as server:
            server.accept()[0].close()

    _, error = at_once(leave, machine(addresses, 1))
    with pytest.raises(WorkerLostError, match=r"Worker 0 .* ended before training began"):
        raise error


def test_something_else_that_finds_the_port_is_passed_over():
    addresses = free_addresses(2)

    def stranger():
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", int(addresses[0].split(":")[1]))) as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
                    return connection.recv(100)
            except ConnectionRefusedError:
                time.sleep(0.02)
        return None

    def late():
        time.sleep(0.2)
        return machine(addresses, 1)()

    peers, answer, _ = at_once(machine(addresses, 0), stranger, late)
    assert sorted(peers) == [1]
    assert answer == b""


def test_a_port_that_another_program_holds_is_refused():
    addresses = free_addresses(2)
    text = rf"`cluster` must have a port.*Received: '{addresses[1]}': Address already"
    with (
        socket.create_server(("", int(addresses[1].split(":")[1]))),
        pytest.raises(InputError, match=text),
    ):
        machine(addresses, 1)()
