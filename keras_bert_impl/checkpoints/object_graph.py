"""The graph of objects that an object-based TensorFlow checkpoint carries."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import ClassVar, Self


@dataclasses.dataclass(frozen=True)
class ObjectGraph:
    """Which object holds which, under which name. An object is a node, a number; a variable is one too.

    Attributes:
        children: nodes that each node holds, by name.
        variables: keys of the checkpoint, by node.
        full_names: what each variable called itself, by node.
    """

    ROOT: ClassVar[int] = 0

    children: tuple[dict[str, int], ...]
    variables: dict[int, str]
    full_names: dict[int, str]

    @classmethod
    def parse(cls, serialised: bytes) -> Self:
        """Makes it from a serialised `TrackableObjectGraph`."""
        from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

        nodes = TrackableObjectGraph.FromString(serialised).nodes
        values = [(i, one) for i, node in enumerate(nodes) for one in node.attributes if one.name == "VARIABLE_VALUE"]
        return cls(
            tuple({child.local_name: child.node_id for child in node.children} for node in nodes),
            {i: one.checkpoint_key for i, one in values},
            {i: one.full_name for i, one in values},
        )

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.children)))

    def find(self, node: int, way: str) -> int | None:
        """Returns the node at the end of a way from a node, `name/name/…`, if there is one."""
        at: int | None = node
        for name in way.split("/"):
            at = None if at is None else self.children[at].get(name)
        return at

    def listed(self, node: int | None) -> tuple[int, ...]:
        """Returns the items of a list, in their order."""
        items = {} if node is None else self.children[node]
        return tuple(items[name] for name in sorted((name for name in items if name.isdecimal()), key=int))

    def is_called(self, node: int, name: str) -> bool:
        """Whether the variables of a layer have this name among those of the scopes that they stand in."""
        return any(
            name in self.full_names[variable].split("/")
            for layer in self.children[node].values()
            for variable in self.children[layer].values()
            if variable in self.full_names
        )

    def reachable(self, without: Callable[[str, int], bool]) -> set[int]:
        """Returns the nodes that a walk from the root meets.

        Args:
            without: says of the name and number of a node whether the walk turns back before it.
        """
        met, ahead = {self.ROOT}, [self.ROOT]
        while ahead:
            for name, child in self.children[ahead.pop()].items():
                if child not in met and not without(name, child):
                    met.add(child)
                    ahead.append(child)
        return met
