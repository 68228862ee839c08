"""Finding the tokens that are kept whole, in the raw characters of a batch of texts."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization.graph_pieces import TrieTensors, longest_pieces
from keras_bert_impl.tokenization.page_table import TABLE_SIZE, PageTable
from keras_bert_impl.tokenization.piece_trie import PieceTrie


class TokenMarker:
    """Puts a marker for the first character of every token, and NUL, which vanishes, for its others.

    Tokens are found from left to right, the longest first where several begin at one place.

    Args:
        markers: dict from the tokens to their markers, int32 values that stand for no character.
    """

    def __init__(self, markers: Mapping[str, int]) -> None:
        self._trie = PieceTrie(markers, {})
        codes = np.zeros(TABLE_SIZE, np.int32)
        codes[[ord(char) for char in self._trie.codes]] = list(self._trie.codes.values())
        self._codes = PageTable(codes)
        self._firsts = sorted({ord(token[0]) for token in markers})
        self._may_overlap = _may_overlap(list(markers))

    def __call__(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
        """Returns the int32 code points of the texts with markers, in the same shape."""
        if not self._firsts:
            return code_points
        is_first = code_points == self._firsts[0]
        for first in self._firsts[1:4]:
            is_first |= code_points == first
        if len(self._firsts) > 4:
            in_trie = self._codes(code_points)
            leads_on = np.zeros(len(self._trie.codes) + 1, bool)
            leads_on[[self._trie.codes[chr(first)] for first in self._firsts]] = True
            is_first = tf.gather(tf.constant(leads_on), in_trie)

        def mark() -> tf.Tensor:
            candidates = tf.where(is_first)[:, 0]
            text_ends = tf.gather(row_splits, tf.searchsorted(row_splits, candidates, side="right"))
            lengths, markers = longest_pieces(
                TrieTensors(self._trie), self._codes(code_points), candidates, text_ends, self._trie.start_root
            )
            found = tf.where(lengths > 0)[:, 0]
            starts, lengths, markers = (tf.gather(tensor, found) for tensor in (candidates, lengths, markers))
            if self._may_overlap:
                taken = _leftmost(starts, starts + lengths)
                starts, lengths, markers = (tf.gather(tensor, taken) for tensor in (starts, lengths, markers))
            token_of = tf.repeat(tf.range(tf.size(lengths, tf.int64)), lengths)
            within = tf.range(tf.size(token_of, tf.int64)) - tf.gather(tf.cumsum(lengths, exclusive=True), token_of)
            covered = tf.gather(starts, token_of) + within
            values = tf.where(within == 0, tf.gather(markers, token_of), 0)
            return tf.tensor_scatter_nd_update(code_points, covered[:, None], values)

        return tf.cond(tf.reduce_any(is_first), mark, lambda: code_points)


def _leftmost(starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Returns which of the spans, in order of their starts, are taken if each begins after the one taken before it.

    The next one is known for every span; the chain from the first is followed in steps of 1, 2, 4, … at once.
    """
    size = tf.size(starts)
    following = tf.concat([tf.searchsorted(starts, ends), [size]], axis=0)  # the last one follows itself
    taken = tf.concat([tf.ones([1], tf.bool), tf.zeros([size], tf.bool)], axis=0)

    def step(taken, following):
        reached = tf.gather(following, tf.where(taken)[:, 0])
        taken = tf.tensor_scatter_nd_update(taken, reached[:, None], tf.ones_like(reached, tf.bool))
        return taken, tf.gather(following, following)

    taken, _ = tf.while_loop(
        lambda _, following: following[0] < size,
        step,
        (taken, following),
        shape_invariants=(tf.TensorShape([None]),) * 2,
    )
    return tf.where(taken[:-1])[:, 0]


def _may_overlap(tokens: list[str]) -> bool:
    """Whether a token can begin inside another one."""
    known = set(tokens)
    beginnings = {token[:end] for token in tokens for end in range(1, len(token) + 1)}
    return any(
        token[start:] in beginnings or any(token[start:end] in known for end in range(start + 1, len(token)))
        for token in tokens
        for start in range(1, len(token))
    )
