"""Where outputs may be written: not over what they are made of, nor over one another."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.errors import InputError

from ..configs.predict import STANDARD_STREAM
from .data.text_source import labelled_files

# A model's directory is read differently when one of these comes into it.
_READ_WITH_A_MODEL = frozenset(
    ("config.json", "task.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
)


def check_output_places(
    outputs: Mapping[str, str | None], inputs: Sequence[str], model: str, data: str | None = None
) -> None:
    """Refuses outputs that would replace an input, a file of the model or of the data, or one another.

    Args:
        outputs: names of files by argument; None for one that is not written, `-` for standard output.
        inputs: names and patterns of what is read; `-` for standard input.
        model: the model's directory, or run directory.
        data: the directory of prepared data, where there is one.

    Raises:
        InputError: if an output may not be there, or is a device or another file that cannot be replaced.
    """
    places = {argument: name for argument, name in outputs.items() if name not in (None, STANDARD_STREAM)}
    read = [file.path for file in labelled_files(inputs, "input", lambda line: None) if file.path != STANDARD_STREAM]
    seen: dict[str, str] = {}
    for argument, name in places.items():
        assert name is not None
        _check_is_plain(argument, name)
        if any(_same(name, path) for path in read):
            raise InputError(f"`{argument}` must be another file than `input`. Received: {name!r} for both")
        for other, other_name in seen.items():
            if _same(name, other_name):
                raise InputError(f"`{argument}` must be another file than `{other}`. Received: {name!r} for both")
        for source, directory in (("model", model), ("data", data)):
            if directory is not None and _is_part_of(Path(name), directory):
                raise InputError(
                    f"`{argument}` must not replace a file of `{source}`. "
                    f"Received: {name!r}, in the directory of {directory!r}"
                )
        seen[argument] = name


def _check_is_plain(argument: str, name: str) -> None:
    """Refuses devices, pipes, and names such as `/dev/stdout`, behind which a log may lie that others write to."""
    path = Path(name)
    absolute = Path(os.path.abspath(name))  # noqa: PTH100 - links are not followed
    passed = absolute.as_posix()
    if passed in ("/dev/stdin", "/dev/stdout", "/dev/stderr") or passed.startswith(("/dev/fd/", "/proc/")):
        fault = "which is a stream; `output` - is standard output" if argument == "output" else "which is a stream"
    elif path.exists() and not path.is_file():
        fault = "which is a directory" if path.is_dir() else "which is neither"
    else:
        return
    raise InputError(f"`{argument}` must be a file: a new or a regular one. Received: {name!r}, {fault}")


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:  # One of them is not there yet.
        return os.path.realpath(one) == os.path.realpath(other)


def _is_part_of(path: Path, directory: str) -> bool:
    place = Path(os.path.realpath(path))
    for folder in {Path(directory), model_directory(directory)}:
        inside = place.is_relative_to(os.path.realpath(folder))
        if inside and (place.exists() or place.name in _READ_WITH_A_MODEL):
            return True
        # A link from elsewhere, or one in the directory to weights elsewhere, names the same file.
        if place.exists() and folder.is_dir() and any(_same(str(place), str(file)) for file in folder.iterdir()):
            return True
    return False
