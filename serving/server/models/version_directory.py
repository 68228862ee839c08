"""Version directories as files: which are there, and whether one is still being written."""

from pathlib import Path

_LARGEST_VERSION = 2**63 - 1

Contents = tuple[tuple[str, int, int], ...]
"""Of every file of a version: its path, its size and when it was last written."""


def has_saved_model(directory: Path) -> bool:
    """Returns whether a directory is that of a version."""
    return (directory / "saved_model.pb").is_file()


def version_directories(directory: Path) -> dict[int, Path]:
    """Returns the version directories by their number.

    Raises:
        OSError: if the directory cannot be read.
    """
    numbered = [path for path in sorted(directory.iterdir()) if path.name.isascii() and path.name.isdigit()]
    # Digits beyond any number would take Python long to read.
    versions = {int(path.name): path for path in numbered if len(path.name) < 20 and has_saved_model(path)}
    return {number: path for number, path in versions.items() if number <= _LARGEST_VERSION}


def contents(directory: Path) -> Contents:
    """Returns what tells whether the files of a version have changed.

    Raises:
        OSError: if they cannot be read, since they are being moved for instance.
    """
    files = []
    for path in sorted(directory.rglob("*")):
        status = path.stat()
        if not path.is_dir():
            files.append((path.relative_to(directory).as_posix(), status.st_size, status.st_mtime_ns))
    return tuple(files)
