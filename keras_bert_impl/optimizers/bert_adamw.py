"""The optimizer that BERT was trained with."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from .bert_optimizer import BertOptimizer
from .roles import NOT_DECAYED


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertAdamW(BertOptimizer):
    """Adam with decoupled weight decay, by default as the original BERT has it.

    The step of a variable is `learning_rate * (mean / (sqrt(mean_square) + epsilon) + decay * variable)`.
    The original does not correct the bias of the two running means towards 0 in the first steps.
    Biases and LayerNorm's variables are not decayed.

    Unlike with Keras' own optimizers, gradients are made dense before they are squared, so that ids
    that occur twice count rightly; and under a `tf.distribute` strategy they are summed over replicas
    before they are clipped, so that it is the whole batch's gradient that is clipped.

    Args:
        learning_rate: float, `LearningRateSchedule`, or callable of no argument.
        weight_decay: float. Times the learning rate. 0 for none.
        beta_1: float in [0, 1). Decay of the running mean of the gradient.
        beta_2: float in [0, 1). Decay of the running mean of its square.
        epsilon: float. Added to the root of the mean square.
        bias_correction: bool. Whether to correct both running means, as Adam's paper does.
        global_clipnorm: float, or None. Largest norm of all gradients together.
        loss_scale_factor: float, or None. What the loss was multiplied by.
        name: string.
        not_decayed: strings. Roles without weight decay, of `"bias"`, `"layer_norm"` and `"embedding"`.
        layer_decay: float in (0, 1]. Factor of the learning rate from each layer to the one below it.

    Raises:
        InputError: if an argument is out of its range.

    Reference:
        optimization.py of google-research/bert;
        [Loshchilov & Hutter, 2017](https://arxiv.org/abs/1711.05101), algorithm 2.
    """

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        global_clipnorm: float | None = 1.0,
        loss_scale_factor: float | None = None,
        name: str = "bert_adamw",
        *,
        not_decayed: Sequence[str] = NOT_DECAYED,
        layer_decay: float = 1.0,
    ) -> None:
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            bias_correction=bias_correction,
            not_decayed=not_decayed,
            layer_decay=layer_decay,
            global_clipnorm=global_clipnorm,
            loss_scale_factor=loss_scale_factor,
            name=name,
        )

    def build(self, variables: list[Any]) -> None:
        """Makes the two running means of every variable."""
        if self.built:
            return
        super().build(variables)
        all_float32 = all(keras.backend.standardize_dtype(variable.dtype) == "float32" for variable in variables)
        self._fused = all_float32 and keras.backend.backend() == "tensorflow"

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Takes one step with one variable; `learning_rate` is what `rates` returned."""
        index = self._get_variable_index(variable)
        mean, mean_square = self._means[index], self._mean_squares[index]
        decay_rate, rate, epsilon, *of_kernel = learning_rate
        # Decay first: it is a share of the old value.
        if self._decayed[index] and self.weight_decay:
            if self._fused:
                _fused_decay(variable, decay_rate)
            else:
                self.assign_sub(variable, variable * decay_rate)
        if self._fused:
            _fused_adam(variable, mean, mean_square, gradient, rate, epsilon, *of_kernel)
        else:
            self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
            self.assign_add(mean_square, (ops.square(gradient) - mean_square) * (1 - self.beta_2))
            self.assign_sub(variable, rate * mean / (ops.sqrt(mean_square) + epsilon))

    def rates(self, factor: float, dtype: str) -> tuple[Any, ...]:
        """Returns the share to decay by, the rate and the epsilon that give this step its length.

        For the fused kernel, its two betas and their powers too. The running means hold a share of a constant
        gradient that grows from 0 to 1. Bias correction divides by it, and that is the same as another rate
        and another epsilon.
        """
        precision = "float64" if self._fused else "float32"
        learning_rate = ops.cast(self.learning_rate, precision) * factor
        steps = self.taken(precision)
        mean_share = square_share = ops.ones((), precision)
        if self.bias_correction or self._fused:
            mean_share = 1 - ops.power(_as_kept(self.beta_1, self._fused), steps)
            square_share = 1 - ops.power(_as_kept(self.beta_2, self._fused), steps)
        if self._fused and not self.bias_correction:
            # The fused kernel works out 1 - beta in float32, which is off by 1e-5 for 0.999.
            mean_share /= 1 - ops.power(self.beta_1, steps)
            square_share /= 1 - ops.power(self.beta_2, steps)
        root = ops.sqrt(square_share)
        rates = learning_rate * self.weight_decay, learning_rate * root / mean_share, self.epsilon * root
        # Beta powers of 0: no correction of the kernel's own.
        of_kernel = (self.beta_1, self.beta_2, 0.0) if self._fused else ()
        return tuple(ops.cast(number, dtype) for number in (*rates, *of_kernel))


def _as_kept(beta: float, fused: bool) -> float:
    return float(np.float32(beta)) if fused else beta


def _fused_decay(variable: Any, share: Any) -> None:
    """Takes a share of a variable away without a tensor between, in half the time."""
    import tensorflow as tf

    value = variable.value
    tf.raw_ops.ResourceApplyGradientDescent(var=value.handle, alpha=share, delta=tf.convert_to_tensor(value))


def _fused_adam(
    variable: Any,
    mean: Any,
    mean_square: Any,
    gradient: Any,
    rate: Any,
    epsilon: Any,
    beta_1: Any,
    beta_2: Any,
    beta_power: Any,
) -> None:
    """One pass over memory, a third of the time of single operations."""
    import tensorflow as tf

    tf.raw_ops.ResourceApplyAdam(
        var=variable.value.handle,
        m=mean.value.handle,
        v=mean_square.value.handle,
        beta1_power=beta_power,
        beta2_power=beta_power,
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        grad=gradient,
    )
