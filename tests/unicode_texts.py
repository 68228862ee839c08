"""Made-up texts of everything that tokenizers go wrong on, the same for the same seed."""

import random
from collections.abc import Iterator

_RANGES = {
    "letters": [(0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39)],
    "ascii": [(0x20, 0x7E)],
    "latin": [(0xC0, 0x24F), (0x1E00, 0x1EFF)],
    "greek and cyrillic": [(0x391, 0x3C9), (0x3A3, 0x3A3), (0x3C2, 0x3C2), (0x410, 0x44F), (0x1F00, 0x1FFF)],
    "combining marks": [(0x300, 0x36F), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0x302A, 0x302F), (0x1D165, 0x1D172)],
    "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF)],
    "kana": [(0x3041, 0x30FF), (0xFF66, 0xFF9F), (0x3099, 0x309A)],
    "ideographs": [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x2B800, 0x2B92F), (0x2F800, 0x2FA1F)],
    "emoji": [(0x1F300, 0x1F64F), (0x1F3FB, 0x1F3FF), (0x200D, 0x200D), (0x200D, 0x200D), (0xFE0F, 0xFE0F)],
    "right to left": [(0x5D0, 0x5EA), (0x591, 0x5C7), (0x620, 0x6FF), (0x200E, 0x200F), (0x202A, 0x202E)],
    "indic and thai": [(0x900, 0x97F), (0x980, 0x9FF), (0xE01, 0xE5B), (0x1B00, 0x1B7E)],
    "private use": [(0xE000, 0xE0FF), (0xF0000, 0xF00FF), (0x10FF00, 0x10FFFF)],
    "control": [(0x00, 0x1F), (0x7F, 0xA0), (0xAD, 0xAD), (0x200B, 0x200F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFD)],
    "spaces": [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2000, 0x200A), (0x2028, 0x2029), (0x3000, 0x3000)],
    "punctuation": [(0x21, 0x2F), (0x3A, 0x40), (0x2010, 0x2027), (0x3001, 0x301F), (0xFF01, 0xFF0F)],
    "anything": [(0x20, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x10FFFF)],
}
_STRINGS = ["[MASK]", "[CLS]", "[MAS", "]", "the", "unaffable", "hello", "##llo", "ΑΣ", "ΑΣ.", "Σ", "İ", "ß", "naïve"]
_LONG = [*range(95, 106), *range(196, 206)]


def unicode_texts(number: int, seed: int) -> Iterator[str]:
    """Yields texts of up to 8 parts, each of one kind of character; now and then a word of 10,000 letters."""
    choose = random.Random(seed)
    ranges = list(_RANGES.values())
    for _ in range(number):
        parts = []
        for _ in range(choose.randint(1, 8)):
            if choose.random() < 0.2:
                parts.append(choose.choice(_STRINGS))
            elif choose.random() < 0.01:
                length = 10_000 if choose.random() < 0.05 else choose.choice(_LONG)
                parts.append("".join(choose.choices("abcdeé", k=length)))
            else:
                kind = choose.choice(ranges)
                for _ in range(choose.randint(1, 8)):
                    parts.append(chr(choose.randint(*choose.choice(kind))))
            if choose.random() < 0.3:
                parts.append(" ")
        yield "".join(parts)
