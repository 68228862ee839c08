"""A small corpus that tests make for themselves: sentences of a toy grammar, in documents on one topic each."""

import random
from pathlib import Path

_TOPICS = {
    "sea": ("ship sailor harbour wave captain anchor".split(), "sails sinks drifts turns".split()),
    "farm": ("farmer cow barn horse field fence".split(), "sleeps grows waits feeds".split()),
    "town": ("baker street market child tower clock".split(), "opens closes calls shines".split()),
}
_ADJECTIVES = "old small red quiet bright heavy".split()


def toy_documents(count: int, seed: int = 0) -> list[list[str]]:
    """Returns `count` documents of 4 to 12 sentences."""
    rng = random.Random(seed)
    documents = []
    for _ in range(count):
        nouns, verbs = _TOPICS[rng.choice(sorted(_TOPICS))]
        sentences = [
            f"The {rng.choice(_ADJECTIVES)} {rng.choice(nouns)} {rng.choice(verbs)} near the "
            f"{rng.choice(_ADJECTIVES)} {rng.choice(nouns)} {rng.randrange(100)} times."
            for _ in range(rng.randrange(4, 13))
        ]
        documents.append(sentences)
    return documents


def write_toy_corpus(path: Path, count: int = 120, seed: int = 0) -> Path:
    """Writes the documents with a sentence on each line and a blank line between documents."""
    text = "\n\n".join("\n".join(sentences) for sentences in toy_documents(count, seed))
    path.write_text(text + "\n", encoding="utf-8")
    return path
