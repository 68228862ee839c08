from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.tokenization.piece_trie import PieceTrie

pieces = st.dictionaries(st.text("abcdeé中", min_size=1, max_size=6), st.integers(0, 1000), max_size=40)


def walk(trie, root, text):
    """Returns the ids at every length that is a piece."""
    state, found = root, {}
    for length, char in enumerate(text, start=1):
        target = trie.bases[state] + trie.codes.get(char, 0)
        if trie.parents[target] != state:
            break
        state = target
        assert trie.depths[state] == length
        if trie.piece_ids[state] >= 0:
            found[length] = trie.piece_ids[state]
    return found


@given(pieces, pieces, st.text("abcdeé中x", max_size=8))
def test_walks_find_exactly_the_pieces(starts, continuations, text):
    trie = PieceTrie(starts, continuations)
    for root, known in ((trie.start_root, starts), (trie.continuation_root, continuations)):
        for piece in [text, *known]:
            prefixes = {length: piece[:length] for length in range(1, len(piece) + 1)}
            expected = {length: known[prefix] for length, prefix in prefixes.items() if prefix in known}
            assert walk(trie, root, piece) == expected


def test_arrays_stay_small():
    words = {f"{a}{b}{c}": 1 for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij"}
    trie = PieceTrie(words, words)
    assert len(trie.bases) < 1.1 * (2 * 1110 + 2) + 12
