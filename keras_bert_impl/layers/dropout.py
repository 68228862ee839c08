"""Dropout that draws a byte for each value."""

import math

import keras
from keras import ops

BLOCK = 64  # values that share a threshold


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class Dropout(keras.layers.Dropout):
    """Sets values to 0 at random in training, and scales up the others.

    Random numbers are the largest part of dropout's cost. Here each value is compared with one random byte, and one
    byte for every 64 values chooses between the two thresholds next to `256 * rate`: so a value is dropped with
    `rate` to 16 bits, and scaled up by the inverse of just that.

    Args:
        rate: float in [0, 1). Share of the values that are dropped.
        seed: int. Seed of the generator that counts the calls.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor of any shape.
        training: bool. Whether to drop out.

    Returns:
        A tensor with the shape and dtype of `inputs`.
    """

    def call(self, inputs, training=False):
        if not training or not self.rate:
            return inputs
        return inputs * (ops.cast(self.kept(ops.shape(inputs)), inputs.dtype) * self.scale)

    @property
    def scale(self):
        """What values that are kept are multiplied by."""
        return 1 / (1 - _sixteen_bits(self.rate) / 2**16)

    def kept(self, shape):
        """Returns bools of a shape, false for the values to drop; others at every call."""
        low, chance = divmod(_sixteen_bits(self.rate), 256)
        count = math.prod(shape)
        blocks = (count + BLOCK - 1) // BLOCK
        of_thresholds = (blocks + BLOCK - 1) // BLOCK
        # TensorFlow draws a long word at little more than the cost of a short one; JAX has short ones only.
        bits = 64 if keras.backend.backend() == "tensorflow" else 32
        shape_of_words = (blocks + of_thresholds, BLOCK * 8 // bits)
        low_word, high_word = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        words = keras.random.randint(shape_of_words, low_word, high_word, dtype=f"int{bits}", seed=self.seed_generator)
        values = ops.view(words[:blocks], "uint8")
        choices = ops.reshape(ops.view(words[blocks:], "uint8"), (-1, 1))[:blocks]
        thresholds = ops.cast(choices < ops.cast(chance, "uint8"), "uint8") + ops.cast(low, "uint8")
        return ops.reshape(ops.reshape(values >= thresholds, (-1,))[:count], shape)


def _sixteen_bits(rate):
    return min(round(rate * 2**16), 2**16 - 1)
