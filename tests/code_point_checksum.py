"""What the tokenizer makes of every code point, as one number."""

import hashlib
from collections.abc import Iterable, Iterator

from keras_bert_impl.tokenization.text_normalizer import TextNormalizer

CODE_POINTS = [*range(0xD800), *range(0xE000, 0x110000)]


def words_of_code_points(lowercase: bool) -> Iterator[list[str]]:
    """Yields the words that each code point becomes if it is a text by itself."""
    normalizer = TextNormalizer(lowercase=lowercase, strip_accents=lowercase, split_cjk=True)
    for code_point in CODE_POINTS:
        yield [word for stretch in normalizer.stretches(chr(code_point)) for word in normalizer.word_texts(stretch)]


def checksum(all_words: Iterable[list[str]]) -> str:
    """Returns the first 16 digits of the SHA-256 of all code points' words."""
    digest = hashlib.sha256()
    for words in all_words:
        digest.update(" ".join(words).encode() + b"\n")
    return digest.hexdigest()[:16]
