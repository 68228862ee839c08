"""Sentences in the form of CoNLL: a word and its tag on a line, a blank line behind each sentence."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from ...corpus.wording import counted
from .columns import TAGS, USUAL_NAMES, WORDS, ColumnFinder
from .text_source import TextSource

_DOCUMENT = "-DOCSTART-"
# A word may be "#", so only what such comments begin with is one: `# text = …`, `# newdoc`, `# id 17`.
_COMMENT = re.compile(r"#\s*(?:[\w.:-]+(?: [\w.:-]+)? = |newdoc\b|newpar\b|id \S+ )|#\s*[\w.:-]+ =$")
_BLANK = " \t\r\n"
_UNIVERSAL_COLUMNS = 10
_USUAL = {*USUAL_NAMES, *WORDS, *TAGS}
# Of words in a file without a blank line, from which on it is told.
_LONG_SENTENCE = 300
_SHOWN = 60
_NO_WORD = re.compile(r"\d+[-.]\d+")


@dataclasses.dataclass(frozen=True, slots=True)
class WordLines:
    """A sentence as it stands in a file.

    Attributes:
        words: one for each line.
        tags: as many, or none if they were not asked for.
        line: of the first word.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    line: int


class ConllFile:
    """A file of words with tags.

    Args:
        source: its text.
        config: the settings of columns; the word is in the first one and the tag in the last one if they say nothing.
        labelled: whether there must be tags.
        lines: those of the source, if they were begun.

    Attributes:
        documents: lines `-DOCSTART-` that were passed over.
        comments: lines of comment that were passed over.
        no_words: lines of ranges and left-out words of CoNLL-U that were passed over.
        columns: those that were taken, as said to the user.
    """

    def __init__(
        self, source: TextSource, config: Any, labelled: bool, lines: Iterator[tuple[int, str]] | None = None
    ) -> None:
        self.source, self.config, self.labelled = source, config, labelled
        self.lines = source.lines() if lines is None else lines
        self.documents = self.comments = self.no_words = 0
        self.columns = ""
        self._width = 0
        self._word, self._tag = 0, -1
        self._sentences = self._longest = 0

    def sentences(self) -> Iterator[WordLines]:
        """Yields the sentences.

        Raises:
            InputError: if a line has another number of columns than the first one, or no word or tag.
        """
        words: list[str] = []
        tags: list[str] = []
        begun = 0
        for number, line in self.lines:
            if not line.strip(_BLANK):
                pass
            elif line.startswith(_DOCUMENT) and line[len(_DOCUMENT) :][:1].strip(_BLANK) == "":
                self.documents += 1
            elif not words and "\t" not in line and _COMMENT.match(line):
                self.comments += 1
                continue
            else:
                row = self._cells(line)
                if not self._width and self._begin(row, number):
                    continue
                if len(row) == _UNIVERSAL_COLUMNS and _NO_WORD.fullmatch(row[0]):
                    self.no_words += 1
                    continue
                self._check(row, number)
                begun = begun or number
                words.append(row[self._word])
                if self.labelled:
                    tags.append(row[self._tag].strip())
                continue
            if words:
                yield self._whole(words, tags, begun)
                words, tags, begun = [], [], 0
        if words:
            yield self._whole(words, tags, begun)

    def _whole(self, words: list[str], tags: list[str], begun: int) -> WordLines:
        """Counts a sentence; refuses what are texts rather than words."""
        texts = [word for word in words if " " in word.strip()]
        if not self._sentences and self.labelled and len(words) > 1 and 2 * len(texts) > len(words):
            raise self._table_of_texts(f"{texts[0][:_SHOWN]!r} as a word in {self.source.path!r}, line {begun}")
        self._sentences += 1
        self._longest = max(self._longest, len(words))
        return WordLines(tuple(words), tuple(tags), begun)

    def _table_of_texts(self, received: str) -> InputError:
        return InputError(
            f"`{self.source.argument}` must have a word and its tag on each line and a blank line behind each "
            "sentence; this looks like a table of texts, which classification, multilabel or regression take. "
            f"Received: {received}"
        )

    def _cells(self, line: str) -> list[str]:
        text = line.rstrip("\r\n")
        if "\t" in text:
            return text.split("\t") if not text.endswith("\t") else text.rstrip("\t").split("\t")
        return re.split(" +", text.strip(" "))

    def _begin(self, row: list[str], number: int) -> bool:
        """Finds the columns by the first line; returns whether it has their names."""
        self._width = len(row)
        lower = [cell.strip().casefold() for cell in row]
        given = [self.config.text_column, self.config.label_column]
        named = self.config.header == "yes" or (
            self.config.header == "auto"
            and (
                any(name and not name.isdecimal() and name in row for name in given)
                or (len(row) > 1 and lower[0] in WORDS and lower[-1] in TAGS)
            )
        )
        names = row if named else [str(column) for column in range(1, len(row) + 1)]
        first = None if named else dict(zip(names, row, strict=True))
        finder = ColumnFinder(
            names, self.config, argument=self.source.argument, source=repr(self.source.path), first=first
        )
        for setting, known, usual in (("text_column", WORDS, 0), ("label_column", TAGS, -1)):
            value = getattr(self.config, setting)
            if value is not None:
                place = names.index(finder.named(setting, value))
            else:
                place = names.index(found[0]) if named and (found := finder.usual(known)) else usual % len(row)
            if setting == "text_column":
                self._word = place
            else:
                self._tag = place
        if self.labelled and not named and len(row) > 1 and given == [None, None] and _USUAL.issuperset(lower):
            raise self._table_of_texts(f"columns {', '.join(row)} in {self.source.path!r}")
        if self.labelled and self._word == self._tag:
            raise InputError(
                f"`{self.source.argument}` must have a word and a tag on each line. Received: {self.source.path!r}, "
                f"line {number}, with {counted(len(row), 'column')}"
            )
        self.columns = f"words in column {names[self._word]}"
        if self.labelled:
            self.columns += f", tags in column {names[self._tag]}"
        return named

    def _check(self, row: list[str], number: int) -> None:
        place = f"{self.source.path!r}, line {number}"
        if len(row) != self._width:
            raise InputError(
                f"`{self.source.argument}` must have {counted(self._width, 'column')} on every line, as on the first. "
                f"Received: {place}, which has {len(row)}"
            )
        if not row[self._word] or (self.labelled and not row[self._tag].strip()):
            what = "tag" if row[self._word] else "word"
            raise InputError(
                f"`{self.source.argument}` must have a word on each line, and its tag. Received: no {what} in {place}"
            )

    def notes(self) -> Iterator[str]:
        """Yields a sentence for what was passed over, after the last sentence."""
        for count, what in (
            (self.documents, f"line {_DOCUMENT}"),
            (self.comments, "comment line"),
            (self.no_words, "line of several words or none (CoNLL-U)"),
        ):
            if count:
                plural = what.replace("line", "lines", 1)
                yield f"{self.source.path}: passed over {counted(count, what, plural)}."
        if self._sentences == 1 and self._longest >= _LONG_SENTENCE:
            yield (
                f"Warning: {self.source.path} has no blank line between its {self._longest:,} words, so they are taken "
                "as one sentence."
            )
        if self.source.nul_characters:
            yield f"{self.source.path}: {counted(self.source.nul_characters, 'NUL character')}, left in the text."
