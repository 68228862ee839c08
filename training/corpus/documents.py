"""What a corpus consists of: documents, each a few lines of text."""

import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True)
class Document:
    """One document as it was read.

    Attributes:
        lines: the lines that are not blank, without line ends. Whether a line is a sentence, a paragraph
            or a piece of one is for `sentences.SentenceSplitter` to say.
    """

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text, every stretch of white space a single space."""
        text = " ".join(self.lines)
        if text.isprintable() and "  " not in text:  # The only printable white space is the space.
            return text
        return " ".join(text.split())

    @property
    def digest(self) -> int:
        """A 64-bit number of the text; documents that differ in white space alone have the same."""
        return digest_of_text(self.text)

    @property
    def size(self) -> int:
        """Characters, a line end counted as one."""
        return sum(map(len, self.lines)) + len(self.lines)


def digest_of_text(text: str) -> int:
    """Returns a 64-bit number of a text whose white space is single."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
