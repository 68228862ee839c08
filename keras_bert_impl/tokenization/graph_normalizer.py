"""What `TextNormalizer` does, with core TensorFlow operations on whole batches of characters."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.page_table import MARKER_BASE, MOST_MARKERS, TABLE_SIZE, PageTable
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.token_marker import TokenMarker
from keras_bert_impl.tokenization.unicode_tables import (
    CAPITAL_SIGMA,
    CASE_IGNORABLE,
    CASED,
    CJK,
    CODE_POINTS,
    DROPPED,
    FINAL_SIGMA,
    MARK,
    PUNCTUATION,
    SPACE,
    unicode_tables,
)

# A symbol is an int32: the code of a normalised character, 0 for one of no code, and these flags.
SYMBOL_CODE = (1 << 21) - 1
SYMBOL_ALONE = 1 << 21  # a word by itself, or white space, or a token kept whole
SYMBOL_SPACE = 1 << 22
SYMBOL_KEPT = 1 << 23  # a token kept whole; the code is its number
_SYMBOL_DROPPED = 1 << 24
_SYMBOL_IN_CONTEXT = 1 << 25  # what it becomes is not one character, or depends on its neighbours

# Flag of this file beside those of the Unicode tables: a mark that stays and may change places in canonical order.
_MOVING = 128

# In the table of differences: from here on, the number of a sequence.
_SEQUENCES = 1 << 21


class Symbols(NamedTuple):
    """The normalised characters of a batch of texts, one text after another.

    Attributes:
        values: int32, `(characters,)`.
        row_splits: int64, `(batch + 1,)`, where each text starts and the last one ends.
        sources: int64, `(characters,)`, the raw character that each was made from, counted through the batch.
        raw_row_splits: int64, `(batch + 1,)`, where each text starts among the raw characters.
    """

    values: tf.Tensor
    row_splits: tf.Tensor
    sources: tf.Tensor
    raw_row_splits: tf.Tensor


class GraphNormalizer:
    """Turns a batch of UTF-8 strings into symbols.

    Nearly every character becomes one character or none, whatever its neighbours: one look-up does it. Where a
    batch has others (a capital sigma, Hangul to be taken apart, marks that change places), it goes the long way.

    Args:
        normalizer: the specification.
        special_tokens: strings to be kept whole where the call says so.
        added_tokens: strings to be kept whole always. A token's number, the code of its symbol, is its place among
            the special tokens and these after them.
        codes: dict from characters to positive codes for them, less than 2**21.

    Raises:
        InputError: if there are more than 65,536 tokens to be kept whole.
    """

    def __init__(
        self,
        normalizer: TextNormalizer,
        special_tokens: Sequence[str],
        added_tokens: Sequence[str],
        codes: Mapping[str, int],
    ) -> None:
        kept_tokens = [*special_tokens, *added_tokens]
        if len(kept_tokens) > MOST_MARKERS:
            raise InputError(
                f"`added_tokens` must leave at most {MOST_MARKERS} tokens to be kept whole in a graph. "
                f"Received: {len(added_tokens)}"
            )
        self._normalizer = normalizer
        self._number_of_markers = len(kept_tokens)
        markers = {token: MARKER_BASE + number for number, token in enumerate(kept_tokens)}
        self._mark_all = TokenMarker(markers)
        self._mark_added = TokenMarker({token: markers[token] for token in added_tokens})

        flags = _make_flags()
        expansions = _make_expansions(normalizer)
        normalized_symbols = self._make_normalized_symbols(flags, codes)
        self._symbols = PageTable(self._make_symbols(flags, expansions, normalized_symbols))
        self._normalized_symbols = PageTable(normalized_symbols)
        self._flags = PageTable(flags)
        self._combining_class = PageTable(_make_combining_classes())

        differences = np.zeros(TABLE_SIZE, np.int32)
        sequences = [parts for parts in expansions.values() if len(parts) > 1]
        number = 0
        for code_point, parts in expansions.items():
            differences[code_point] = _SEQUENCES + number if len(parts) > 1 else parts[0] - code_point
            number += len(parts) > 1
        self._differences = PageTable(differences)
        self._sequence_lengths = np.array([len(parts) for parts in sequences] or [0], np.int32)
        self._sequence_starts = np.cumsum(self._sequence_lengths, dtype=np.int32) - self._sequence_lengths
        self._sequence_values = np.array([part for parts in sequences for part in parts] or [0], np.int32)

    def __call__(self, texts: tf.Tensor, keep_special_tokens: bool) -> Symbols:
        """Returns the symbols of the texts, a string tensor `(batch,)`."""
        row_splits, code_points = tf.raw_ops.UnicodeDecode(
            input=texts, input_encoding="UTF-8", errors="replace", replacement_char=0xFFFD
        )
        code_points = (self._mark_all if keep_special_tokens else self._mark_added)(code_points, row_splits)
        symbols = self._symbols(code_points)
        symbols, sources = tf.cond(
            tf.reduce_any(has_flag(symbols, _SYMBOL_IN_CONTEXT)),
            lambda: self._in_context(code_points, row_splits),
            lambda: (symbols, tf.range(tf.size(symbols, tf.int64))),
        )
        symbols, sources = _select(~has_flag(symbols, _SYMBOL_DROPPED), symbols, sources)
        return Symbols(symbols, tf.searchsorted(sources, row_splits, out_type=tf.int64), sources, row_splits)

    def after_marks(self, texts: tf.Tensor, ends: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        """Returns ends of pieces moved behind the non-spacing marks that stand there, but into no other piece or text.

        Args:
            texts: string, `(batch,)`.
            ends: int64, `(pieces,)`; raw characters, counted through the batch, or the one after a text's last.
            starts: int64, `(pieces,)`; where pieces start.
        """
        row_splits, code_points = tf.raw_ops.UnicodeDecode(
            input=texts, input_encoding="UTF-8", errors="replace", replacement_char=0xFFFD
        )
        others = tf.where(~has_flag(self._flags(code_points), MARK))[:, 0]
        stops = tf.sort(tf.concat([others, row_splits, starts], axis=0))
        return tf.gather(stops, tf.searchsorted(stops, ends))

    def _in_context(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The long way: every step of the normalisation by itself. Returns symbols and their sources."""
        rows = tf.RaggedTensor.from_row_splits(code_points, row_splits, validate=False).value_rowids()
        sources = tf.range(tf.size(code_points, tf.int64))
        code_points, sources = _select(~has_flag(self._flags(code_points), DROPPED), code_points, sources)
        if self._normalizer.lowercase:
            code_points = self._with_final_sigmas(code_points, tf.gather(rows, sources))
        code_points, sources = self._expanded(code_points, sources)
        if self._normalizer.strip_accents:
            code_points, sources = self._without_marks(code_points, sources, tf.gather(rows, sources))
        return self._normalized_symbols(code_points), sources

    def _with_final_sigmas(self, code_points: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Puts ς for every Σ that ends a word: after a cased letter and before none, case-ignorable ones apart."""
        sigmas = tf.where(code_points == CAPITAL_SIGMA)[:, 0]
        flags = self._flags(code_points)
        is_telling = ~has_flag(flags, CASE_IGNORABLE)
        telling = tf.where(is_telling)[:, 0]
        places = tf.gather(tf.cumsum(tf.cast(is_telling, tf.int64), exclusive=True), sigmas)

        def cased_neighbour(step: int) -> tf.Tensor:
            neighbours = places + step
            inside = tf.clip_by_value(neighbours, 0, tf.size(telling, tf.int64) - 1)
            position = tf.gather(telling, inside)
            same_text = (neighbours == inside) & (tf.gather(rows, position) == tf.gather(rows, sigmas))
            return same_text & has_flag(tf.gather(flags, position), CASED)

        final = tf.boolean_mask(sigmas, cased_neighbour(-1) & ~cased_neighbour(1))
        return tf.tensor_scatter_nd_update(code_points, final[:, None], tf.fill(tf.shape(final), FINAL_SIGMA))

    def _expanded(self, code_points: tf.Tensor, sources: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Lower-cases and decomposes; a character may become several."""
        differences = self._differences(code_points)
        in_sequence = differences >= _SEQUENCES
        numbers = tf.where(in_sequence, differences - _SEQUENCES, 0)
        lengths = tf.where(in_sequence, tf.gather(tf.constant(self._sequence_lengths), numbers), 1)
        source = tf.repeat(tf.range(tf.size(code_points)), lengths)
        part = tf.range(tf.size(source)) - tf.gather(tf.cumsum(lengths, exclusive=True), source)
        starts = tf.gather(tf.gather(tf.constant(self._sequence_starts), numbers), source)
        from_sequence = tf.gather(in_sequence, source)
        parts = tf.gather(tf.constant(self._sequence_values), tf.where(from_sequence, starts + part, 0))
        single = tf.gather(code_points + differences, source)
        return tf.where(from_sequence, parts, single), tf.gather(sources, source)

    def _without_marks(
        self, code_points: tf.Tensor, sources: tf.Tensor, rows: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Removes non-spacing marks, after putting the marks that stay into canonical order."""
        flags = self._flags(code_points)

        def in_order() -> tuple[tf.Tensor, ...]:
            classes = tf.cast(self._combining_class(code_points), tf.int64)
            new_row = rows != tf.concat([[-1], rows], axis=0)[:-1]
            runs = tf.cumsum(tf.cast((classes == 0) | new_row, tf.int64))
            order = tf.argsort(runs * 256 + classes, stable=True)
            kept = tf.gather(order, tf.where(~has_flag(tf.gather(flags, order), MARK))[:, 0])
            # Sources stay in order even where characters changed places, so that offsets never run backwards.
            return tf.gather(code_points, kept), tf.gather(sources, tf.sort(kept))

        return tf.cond(
            tf.reduce_any(has_flag(flags, _MOVING)),
            in_order,
            lambda: _select(~has_flag(flags, MARK), code_points, sources),
        )

    def _make_normalized_symbols(self, flags: np.ndarray, codes: Mapping[str, int]) -> np.ndarray:
        """Returns the symbols of characters that are in their final form."""
        symbols = np.zeros(TABLE_SIZE, np.int32)
        symbols[[ord(char) for char in codes]] = list(codes.values())
        alone = SPACE | PUNCTUATION | (CJK if self._normalizer.split_cjk else 0)
        symbols |= np.where(flags & alone, SYMBOL_ALONE, 0) | np.where(flags & SPACE, SYMBOL_SPACE, 0)
        for number in range(self._number_of_markers):
            symbols[MARKER_BASE + number] = SYMBOL_ALONE | SYMBOL_KEPT | number
        return symbols

    def _make_symbols(
        self, flags: np.ndarray, expansions: Mapping[int, tuple[int, ...]], normalized_symbols: np.ndarray
    ) -> np.ndarray:
        """Returns the symbols of characters as they stand in the text."""
        symbols = np.where(flags & DROPPED, _SYMBOL_DROPPED, normalized_symbols)
        stripped = 0
        if self._normalizer.strip_accents:
            stripped = MARK
            symbols = np.where(flags & MARK, _SYMBOL_DROPPED, symbols)
            symbols = np.where(flags & _MOVING, _SYMBOL_IN_CONTEXT, symbols)
        for code_point, parts in expansions.items():
            kept = [part for part in parts if not flags[part] & stripped]
            if not kept:
                symbols[code_point] = _SYMBOL_DROPPED
            elif len(kept) == 1 and symbols[kept[0]] != _SYMBOL_IN_CONTEXT:
                symbols[code_point] = normalized_symbols[kept[0]]
            else:
                symbols[code_point] = _SYMBOL_IN_CONTEXT
        if self._normalizer.lowercase:
            symbols[CAPITAL_SIGMA] = _SYMBOL_IN_CONTEXT
        return symbols.astype(np.int32)


def has_flag(values: tf.Tensor, flag: int) -> tf.Tensor:
    """Returns which of the values have the flag."""
    return tf.bitwise.bitwise_and(values, tf.constant(flag, values.dtype)) > 0


def _select(mask: tf.Tensor, *tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
    places = tf.where(mask)[:, 0]
    return tuple(tf.gather(tensor, places) for tensor in tensors)


def _make_flags() -> np.ndarray:
    tables = unicode_tables()
    flags = np.zeros(TABLE_SIZE, np.uint8)
    flags[:CODE_POINTS] = tables.flags
    for code_point in tables.combining_class:
        if not flags[code_point] & MARK:
            flags[code_point] |= _MOVING
    return flags


def _make_expansions(normalizer: TextNormalizer) -> dict[int, tuple[int, ...]]:
    """Returns what the characters that change become, out of context and with their marks."""
    tables = unicode_tables()
    changed: set[int] = set()
    if normalizer.lowercase:
        changed.update(tables.lower)
    if normalizer.strip_accents:
        changed.update(tables.decomposable())
    return {code_point: normalizer.expand(code_point) for code_point in sorted(changed)}


def _make_combining_classes() -> np.ndarray:
    classes = np.zeros(TABLE_SIZE, np.uint8)
    for code_point, combining_class in unicode_tables().combining_class.items():
        classes[code_point] = combining_class
    return classes
