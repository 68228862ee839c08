"""The WordPiece tokenizer inside a TensorFlow graph, for `tf.data` and for exports."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization.graph_normalizer import (
    SYMBOL_ALONE,
    SYMBOL_CODE,
    SYMBOL_KEPT,
    SYMBOL_SPACE,
    GraphNormalizer,
    Symbols,
    has_flag,
)
from keras_bert_impl.tokenization.graph_pieces import GreedyPieces
from keras_bert_impl.tokenization.piece_trie import PieceTrie
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class InGraphWordPiece(tf.Module):
    """Gives the ids that a `WordPieceTokenizer` gives, with core TensorFlow operations alone.

    It needs no regular expressions, look-up tables, tensorflow-text operations or Python at run time, so an
    export that holds it loads in any TensorFlow Serving. The vocabulary and the Unicode tables are constants of
    the graph. Invalid UTF-8, which a Python string cannot hold, has one result: every byte sequence that is none reads
    as U+FFFD, and that character vanishes without separating words.

    For an export, hand it to `keras.export.ExportArchive.track`.

    Args:
        tokenizer: the specification: vocabulary and options.

    Call arguments:
        texts: string tensor, `(batch,)`, UTF-8.
        keep_special_tokens: bool. Whether special tokens written in the text are kept whole.

    Returns:
        An int32 `tf.RaggedTensor`, `(batch, pieces)`, without `[CLS]` and `[SEP]`.

    Raises:
        InputError: if the tokenizer has more than 65,536 tokens to be kept whole.
    """

    def __init__(self, tokenizer: WordPieceTokenizer, name: str | None = None) -> None:
        super().__init__(name=name)
        trie = PieceTrie(tokenizer.start_pieces, tokenizer.continuation_pieces)
        special_tokens = tuple(dict.fromkeys(tokenizer.special_tokens))
        added_tokens = tokenizer.added_tokens
        self._normalizer = GraphNormalizer(tokenizer.normalizer, special_tokens, added_tokens, trie.codes)
        self._pieces = GreedyPieces(trie)
        kept_tokens = (*special_tokens, *added_tokens)
        self._kept_ids = np.array([tokenizer.start_pieces[token] for token in kept_tokens], np.int32)
        self._kept_lengths = np.array([len(token) for token in kept_tokens], np.int64)
        self._unk_token_id = tokenizer.unk_token_id
        self._max_chars_per_word = tokenizer.max_chars_per_word
        signature = [tf.TensorSpec([None], tf.string, name="texts")]
        self._keeping = tf.function(lambda texts: self._tokenize(texts, True), signature, autograph=False)
        self._plain = tf.function(lambda texts: self._tokenize(texts, False), signature, autograph=False)

    def __call__(self, texts: Any, keep_special_tokens: bool = True) -> tf.RaggedTensor:
        """Returns the ids of the pieces of each text."""
        texts = tf.convert_to_tensor(texts, tf.string)
        ids, row_splits = self._keeping(texts) if keep_special_tokens else self._plain(texts)
        return tf.RaggedTensor.from_row_splits(ids, row_splits, validate=False)

    def with_offsets(
        self, texts: Any, keep_special_tokens: bool = True, include_marks: bool = False
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the ids and where each piece starts and ends in its text, as `WordPieceTokenizer.encode` does.

        Offsets count characters, as `tf.strings.substr(…, unit="UTF8_CHAR")` does; a byte sequence that is no UTF-8
        is one character. To be called inside a `tf.function` or `tf.data.Dataset.map`: eagerly it is slow.

        Args:
            texts: string tensor, `(batch,)`, UTF-8.
            keep_special_tokens: bool. Whether special tokens written in the text are kept whole.
            include_marks: bool. Whether a piece ends after the marks that follow it, which the reader sees as one
                letter with it, although the tokenizer may strip them.

        Returns:
            Three int32 `tf.RaggedTensor`, `(batch, pieces)`: ids, starts, ends.
        """
        with tf.device("/device:CPU:0"):
            texts = tf.convert_to_tensor(texts, tf.string)
            symbols = self._normalizer(texts, keep_special_tokens)
            word_starts, ids, places = self._cut(symbols)
            row_splits = tf.searchsorted(places, symbols.row_splits, out_type=tf.int64)
            # A piece goes on to the next piece or the next word.
            size = tf.size(symbols.values, tf.int64)
            is_boundary = tf.scatter_nd(
                tf.concat([word_starts, places, [size]], axis=0)[:, None],
                tf.ones([tf.size(word_starts) + tf.size(places) + 1], tf.int32),
                [size + 1],
            )
            boundaries = tf.where(is_boundary > 0)[:, 0]
            after = tf.gather(boundaries, tf.searchsorted(boundaries, places, side="right"))
            starts, ends, _ = self._sources(symbols, places, after)
            if include_marks:
                ends = self._normalizer.after_marks(texts, ends, starts)
            ragged = tf.RaggedTensor.from_row_splits(ids, row_splits, validate=False)
            return ragged, *_in_texts(symbols, row_splits, starts, ends)

    def word_offsets(self, texts: Any) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns where the words of each text start and end, as `keras_bert_impl.tasks.text_words` finds them.

        Offsets count characters, as those of `with_offsets` do. To be called inside a `tf.function`.

        Args:
            texts: string tensor, `(batch,)`, UTF-8.

        Returns:
            Two int32 `tf.RaggedTensor`, `(batch, words)`: starts, ends.
        """
        with tf.device("/device:CPU:0"):
            texts = tf.convert_to_tensor(texts, tf.string)
            symbols = self._normalizer(texts, True)
            places, after = _words(symbols.values, symbols.row_splits)
            is_word = tf.where(~has_flag(tf.gather(symbols.values, places), SYMBOL_SPACE))[:, 0]
            places, after = tf.gather(places, is_word), tf.gather(after, is_word)
            row_splits = tf.searchsorted(places, symbols.row_splits, out_type=tf.int64)
            starts, ends, is_kept = self._sources(symbols, places, after)
            with_marks = self._normalizer.after_marks(texts, ends, starts)
            return _in_texts(symbols, row_splits, starts, tf.where(is_kept, ends, with_marks))

    def _tokenize(self, texts: tf.Tensor, keep_special_tokens: bool) -> tuple[tf.Tensor, tf.Tensor]:
        # Small integer work on strings: on a GPU it would only be slower.
        with tf.device("/device:CPU:0"):
            symbols = self._normalizer(texts, keep_special_tokens)
            _, ids, places = self._cut(symbols)
            return ids, tf.searchsorted(places, symbols.row_splits, out_type=tf.int64)

    def _sources(self, symbols: Symbols, places: tf.Tensor, after: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the first raw characters of stretches, those after their last, and which are tokens kept whole."""
        starts = tf.gather(symbols.sources, places)
        first = tf.gather(symbols.values, places)
        is_kept = has_flag(first, SYMBOL_KEPT)
        kept_lengths = tf.gather(tf.constant(self._kept_lengths), tf.where(is_kept, _codes(first), 0))
        ends = tf.where(is_kept, starts + kept_lengths, tf.gather(symbols.sources, after - 1) + 1)
        return starts, ends, is_kept

    def _cut(self, symbols: Symbols) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the first symbols of all words, white space among them, the ids, and the first symbols of those."""
        values = symbols.values
        starts, ends = _words(values, symbols.row_splits)
        first = tf.gather(values, starts)
        is_kept = has_flag(first, SYMBOL_KEPT)
        too_long = ends - starts > self._max_chars_per_word
        to_cut = tf.where(~(has_flag(first, SYMBOL_SPACE) | is_kept | too_long))[:, 0]
        pieces = self._pieces(_codes(values), tf.gather(starts, to_cut), tf.gather(ends, to_cut))

        kept = tf.where(is_kept)[:, 0]
        unknown = tf.concat([tf.where(too_long)[:, 0], tf.gather(to_cut, pieces.stuck)], axis=0)
        ids_at = tf.scatter_nd(
            tf.concat([pieces.places, tf.gather(starts, kept), tf.gather(starts, unknown)], axis=0)[:, None],
            1
            + tf.concat(
                [
                    pieces.ids,
                    tf.gather(tf.constant(self._kept_ids), _codes(tf.gather(first, kept))),
                    tf.fill(tf.shape(unknown), self._unk_token_id),
                ],
                axis=0,
            ),
            tf.shape(values, tf.int64),
        )
        places = tf.where(ids_at > 0)[:, 0]
        return starts, tf.gather(ids_at, places) - 1, places


def _in_texts(
    symbols: Symbols, row_splits: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns places counted through the batch as places in each text."""
    ragged = tf.RaggedTensor.from_row_splits(starts, row_splits, validate=False)
    text_starts = tf.gather(symbols.raw_row_splits, ragged.value_rowids())
    return (
        ragged.with_values(tf.cast(starts - text_starts, tf.int32)),
        ragged.with_values(tf.cast(ends - text_starts, tf.int32)),
    )


def _words(symbols: tf.Tensor, row_splits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first character of every word and the one after its last; white space counts as words."""
    alone = has_flag(symbols, SYMBOL_ALONE)
    after_alone = tf.concat([[True], alone], axis=0)[:-1]
    size = tf.size(symbols, tf.int64)
    row_starts = tf.boolean_mask(row_splits, row_splits < size)[:, None]
    is_start = tf.tensor_scatter_nd_update(alone | after_alone, row_starts, tf.ones(tf.shape(row_starts)[:1], tf.bool))
    starts = tf.where(is_start)[:, 0]
    return starts, tf.concat([starts, [size]], axis=0)[1:]


def _codes(symbols: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(symbols, SYMBOL_CODE)
