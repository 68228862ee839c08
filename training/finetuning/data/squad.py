"""Questions about texts: SQuAD's JSON, v1.1 and v2.0 (Rajpurkar et al., 2016, 2018), and tables."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question

from ...corpus.input_files import SourceFile
from ...corpus.wording import counted
from .answers import AnswerPlacer
from .columns import ANSWER_STARTS, ANSWERS, CONTEXTS, IMPOSSIBLE, QUESTIONS, ColumnFinder
from .forms import form_of, looked_at, open_table
from .table import Row, check_characters, id_of, text_of
from .tables import InputRow, InputRows, finder, one_file
from .text_source import TextSource, labelled_files

Say = Callable[[str], None]


def read_questions(
    files: Sequence[str | Path], config: Any, *, argument: str, labelled: bool = True, say: Say
) -> list[Question]:
    """Reads questions, their contexts and answers.

    An answer whose start is wrong is moved to where the context has its text; one that the context does not hold is
    kept with the start -1: it counts when answers are compared, and nothing can be learned from it.

    Args:
        files: names, patterns, or `-` for standard input.
        config: the settings of columns, for tables.
        argument: what error messages call the files.
        labelled: whether there are answers to be read.
        say: takes a line for each file, and one for everything odd.

    Raises:
        InputError: if a file cannot be read, is of another form, or a question has not what it should.
    """
    questions: list[Question] = []
    for file in labelled_files(files, argument, say):
        placer = AnswerPlacer(argument)
        found = [row.example for row in _opened(file, config, argument, labelled, placer, say)]
        if not found:
            raise InputError(f"`{argument}` must have questions. Received: {file.path!r}, which has none")
        impossible = sum(question.impossible for question in found)
        say(
            f"{file.path}: {counted(len(found), 'question')}"
            + (f", {impossible:,} of them without an answer" if impossible else "")
            + "."
        )
        for note in (*placer.notes(file.path), *_odd(file.path, found)):
            say(note)
        questions += found
    return questions


def stream_questions(file: str, config: Any, *, argument: str = "input", say: Say) -> InputRows[Question]:
    """Opens questions to be answered one by one; answers are left alone. SQuAD's JSON is read as a whole.

    Raises:
        InputError: as `read_questions`; the errors of a row come when it is reached.
    """
    source = one_file(file, argument, say)
    return _opened(source, config, argument, False, AnswerPlacer(argument), say)


def _odd(path: str, questions: Sequence[Question]) -> Iterator[str]:
    ids = Counter(question.id for question in questions if question.id is not None)
    if repeated := sum(count - 1 for count in ids.values()):
        yield f"{path}: {counted(repeated, 'question')} with the id of another one."
    if empty := sum(not question.context.strip() for question in questions):
        yield f"{path}: {counted(empty, 'question')} with an empty context."


def _opened(
    file: SourceFile, config: Any, argument: str, labelled: bool, placer: AnswerPlacer, say: Say
) -> InputRows[Question]:
    source = TextSource(file, config.encoding, argument)
    form, lines = form_of(file, config, argument), None
    if form in ("json", "txt"):
        form, lines = looked_at(source, form)
    if form in ("squad", "json"):
        text = "".join(line for _, line in (source.lines() if lines is None else lines))
        return _squad_rows(text, file.path, argument, labelled, placer)
    if form == "conll":
        raise InputError(f"`{argument}` must be SQuAD JSON or tables of questions. Received: {file.path!r}, CoNLL")
    table = open_table(file, form, lines, source, config, labelled)
    if not table.names:
        return InputRows((), iter(()))
    columns = QuestionColumns(finder(table, config, argument), labelled)
    say(f"{table.path}: {table.form}; {columns}.")

    def rows() -> Iterator[InputRow[Question]]:
        for row in table.rows:
            if not labelled:
                check_characters(row.values, row.place, argument)
            yield InputRow(row.values, columns.question_of(row, placer), row.place)
        for note in table.notes():
            say(note)

    return InputRows(table.names, rows(), columns.question, columns.context, columns.id)


class QuestionColumns:
    """Which columns of a table are the question, the context and the answer.

    Args:
        finder: finds the columns of the table.
        labelled: whether there are answers to be read.

    Raises:
        InputError: if they are not clear.
    """

    def __init__(self, finder: ColumnFinder, labelled: bool) -> None:
        self.argument = finder.argument
        self.question = self._one(finder, "text_column", "question", QUESTIONS)
        self.context = self._one(finder, "text_pair_column", "context", CONTEXTS)
        self.answer = self._one(finder, "label_column", "answer", ANSWERS) if labelled else None
        self.start = next(iter(finder.usual(ANSWER_STARTS)), None) if labelled else None
        self.impossible = next(iter(finder.usual(IMPOSSIBLE)), None) if labelled else None
        self.id = finder.id_column()

    @staticmethod
    def _one(finder: ColumnFinder, setting: str, what: str, known: Sequence[str]) -> str:
        given = getattr(finder.config, setting)
        if given:
            return finder.named(setting, given)
        found = finder.usual(known)
        if len(found) != 1:
            received = " or ".join(map(repr, found)) or "none"
            raise finder.fault(setting, f"must name the column of the {what}. Received: {received}")
        return found[0]

    def __str__(self) -> str:
        parts = {"question": self.question, "context": self.context, "answer": self.answer, "start": self.start}
        return "columns: " + ", ".join(f"{what} {name!r}" for what, name in parts.items() if name is not None)

    def question_of(self, row: Row, placer: AnswerPlacer) -> Question:
        """Returns the question of a row.

        Raises:
            InputError: if a text is missing or an answer is of another form.
        """
        question, context = text_of(row, self.question, self.argument), text_of(row, self.context, self.argument)
        name = id_of(row, self.id, self.argument)
        if self.answer is None:
            return Question(question, context, id=name, place=row.place)
        start = row.values.get(self.start) if self.start else None
        answers = flat_answers(row.values.get(self.answer), start, self.argument, row.place)
        impossible = _truth(row.values.get(self.impossible), row.place, self.argument) if self.impossible else None
        if impossible is None:
            impossible = not answers
        elif not impossible and not answers:
            raise InputError(f"`{self.argument}` must have an answer for every question. Received: none in {row.place}")
        if impossible:
            placer.left_out += len(answers)
        placed = () if impossible else placer.placed(context, answers, name or row.place, row.place)
        return Question(question, context, placed, impossible, name, row.place)


def flat_answers(value: Any, start: Any, argument: str, place: str) -> list[tuple[str, Any]]:
    """Returns text and start of the answers of a row; those without text are none.

    Args:
        value: a text, a list of texts, `{"text": […], "answer_start": […]}` or `[{"text": …, "answer_start": …}]`.
        start: beside a text, where it begins, or beside a list as many starts.
        argument: what error messages call the source.
        place: of the row.

    Raises:
        InputError: if it has none of these forms.
    """
    check_characters(value, place, argument)
    texts, starts = value, start
    if isinstance(value, Mapping):
        texts = value.get("text")
        starts = value.get("answer_start")
    if isinstance(texts, str) or texts is None:
        texts, starts = [texts], [starts[0] if isinstance(starts, list) and len(starts) == 1 else starts]
    elif isinstance(texts, list) and texts and all(isinstance(answer, Mapping) for answer in texts):
        texts, starts = [a.get("text") for a in texts], [a.get("answer_start") for a in texts]
    if starts is None or starts == "":
        starts = [None] * len(texts) if isinstance(texts, list) else None
    good = isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts)
    if not good or not all(text is None or isinstance(text, str) for text in texts):
        raise InputError(
            f"`{argument}` must have answers as text, a list of text, or text with answer_start. "
            f"Received: {value!r:.80} in {place}"
        )
    return [(text, begin) for text, begin in zip(texts, starts, strict=True) if text and text.strip()]


def _truth(value: Any, place: str, argument: str) -> bool | None:
    text = str(value).strip().casefold()
    if value is None or not text:
        return None
    if text not in ("true", "false", "1", "0"):
        raise InputError(f"`{argument}` must have true or false as is_impossible. Received: {value!r:.60} in {place}")
    return text in ("true", "1")


def _squad_rows(text: str, path: str, argument: str, labelled: bool, placer: AnswerPlacer) -> InputRows[Question]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"`{argument}` must be JSON. Received: {path!r}, which is not ({why})") from None
    squad = _Squad(path, argument, labelled, placer)
    return InputRows(("id", "question", "context"), squad.rows(content), "question", "context", "id")


class _Squad:
    """The questions of a parsed file; what is not as it should be is named by its place in it."""

    def __init__(self, path: str, argument: str, labelled: bool, placer: AnswerPlacer) -> None:
        self.path, self.argument, self.labelled, self.placer = path, argument, labelled, placer

    def rows(self, content: Any) -> Iterator[InputRow[Question]]:
        for number, article in enumerate(self._list(content, "data", "")):
            at = f"data[{number}]"
            for paragraph_number, paragraph in enumerate(self._list(article, "paragraphs", at)):
                paragraph_at = f"{at}.paragraphs[{paragraph_number}]"
                context = self._text(paragraph, "context", paragraph_at)
                for question_number, entry in enumerate(self._list(paragraph, "qas", paragraph_at)):
                    question = self._question(entry, context, f"{paragraph_at}.qas[{question_number}]")
                    values = {"id": question.id, "question": question.question, "context": context}
                    yield InputRow(values, question, question.place)

    def _question(self, entry: Any, context: str, at: str) -> Question:
        text = self._text(entry, "question", at)
        row = Row(f"{self.path}:{at}", entry)
        name = id_of(row, "id", self.argument)
        if not self.labelled:
            return Question(text, context, id=name, place=row.place)
        impossible = entry.get("is_impossible")
        if impossible is not None and not isinstance(impossible, bool):
            raise self._fault(at, "is_impossible", "true or false")
        if impossible:  # What v2.0 has beside it as plausible answers are none.
            beside = entry.get("answers")
            self.placer.left_out += sum(map(bool, beside)) if isinstance(beside, list) else 0
            return Question(text, context, (), True, name, row.place)
        answers = flat_answers(self._list(entry, "answers", at), None, self.argument, row.place)
        if not answers and impossible is False:
            raise self._fault(at, "answers", "one or more answers, or `is_impossible`")
        placed = self.placer.placed(context, answers, name or at, row.place)
        return Question(text, context, placed, not answers, name, row.place)

    def _list(self, value: Any, key: str, at: str) -> list[Any]:
        found = value.get(key) if isinstance(value, dict) else None
        if not isinstance(found, list):
            raise self._fault(at, key, "a list")
        return found

    def _text(self, value: Any, key: str, at: str) -> str:
        if not isinstance(value, dict) or not isinstance(value.get(key), str):
            raise self._fault(at, key, "text")
        return text_of(Row(f"{self.path}:{at}", value), key, self.argument)

    def _fault(self, at: str, key: str, what: str) -> InputError:
        where = f"{at}.{key}" if at else key
        return InputError(
            f"`{self.argument}` must be JSON as SQuAD has it: data, paragraphs, qas. Received: {self.path!r}, in which "
            f"{where} is not {what}"
        )
