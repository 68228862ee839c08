"""Real texts of the shared data, of all lengths, in English, Chinese and both at once."""

import lzma
from pathlib import Path


def real_texts(shared: Path, count: int, most_words: int = 600) -> list[str]:
    """Returns texts from none to `most_words` words, a Chinese character counting as half of one; the longest last."""
    words = _beginning(shared, "en_wikipedia").split()
    characters = "".join(_beginning(shared, "zh_wikipedia").split())
    texts = []
    for i in range(count):
        size = round(most_words * i / (count - 1))
        begin = 97 * i
        english, chinese = words[begin : begin + size], characters[2 * begin : 2 * (begin + size)]
        if i % 3 == 0:
            texts.append(" ".join(english))
        elif i % 3 == 1:
            texts.append(chinese)
        else:
            halves = zip(english[: size // 2], (chinese[2 * n : 2 * n + 2] for n in range(size // 2)), strict=True)
            texts.append(" ".join(f"{word} {piece}" for word, piece in halves) + " Ωραία, naïveté… \U0001f600")
    return texts


def _beginning(shared: Path, name: str) -> str:
    with lzma.open(shared / "data" / "corpora" / f"{name}.txt.xz", "rt", encoding="utf-8") as file:
        return file.read(400_000)
