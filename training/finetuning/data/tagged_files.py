"""Sentences in words with their tags: CoNLL files, and lists of words and tags in JSON lines and Parquet."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import TaggedSentence, TextExample

from ...corpus.input_files import SourceFile
from ...corpus.oddities import Oddities
from ...corpus.text_lines import without_surrogates
from ...corpus.wording import counted
from .columns import TAGS, WORDS, ColumnFinder
from .conll import ConllFile
from .forms import form_of, looked_at, open_table
from .schemes import find_scheme, to_iob2
from .table import Row, Table, check_characters, id_of
from .tables import InputRow, InputRows, finder, named_classes, one_file, text_rows
from .text_source import TextSource, labelled_files

Say = Callable[[str], None]


def read_tagged_sentences(
    files: Sequence[str | Path], config: Any, *, argument: str, labelled: bool = True, say: Say
) -> list[TaggedSentence]:
    """Reads sentences in words and their tags.

    Tags that mark spans are recognised over all files and converted to IOB2; others stay as they are.

    Args:
        files: names, patterns, or `-` for standard input.
        config: the settings of columns.
        argument: what error messages call the files.
        labelled: whether there are tags to be read.
        say: takes a line for each file, one for the scheme, and one for everything odd.

    Raises:
        InputError: if a file cannot be read or a line or row has not what it should.
    """
    sentences: list[TaggedSentence] = []
    for file in labelled_files(files, argument, say):
        before = len(sentences)
        rows = _opened(file, config, argument, labelled, say)
        sentences += (row.example for row in rows)
        if len(sentences) == before:
            raise InputError(f"`{argument}` must have sentences. Received: {file.path!r}, which has none")
        words = sum(len(sentence.words) for sentence in sentences[before:])
        say(f"{file.path}: {counted(len(sentences) - before, 'sentence')} of {counted(words, 'word')}.")
    return in_iob2(sentences, argument, say) if labelled else sentences


def in_iob2(sentences: Sequence[TaggedSentence], argument: str, say: Say) -> list[TaggedSentence]:
    """Converts the tags of sentences to IOB2, if they mark spans, and says from which scheme."""
    scheme = find_scheme(sentence.tags or () for sentence in sentences)
    if scheme.name == "none":
        if any(tag[1:2] == "-" for sentence in sentences for tag in sentence.tags or ()):
            _refuse_mixed(sentences, argument)
        say(f"Tags of `{argument}`: they mark no spans (as B-PER, I-PER and O do), so each is a class of its own.")
        return list(sentences)
    converted = [
        TaggedSentence(s.words, None if s.tags is None else to_iob2(s.tags, scheme.name), s.id, s.place)
        for s in sentences
    ]
    number = sum(tag[0] == "B" for sentence in converted for tag in sentence.tags or ())
    faults = ""
    if scheme.faults and scheme.name == "IOB2":
        now = "starts" if scheme.faults == 1 else "start"
        faults = f"; {counted(scheme.faults, 'span')} that started with I now {now} with B"
    elif scheme.faults:
        faults = f"; {counted(scheme.faults, 'tag')} against its rules, read as they stand"
    form = "" if scheme.name == "IOB2" else ", converted to IOB2"
    say(f"Tags of `{argument}`: {scheme.name}{form}, {counted(number, 'span')}{faults}.")
    return converted


def _refuse_mixed(sentences: Sequence[TaggedSentence], argument: str) -> None:
    """Refuses tags of which most have the form of spans and some have not: they are slips."""
    spans = others = 0
    first = ("", "")
    for sentence in sentences:
        for tag in sentence.tags or ():
            if tag == "O":
                continue
            if tag[1:2] == "-" and len(tag) > 2:
                spans += 1
            else:
                others += 1
                first = first if first[0] else (tag, sentence.place)
    if spans > others:
        raise InputError(
            f"`{argument}` must have tags such as B-PER, I-PER and O throughout, or none of them. "
            f"Received: {first[0]!r} in the sentence of {first[1]}"
        )


def stream_words(
    file: str, config: Any, *, argument: str = "input", say: Say
) -> InputRows[TaggedSentence] | InputRows[TextExample]:
    """Opens sentences to be tagged, one by one: in words where the file has them, else texts as they are.

    Words come from CoNLL files (by suffix or `input_format`) and from lists of words in JSON lines and Parquet; other
    tables and lines of text give texts.

    Raises:
        InputError: as `read_tagged_sentences`; the errors of a row come when it is reached.
    """
    source = one_file(file, argument, say)
    return _opened(source, config, argument, False, say, texts=True)


def _opened(file: SourceFile, config: Any, argument: str, labelled: bool, say: Say, *, texts: bool = False) -> Any:
    source = TextSource(file, config.encoding, argument)
    form, lines = form_of(file, config, argument), None
    if form in ("json", "txt"):
        form, lines = looked_at(source, form)
    if not texts and form in ("txt", "tsv"):  # CoNLL files have names of all kinds.
        form = "conll"
    if form == "conll":
        return _conll_rows(ConllFile(source, config, labelled, lines), say)
    if form in ("squad", "json") or (not texts and form == "csv"):
        raise InputError(
            f"`{argument}` must be CoNLL files, or JSON lines or Parquet with lists of words. Received: {file.path!r}"
        )
    table = open_table(file, form, lines, source, config, False)
    return _list_rows(table, config, argument, labelled, say, texts)


def _conll_rows(file: ConllFile, say: Say) -> InputRows[TaggedSentence]:
    def rows() -> Iterator[InputRow[TaggedSentence]]:
        for sentence in file.sentences():
            place = f"{file.source.path}:{sentence.line}"
            tags = sentence.tags if file.labelled else None
            yield InputRow({}, TaggedSentence(sentence.words, tags, None, place), place)
        if file.columns:
            say(f"{file.source.path}: CoNLL, {file.columns}.")
        for note in file.notes():
            say(note)

    return InputRows((), rows(), sentences_of_words=True)


def _list_rows(table: Table, config: Any, argument: str, labelled: bool, say: Say, texts: bool) -> Any:
    if not table.names:
        say(f"{table.path}: no rows.")
        return InputRows((), iter(()))
    columns = finder(table, config, argument)
    word_column = _word_column(columns, config, table)
    if word_column is None and texts:
        return text_rows(table, config, argument, False, say)
    lists = ListColumns(columns, word_column, labelled, table)
    say(f"{table.path}: {table.form}; {lists}.")

    def rows() -> Iterator[InputRow[TaggedSentence]]:
        empty = 0
        for row in table.rows:
            sentence = lists.sentence_of(row)
            if not labelled:
                check_characters(row.values, row.place, argument)
            empty += not sentence.words
            yield InputRow(row.values, sentence, row.place)
        for note in table.notes():
            say(note)
        if empty:
            say(f"{table.path}: {counted(empty, 'sentence')} without a word; kept.")

    return InputRows(table.names, rows(), lists.words, None, lists.id, sentences_of_words=True)


def read_lists(table: Table, config: Any, argument: str, labelled: bool) -> list[TaggedSentence]:
    """Returns the sentences of a table with lists of words; tags as they are."""
    columns = finder(table, config, argument)
    lists = ListColumns(columns, _word_column(columns, config, table), labelled, table)
    return [lists.sentence_of(row) for row in table.rows]


def _word_column(columns: ColumnFinder, config: Any, table: Table) -> str | None:
    """Returns the column with lists of words, by the first row that has some."""
    first = table.first.values if table.first is not None else {}
    given = config.text_column
    names = columns.usual(WORDS) if given is None else [columns.named("text_column", given)]
    return next((name for name in names if table.first is None or isinstance(first.get(name), list)), None)


class ListColumns:
    """Which columns of a table have the lists of words and of tags.

    Args:
        columns: finds the columns of the table.
        words: the column of the words, or None if there is none.
        labelled: whether there are tags to be read.
        table: the table.

    Raises:
        InputError: if one that is needed is not there, or several may be it.
    """

    def __init__(self, columns: ColumnFinder, words: str | None, labelled: bool, table: Table) -> None:
        if words is None:
            given = columns.config.text_column
            raise columns.fault("text_column", f"must name a column with lists of words. Received: {given or 'none'}")
        self.words, self.table, self.argument = words, table, columns.argument
        self.tags = self._tag_column(columns) if labelled else None
        self.id = columns.id_column()

    def _tag_column(self, columns: ColumnFinder) -> str:
        given = columns.config.label_column
        found = columns.usual(TAGS) if given is None else [columns.named("label_column", given)]
        first = self.table.first
        if given is None and first is not None:
            found = [name for name in found if isinstance(first.values.get(name), list)]
        if len(found) != 1:
            received = " or ".join(map(repr, found)) or "none"
            raise columns.fault("label_column", f"must name the column of the tags. Received: {received}")
        return found[0]

    def __str__(self) -> str:
        return f"words {self.words!r}" + (f", tags {self.tags!r}" if self.tags else "")

    def sentence_of(self, row: Row) -> TaggedSentence:
        """Returns the sentence of a row.

        Raises:
            InputError: if it has no lists of text, or not as many tags as words.
        """
        words = _strings(row.values.get(self.words), self.words, self.argument, row.place)
        tags = None
        if self.tags is not None:
            value = named_classes(row.values.get(self.tags), self.table, self.tags, self.argument, row.place)
            if isinstance(value, list) and any(isinstance(tag, int) for tag in value):
                raise InputError(
                    f"`{self.argument}` must have tags by name. Received: numbers in {row.place}, for which there are "
                    "no names"
                )
            tags = _strings(value, self.tags, self.argument, row.place)
            if len(tags) != len(words):
                raise InputError(
                    f"`{self.argument}` must have as many tags as words. Received: {counted(len(words), 'word')} and "
                    f"{counted(len(tags), 'tag')} in {row.place}"
                )
        return TaggedSentence(words, tags, id_of(row, self.id, self.argument), row.place)


def _strings(value: Any, column: str, argument: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) and part for part in value):
        raise InputError(
            f"`{argument}` must have lists of text, none of it empty, in column {column!r}. "
            f"Received: {value!r:.60} in {place}"
        )
    return tuple(without_surrogates(part, place, Oddities(), on_bad_bytes="error", argument=argument) for part in value)
