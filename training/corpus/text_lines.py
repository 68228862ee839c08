"""From bytes to lines, in bounded memory whatever the length of a line.

A line ends at a line feed, with the carriage returns before it, or at a lone carriage return. Nothing else ends one:
vertical tab, form feed, U+0085, U+2028 and U+2029 are white space inside the line, as they are for the original.
"""

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator

from keras_bert_impl.errors import InputError

from .oddities import Oddities

_BYTE_ORDER_MARK = "\ufeff"
# The look-behind keeps a long run of carriage returns from being tried at each of its places.
_LINE_END = re.compile(r"(?<!\r)\r++\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


def decoded(
    chunks: Iterable[bytes], path: str, oddities: Oddities, *, on_bad_bytes: str = "error", argument: str = "inputs"
) -> Iterator[str]:
    """Yields the chunks of a UTF-8 file as text, a byte order mark at its beginning taken off.

    Raises:
        InputError: if it is not UTF-8 and `on_bad_bytes` is `"error"`; names byte and line, counted in unpacked text.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("strict" if on_bad_bytes == "error" else "replace")
    position = line_ends = 0
    begun = False
    for chunk in itertools.chain(chunks, [b""]):
        waiting = decoder.getstate()[0]
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            byte, line = position - len(waiting) + error.start, line_ends + before.count(b"\n") + 1
            raise InputError(
                f"`{argument}` must be UTF-8 text. Received: {path!r}, which is not at byte {byte} "
                f"(0x{error.object[error.start]:02x}), in line {line}"
            ) from None
        if on_bad_bytes == "replace":
            oddities.replaced += text.count("\ufffd") - (waiting + chunk).count("\ufffd".encode())
        position += len(chunk)
        line_ends += chunk.count(b"\n")
        if text and not begun:
            begun = True
            if text.startswith(_BYTE_ORDER_MARK):
                oddities.byte_order_marks += 1
                text = text[1:]
        oddities.count_characters(text)
        yield text


def without_surrogates(text: str, place: str, oddities: Oddities, *, on_bad_bytes: str, argument: str) -> str:
    """Returns a text that came as a string and can be written as UTF-8.

    Raises:
        InputError: if it holds half a surrogate pair and `on_bad_bytes` is `"error"`.
    """
    if text.isascii() or not (found := _SURROGATE.search(text)):
        return text
    if on_bad_bytes == "error":
        raise InputError(
            f"`{argument}` must hold whole characters. Received: {place}, which has half a surrogate pair "
            f"(U+{ord(found[0]):04X}) at character {found.start()}"
        )
    text, count = _SURROGATE.subn("\ufffd", text)
    oddities.replaced += count
    return text


def lines_of_text(texts: Iterable[str], longest: int, oddities: Oddities) -> Iterator[list[str]]:
    """Yields the lines of a text that comes in pieces, stripped of white space, a blank one as "".

    Args:
        texts: the pieces; none is kept longer than until its last line is whole.
        longest: a longer line comes in pieces of at most so many characters, cut at a space where there is one.
        oddities: counts the lines that were cut.
    """
    cutter = _Cutter(longest, oddities)
    rest = held = ""
    for text in itertools.chain(texts, [None]):
        whole = rest + held + (text or "")
        held = ""
        if "\r" in whole:
            if text is not None:
                # Whether a line feed follows is not known yet. Of many carriage returns two say all: a blank line.
                body = whole.rstrip("\r")
                held, whole = "\r" * min(2, len(whole) - len(body)), body
            whole = _LINE_END.sub("\n", whole).replace("\r", "\n")
        lines = whole.split("\n")
        rest = "" if text is None else lines.pop()
        if cutter.inside or (lines and max(map(len, lines)) > longest):
            lines = cutter.whole_lines(lines)
        else:
            lines = [line.strip() for line in lines]
        if len(rest) > longest:
            pieces, rest = cutter.pieces(rest)
            lines += pieces
        yield lines


def piece_end(text: str, start: int, longest: int) -> int:
    """Returns where a piece of at most `longest` characters ends: behind a space in its latter half, if it has one."""
    space = text.rfind(" ", start + longest // 2, start + longest)
    return space + 1 if space > 0 else start + longest


class _Cutter:
    """Cuts long lines; remembers between two pieces of text that it is inside one."""

    def __init__(self, longest: int, oddities: Oddities):
        self.longest, self.oddities = longest, oddities
        self.inside = self.has_text = False

    def whole_lines(self, lines: list[str]) -> list[str]:
        """Takes lines whose end is known; the first may be the end of one that was begun."""
        result: list[str] = []
        for line in lines:
            pieces, rest = self.pieces(line)
            result += pieces
            if (rest := rest.strip()) or not self.has_text:
                result.append(rest)
            self.inside = self.has_text = False
        return result

    def pieces(self, line: str) -> tuple[list[str], str]:
        """Returns the pieces of a line that can be given away, and the rest."""
        result = []
        start = 0
        while len(line) - start > self.longest:
            if not self.inside:
                self.oddities.long_lines += 1
                self.inside = True
            end = piece_end(line, start, self.longest)
            if piece := line[start:end].strip():
                result.append(piece)
                self.has_text = True
            start = end
        return result, line[start:]
