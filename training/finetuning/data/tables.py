"""Texts and pairs of texts with their labels, from TSV, CSV, JSON lines, Parquet and lines of text."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample

from ...corpus.input_files import SourceFile
from ...corpus.wording import counted
from .class_names import class_name
from .columns import ColumnFinder, TextColumns
from .forms import form_of, looked_at, open_table
from .labels import label_of_value
from .table import Row, Table, check_characters, id_of, text_of
from .text_source import TextSource, labelled_files

Example = TypeVar("Example", bound=TextExample | TaggedSentence | Question)
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, slots=True)
class InputRow(Generic[Example]):
    """A row to be answered: all its values by column, in order, and what is asked."""

    values: dict[str, Any]
    example: Example
    place: str


@dataclasses.dataclass
class InputRows(Generic[Example]):
    """Rows to be answered, as they come; to be gone through once.

    Attributes:
        names: of the columns, known before the first row; of JSON lines those of the first; none for CoNLL.
        text_column: the text's, or the question's, or the words'.
        pair_column: the second text's, or the context's.
        id_column: that of the rows' own names.
        sentences_of_words: whether the examples are sentences in words.
    """

    names: tuple[str, ...]
    rows: Iterator[InputRow[Example]]
    text_column: str | None = None
    pair_column: str | None = None
    id_column: str | None = None
    sentences_of_words: bool = False

    @property
    def has_pairs(self) -> bool:
        """Whether each row has a second text."""
        return self.pair_column is not None

    def __iter__(self) -> Iterator[InputRow[Example]]:
        return self.rows


def read_text_examples(
    files: Sequence[str | Path], config: Any, *, argument: str, kind: str | None, pair: bool | None = None, say: Say
) -> list[TextExample]:
    """Reads texts, or pairs of texts, and their labels.

    Args:
        files: names, patterns, or `-` for standard input.
        config: the settings of columns, and `label_separator` for multilabel.
        argument: what error messages call the files.
        kind: of `labels.KINDS`; None leaves labels alone.
        pair: whether pairs are wanted; None takes what the files have.
        say: takes a line for each file, and one for everything odd.

    Raises:
        InputError: if a file cannot be read, columns are not clear, or a row has not what it should; with its line.
    """
    examples: list[TextExample] = []
    paired: dict[bool, str] = {}
    for file in labelled_files(files, argument, say):
        table = open_text_table(file, config, argument, kind is not None)
        columns = find_text_columns(table, config, argument, pair, kind is not None)
        before = len(examples)
        separator = getattr(config, "label_separator", ",")
        examples += (text_example(row, columns, table, argument, kind, separator) for row in table.rows)
        say(f"{file.path}: {counted(len(examples) - before, 'row')}; {table.form}; {columns}.")
        for note in (*table.notes(), *empty_texts(file.path, examples[before:])):
            say(note)
        paired.setdefault(columns.pair is not None, file.path)
    if len(paired) > 1:
        raise InputError(
            f"`{argument}` must all have pairs of texts, or none. Received: {paired[True]!r} with pairs and "
            f"{paired[False]!r} with single texts"
        )
    return examples


def stream_text_rows(
    file: str, config: Any, *, argument: str = "input", pair: bool | None = None, say: Say
) -> InputRows[TextExample]:
    """Opens texts, or pairs of texts, to be answered row by row; labels are left alone.

    Args, errors: as `read_text_examples`, and the errors of a row come when it is reached.
    """
    source = one_file(file, argument, say)
    table = open_text_table(source, config, argument, False)
    return text_rows(table, config, argument, pair, say)


def text_rows(table: Table, config: Any, argument: str, pair: bool | None, say: Say) -> InputRows[TextExample]:
    """Returns the rows of a table as texts to be answered; of an empty file, none."""
    if not table.names:
        say(f"{table.path}: no rows.")
        return InputRows((), iter(()))
    columns = find_text_columns(table, config, argument, pair, False)
    say(f"{table.path}: {table.form}; {columns}.")

    def rows() -> Iterator[InputRow[TextExample]]:
        empty = 0
        for row in table.rows:
            example = text_example(row, columns, table, argument, None, "")
            check_characters(row.values, row.place, argument)
            empty += is_empty(example)
            yield InputRow(row.values, example, row.place)
        for note in (*table.notes(), *_of_empty(table.path, empty)):
            say(note)

    return InputRows(table.names, rows(), columns.text, columns.pair, columns.id)


def one_file(file: str, argument: str, say: Say) -> SourceFile:
    """Returns the one file that a name stands for."""
    files = labelled_files([file], argument, say)
    if len(files) != 1:
        raise InputError(f"`{argument}` must name one file. Received: {file!r}, which stands for {len(files)}")
    return files[0]


def open_text_table(file: SourceFile, config: Any, argument: str, labelled: bool) -> Table:
    """Opens a file whose form is one of tables."""
    source = TextSource(file, config.encoding, argument)
    form, lines = form_of(file, config, argument), None
    if form in ("json", "txt"):
        form, lines = looked_at(source, form)
    if form in ("squad", "conll", "json"):
        chosen = config.input_format == form
        what = f"with `input_format` {form}" if chosen else f"which is {'CoNLL' if form == 'conll' else 'other JSON'}"
        raise InputError(
            f"`{argument}` must be tables: .tsv, .csv, .jsonl (an object a line) or .parquet. "
            f"Received: {file.path!r}, {what}"
        )
    return open_table(file, form, lines, source, config, labelled)


def find_text_columns(table: Table, config: Any, argument: str, pair: bool | None, labelled: bool) -> TextColumns:
    """Returns the columns of texts of a table.

    Raises:
        InputError: if they are not clear, or there is no row at all.
    """
    if not table.names:
        raise InputError(f"`{argument}` must have rows. Received: {table.path!r}, which has none")
    return finder(table, config, argument).text_columns(pair=pair, labelled=labelled)


def finder(table: Table, config: Any, argument: str) -> ColumnFinder:
    """Returns what finds the columns of a table."""
    first = table.first.values if table.first is not None and not table.named else None
    return ColumnFinder(
        table.names, config, argument=argument, source=table.name, by_number=table.by_number, first=first
    )


def text_example(
    row: Row, columns: TextColumns, table: Table, argument: str, kind: str | None, separator: str
) -> TextExample:
    """Returns the example that a row is."""
    text = text_of(row, columns.text, argument)
    pair = text_of(row, columns.pair, argument) if columns.pair is not None else None
    label = None
    if kind is not None and columns.label is not None:
        value = named_classes(row.values.get(columns.label), table, columns.label, argument, row.place)
        check_characters(value, row.place, argument)
        label = label_of_value(value, kind, separator, argument, row.place)
    return TextExample(text, pair, label, id_of(row, columns.id, argument), row.place)


def named_classes(value: Any, table: Table, column: str, argument: str, place: str) -> Any:
    """Returns a value with names in place of the numbers of classes, where the table has such."""
    names = table.class_names.get(column)
    if isinstance(value, list):
        return [class_name(part, names, argument, place) for part in value]
    return class_name(value, names, argument, place)


def is_empty(example: TextExample) -> bool:
    """Whether a text, or the second one, is without a character."""
    return not example.text.strip() or (example.text_pair is not None and not example.text_pair.strip())


def empty_texts(path: str, examples: Sequence[TextExample]) -> Iterator[str]:
    """Yields a sentence if there are rows without text."""
    yield from _of_empty(path, sum(map(is_empty, examples)))


def _of_empty(path: str, count: int) -> Iterator[str]:
    if count:
        yield f"{path}: {counted(count, 'row')} with an empty text; kept."
