"""Which machines train together, and which of them this one is."""

import contextlib
import dataclasses
import errno
import json
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

from .configs.addresses import split_address, split_addresses

_ROLES = ("chief", "worker")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The machines of a run, by their number; number 0 is the chief, which writes the run directory.

    Attributes:
        addresses: HOST:PORT of each.
        number: which one this is.
    """

    addresses: tuple[str, ...]
    number: int

    @property
    def is_chief(self) -> bool:
        """Whether this machine writes the run directory."""
        return self.number == 0

    def name(self, number: int) -> str:
        """Returns what sentences call a machine."""
        return f"worker {number} ({self.addresses[number]})"


def find_cluster(cluster: str | None, worker: int | None, environment: Mapping[str, str]) -> Cluster | None:
    """Returns the cluster that the settings or TF_CONFIG describe, or None for this machine alone.

    Args:
        cluster: HOST:PORT of each machine, separated by commas.
        worker: number of this machine; found by its addresses when not given.
        environment: `os.environ`, for its `TF_CONFIG`. One that names a single machine is the same as none.

    Raises:
        InputError: if they cannot be used, or differ from one another.
    """
    described = _of_tf_config(environment["TF_CONFIG"]) if environment.get("TF_CONFIG") else None
    if cluster is None:
        return described
    addresses = split_addresses(cluster)
    if worker is not None and not 0 <= worker < len(addresses):
        raise InputError(
            f"`worker` must be from 0 to {len(addresses) - 1}, a place in `cluster`. Received: worker={worker}"
        )
    if described is not None and described.addresses != addresses:
        raise InputError(
            "`cluster` must be the same as TF_CONFIG says where there is one. "
            f"Received: {cluster!r}, TF_CONFIG with {','.join(described.addresses)!r}"
        )
    if described is not None and worker not in (None, described.number):
        raise InputError(
            "`worker` must be the same as TF_CONFIG says where there is one. "
            f"Received: worker={worker}, TF_CONFIG with {described.number}"
        )
    if worker is None:
        worker = described.number if described else own_number(addresses)
    return Cluster(addresses, worker)


@contextlib.contextmanager
def place_of_run(run: str, cluster: Cluster | None) -> Iterator[Path]:
    """Yields where a machine keeps what belongs to the run: the chief in the run directory, others for the time being.

    Args:
        run: the run directory.
        cluster: the machines; None for this one alone.
    """
    if cluster is None or cluster.is_chief:
        yield Path(run)
        return
    with tempfile.TemporaryDirectory(prefix="keras-bert-worker-") as folder:
        yield Path(folder)


def own_number(addresses: tuple[str, ...]) -> int:
    """Returns the number of the only address that belongs to this machine.

    Raises:
        InputError: if none does, or several do.
    """
    own = [number for number, address in enumerate(addresses) if _is_here(*split_address(address))]
    if len(own) != 1:
        how_many = f"{len(own)} of these addresses are" if own else "none of these addresses is"
        raise InputError(
            f"`worker` must be given, the number of this machine in `cluster` from 0 on, because {how_many} "
            f"its own. Received: cluster={','.join(addresses)!r}"
        )
    return own[0]


def _is_here(host: str, port: int) -> bool:
    """Whether the address can be bound, or could if the port were free."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):  # a label of a host that is too long, or none of the net's letters
        return False
    for family, kind, protocol, _, place in places:
        try:
            with socket.socket(family, kind, protocol) as bound:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(place)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                continue
        return True
    return False


def _of_tf_config(text: str) -> Cluster | None:
    try:
        config = json.loads(text)
        jobs = config.get("cluster") or {}
        task = config.get("task") or {}
        addresses = {role: [str(address) for address in jobs[role]] for role in jobs}
        role, index = task.get("type"), task.get("index")
        known = {*addresses, *([role] if role else [])}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            "`TF_CONFIG` must be JSON with `cluster`, lists of addresses by role, and `task`, a type and an index. "
            f"Received: {text if len(text) < 1000 else text[:1000] + '…'!r}"
        ) from error
    if wrong := sorted(known - set(_ROLES), key=repr):
        raise InputError(
            "`TF_CONFIG` must have the roles chief and worker only, since parameter servers and evaluators have no "
            f"part in this training. Received: {wrong[0]!r}"
        )
    everyone = [address for role in _ROLES for address in addresses.get(role, [])]
    if len(everyone) < 2:
        return None
    if len(addresses.get("chief", [])) > 1:
        raise InputError(f"`TF_CONFIG` must have one chief. Received: {addresses['chief']}")
    split_addresses(",".join(everyone), "TF_CONFIG")
    return Cluster(tuple(everyone), _number_of_task(role, index, addresses))


def _number_of_task(role: Any, index: Any, addresses: dict[str, list[str]]) -> int:
    of_role = addresses.get(role, [])
    if type(index) is not int and not (isinstance(index, str) and re.fullmatch("[0-9]{1,9}", index)):
        index = -1
    if not 0 <= int(index) < len(of_role):
        raise InputError(
            "`TF_CONFIG` must have a `task` whose index is a place in the list of its type. "
            f"Received: type {role!r}, index {index!r}, with {len(of_role)} of that type"
        )
    return int(index) + (len(addresses.get("chief", [])) if role == "worker" else 0)
