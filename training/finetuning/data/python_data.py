"""Examples from Python: lists, iterables of dicts, data frames and Hugging Face data sets."""

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample

from ...configs.columns import COLUMN_SETTINGS
from .answers import AnswerPlacer
from .class_names import names_in_features
from .columns import TextColumns
from .squad import QuestionColumns
from .table import Row, Table
from .tables import find_text_columns, finder, text_example
from .tagged_files import in_iob2, read_lists

Say = Callable[[str], None]
_LISTS = {"label": "labels", "text_pair": "pairs", "tags": "tags", "context": "contexts", "answers": "answers"}
_UNSET = types.SimpleNamespace(**dict.fromkeys(COLUMN_SETTINGS))


def to_text_examples(
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    pairs: Iterable[str] | None = None,
    *,
    kind: str | None = "classification",
    config: Any = None,
    argument: str = "train",
) -> list[TextExample]:
    """Returns texts, or pairs of texts, and their labels.

    Args:
        texts: strings; or rows that map columns to values, such as a `datasets.Dataset` or a data frame.
        labels: one for each text; a column of the rows if not given.
        pairs: as many second texts; a column of the rows, if they have a usual one, when not given.
        kind: of `labels.KINDS`; None leaves labels alone.
        config: the settings of columns, for rows; usual names if not given.
        argument: what error messages call the examples.

    Raises:
        InputError: if their numbers differ, or one is not what it should be.
    """
    config = config or _UNSET
    separator = getattr(config, "label_separator", ",")
    items = _Items(texts, argument)
    if items.rows:
        items.refuse_beside(labels=labels, pairs=pairs)
        table = items.table()
        columns = find_text_columns(table, config, argument, None, kind is not None)
        return [text_example(row, columns, table, argument, kind, separator) for row in table.rows]
    labelled = kind is not None
    table = items.table("text", text_pair=None if pairs is None else (pairs,), label=(labels,) if labelled else None)
    columns = TextColumns("text", None if pairs is None else "text_pair", "label" if labelled else None)
    return [text_example(row, columns, table, argument, kind, separator) for row in table.rows]


def to_tagged_sentences(
    sentences: Iterable[Any],
    tags: Iterable[Sequence[str]] | None = None,
    *,
    labelled: bool = True,
    config: Any = None,
    argument: str = "train",
    say: Say = lambda line: None,
) -> list[TaggedSentence]:
    """Returns sentences in words and their tags, which are converted to IOB2 where they mark spans.

    Args:
        sentences: lists of words; or rows that map columns to such lists, as a `datasets.Dataset`.
        tags: as many lists of tags; a column of the rows if not given.
        labelled: whether there are tags.
        config: the settings of columns, for rows; usual names if not given.
        argument: what error messages call the examples.
        say: takes a line on the scheme of the tags.

    Raises:
        InputError: if their numbers differ, or one is not what it should be.
    """
    config = config or _UNSET
    items = _Items(sentences, argument)
    if items.rows:
        items.refuse_beside(tags=tags)
        table = items.table()
    else:
        table = items.table("words", tags=(tags,) if labelled else None)
    read = read_lists(table, config, argument, labelled)
    return in_iob2(read, argument, say) if labelled else read


def to_questions(
    questions: Iterable[Any],
    contexts: Iterable[str] | None = None,
    answers: Iterable[Any] | None = None,
    *,
    labelled: bool = True,
    config: Any = None,
    argument: str = "train",
    say: Say = lambda line: None,
) -> list[Question]:
    """Returns questions, contexts and answers, which are brought to the place where the context holds them.

    Args:
        questions: strings; or rows with the columns question, context and answers, as a `datasets.Dataset`.
        contexts: beside strings, as many texts.
        answers: beside strings, as many: a text, a list of texts, `{"text": […], "answer_start": […]}`; empty or None
            where the context holds none.
        labelled: whether there are answers.
        config: the settings of columns, for rows; usual names if not given.
        argument: what error messages call the examples.
        say: takes a line for what was mended.

    Raises:
        InputError: if their numbers differ, or one is not what it should be.
    """
    config = config or _UNSET
    items = _Items(questions, argument)
    if items.rows:
        items.refuse_beside(contexts=contexts, answers=answers)
        table = items.table()
    else:
        table = items.table("question", context=(contexts,), answers=(answers,) if labelled else None)
    columns = QuestionColumns(finder(table, config, argument), labelled)
    placer = AnswerPlacer(argument)
    result = [columns.question_of(row, placer) for row in table.rows]
    for note in placer.notes(f"`{argument}`"):
        say(note)
    return result


