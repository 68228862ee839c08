"""What the machines of a cluster tell one another beside the numbers of the steps: who is gone, and when all stop.

Alone, a machine is its own chief and has nothing to tell.
"""

import contextlib
import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keras_bert_impl.errors import InputError, StoppedBySignal, WorkerLostError

from .cluster import Cluster
from .meeting import Peer, Say, meet


@dataclasses.dataclass(frozen=True)
class Loss:
    """A machine that is gone: its number, and its last words if it had any."""

    number: int
    words: str | None = None


class Team:
    """The machines that train together, as one of them sees them.

    Args:
        cluster: the machines; None for this one alone.
        peers: connections, from `meet`.

    Attributes:
        on_loss: called with a sentence, from another thread, when a machine is gone.
        saved_step: step of the last checkpoint, to be kept up to date.
    """

    def __init__(self, cluster: Cluster | None = None, peers: Mapping[int, Peer] | None = None) -> None:
        self.cluster = cluster
        self.on_loss: Callable[[str], None] = lambda sentence: None
        self.saved_step = 0
        self._peers = dict(peers or {})
        self._changed = threading.Condition()
        self._loss: Loss | None = None
        self._told: deque[Any] = deque()
        self._over = False
        self._step = 0
        # The stop: the signal, the step that each machine was at when it heard of it, and the step agreed on.
        self._signal: int | None = None
        self._heard_at: dict[int, int] = {}
        self._stop_at: int | None = None
        for number, peer in self._peers.items():
            threading.Thread(target=self._listen, args=(number, peer), daemon=True, name=f"worker {number}").start()

    @property
    def is_chief(self) -> bool:
        """Whether this machine writes the run directory."""
        return self.cluster is None or self.cluster.is_chief

    @property
    def number(self) -> int:
        """Which one this is."""
        return self.cluster.number if self.cluster else 0

    @property
    def machines(self) -> int:
        """How many train together."""
        return len(self.cluster.addresses) if self.cluster else 1

    @property
    def step(self) -> int:
        """Steps that `agreed_stop` was told of."""
        return self._step

    def voice(self, say: Say) -> Say:
        """Says who this machine is; returns what takes the run's narration, which only the chief's user reads."""
        if self.cluster is None:
            return say
        role = "it writes the run directory" if self.is_chief else f"it follows {self.cluster.name(0)}"
        say(f"This is {self.cluster.name(self.number)} of {self.machines} machines that train together; {role}.")
        return say if self.is_chief else lambda line: None

    def from_chief(self, value: Any) -> Any:
        """Returns the chief's value on every machine; JSON. All must call it equally often."""
        if self.is_chief:
            self._send("told", value)
            return value
        with self._changed:
            self._changed.wait_for(lambda: self._told or self._loss)
            if not self._told:
                self.check()
            return self._told.popleft()

    def agreed_stop(self, step: int, wanted: int | None) -> int | None:
        """Returns the signal that ends the run after this step on every machine, or None if it goes on.

        A machine that hears of a signal says at which step it is, and makes at most one more execution until all
        have said it. The run stops after the next step that none of them had finished.

        Args:
            step: steps done. All machines call this after the same steps.
            wanted: the signal that has come here, if any.

        Raises:
            WorkerLostError: if a machine is gone.
        """
        with self._changed:
            self._step = step
        if self.cluster is None:
            return wanted
        self.check()
        if wanted is not None and self._signal is None:
            self._begin_stop(wanted) if self.is_chief else self._send("stop", wanted)
        with self._changed:
            if self._signal is None or step <= self._heard_at[self.number]:
                return None
            self._changed.wait_for(lambda: self._stop_at is not None or self._loss)
            self.check()
            return self._signal if self._stop_at is not None and step >= self._stop_at else None

    def check(self) -> None:
        """Raises `WorkerLostError` if a machine is gone."""
        if self._loss:
            raise WorkerLostError(self.describe(self._loss))

    def loss(self, seconds: float) -> Loss | None:
        """Returns which machine is gone, as soon as that is known, and None if it is not within this time."""
        with self._changed:
            self._changed.wait_for(lambda: self._loss, timeout=seconds)
            return self._loss

    def describe(self, loss: Loss) -> str:
        """Returns a sentence on a machine that is gone."""
        name = self.cluster.name(loss.number) if self.cluster else f"worker {loss.number}"
        words = f": {loss.words.rstrip('.')}" if loss.words else ", because its process or its machine ended"
        there = f"goes on from the checkpoint of step {self.saved_step}" if self.saved_step else "begins anew"
        if loss.number == 0:  # It may have been writing one.
            there = "goes on from its last checkpoint"
        return (
            f"{name.capitalize()} was lost after step {self._step}{words}; "
            f"start the same command on every machine again, and the run {there}."
        )

    def leave(self, error: BaseException | None = None) -> None:
        """Parts from the others: at a good end when the chief is done, else with a word on what went wrong.

        Raises:
            WorkerLostError: if this machine has come to a good end, but the chief has not.
        """
        good = error is None or isinstance(error, StoppedBySignal)
        try:
            if good and not self.is_chief:
                with self._changed:
                    self._changed.wait_for(lambda: self._over or self._loss)
                    if not self._over:
                        self.check()
        finally:
            with self._changed:
                self._over = True  # From now on the others may go.
            if good and self.is_chief:
                self._send("done")
            elif not good and not isinstance(error, WorkerLostError):
                self._send("failed", _last_words(error))
            for peer in self._peers.values():
                peer.close()

    def _send(self, *message: Any) -> None:
        for peer in self._peers.values():
            peer.send(*message)

    def _listen(self, number: int, peer: Peer) -> None:
        words = None
        while (message := peer.receive()) is not None:
            kind, *values = message
            if kind == "failed":
                words = str(values[0])
            elif kind == "lost":
                self._note_loss(Loss(*values))
            else:
                self._handle(number, kind, values)
        self._note_loss(Loss(number, words))

    def _handle(self, number: int, kind: str, values: list[Any]) -> None:
        if kind == "stop":
            self._begin_stop(values[0])
            return
        if kind == "at":
            self._note_heard(number, values[0])
            return
        with self._changed:
            if kind == "told":
                self._told.append(values[0])
            elif kind == "done":
                self._over = True
            elif kind == "where":
                self._signal = values[0]
                self._heard_at[self.number] = self._step
            elif kind == "stop_at":
                self._stop_at = values[0]
            self._changed.notify_all()
        if kind == "where":
            self._send("at", self._heard_at[self.number])

    def _begin_stop(self, signal: int) -> None:
        with self._changed:
            if self._signal is not None:
                return
            self._signal = signal
            self._heard_at[self.number] = step = self._step
        self._send("where", signal)
        self._note_heard(self.number, step)

    def _note_heard(self, number: int, step: int) -> None:
        with self._changed:
            self._heard_at[number] = step
            if len(self._heard_at) == self.machines:
                self._stop_at = max(self._heard_at.values()) + 1
                self._send("stop_at", self._stop_at)
            self._changed.notify_all()

    def _note_loss(self, loss: Loss) -> None:
        with self._changed:
            if self._over or self._loss:
                return
            self._loss = loss
            self._changed.notify_all()
        if self.is_chief:
            self._send("lost", loss.number, loss.words)
        self.on_loss(self.describe(loss))


def _last_words(error: BaseException | None) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    return f"{type(error).__name__} {error}".splitlines()[0]


@contextlib.contextmanager
def assembled(cluster: Cluster | None, facts: Mapping[str, Any], say: Say = lambda line: None) -> Iterator[Team]:
    """Meets the other machines, yields the team, and parts from them at the end.

    Args:
        cluster: the machines; None for this one alone.
        facts: what must be the same on all; see `meet`.
        say: takes sentences about whom it waits for.

    Raises:
        InputError: if the machines do not fit one another.
        WorkerLostError: if one does not come or goes away.
    """
    if cluster is None:
        yield Team()
        return
    team = Team(cluster, meet(cluster, facts, say))
    try:
        yield team
    except BaseException as error:
        team.leave(error)
        raise
    team.leave()
    if not team.is_chief:
        say(f"Done; {cluster.name(0)} has the results.")
