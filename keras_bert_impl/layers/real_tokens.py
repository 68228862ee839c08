"""Which positions of padded rows hold a token, and which prediction slots are used."""

import keras
from keras import ops

from keras_bert_impl.layers.gathering import take_with_inverse


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RealTokens(keras.layers.Layer):
    """Numbers the real tokens of padded rows, row by row, so that padding need not be worked on.

    The first position of a row always counts as a token, so that no row is without any. It has no variables.

    Args:
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        padding_mask: bool or integer tensor, `(batch, seq_len)`; true where there is a token.

    Returns:
        A tuple of `mask`, bool `(batch, seq_len)`: `padding_mask` with the first positions true; `places`, int32
        `(real_tokens,)`: where each token stands in the flattened rows; `numbers`, int32 `(batch, seq_len)`: the number
        of the token at each position, and at padding that of the last token before it.
    """

    def build(self, padding_mask_shape):
        self.built = True

    def call(self, padding_mask):
        is_first = ops.equal(ops.arange(ops.shape(padding_mask)[1], dtype="int32"), 0)
        mask = ops.logical_or(ops.cast(padding_mask, "bool"), ops.expand_dims(is_first, 0))
        flat = ops.reshape(mask, (-1,))
        numbers = ops.cumsum(ops.cast(flat, "int32")) - 1
        return mask, _true_places(flat), ops.reshape(numbers, ops.shape(mask))

    def compute_output_spec(self, padding_mask):
        shape = padding_mask.shape
        return keras.KerasTensor(shape, "bool"), keras.KerasTensor((None,), "int32"), keras.KerasTensor(shape, "int32")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class InRows(keras.layers.Layer):
    """Puts vectors of real tokens back where they stood in their padded rows, with zeros between them.

    Args:
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(real_tokens, hidden_size)`.
        token_mask, places, numbers: what `RealTokens` returned.

    Returns:
        A tensor `(batch, seq_len, hidden_size)`.
    """

    def build(self, inputs_shape, token_mask_shape, places_shape, numbers_shape):
        self.built = True

    def call(self, inputs, token_mask, places, numbers):
        return take_with_inverse(inputs, numbers, places) * ops.cast(ops.expand_dims(token_mask, 2), inputs.dtype)

    def compute_output_spec(self, inputs, token_mask, places, numbers):
        return keras.KerasTensor((*numbers.shape, inputs.shape[-1]), inputs.dtype)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class RealPredictions(keras.layers.Layer):
    """Finds the tokens that the used prediction slots point at.

    Args:
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        mask_positions: integer tensor, `(batch, predictions)`, each in `[0, seq_len)`.
        mask_weights: float tensor, `(batch, predictions)`; 0 in unused slots.
        numbers: integer tensor, `(batch, seq_len)`, as `RealTokens` returned it.

    Returns:
        The numbers of these tokens, int32 `(real_predictions,)`, in the order of `real_slots`.
    """

    def build(self, mask_positions_shape, mask_weights_shape, numbers_shape):
        self.built = True

    def call(self, mask_positions, mask_weights, numbers):
        # Not by `ops.take_along_axis`, which fails on a batch of nothing.
        rows, columns = ops.shape(numbers)
        row_starts = ops.expand_dims(ops.arange(rows, dtype="int32") * columns, 1)
        places = ops.reshape(ops.cast(mask_positions, "int32") + row_starts, (-1,))
        return ops.take(ops.reshape(numbers, (-1,)), ops.take(places, real_slots(mask_weights), axis=0), axis=0)

    def compute_output_spec(self, mask_positions, mask_weights, numbers):
        return keras.KerasTensor((None,), "int32")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class ChosenTokens(keras.layers.Layer):
    """Lists the tokens that are wanted for several purposes, and where each purpose finds its own in the list.

    Args:
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        wanted: dict of integer tensors of any shape, numbers of tokens.

    Returns:
        A pair: the list, int32 `(chosen,)`; and a dict like `wanted`, of places in the list.
    """

    def build(self, wanted_shape):
        self.built = True

    def call(self, wanted):
        lists = [ops.reshape(ops.cast(numbers, "int32"), (-1,)) for numbers in wanted.values()]
        places, first = {}, 0
        for (purpose, numbers), of_list in zip(wanted.items(), lists, strict=True):
            count = ops.shape(of_list)[0]
            places[purpose] = ops.reshape(first + ops.arange(count, dtype="int32"), ops.shape(numbers))
            first = first + count
        return ops.concatenate(lists, axis=0), places

    def compute_output_spec(self, wanted):
        places = {purpose: keras.KerasTensor(numbers.shape, "int32") for purpose, numbers in wanted.items()}
        return keras.KerasTensor((None,), "int32"), places


def real_slots(mask_weights):
    """Returns which of the flattened prediction slots are used.

    Args:
        mask_weights: float tensor, `(batch, predictions)`; 0 in unused slots.

    Returns:
        An int32 tensor `(real_predictions,)`, row by row.
    """
    return _true_places(ops.reshape(ops.not_equal(mask_weights, 0), (-1,)))


def _true_places(flags):
    return ops.cast(ops.nonzero(flags)[0], "int32")
