"""Tables over all code points, kept small: equal pages are stored once."""

import numpy as np
import tensorflow as tf

from keras_bert_impl.tokenization.unicode_tables import CODE_POINTS

PAGE_BITS = 8
PAGE_SIZE = 1 << PAGE_BITS

# Tokens kept whole travel as "code points" beyond Unicode's last one.
MARKER_BASE = CODE_POINTS
MOST_MARKERS = 1 << 16
TABLE_SIZE = CODE_POINTS + MOST_MARKERS


class PageTable:
    """A two-level table, looked up inside a graph with two gathers.

    Args:
        values: array, `(TABLE_SIZE,)`, one value per code point and marker.
    """

    def __init__(self, values: np.ndarray) -> None:
        numbers: dict[bytes, int] = {}
        page_of = [numbers.setdefault(page.tobytes(), len(numbers)) for page in values.reshape(-1, PAGE_SIZE)]
        self._starts = np.array(page_of, np.int32) * PAGE_SIZE
        self._pages = np.frombuffer(b"".join(numbers), values.dtype)

    def __call__(self, code_points: tf.Tensor) -> tf.Tensor:
        """Returns the values of int32 code points, in the same shape."""
        starts = tf.gather(tf.constant(self._starts), tf.bitwise.right_shift(code_points, PAGE_BITS))
        return tf.gather(tf.constant(self._pages), starts + tf.bitwise.bitwise_and(code_points, PAGE_SIZE - 1))
