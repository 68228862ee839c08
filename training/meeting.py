"""How the machines of a cluster find one another before TensorFlow starts, and whether they are to do the same.

The workers connect to the chief's address and say what they are about to do. The chief compares, and answers. The
connections stay open beside TensorFlow's own, which take over the addresses.
"""

import contextlib
import errno
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert_impl.errors import InputError, WorkerLostError

from .cluster import Cluster
from .configs.addresses import split_address

Say = Callable[[str], None]
Message = list[Any]

# Machines of a job may start minutes apart; beyond that, one is missing.
WAIT_SECONDS = 600.0
TELL_SECONDS = 10.0
# A process that was killed gives its port back a little later.
PORT_SECONDS = 30.0
_HELLO = "keras-bert worker 1"
_HELLO_SECONDS = 10.0
# When one must be refused, those that come a little later hear of it too, instead of waiting for a chief that is gone.
_REFUSING_SECONDS = 20.0
_POLL_SECONDS = 0.2
_LONGEST_HELLO = 2**20
_LONGEST_MESSAGE = 2**28


class Peer:
    """A connection to another machine, for messages of JSON lists."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._lines = connection.makefile("rb")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A machine that has vanished is noticed after 10 + 3 * 5 seconds.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def send(self, *message: Any) -> None:
        """Sends a message; one that cannot arrive is no error, since whoever listens notices that the peer is gone."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, *, seconds: float | None = None, longest: int = _LONGEST_MESSAGE) -> Message | None:
        """Returns the next message, or None if the connection has ended, or none came in this time."""
        try:
            self._connection.settimeout(seconds)
            line = self._lines.readline(longest)
            message = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        return message if isinstance(message, list) and message else None

    def close(self) -> None:
        """Ends the connection."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def meet(
    cluster: Cluster,
    facts: Mapping[str, Any],
    say: Say = lambda line: None,
    *,
    seconds: float = WAIT_SECONDS,
    tell_seconds: float = TELL_SECONDS,
) -> dict[int, Peer]:
    """Returns connections to the others once all are there: the chief's to each worker, a worker's to the chief.

    Args:
        cluster: the machines.
        facts: what must be the same on all, by its name; JSON values.
        say: takes a sentence about whom it waits for, again and again.
        seconds: how long it waits for all.
        tell_seconds: time between such sentences.

    Raises:
        InputError: if the facts differ, a worker comes twice, or this machine's port is in use.
        WorkerLostError: if one does not appear, or the chief leaves again.
    """
    deadline = time.monotonic() + seconds
    # As they come out at the other end, where tuples are lists.
    ours: dict[str, Any] = json.loads(json.dumps({"cluster": cluster.addresses, **facts}))
    with _own_port(cluster) as listener:
        if cluster.is_chief:
            return _gather(cluster, ours, listener, deadline, _Repeated(say, tell_seconds, seconds))
    return {0: _join(cluster, ours, deadline, _Repeated(say, tell_seconds, seconds))}


def difference(cluster: Cluster, number: int, facts: Mapping[str, Any], others: Mapping[str, Any]) -> str | None:
    """Returns a sentence on the first fact in which a worker differs from the chief; None if there is none."""
    for name in [*facts, *(name for name in others if name not in facts)]:
        if facts.get(name) != others.get(name):
            return (
                "`cluster` must have the same settings, data and versions on all machines. "
                f"Received: {name} is {facts.get(name)!r} on {cluster.name(0)} "
                f"and {others.get(name)!r} on {cluster.name(number)}"
            )
    return None


class _Repeated:
    """Says whom it waits for, at once and then at intervals."""

    def __init__(self, say: Say, every: float, seconds: float) -> None:
        self.say = say
        self.every = every
        self.seconds = seconds
        self._begun = time.monotonic()
        self._next = self._begun

    def __call__(self, whom: str) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self.every
        waited = f", {now - self._begun:.0f} s so far" if now - self._begun >= 1 else ""
        self.say(f"Waiting for {whom}, up to {_in_words(self.seconds)}{waited} …")
        return True


def _gather(
    cluster: Cluster, facts: dict[str, Any], listener: socket.socket, deadline: float, tell: _Repeated
) -> dict[int, Peer]:
    peers: dict[int, Peer] = {}
    everyone = set(range(1, len(cluster.addresses)))
    refusal: str | None = None
    listener.listen()
    listener.settimeout(_POLL_SECONDS)
    while missing := sorted(everyone - peers.keys()):
        if time.monotonic() > deadline:
            break
        if not refusal and tell(_names(cluster, missing)):
            for peer in peers.values():
                peer.send("waiting", missing)
        with contextlib.suppress(TimeoutError):
            found = _greet(cluster, facts, Peer(listener.accept()[0]), peers)
            if found and not refusal:
                refusal = found
                deadline = min(deadline, time.monotonic() + _REFUSING_SECONDS)
    if refusal or missing:
        sentence = refusal or _absent(cluster, missing, tell.seconds)
        for peer in peers.values():
            peer.send("refused", bool(refusal), sentence)
            peer.close()
        raise InputError(sentence) if refusal else WorkerLostError(sentence)
    for peer in peers.values():
        peer.send("begin")
    return peers


def _greet(cluster: Cluster, facts: dict[str, Any], peer: Peer, peers: dict[int, Peer]) -> str | None:
    """Takes in the worker that has connected; returns a sentence if training cannot begin with it."""
    message = peer.receive(seconds=_HELLO_SECONDS, longest=_LONGEST_HELLO)
    if message is None or message[0] != _HELLO:
        peer.close()  # Something else that found the port.
        return None
    _, number, theirs = message
    if number in peers or not 0 < number < len(cluster.addresses):
        known = "two that say they are" if number in peers else "one that says it is"
        sentence = f"`worker` must be another number on each machine, 0 on the first. Received: {known} worker {number}"
        peer.send("refused", True, sentence)
        peer.close()
        return sentence
    peers[number] = peer
    return difference(cluster, number, facts, theirs)


def _join(cluster: Cluster, facts: dict[str, Any], deadline: float, tell: _Repeated) -> Peer:
    connection = None
    while connection is None:
        tell(cluster.name(0))
        try:
            connection = socket.create_connection(split_address(cluster.addresses[0]), timeout=_HELLO_SECONDS)
        except OSError:
            if time.monotonic() > deadline:
                raise WorkerLostError(_absent(cluster, [0], tell.seconds)) from None
            time.sleep(_POLL_SECONDS)
    peer = Peer(connection)
    peer.send(_HELLO, cluster.number, facts)
    while (message := peer.receive(seconds=tell.seconds + _HELLO_SECONDS)) is not None:
        if message[0] == "begin":
            return peer
        if message[0] == "waiting" and (missing := [number for number in message[1] if number != cluster.number]):
            tell(_names(cluster, missing))
        if message[0] == "refused":
            peer.close()
            raise InputError(message[2]) if message[1] else WorkerLostError(message[2])
    peer.close()
    raise WorkerLostError(f"{cluster.name(0).capitalize()} ended before training began, or is busy with another run.")


@contextlib.contextmanager
def _own_port(cluster: Cluster) -> Iterator[socket.socket]:
    """Holds this machine's port, bound to all its addresses, as TensorFlow will hold it."""
    _, port = split_address(cluster.addresses[cluster.number])
    deadline = time.monotonic() + PORT_SECONDS
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        while True:
            try:
                listener.bind(("", port))
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    raise InputError(
                        "`cluster` must have a port for this machine that can be opened. "
                        f"Received: {cluster.addresses[cluster.number]!r}: {error.strerror}"
                    ) from error
                time.sleep(_POLL_SECONDS)
        yield listener


def _names(cluster: Cluster, numbers: list[int]) -> str:
    return ", ".join(cluster.name(number) for number in numbers)


def _absent(cluster: Cluster, missing: list[int], seconds: float) -> str:
    return (
        f"{_names(cluster, missing).capitalize()} did not appear within {_in_words(seconds)}; "
        "start the same command on every machine."
    )


def _in_words(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} s"
