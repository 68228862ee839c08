"""Several machines of a cluster, played by threads of this process that meet on 127.0.0.1."""

import contextlib
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keras_bert_impl.training.cluster import Cluster
from keras_bert_impl.training.meeting import meet
from keras_bert_impl.training.team import Team


def free_addresses(count: int) -> tuple[str, ...]:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return tuple(f"127.0.0.1:{server.getsockname()[1]}" for server in servers)


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Runs each in a thread of its own; returns what each returned or raised."""

    def outcome(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(outcome, works))


def teams(count: int) -> list[Team]:
    """Teams that have met, as each of the machines sees its own."""
    addresses = free_addresses(count)
    clusters = [Cluster(addresses, number) for number in range(count)]
    peers = at_once(*(lambda cluster=cluster: meet(cluster, {}, seconds=20) for cluster in clusters))
    return [Team(cluster, met) for cluster, met in zip(clusters, peers, strict=True)]
