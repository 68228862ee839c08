"""What `TextNormalizer` does, with core TensorFlow operations on whole batches of characters."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.page_table import MARKER_BASE, TABLE_SIZE, PageTable
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
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

# A symbol is an int32: the code that the vocabulary's trie has for a normalised character, and these flags.
SYMBOL_CODE = (1 << 20) - 1
SYMBOL_ALONE = 1 << 20  # a word by itself, or white space, or a special token
SYMBOL_SPACE = 1 << 21
SYMBOL_SPECIAL = 1 << 22  # a special token kept whole; the code is its number
_SYMBOL_DROPPED = 1 << 23
_SYMBOL_IN_CONTEXT = 1 << 24  # what it becomes is not one character, or depends on its neighbours

# Flag of this file beside those of the Unicode tables: a mark that stays and may change places in canonical order.
_MOVING = 128

# In the table of differences: from here on, the number of a sequence.
_SEQUENCES = 1 << 21


class Symbols(NamedTuple):
    """The normalised characters of a batch of texts, one text after another.

    Attributes:
        values: int32, `(characters,)`.
        row_splits: int64, `(batch + 1,)`, where each text starts and the last one ends.
    """

    values: tf.Tensor
    row_splits: tf.Tensor


class GraphNormalizer:
    """Turns a batch of UTF-8 strings into symbols.

    Nearly every character becomes one character or none, whatever its neighbours: one look-up does it. Where a
    batch has others (a capital sigma, Hangul to be taken apart, marks that change places), it goes the long way.

    Args:
        normalizer: the specification.
        special_tokens: strings to be kept whole. No two occurrences may be able to overlap.
        codes: dict from characters to the trie's codes for them, less than 2**20.

    Raises:
        InputError: if special tokens can overlap in a text.
    """

    def __init__(self, normalizer: TextNormalizer, special_tokens: Sequence[str], codes: Mapping[str, int]) -> None:
        _check_no_overlap(special_tokens)
        self._normalizer = normalizer
        self._special_tokens = [list(map(ord, token)) for token in special_tokens]

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
        if keep_special_tokens:
            code_points = self._with_markers(code_points, row_splits)
        symbols = self._symbols(code_points)
        symbols, row_splits = tf.cond(
            tf.reduce_any(has_flag(symbols, _SYMBOL_IN_CONTEXT)),
            lambda: self._in_context(code_points, row_splits),
            lambda: Symbols(symbols, row_splits),
        )
        kept = tf.where(~has_flag(symbols, _SYMBOL_DROPPED))[:, 0]
        return Symbols(tf.gather(symbols, kept), tf.searchsorted(kept, row_splits, out_type=tf.int64))

    def _with_markers(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
        """Puts a marker for the first character of every special token, and NUL for its others."""
        firsts = sorted({token[0] for token in self._special_tokens})
        is_first = tf.reduce_any(code_points[:, None] == tf.constant(firsts, tf.int32), axis=1)

        def replace() -> tf.Tensor:
            longest_first = sorted(range(len(self._special_tokens)), key=lambda n: -len(self._special_tokens[n]))
            lengths = np.array([len(self._special_tokens[n]) for n in longest_first], np.int32)
            wanted = np.zeros((len(lengths), lengths.max()), np.int32)
            for line, number in enumerate(longest_first):
                wanted[line, : lengths[line]] = self._special_tokens[number]
            beyond = np.arange(wanted.shape[1]) >= lengths[:, None]

            candidates = tf.where(is_first)[:, 0]
            text_ends = tf.gather(row_splits, tf.searchsorted(row_splits, candidates, side="right"))
            places = candidates[:, None] + tf.range(wanted.shape[1], dtype=tf.int64)
            inside = tf.minimum(places, text_ends[:, None] - 1)
            window = tf.where(places == inside, tf.gather(code_points, inside), -1)
            matches = tf.reduce_all((window[:, None] == wanted) | beyond, axis=2)
            found = tf.where(tf.reduce_any(matches, axis=1))[:, 0]
            which = tf.argmax(tf.cast(tf.gather(matches, found), tf.int32), axis=1)
            covered = tf.gather(places, found)
            markers = MARKER_BASE + tf.gather(tf.constant(longest_first, tf.int32), which)
            marked = tf.concat([markers[:, None], tf.zeros_like(covered[:, 1:], tf.int32)], axis=1)
            taken = ~tf.gather(tf.constant(beyond), which)
            return tf.tensor_scatter_nd_update(
                code_points, tf.boolean_mask(covered, taken)[:, None], tf.boolean_mask(marked, taken)
            )

        return tf.cond(tf.reduce_any(is_first), replace, lambda: code_points)

    def _in_context(self, code_points: tf.Tensor, row_splits: tf.Tensor) -> Symbols:
        """The long way: every step of the normalisation by itself."""
        rows = tf.RaggedTensor.from_row_splits(code_points, row_splits, validate=False).value_rowids()
        code_points, rows = _select(~has_flag(self._flags(code_points), DROPPED), code_points, rows)
        if self._normalizer.lowercase:
            code_points = self._with_final_sigmas(code_points, rows)
        code_points, rows = self._expanded(code_points, rows)
        if self._normalizer.strip_accents:
            code_points, rows = self._without_marks(code_points, rows)
        row_splits = tf.searchsorted(rows, tf.range(tf.size(row_splits, tf.int64)), out_type=tf.int64)
        return Symbols(self._normalized_symbols(code_points), row_splits)

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

    def _expanded(self, code_points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
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
        return tf.where(from_sequence, parts, single), tf.gather(rows, source)

    def _without_marks(self, code_points: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Removes non-spacing marks, after putting the marks that stay into canonical order."""
        flags = self._flags(code_points)

        def in_order() -> tuple[tf.Tensor, tf.Tensor]:
            classes = tf.cast(self._combining_class(code_points), tf.int64)
            new_row = rows != tf.concat([[-1], rows], axis=0)[:-1]
            runs = tf.cumsum(tf.cast((classes == 0) | new_row, tf.int64))
            order = tf.argsort(runs * 256 + classes, stable=True)
            return tf.gather(code_points, order), tf.gather(flags, order)

        # Marks change places only within their own text, so `rows` stays as it is.
        code_points, flags = tf.cond(tf.reduce_any(has_flag(flags, _MOVING)), in_order, lambda: (code_points, flags))
        return _select(~has_flag(flags, MARK), code_points, rows)

    def _make_normalized_symbols(self, flags: np.ndarray, codes: Mapping[str, int]) -> np.ndarray:
        """Returns the symbols of characters that are in their final form."""
        symbols = np.zeros(TABLE_SIZE, np.int32)
        symbols[[ord(char) for char in codes]] = list(codes.values())
        alone = SPACE | PUNCTUATION | (CJK if self._normalizer.split_cjk else 0)
        symbols |= np.where(flags & alone, SYMBOL_ALONE, 0) | np.where(flags & SPACE, SYMBOL_SPACE, 0)
        for number in range(len(self._special_tokens)):
            symbols[MARKER_BASE + number] = SYMBOL_ALONE | SYMBOL_SPECIAL | number
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


def _check_no_overlap(tokens: Sequence[str]) -> None:
    for one in tokens:
        for other in tokens:
            for shift in range(1, len(one)):
                common = min(len(one) - shift, len(other))
                if one[shift : shift + common] == other[:common]:
                    raise InputError(
                        f"`special_tokens` must not be able to overlap in a text. Received: {one!r} and {other!r}"
                    )


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
