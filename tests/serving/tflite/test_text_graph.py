"""The tables of the operators that make pieces of texts hold the tokenizer's own rules."""

import itertools

import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")

from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.serving.tflite.text_graph.double_array import double_array
from keras_bert_impl.serving.tflite.text_graph.normalizer_model import character_texts
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer

KEYS = st.binary(min_size=1, max_size=5).filter(lambda key: 0 not in key)


def looked_up(units, key: bytes) -> int | None:
    """Reads a trie as the operators do."""
    place, unit = 0, int(units[0])
    for byte in key:
        place ^= (unit >> 10) ^ byte
        unit = int(units[place])
        if unit & 0x800000FF != byte:
            return None
    return int(units[place ^ (unit >> 10)]) & 0x7FFFFFFF if unit & 0x100 else None


@given(values=st.dictionaries(KEYS, st.integers(0, 2**31 - 1), max_size=80), others=st.lists(KEYS))
def test_a_key_is_found_with_its_number_and_no_other(values, others):
    units = double_array(values)
    assert len(units) % 256 == 0
    for key in [*values, *others, *(key[:-1] for key in values if key[:-1])]:
        assert looked_up(units, key) == values.get(key)


def test_many_keys_of_one_beginning_are_found():
    values = {bytes(pair): i for i, pair in enumerate(itertools.product(range(1, 256), range(1, 256, 5)))}
    units = double_array(values)
    assert all(looked_up(units, key) == value for key, value in values.items())


@pytest.mark.parametrize("values", [{b"": 1}, {b"a\0": 1}, {b"a": -1}, {b"a": 2**31}])
def test_what_a_trie_cannot_hold_is_refused(values):
    with pytest.raises(ValueError, match=r"`values` must be of keys without zero bytes\. Received: b'"):
        double_array(values)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [True, False])
@pytest.mark.parametrize("split_cjk", [True, False])
def test_each_character_becomes_what_the_tokenizer_makes_of_it(lowercase, strip_accents, split_cjk):
    normalizer = TextNormalizer(lowercase=lowercase, strip_accents=strip_accents, split_cjk=split_cjk)
    texts = character_texts(normalizer)
    for code_point in {*range(0x3400), *texts, *range(0, 0x110000, 101)} - {*range(0xD800, 0xE000)}:
        character = chr(code_point)
        words = [word for stretch in normalizer.stretches(character) for word in normalizer.word_texts(stretch)]
        assert [word for word in texts.get(code_point, character).split(" ") if word] == words, hex(code_point)
