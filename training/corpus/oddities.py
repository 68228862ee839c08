"""What is odd in a text, counted while it is read."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Self

from .wording import counted

# White space for `str.strip` and for the tokenizer, and a line end in the eyes of some programs; here, as in the
# original, they stay inside the line.
SEPARATORS = "\v\f\x85\u2028\u2029"


@dataclasses.dataclass
class Oddities:
    """How often something odd was met.

    Attributes:
        byte_order_marks: at the beginning of a file; taken off.
        carriage_returns: part of a line end, or one by themselves.
        separators: vertical tabs, form feeds, U+0085, U+2028 and U+2029; they end no line.
        nul_characters: U+0000; left in the text, the tokenizer drops them.
        replaced: what was not UTF-8 and became U+FFFD (`on_bad_bytes` `"replace"`).
        long_lines: lines that were cut because they are longer than `max_document_chars`.
        long_documents: documents of several lines that were cut for the same reason.
        empty_texts: lines of JSON, rows or strings without text; passed over.
    """

    byte_order_marks: int = 0
    carriage_returns: int = 0
    separators: int = 0
    nul_characters: int = 0
    replaced: int = 0
    long_lines: int = 0
    long_documents: int = 0
    empty_texts: int = 0

    def count_characters(self, text: str) -> None:
        """Adds the characters of a piece of text."""
        self.carriage_returns += text.count("\r")
        self.nul_characters += text.count("\0")
        for separator in SEPARATORS:
            self.separators += text.count(separator)

    @classmethod
    def sum(cls, parts: Iterable[Self]) -> Self:
        """Returns the counts of all parts together."""
        total = cls()
        for part in parts:
            for field in dataclasses.fields(cls):
                setattr(total, field.name, getattr(total, field.name) + getattr(part, field.name))
        return total

    def notes(self, longest: int) -> Iterator[str]:
        """Yields a sentence for everything that changed the text.

        Args:
            longest: the `max_document_chars` that was read with.
        """
        if self.replaced:
            yield f"Not UTF-8 and replaced by U+FFFD: {counted(self.replaced, 'place')}."
        if self.long_lines:
            yield f"Longer than {longest:,} characters and cut: {counted(self.long_lines, 'line')}."
        if self.long_documents:
            yield f"Longer than {longest:,} characters and cut: {counted(self.long_documents, 'document')}."
        if self.empty_texts:
            yield f"Without text and passed over: {counted(self.empty_texts, 'entry', 'entries')}."
