"""The greedy cut of words into pieces, for all words of a batch at once."""

from typing import NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.piece_trie import PieceTrie


class Pieces(NamedTuple):
    """Pieces of words, in no particular order, and the words that cannot be cut.

    Attributes:
        places: int64, `(pieces,)`, the first character of each piece.
        ids: int32, `(pieces,)`.
        stuck: int64, `(stuck words,)`, their numbers. They have no pieces.
    """

    places: tf.Tensor
    ids: tf.Tensor
    stuck: tf.Tensor


class GreedyPieces:
    """Cuts words from left to right into the longest pieces of the vocabulary.

    First it walks the trie from every word's start at once; most words are finished by that. For the others it
    walks from every one of their remaining characters at once, and then follows the pieces. So the number of
    steps is bounded by the longest piece and the longest word, whatever the text.

    Args:
        trie: the vocabulary's pieces.
    """

    def __init__(self, trie: PieceTrie) -> None:
        self._trie = trie

    def __call__(self, codes: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> Pieces:
        """Cuts words into pieces.

        Args:
            codes: int32, `(characters,)`, the trie's codes of the characters.
            starts: int64, `(words,)`, first character of each word.
            ends: int64, `(words,)`, the character after its last.
        """
        trie = TrieTensors(self._trie)
        lengths, ids = longest_pieces(trie, codes, starts, ends, self._trie.start_root)
        rest_starts = starts + lengths
        unfinished = tf.where((lengths > 0) & (rest_starts < ends))[:, 0]
        rest_places, rest_ids, stuck_rests = self._cut_rests(
            trie, codes, tf.gather(rest_starts, unfinished), tf.gather(ends, unfinished)
        )
        stuck = tf.concat([tf.where(lengths == 0)[:, 0], tf.gather(unfinished, stuck_rests)], axis=0)
        first_ids = tf.tensor_scatter_nd_update(ids, stuck[:, None], tf.fill(tf.shape(stuck), -1))
        whole = tf.where(first_ids >= 0)[:, 0]
        return Pieces(
            tf.concat([tf.gather(starts, whole), rest_places], axis=0),
            tf.concat([tf.gather(ids, whole), rest_ids], axis=0),
            stuck,
        )

    def _cut_rests(self, trie: "TrieTensors", codes: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> Pieces:
        """Cuts the rests of words, at least a character each, into continuation pieces."""
        sizes = ends - starts
        rest_of = tf.repeat(tf.range(tf.size(sizes, tf.int64)), sizes)
        rest_ends = tf.cumsum(sizes)
        rest_starts = rest_ends - sizes
        walkers = tf.range(tf.size(rest_of, tf.int64))
        places = walkers + tf.gather(starts - rest_starts, rest_of)
        lengths, ids = longest_pieces(trie, codes, places, tf.gather(ends, rest_of), self._trie.continuation_root)

        def step(at, until, reached):
            reached = tf.tensor_scatter_nd_update(reached, at[:, None], tf.ones_like(at, tf.bool))
            steps = tf.gather(lengths, at)
            at += steps
            goes_on = tf.where((steps > 0) & (at < until))[:, 0]
            return tf.gather(at, goes_on), tf.gather(until, goes_on), reached

        *_, reached = tf.while_loop(
            lambda at, *_: tf.size(at) > 0,
            step,
            (rest_starts, rest_ends, tf.zeros_like(walkers, tf.bool)),
            shape_invariants=(tf.TensorShape([None]),) * 3,
        )
        stuck = tf.gather(rest_of, tf.where(reached & (lengths == 0))[:, 0])
        is_stuck = tf.tensor_scatter_nd_update(
            tf.zeros_like(sizes, tf.bool), stuck[:, None], tf.ones_like(stuck, tf.bool)
        )
        pieces = tf.where(reached & ~tf.gather(is_stuck, rest_of))[:, 0]
        return Pieces(tf.gather(places, pieces), tf.gather(ids, pieces), stuck)


class TrieTensors:
    """The trie's arrays as constants of the graph being built; both walks use the same ones."""

    def __init__(self, trie: PieceTrie) -> None:
        self.bases = tf.constant(trie.bases)
        self.parents = tf.constant(trie.parents)
        self.piece_ids = tf.constant(trie.piece_ids)
        self.depths = tf.constant(trie.depths)


def longest_pieces(
    trie: TrieTensors, codes: tf.Tensor, places: tf.Tensor, ends: tf.Tensor, root: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns length (int64, 0 for none) and id of the longest piece at each place, up to its end."""

    def step(walkers, places, ends, states, longest):
        targets = tf.gather(trie.bases, states) + tf.gather(codes, places)
        alive = tf.gather(trie.parents, targets) == states
        accepted = tf.where(alive & (tf.gather(trie.piece_ids, targets) >= 0))[:, 0]
        longest = tf.tensor_scatter_nd_update(
            longest, tf.gather(walkers, accepted)[:, None], tf.gather(targets, accepted)
        )
        places += 1
        goes_on = tf.where(alive & (places < ends))[:, 0]
        return *(tf.gather(tensor, goes_on) for tensor in (walkers, places, ends, targets)), longest

    roots = tf.fill(tf.shape(places), root)
    *_, longest = tf.while_loop(
        lambda walkers, *_: tf.size(walkers) > 0,
        step,
        (tf.range(tf.size(places, tf.int64)), places, ends, roots, roots),
        shape_invariants=(tf.TensorShape([None]),) * 5,
    )
    return tf.cast(tf.gather(trie.depths, longest), tf.int64), tf.gather(trie.piece_ids, longest)
