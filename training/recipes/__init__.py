"""Settings of known training runs, as files for `pretrain --recipe NAME` or `--config`.

Each begins with comments: its source, the commands, what it costs and what to expect.
"""

from pathlib import Path

from keras_bert_impl.errors import InputError

_FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Returns the names of the recipes, in order."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


def path(name: str) -> Path:
    """Returns the file of a recipe.

    Raises:
        InputError: if there is none of this name.
    """
    if name not in names():
        raise InputError(f"`recipe` must be one of {', '.join(names())}. Received: recipe={name!r}")
    return _FOLDER / f"{name}.yaml"
