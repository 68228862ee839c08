"""The text of a file of examples or of standard input, decoded strictly, in pieces and in lines."""

import codecs
import contextlib
import itertools
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from keras_bert_impl.errors import InputError

from ...corpus.compression import PACKINGS, packing_of_name, unpacked_chunks
from ...corpus.input_files import STANDARD_INPUT, SourceFile, find_files

# UTF-32 comes first: its mark for little-endian text begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_GUESSED_BY = 2**18
# Of several that fit a text alike, the first is meant.
_USUAL_ENCODINGS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r", "mac_roman"),
    *("gb18030", "big5", "cp932", "euc_jp", "cp949"),
)
_FIRST_END = re.compile(r"\r?\n|\r")
_LINE_FEED = re.compile(r"[^\n]*\n|[^\n]+")
_ANY_END = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


def labelled_files(files: Sequence[str | Path], argument: str, say: Callable[[str], None]) -> list[SourceFile]:
    """Returns the files that names and patterns stand for, in order.

    Raises:
        InputError: if one is not there, or is a directory, of which it cannot be told what is in it for training.
    """
    for name in files:
        if str(name) != STANDARD_INPUT and Path(name).is_dir():
            raise InputError(f"`{argument}` must name files of examples. Received: {str(name)!r}, which is a directory")
    return find_files([str(name) for name in files], argument=argument, say=say)


def suffix_of(path: str) -> str:
    """Returns the suffix in lower case, without its dot and without that of packing."""
    packed = packing_of_name(path)
    return Path(path[: path.rindex(".")] if packed else path).suffix.lower()[1:]


def is_packed(path: str) -> bool:
    """Whether a name says that the file is packed."""
    return path.lower().endswith(tuple(PACKINGS))


class TextSource:
    """A file, or standard input, as text.

    Args:
        file: from `labelled_files`.
        encoding: of the text; None for UTF-8, or what a byte order mark says.
        argument: what error messages call the source.

    Attributes:
        path: how it was named.
        once: whether it can be gone through once only: standard input, a pipe.
        nul_characters: how many were met so far; they stay in the text.
    """

    def __init__(self, file: SourceFile, encoding: str | None, argument: str) -> None:
        self.file, self.encoding, self.argument = file, encoding, argument
        self.path = file.path
        self.once = file.path == STANDARD_INPUT or not stat.S_ISREG(Path(file.path).stat().st_mode)
        self.nul_characters = 0

    def pieces(self) -> Iterator[str]:
        """Yields the text, without a byte order mark.

        Raises:
            InputError: if bytes are none of the encoding, with their line and the encoding that they may be in.
        """
        with contextlib.closing(self.file.open(self.argument)) as raw:
            chunks = unpacked_chunks(raw, self.path, self.argument)
            first = next(chunks, b"")
            # Text that comes slowly may begin with less than a mark.
            while len(first) < 4 and (more := next(chunks, b"")):
                first += more
            encoding = self.encoding or next((name for mark, name in _MARKS.items() if first.startswith(mark)), "utf-8")
            if self.encoding is None and encoding == "utf-8" and (wide := _looks_wide(first)):
                raise InputError(
                    f"`{self.argument}` must be UTF-8 text, or have a byte order mark. Received: {self.path!r}, "
                    f"of which every second byte is NUL; it may be `encoding` {wide}"
                )
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            line, begun, seen = 1, False, bytearray()
            for chunk in itertools.chain([first], chunks, [b""]):
                try:
                    text = decoder.decode(chunk, final=not chunk)
                except UnicodeError as error:
                    raise self._not_of(encoding, error, line, bytes(seen) + chunk) from None
                if len(seen) < _GUESSED_BY:
                    seen += chunk[:_GUESSED_BY]
                if not begun and text:
                    begun, text = True, text.removeprefix("\ufeff")
                line += text.count("\n")
                self.nul_characters += text.count("\0")
                if text:
                    yield text

    def _not_of(self, encoding: str, error: UnicodeError, line: int, content: bytes) -> InputError:
        if isinstance(error, UnicodeDecodeError):
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
        name = encoding.upper() if encoding.startswith("utf") else encoding
        guess = _guessed(content)
        hint = f"; it may be `encoding` {guess}" if guess and guess != encoding else "; give its `encoding`"
        return InputError(
            f"`{self.argument}` must be {name} text. Received: {self.path!r}, which is not in line {line}{hint}"
        )

    def lines(self) -> Iterator[tuple[int, str]]:
        r"""Yields (number from 1, line with its end).

        The first line end says what ends lines: "\n", which may have a "\r" before it, or "\r" where that stands alone;
        elsewhere a lone "\r" is text.
        """
        number, rest = 0, ""
        pattern = None
        for piece in itertools.chain(self.pieces(), [""]):
            text = rest + piece
            held = ""
            if piece and text.endswith("\r"):  # Whether a line feed follows is not known yet.
                text, held = text[:-1], "\r"
            if pattern is None and (found := _FIRST_END.search(text)):
                pattern = _ANY_END if found[0] == "\r" else _LINE_FEED
            lines = (pattern or _LINE_FEED).findall(text)
            rest = held
            if piece and lines and not _ends(lines[-1], pattern):
                rest = lines.pop() + held
            for line in lines:
                number += 1
                yield number, line


def _ends(line: str, pattern: re.Pattern[str] | None) -> bool:
    return line.endswith("\n") or (pattern is _ANY_END and line.endswith("\r"))


def _looks_wide(content: bytes) -> str | None:
    """Returns the encoding of text of which every second byte is NUL."""
    head = content[:200]
    odd, even = head[1::2], head[::2]
    for name, empty, full in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if len(head) >= 4 and empty.count(0) > 0.9 * len(empty) and not full.count(0):
            return name
    return None


def _guessed(content: bytes) -> str | None:
    """Returns the encoding that text is in, of the usual ones; None where two that differ may be it as well."""
    try:
        import charset_normalizer
    except ImportError:
        return None
    found = list(charset_normalizer.from_bytes(content[:_GUESSED_BY], cp_isolation=[*_USUAL_ENCODINGS]))
    if not found:
        return None
    chaos, coherence = min((match.chaos, -match.coherence) for match in found)
    best = [match for match in found if (match.chaos, -match.coherence) == (chaos, coherence)]
    names = {name for match in best for name in match.could_be_from_charset}
    if len(best) > 1 and _USUAL_ENCODINGS[0] not in names:
        return None
    return next((name.replace("_", "-") for name in _USUAL_ENCODINGS if name in names), None)
