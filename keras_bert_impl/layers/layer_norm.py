"""Normalisation of each position's vector."""

import keras
from keras import ops

from keras_bert_impl.errors import InputError


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class LayerNorm(keras.layers.Layer):
    """Brings each vector to mean 0 and variance 1, then scales and shifts it.

    The mean is taken away before anything is multiplied. Keras' own layer multiplies first and
    subtracts two large numbers; on real BERT weights that puts hidden states of padding off by 1e-4,
    and it takes a third longer.

    Args:
        epsilon: float. Added to the variance.
        **kwargs: passed to `keras.layers.Layer`, for example `name`, `dtype`.

    Call arguments:
        inputs: float tensor, `(..., size)`. Statistics are in float32, or wider if the inputs are.
        training: bool. Whether a gradient will be taken: then it is one written out by hand, in half the passes.

    Returns:
        A tensor with the shape of `inputs`, in the compute dtype.

    Raises:
        InputError: if `epsilon` is not positive.

    Reference:
        [Ba et al., 2016](https://arxiv.org/abs/1607.06450), section 3.
    """

    def __init__(self, epsilon=1e-12, **kwargs):
        # The inputs keep their dtype: a float32 sum need not be rounded first.
        super().__init__(**kwargs, autocast=False)
        if not epsilon > 0:
            raise InputError(f"`epsilon` must be positive. Received: epsilon={epsilon!r}")
        self.epsilon = epsilon

    def build(self, inputs_shape):
        size = inputs_shape[-1]
        self.gamma = self.add_weight(name="gamma", shape=(size,), initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=(size,), initializer="zeros", autocast=False)
        self.built = True

    def call(self, inputs, training=None):
        dtype = keras.backend.result_type(inputs.dtype, "float32")
        inputs = ops.cast(inputs, dtype)
        normalised = self._with_gradient(inputs) if training else self._normalised(inputs)[0]
        return ops.cast(
            ops.add(normalised * ops.cast(self.gamma, dtype), ops.cast(self.beta, dtype)), self.compute_dtype
        )

    def _normalised(self, inputs):
        centred = inputs - ops.mean(inputs, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        inverse = ops.rsqrt(variance + self.epsilon)
        return centred * inverse, inverse

    def _with_gradient(self, inputs):
        @ops.custom_gradient
        def normalise(inputs):
            normalised, inverse = self._normalised(inputs)

            def gradient(upstream):
                mean = ops.mean(upstream, axis=-1, keepdims=True)
                along = ops.mean(upstream * normalised, axis=-1, keepdims=True)
                return (upstream - mean - normalised * along) * inverse

            return normalised, gradient

        return normalise(inputs)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
