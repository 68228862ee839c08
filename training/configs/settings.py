"""What all settings classes share: fields with help texts, and checks that say the rule."""

import dataclasses
import os
import typing
from collections.abc import Iterable
from typing import Any, Self

from keras_bert_impl.errors import InputError, nearest

_REQUIRED: Any = dataclasses.MISSING


def setting(default: Any = _REQUIRED, *, help: str) -> Any:
    """A dataclass field with its help text; without a default it must be given."""
    if isinstance(default, list | tuple):
        return dataclasses.field(default_factory=lambda: tuple(default), metadata={"help": help})
    return dataclasses.field(default=default, metadata={"help": help})


class Settings:
    """What every settings class can do."""

    @classmethod
    def from_dict(cls, values: dict[str, Any], name: str | None = None) -> Self:
        """Builds the settings; an unknown or missing key raises `InputError` with the known ones.

        Args:
            values: the fields.
            name: what error messages call the settings; the class's name when not given.
        """
        name = name or cls.__name__
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        known = [field.name for field in fields]
        if unknown := sorted(values.keys() - set(known)):
            meant = " or ".join(map(repr, nearest(unknown, known)))
            hint = f" Did you mean {meant}?" if meant else ""
            raise InputError(f"Unknown `{name}` keys: {unknown}.{hint} Known keys: {known}")
        for field in fields:
            no_default = field.default is _REQUIRED and field.default_factory is _REQUIRED
            if no_default and field.name not in values:
                raise InputError(f"`{name}` needs the key {field.name!r}. Received: {sorted(values)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain JSON values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload]


ANY = float(2**62)


def check_range(config: Any, name: str, low: float, high: float, *, low_open: bool = False) -> None:
    """Raises `InputError` unless a setting is a number from `low` on, or more than it, and up to `high`.

    A setting whose field is an `int` must be a whole one.
    """
    value = getattr(config, name)
    if isinstance(value, float) and _is_whole(type(config), name):
        raise InputError(f"`{name}` must be a whole number. Received: {name}={value!r}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (low < value if low_open else low <= value) or not value <= high:
        rule = f"a number {'more than' if low_open else 'of at least'} {low}"
        if high < ANY or (number and value > high):
            rule += f" and at most {high}" if isinstance(high, int) else f" and at most {high:g}"
        raise InputError(f"`{name}` must be {rule}. Received: {name}={value!r}")


def _is_whole(settings: type[Any], name: str) -> bool:
    hint = typing.get_type_hints(settings)[name]
    return int in (hint, *typing.get_args(hint)) and float not in typing.get_args(hint)


# The hashes that every choice comes from know seeds of 64 bits; others would silently be taken for one of these.
_SEEDS = 2**64


def check_seed(seed: Any) -> None:
    """Raises `InputError` unless the seed is a whole number of 64 bits."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < _SEEDS:
        raise InputError(f"`seed` must be a whole number from 0 to {_SEEDS - 1}. Received: seed={seed!r}")


def list_of_files(name: str, files: Any) -> tuple[str, ...]:
    """Returns the files as a tuple; a single name, which Python would take apart, raises `InputError`."""
    if isinstance(files, str | bytes | os.PathLike):
        raise InputError(f"`{name}` must be a list of files, not a single name. Received: {name}={files!r}")
    if not isinstance(files, Iterable):
        raise InputError(f"`{name}` must be a list of files. Received: {name}={files!r}")
    return tuple(files)


def as_python(value: Any) -> Any:
    """Returns NumPy's numbers and arrays, alone or in lists, as Python's."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return type(value)(map(as_python, value)) if type(value) in (list, tuple) else value


def check_word(config: Any, name: str, words: tuple[str, ...]) -> None:
    """Raises `InputError` unless a setting is one of these words."""
    value = getattr(config, name)
    if value not in words:
        rule = f"{', '.join(words[:-1])} or {words[-1]}"
        raise InputError(f"`{name}` must be {rule}. Received: {name}={value!r}")


def check_defaults(config: Any, names: Iterable[str], reason: str) -> None:
    """Raises `InputError` if one of these settings is not its default; `reason` says with what it cannot go."""
    for field in dataclasses.fields(config):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.name in names and getattr(config, field.name) != default:
            raise InputError(
                f"`{field.name}` must be left as it is with {reason}. "
                f"Received: {field.name}={getattr(config, field.name)!r}"
            )
