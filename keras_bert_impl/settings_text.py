"""Settings as YAML or JSON text, read so that a key that is there twice is found."""

from collections.abc import Iterator
from typing import Any

import yaml
from jsonargparse import get_loader, set_loader

from keras_bert_impl.errors import InputError

# The name under which jsonargparse knows this way of reading.
MODE = "settings"


def load_settings(text: str) -> Any:
    """Returns what jsonargparse reads from YAML or JSON; PyYAML takes the last of equal keys without a word.

    Raises:
        InputError: if a mapping has a key twice, or something holds itself or is nested too deep to be read.
    """
    try:
        return _load(text)
    except RecursionError as error:
        raise InputError("`settings` must not be nested so deep. Received: more levels than can be read") from error


def _load(text: str) -> Any:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, first, second in _keys_twice(node) if node else ():
        raise InputError(
            f"`settings` must have every key once. Received: {key!r} on the lines {first} and {second}"
            if first != second
            else f"`settings` must have every key once. Received: {key!r} twice on line {first}"
        )
    return get_loader("yaml")(text)


def _keys_twice(node: yaml.Node, above: tuple[yaml.Node, ...] = ()) -> Iterator[tuple[str, int, int]]:
    if node in above:
        line = node.start_mark.line + 1
        raise InputError(f"`settings` must not have an alias that holds itself. Received: one on line {line}")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _keys_twice(item, (*above, node))
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode):
                if key.value in lines:
                    yield key.value, lines[key.value], line
                lines[key.value] = line
            yield from _keys_twice(value, (*above, node))


set_loader(MODE, load_settings, (yaml.YAMLError,))
