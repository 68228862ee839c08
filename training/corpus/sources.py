"""Everything that text may come from, opened for reading once or twice."""

import contextlib
import json
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

from .input_files import STANDARD_INPUT, SourceFile, find_files
from .temporary import temporary_room
from .wording import size_in_words


@contextlib.contextmanager
def open_sources(
    inputs: Sequence[str],
    texts: Any = None,
    *,
    text_field: str = "text",
    once: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[list[SourceFile]]:
    """Yields the sources of a corpus for `readers.read_documents`, as often as that is called within the block.

    Standard input, pipes and generators, which give their text once, are put into temporary files, and it is said.

    Args:
        inputs: as for `find_files`.
        texts: strings, or mappings with a column of them, such as a Hugging Face
            `datasets.Dataset`; read after the files.
        text_field: the column.
        once: the text will be read once only, so no temporary file is needed.
        say: receives each line of what is told.

    Raises:
        InputError: if there is no source, or one cannot be used.
    """
    if not inputs and texts is None:
        raise InputError("`inputs` must name at least one text file. Received: inputs=()")
    sources = find_files(inputs, say=say)
    if texts is not None:
        sources.append(_source_of_texts(texts, text_field))
    with contextlib.ExitStack() as stack:
        for source in [] if once else sources:
            if _comes_once(source):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="keras-bert-"))
                _store(source, Path(folder) / "text", say)
        yield sources


def _source_of_texts(rows: Any, text_field: str) -> SourceFile:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InputError(f"`texts` must be an iterable of strings or rows. Received: {type(rows).__name__}")
    if isinstance(rows, Mapping):
        raise InputError(f"`texts` must be one split of a data set. Received: the splits {sorted(map(str, rows))}")
    return SourceFile("<texts>", 0, texts=_Texts(rows, text_field))


def _comes_once(source: SourceFile) -> bool:
    if isinstance(source.texts, _Texts):
        return iter(source.texts.rows) is source.texts.rows
    return source.path == STANDARD_INPUT or stat.S_ISFIFO(Path(source.path).stat().st_mode)


def _store(source: SourceFile, place: Path, say: Callable[[str], None]) -> None:
    if source.texts is not None:
        with temporary_room(), place.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(text)}\n" for text in source.texts)
        source.texts = _StoredTexts(place)
        name = "`texts`"
    else:
        with source.open() as stream, temporary_room(), place.open("wb") as target:
            shutil.copyfileobj(stream, target, 2**20)
        source.place, source.size = str(place), place.stat().st_size
        name = "Standard input" if source.path == STANDARD_INPUT else source.path
    size = size_in_words(place.stat().st_size)
    say(f"{name} can be gone through once only and is needed twice: put into a temporary file of {size}.")


class _Texts:
    """The texts of rows, which are checked as they come."""

    def __init__(self, rows: Iterable[Any], text_field: str):
        self.rows = rows
        self.text_field = text_field

    def __iter__(self) -> Iterator[str]:
        for number, row in enumerate(self.rows, start=1):
            text = row
            if isinstance(row, Mapping):
                if self.text_field not in row:
                    known = sorted(map(str, row))[:10]
                    raise InputError(
                        f"`text_field` must name a column. Received: {self.text_field!r}; row {number} of `texts` "
                        f"has {known}"
                    )
                text = row[self.text_field]
            if not isinstance(text, str):
                raise InputError(f"`texts` must hold strings. Received: {type(text).__name__} as number {number}")
            yield text


class _StoredTexts:
    """The texts of a generator, as they were put into a file."""

    def __init__(self, place: Path):
        self.place = place

    def __iter__(self) -> Iterator[str]:
        with self.place.open(encoding="utf-8") as file:
            yield from map(json.loads, file)
