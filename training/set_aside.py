"""What cannot be used is never deleted: it gets another name, beside the place where it was."""

from pathlib import Path

from keras_bert_impl.atomic import to_disk

SET_ASIDE = "damaged_"
"""Begins the names of what was set aside."""


def set_aside(path: Path) -> Path:
    """Renames a file or directory, in its directory, and returns where it lies now."""
    names = (f"{SET_ASIDE}{path.name}{suffix}" for suffix in ("", *(f".{number}" for number in range(2, 1000))))
    aside = path.rename(next(path.parent / name for name in names if not (path.parent / name).exists()))
    to_disk(path.parent)
    return aside
