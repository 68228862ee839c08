"""What a tokenizer makes of each character, in the form that tensorflow-text's normalising operator reads."""

import functools

import flatbuffers
import numpy as np

from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.unicode_tables import CJK, DROPPED, MARK, PUNCTUATION, SPACE, unicode_tables

from .double_array import double_array

_SURROGATES = range(0xD800, 0xE000)
_IS_OTHER = 1 << 30
_LENGTH_BITS = 6
# The table's fields, by the order of the operator's schema.
_STRIPS, _TRIE, _ZERO, _POOL = range(4)


def normalizer_model(normalizer: TextNormalizer) -> bytes:
    """Returns the operator's table with our own rules: one text for every character that is not itself.

    The operator puts for each character what the table says, whatever stands beside it. So words come out with spaces
    around them, and nothing of the operator's own Unicode version is left. What depends on neighbours is not in it: a
    capital sigma is never final, and marks that stay keep their order.

    Args:
        normalizer: the specification.
    """
    return _model(normalizer.lowercase, normalizer.strip_accents, normalizer.split_cjk)


@functools.lru_cache(maxsize=4)
def _model(lowercase: bool, strip_accents: bool, split_cjk: bool) -> bytes:
    # It takes seconds, and depends on nothing else.
    texts = character_texts(TextNormalizer(lowercase=lowercase, strip_accents=strip_accents, split_cjk=split_cjk))
    pool, places = bytearray(), {"": 0}
    numbers = {}
    for code_point, text in texts.items():
        encoded = text.encode("utf-8")
        if text not in places:
            places[text] = len(pool)
            pool += encoded
        numbers[code_point] = _IS_OTHER | places[text] << _LENGTH_BITS | len(encoded)
    zero = numbers.pop(0, 0)
    trie = double_array({chr(code_point).encode("utf-8"): number for code_point, number in numbers.items()})
    builder = flatbuffers.Builder(trie.nbytes + len(pool) + 1024)
    trie_place = builder.CreateNumpyVector(trie)
    # One that is empty would have no place.
    pool_place = builder.CreateByteVector(bytes(pool) or b" ")
    builder.StartObject(4)
    builder.PrependBoolSlot(_STRIPS, strip_accents, False)
    builder.PrependUOffsetTRelativeSlot(_TRIE, trie_place, 0)
    builder.PrependInt32Slot(_ZERO, zero, 0)
    builder.PrependUOffsetTRelativeSlot(_POOL, pool_place, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def character_texts(normalizer: TextNormalizer) -> dict[int, str]:
    """Returns by code point what it becomes, where that is not itself: words in it have spaces around them."""
    tables = unicode_tables()
    flags = tables.flags
    known = CJK if normalizer.split_cjk else 0
    others = set(np.flatnonzero(flags & (DROPPED | SPACE | PUNCTUATION | known)).tolist())
    if normalizer.strip_accents:
        others.update(np.flatnonzero(flags & MARK).tolist(), tables.decomposable())
    if normalizer.lowercase:
        others.update(tables.lower)
    texts = {}
    for code_point in sorted(others.difference(_SURROGATES)):
        text = _text(normalizer, code_point, int(flags[code_point]))
        if text != chr(code_point):
            texts[code_point] = text
    return texts


def _text(normalizer: TextNormalizer, code_point: int, flags: int) -> str:
    if flags & SPACE:
        return " "
    if flags & DROPPED:
        return ""
    stripped = MARK if normalizer.strip_accents else 0
    of_parts = unicode_tables().flags
    kept = [part for part in normalizer.expand(code_point) if not of_parts[part] & stripped]
    text = "".join(f" {chr(part)} " if of_parts[part] & PUNCTUATION else chr(part) for part in kept)
    return f" {text} " if flags & CJK and normalizer.split_cjk else text
