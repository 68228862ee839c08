"""Writes the frozen Unicode tables: `python -m keras_bert_impl.tokenization.make_unicode_tables`.

The tables are those of Unicode 14.0.0, taken from the standard library of Python 3.11, which is what the
original tokenizer's reference outputs were made with. They are made once and committed; this script is kept so
that every number in them can be traced.
"""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.tokenization.unicode_tables import (
    CASE_IGNORABLE,
    CASED,
    CJK,
    CODE_POINTS,
    DROPPED,
    MARK,
    PUNCTUATION,
    SPACE,
    TABLES_FILE,
    UNICODE_VERSION,
)

# The ideograph blocks that the original names; Hangul, kana and later extensions are not among them.
CJK_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
ASCII_PUNCTUATION = ((33, 47), (58, 64), (91, 96), (123, 126))
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)


def make_tables() -> dict[str, np.ndarray]:
    """Returns the arrays of the tables file, computed with this Python's Unicode data."""
    flags = np.zeros(CODE_POINTS, np.uint8)
    lower: list[tuple[int, str]] = []
    decomposition: list[tuple[int, str]] = []
    combining: list[tuple[int, int]] = []
    for code_point in range(CODE_POINTS):
        if code_point in SURROGATES:
            continue
        char = chr(code_point)
        flags[code_point] = _flags(char)
        if (lowered := char.lower()) != char:
            lower.append((code_point, lowered))
        if code_point not in HANGUL and (decomposed := unicodedata.normalize("NFD", char)) != char:
            decomposition.append((code_point, decomposed))
        if combining_class := unicodedata.combining(char):
            combining.append((code_point, combining_class))
    return {
        "flags": flags,
        **_sequences("lower", lower),
        **_sequences("decomposition", decomposition),
        "combining_keys": np.array([key for key, _ in combining], np.int32),
        "combining_classes": np.array([value for _, value in combining], np.uint8),
    }


def _flags(char: str) -> int:
    code_point = ord(char)
    category = unicodedata.category(char)
    flags = 0
    if char in " \t\n\r\u2028\u2029" or category == "Zs":
        flags |= SPACE  # the last two: the original splits with str.split, which knows them
    elif category in ("Cc", "Cf") or code_point == 0xFFFD:
        flags |= DROPPED
    if _within(code_point, CJK_BLOCKS):
        flags |= CJK
    if category.startswith("P") or _within(code_point, ASCII_PUNCTUATION):
        flags |= PUNCTUATION
    if category == "Mn":
        flags |= MARK
    # The two properties that decide the form of a final sigma, asked from str.lower itself.
    ends_after_char = f"{char}Σ".lower().endswith("ς")
    ends_after_letter_and_char = f"A{char}Σ".lower().endswith("ς")
    if ends_after_char:
        flags |= CASED
    elif ends_after_letter_and_char:
        flags |= CASE_IGNORABLE
    return flags


def _within(code_point: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code_point <= high for low, high in ranges)


def _sequences(name: str, pairs: list[tuple[int, str]]) -> dict[str, np.ndarray]:
    return {
        f"{name}_keys": np.array([key for key, _ in pairs], np.int32),
        f"{name}_lengths": np.array([len(value) for _, value in pairs], np.uint8),
        f"{name}_values": np.array([ord(char) for _, value in pairs for char in value], np.int32),
    }


def main(target: Path = TABLES_FILE) -> None:
    """Writes the tables file; needs a Python whose Unicode data is the frozen version."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise SystemExit(f"needs Unicode {UNICODE_VERSION} (Python 3.11). This is {unicodedata.unidata_version}")
    arrays: dict[str, Any] = make_tables()
    np.savez_compressed(target, **arrays)


if __name__ == "__main__":
    main()
