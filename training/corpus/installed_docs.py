"""Some ten megabytes of English that every installation has: the documentation inside its Python packages.

    python -m keras_bert_impl.training.corpus.installed_docs --output docs.txt

Docstrings of the standard library, of NumPy, Keras, TensorFlow and what comes with them, and the topics of
`pydoc_data`, as running text: one document per object, one paragraph per line, a blank line between documents.
A paragraph that was there before, nearly or exactly, is dropped, so that what is generated or copied under many
names occurs once.
"""

import argparse
import hashlib
import importlib.util
import re
import sysconfig
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar

from .docstrings import docstrings
from .prose import prose_paragraphs

PACKAGES = (
    "numpy",
    "keras",
    "tensorflow",
    "keras_hub",
    "scipy",
    "pandas",
    "sklearn",
    "matplotlib",
    "huggingface_hub",
    "tensorboard",
    "hypothesis",
    "official",
)
LEAST_WORDS = 50
_SKIPPED_FOLDERS = {"test", "tests", "testing", "idle_test", "site-packages", "dist-packages", "lib2to3", "_vendor"}
# TensorFlow's copy of an older Keras and its generated wrappers say again what is said elsewhere.
_SKIPPED_PLACES = ("tensorflow/python/keras/", "tensorflow/_api/", "keras/_tf_keras/", "keras/api/")
_SKIPPED_FILE = re.compile(r"(?:test_.*|.*_test|.*_tests|conftest|gen_.*_ops)\.py$")
_LETTERS = re.compile(r"(?<![\w.])[a-z]+(?![\w.(]|\.\w)")


def write_installed_docs(
    output: str | Path, max_bytes: int = 10_000_000, say: Callable[[str], None] = lambda line: None
) -> Path:
    """Writes the text and returns its path.

    The same installation gives the same text. Sources are read in the order of `PACKAGES`, those that are not
    installed are passed over, and no more are read once there is enough.

    Args:
        output: text file to write.
        max_bytes: no document is added that would make the file larger.
        say: receives each line of what is told on the way.

    Raises:
        InputError: if no documentation is found, as in an installation that carries compiled files only.
    """
    documents, size, words = 0, 0, 0
    files = list(source_files())
    with atomic_file(output) as file, progress_bar(len(files), "file", "Reading documentation") as bar:
        for document in unrepeated(documents_of_files(_counted(files, bar))):
            text = "\n".join(document) + "\n\n"
            length = len(text.encode())
            if size + length > max_bytes:
                break
            file.write(text)
            documents, size, words = documents + 1, size + length, words + len(text.split())
        if not documents:
            raise InputError("The installed Python packages carry no documentation; give a text of your own as input.")
    say(f"Took {documents:,} documents, {words:,} words, {size / 1e6:.1f} MB, from the installed packages: {output}")
    return Path(output)


def source_files() -> Iterator[Path]:
    """Yields the Python files of the standard library and of `PACKAGES`, tests left out, in a fixed order."""
    roots = [Path(sysconfig.get_paths()["stdlib"])]
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec and spec.submodule_search_locations:
            roots.append(Path(next(iter(spec.submodule_search_locations))))
    for root in roots:
        files = [path for path in root.rglob("*.py") if _is_wanted(path.relative_to(root.parent))]
        yield from sorted(files, key=lambda path: path.relative_to(root).parts)


def documents_of_files(files: Iterable[Path]) -> Iterator[list[str]]:
    """Yields the paragraphs of every docstring that has some; the same docstring once."""
    seen: set[int] = set()
    for path in files:
        for docstring in docstrings(path.read_bytes()):
            if (digest := _number(docstring)) in seen:
                continue
            seen.add(digest)
            if paragraphs := prose_paragraphs(docstring):
                yield paragraphs


def unrepeated(documents: Iterable[list[str]]) -> Iterator[list[str]]:
    """Drops paragraphs that were there before, and documents with fewer than `LEAST_WORDS` words left.

    A paragraph was there before if one with the same words was, names and numbers aside, or if half of its
    runs of eight words were.
    """
    seen_paragraphs: set[int] = set()
    seen_runs: set[int] = set()
    for document in documents:
        new, runs_of_document = [], set()
        for paragraph in document:
            words = _LETTERS.findall(paragraph.lower())
            key, runs = _number(" ".join(words)), _runs(words)
            if key not in seen_paragraphs and (not runs or 2 * len(runs & seen_runs) < len(runs)):
                new.append(paragraph)
            seen_paragraphs.add(key)
            runs_of_document |= runs
        seen_runs |= runs_of_document
        if sum(len(paragraph.split()) for paragraph in new) >= LEAST_WORDS:
            yield new


def _runs(words: list[str]) -> set[int]:
    """Returns numbers of the runs of eight words; of one in four, which is enough to see what is repeated."""
    numbers = (zlib.crc32(" ".join(words[start : start + 8]).encode()) for start in range(len(words) - 7))
    return {number for number in numbers if number % 4 == 0}


def _counted(files: list[Path], bar: Any) -> Iterator[Path]:
    for path in files:
        yield path
        bar.update(1)


def _number(text: str) -> int:
    """Returns a 64-bit number of the text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")


def _is_wanted(path: Path) -> bool:
    return (
        not _SKIPPED_FOLDERS.intersection(path.parts)
        and not _SKIPPED_FILE.match(path.name)
        and not any(place in path.as_posix() for place in _SKIPPED_PLACES)
    )


def main() -> None:
    """Runs the command of the module's description."""
    parser = argparse.ArgumentParser(description="Write the documentation of the installed packages as plain text.")
    parser.add_argument("--output", required=True, help="text file to write")
    parser.add_argument("--max-bytes", type=int, default=10_000_000, help="size at which to stop")
    arguments = parser.parse_args()
    write_installed_docs(arguments.output, arguments.max_bytes, say=lambda line: print(line))


if __name__ == "__main__":
    main()
