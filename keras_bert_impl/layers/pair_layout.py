"""Where each pair of a packed row begins, and who belongs to it."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PairLayout(keras.layers.Layer):
    """Turns the layout of packed rows into positions that restart with every pair and a block-diagonal mask.

    Several short pairs share a row, and none of them must see the others. It has no variables.

    Args:
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        pair_ids: integer tensor, `(batch, seq_len)`; 1, 2, … for the pairs of a row, 0 at padding. They must be from
            0 to `pairs`.
        cls_positions: integer tensor, `(batch, pairs)`; where each pair's `[CLS]` stands, 0 in unused slots. They must
            be from 0 to `seq_len - 1`, and no pair may have a position before its own `[CLS]`.

    No compiled step can look at the values of its inputs and raise, so nothing is checked here: ids above `pairs` end
    in an error of the backend or in positions of no meaning, as do negative ones and other values of `cls_positions`.

    Returns:
        A pair of `position_ids`, int32 `(batch, seq_len)`, counted from the `[CLS]` of each pair and 0 at
        padding; and `attention_mask`, bool `(batch, seq_len, seq_len)`, true where two positions belong to
        the same pair. Padding belongs to padding, so that no position is without any.

    Reference:
        [Krell et al., 2021](https://arxiv.org/abs/2107.02027), section 3.2.
    """

    def build(self, pair_ids_shape):
        self.built = True

    def call(self, pair_ids, cls_positions):
        pair_ids, cls_positions = ops.cast(pair_ids, "int32"), ops.cast(cls_positions, "int32")
        attention_mask = ops.equal(ops.expand_dims(pair_ids, 2), ops.expand_dims(pair_ids, 1))
        starts = ops.take_along_axis(cls_positions, ops.maximum(pair_ids - 1, 0), axis=1)
        index = ops.expand_dims(ops.arange(ops.shape(pair_ids)[1], dtype="int32"), 0)
        position_ids = ops.where(ops.equal(pair_ids, 0), 0, index - starts)
        return position_ids, attention_mask

    def compute_output_spec(self, pair_ids, cls_positions):
        batch, seq_len = pair_ids.shape
        return keras.KerasTensor((batch, seq_len), "int32"), keras.KerasTensor((batch, seq_len, seq_len), "bool")
