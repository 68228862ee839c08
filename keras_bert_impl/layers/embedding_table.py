"""A table of vectors, looked up by id."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.seeds import truncated_normal

_taker: contextvars.ContextVar[Callable[[Any, Any, Any], None] | None] = contextvars.ContextVar("taker", default=None)


@contextlib.contextmanager
def lookups_apart(taker: Callable[[Any, Any, Any], None] | None) -> Iterator[None]:
    """Lets whoever takes gradients add those of look-ups to their table's, which is less work than adding tables.

    Inside, no gradient goes from what is looked up to a table.

    Args:
        taker: is called after each look-up with the table's variable; the ids, `(count,)`; and what was found,
            `(count, output_dim)`. None to leave everything as it is.
    """
    token = _taker.set(taker)
    try:
        yield
    finally:
        _taker.reset(token)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class EmbeddingTable(keras.layers.Layer):
    """Looks vectors up by id, with a gradient that every optimizer treats rightly.

    The gradient of a plain look-up comes in slices, one per id in the batch, and Keras' Adam family
    on TensorFlow squares each slice alone when an id occurs twice. Here the gradient is dense. The
    table and its gradient keep the variable's dtype under mixed precision, since summing thousands
    of slices in a half precision loses most of the sum; so the output has that dtype too.

    Args:
        input_dim: int. Rows of the table.
        output_dim: int. Width of each row.
        initializer_range: float. Standard deviation of the truncated normal.
        seed: int. Seed of the initial values.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        ids: integer tensor of any shape, each in `[0, input_dim)`.

    Returns:
        A tensor `(*ids.shape, output_dim)` in the dtype of the variable.

    Raises:
        InputError: if a size is not positive.
    """

    def __init__(self, input_dim, output_dim, initializer_range=0.02, seed=0, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("input_dim", input_dim), ("output_dim", output_dim)):
            if value < 1:
                raise InputError(f"`{name}` must be positive. Received: {name}={value}")
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.initializer_range = initializer_range
        self.seed = seed

    def build(self, ids_shape=None):
        self.initializer = truncated_normal(self.initializer_range, self.seed, "table")
        self.table = self.add_weight(
            name="table",
            shape=(self.input_dim, self.output_dim),
            initializer=self.initializer,
            autocast=False,
        )
        self.built = True

    def call(self, ids):
        taker, flat = _taker.get(), ops.reshape(ids, (-1,))
        # The product makes the gradient dense; adding 0 or converting does not.
        table = ops.multiply(self.table, 1.0) if taker is None else ops.stop_gradient(self.table)
        rows = ops.take(table, flat, axis=0)
        if taker is not None:
            taker(self.table, flat, rows)
        return ops.reshape(rows, (*ops.shape(ids), self.output_dim))

    def project(self, inputs, training=None):
        """Returns the product of each input vector with each row: `(batch, output_dim)` to `(batch, input_dim)`."""
        if training:
            return _product_with_rows(inputs, self._dense_table(inputs.dtype))
        return ops.matmul(inputs, ops.transpose(ops.cast(self.table, inputs.dtype)))

    def project_to_columns(self, inputs):
        """Returns the same product as `(input_dim, batch)`, in two thirds of the time; for training."""
        return _product_of_rows(self._dense_table(inputs.dtype), inputs)

    def _dense_table(self, dtype):
        return ops.cast(ops.multiply(self.table, 1.0), dtype)

    def compute_output_spec(self, ids):
        return keras.KerasTensor((*ids.shape, self.output_dim), dtype=self.variable_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }


@ops.custom_gradient
def _product_with_rows(inputs, table):
    def gradient(upstream):
        # Left alone, the table's gradient comes transposed, and turning it around takes long.
        return ops.matmul(upstream, table), ops.matmul(ops.transpose(upstream), inputs)

    return ops.matmul(inputs, ops.transpose(table)), gradient


@ops.custom_gradient
def _product_of_rows(table, inputs):
    def gradient(upstream):
        return ops.matmul(upstream, inputs), ops.matmul(ops.transpose(upstream), table)

    return ops.matmul(table, ops.transpose(inputs)), gradient
