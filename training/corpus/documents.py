"""What a corpus consists of: documents, each a few lines of text."""

import dataclasses
import hashlib
from functools import cached_property


@dataclasses.dataclass(frozen=True)
class Document:
    """One document as it was read.

    Attributes:
        lines: the lines that are not blank, without line ends. Whether a line is a sentence, a paragraph
            or a piece of one is for `sentences.SentenceSplitter` to say.
    """

    lines: tuple[str, ...]

    @cached_property
    def digest(self) -> int:
        """A 64-bit number of the text; documents that differ in white space alone have the same."""
        text = " ".join(" ".join(self.lines).split())
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    @property
    def size(self) -> int:
        """Characters, a line end counted as one."""
        return sum(map(len, self.lines)) + len(self.lines)
