"""Reading and writing `vocab.txt`: one token per line, the line number is the id."""

import os
from collections.abc import Sequence
from pathlib import Path

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ASCII_SPACES = " \t\r\v\f"


def load_vocabulary(
    path: str | os.PathLike[str], *, special_tokens: Sequence[str] = SPECIAL_TOKENS, argument: str = "vocab"
) -> list[str]:
    """Returns the tokens of a vocabulary file, checked.

    A byte order mark, Windows line ends and spaces around a token are taken off; the end of the file may or may
    not have a line end.

    Args:
        path: the file, UTF-8.
        special_tokens: tokens that must be among them.
        argument: how the user calls the file, for the error messages.

    Raises:
        InputError: if the file is missing, is not UTF-8, has a blank line before its end, a token twice, or lacks
            a special token.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"`{argument}` must be a file that can be read. Received: {str(file)!r} ({error.strerror})"
        ) from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{argument}` must be UTF-8 text. Received: {str(file)!r}, with byte 0x{content[error.start]:02x} at "
            f"byte position {error.start}"
        ) from error
    # Not splitlines: U+2028 and others that it splits at are tokens of released vocabularies.
    tokens = [line.strip(_ASCII_SPACES) for line in text.removeprefix("\ufeff").rstrip("\r\n").split("\n")]
    first_line: dict[str, int] = {}
    for number, token in enumerate(tokens, start=1):
        if not token:
            raise InputError(
                f"`{argument}` must have a token on every line. Received: {str(file)!r}, with line {number} blank"
            )
        if token in first_line:
            raise InputError(
                f"`{argument}` must not have a token twice. Received: {str(file)!r}, {token!r} on lines "
                f"{first_line[token]} and {number}"
            )
        first_line[token] = number
    for token in special_tokens:
        if token not in first_line:
            raise InputError(
                f"`{argument}` must contain the special tokens {', '.join(special_tokens)}. "
                f"Received: {str(file)!r}, without {token}"
            )
    return tokens


def save_vocabulary(tokens: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Writes the tokens, one per line."""
    with atomic_file(path) as file:
        file.writelines(f"{token}\n" for token in tokens)