class _Items:
    """What came from Python, one thing after another, each with its place.

    Args:
        values: the things; plain values or rows.
        argument: what error messages call them.

    Attributes:
        rows: whether they are rows that map columns to values.
    """

    def __init__(self, values: Iterable[Any], argument: str) -> None:
        self.argument = argument
        if isinstance(values, Mapping):
            raise InputError(
                f"`{argument}` must be one list, or one split of a data set. Received: a mapping of "
                f"{', '.join(map(repr, list(values)[:10]))}"
            )
        self.class_names = names_in_features(getattr(values, "features", None))
        # A data frame gives the names of its columns where rows are meant.
        if hasattr(values, "columns") and callable(records := getattr(values, "to_dict", None)):
            values = records("records")
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InputError(f"`{argument}` must be a list or another iterable. Received: {type(values).__name__}")
        self.values = list(values)
        self.rows = bool(self.values) and isinstance(self.values[0], Mapping)
        if not self.values:
            raise InputError(f"`{argument}` must have examples. Received: none")

    def refuse_beside(self, **lists: Any) -> None:
        """Refuses lists that would stand beside columns."""
        if given := [name for name, values in lists.items() if values is not None]:
            raise InputError(
                f"`{given[0]}` must be a column of the rows. Received: a list beside rows with the columns "
                f"{', '.join(map(repr, self.values[0]))}"
            )

    def table(self, name: str = "", **lists: tuple[Iterable[Any] | None] | None) -> Table:
        """Returns them as a table.

        Args:
            name: the column of values that are no rows.
            lists: other columns by name, which must be given and as long; None for one that is not wanted.
        """
        columns: dict[str, list[Any]] = {} if self.rows else {name: self.values}
        for other, holder in lists.items():
            if holder is not None:
                columns[other] = self._as_many(other, holder[0])
        filled = (
            self.values
            if self.rows
            else [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        )
        names = tuple(map(str, filled[0]))
        return Table(
            f"`{self.argument}`", names, self._numbered(filled), "rows", by_number=False, class_names=self.class_names
        )

    def _as_many(self, name: str, values: Iterable[Any] | None) -> list[Any]:
        if values is None or isinstance(values, str | bytes | Mapping):
            what = "none" if values is None else type(values).__name__
            raise InputError(f"`{_LISTS[name]}` must be a list as long as `{self.argument}`. Received: {what}")
        found = list(values)
        if len(found) != len(self.values):
            raise InputError(
                f"`{_LISTS[name]}` must be a list as long as `{self.argument}`. "
                f"Received: {len(found)} beside {len(self.values)}"
            )
        return found

    def _numbered(self, rows: Sequence[Any]) -> Iterator[Row]:
        for number, row in enumerate(rows, start=1):
            place = f"`{self.argument}` number {number}"
            if not isinstance(row, Mapping):
                raise InputError(
                    f"`{self.argument}` must be all rows, or none. Received: {type(row).__name__} as {place}"
                )
            yield Row(place, {str(column): _plain(value) for column, value in row.items()})


def _plain(value: Any) -> Any:
    """Returns a value with NumPy's arrays and numbers as Python's, and sets in an order that is always the same."""
    if hasattr(value, "tolist") and not isinstance(value, str | bytes):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value
