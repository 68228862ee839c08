"""The optimizer that BERT was trained with."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_impl.errors import InputError

_NOT_DECAYED = ("bias", "gamma", "beta")


def is_decayed(variable: Any) -> bool:
    """Returns whether weight decay applies to a variable: not to biases and LayerNorm's gamma and beta.

    Args:
        variable: `keras.Variable`; the last part of its `path` decides.
    """
    return variable.path.split("/")[-1] not in _NOT_DECAYED


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertAdamW(keras.optimizers.Optimizer):
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

    Raises:
        InputError: if a number is out of its range.

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
    ) -> None:
        for argument, value, high in (
            ("weight_decay", weight_decay, float("inf")),
            ("beta_1", beta_1, 1),
            ("beta_2", beta_2, 1),
        ):
            if not 0 <= value < high:
                raise InputError(
                    f"`{argument}` must be at least 0 and less than {high}. Received: {argument}={value!r}"
                )
        if not epsilon > 0:
            raise InputError(f"`epsilon` must be positive. Received: epsilon={epsilon!r}")
        if global_clipnorm is not None and not global_clipnorm > 0:
            raise InputError(f"`global_clipnorm` must be positive. Received: global_clipnorm={global_clipnorm!r}")
        super().__init__(
            learning_rate,
            weight_decay=weight_decay,
            global_clipnorm=global_clipnorm,
            loss_scale_factor=loss_scale_factor,
            name=name,
        )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction

    def build(self, variables: list[Any]) -> None:
        """Makes the two running means of every variable."""
        if self.built:
            return
        super().build(variables)
        self._means, self._mean_squares = self.add_optimizer_variables(variables, ["mean", "mean_square"])
        self._decayed = [is_decayed(variable) for variable in variables]
        all_float32 = all(keras.backend.standardize_dtype(variable.dtype) == "float32" for variable in variables)
        self._fused = all_float32 and keras.backend.backend() == "tensorflow"

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        """Sums gradients over the replicas, clips them and takes one step.

        Args:
            grads: gradients, one for each variable.
            trainable_variables: the variables; those of the first call when not given.
        """
        grads = [None if gradient is None else _dense(gradient) for gradient in grads]
        if self.loss_scale_factor is not None:
            grads = [None if gradient is None else gradient / self.loss_scale_factor for gradient in grads]
        grads = self._clip_gradients(_sum_over_replicas(grads))
        self.apply_reduced(grads, trainable_variables)

    def apply_reduced(self, gradients: list[Any], variables: list[Any] | None = None, *, scale: Any = None) -> None:
        """Takes one step with gradients that are final: no sum over replicas, no scale, no clipping.

        For a train step that has done these itself. Under a strategy it is called in each replica,
        with the same gradients.

        Args:
            gradients: dense gradients, one for each variable.
            variables: the variables; those of the first call when not given.
        """
        variables = list(self._trainable_variables if variables is None else variables)
        if scale is not None:
            gradients = [gradient * scale for gradient in gradients]
        with keras.name_scope(self.name):
            if not self.built:
                self.build(variables)
            self._check_variables_are_known(variables)
            gradients, variables = self._filter_empty_gradients(gradients, variables)
            self._backend_update_step(gradients, variables, self._rates())
            for variable in variables:
                if variable.constraint is not None:
                    variable.assign(variable.constraint(variable))
        self._iterations.assign_add(1)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Takes one step with one variable; `learning_rate` is what `_rates` returned."""
        index = self._get_variable_index(variable)
        mean, mean_square = self._means[index], self._mean_squares[index]
        gradient = ops.cast(gradient, variable.dtype)
        decay_rate, rate, epsilon = (ops.cast(number, variable.dtype) for number in learning_rate)
        # Decay first: it is a share of the old value.
        if self._decayed[index] and self.weight_decay:
            self.assign_sub(variable, variable * decay_rate)
        if self._fused:
            _fused_adam(variable, mean, mean_square, gradient, rate, epsilon, self.beta_1, self.beta_2)
        else:
            self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
            self.assign_add(mean_square, (ops.square(gradient) - mean_square) * (1 - self.beta_2))
            self.assign_sub(variable, rate * mean / (ops.sqrt(mean_square) + epsilon))

    def _rates(self) -> tuple[Any, Any, Any]:
        """Returns the share to decay by, the rate and the epsilon that give this step its length.

        The running means hold a share of a constant gradient that grows from 0 to 1. Bias correction
        divides by it, and that is the same as another rate and another epsilon.
        """
        dtype = "float64" if self._fused else "float32"
        learning_rate = ops.cast(self.learning_rate, dtype)
        steps = ops.cast(self._iterations + 1, dtype)
        mean_share = square_share = ops.ones((), dtype)
        if self.bias_correction or self._fused:
            mean_share = 1 - ops.power(_as_kept(self.beta_1, self._fused), steps)
            square_share = 1 - ops.power(_as_kept(self.beta_2, self._fused), steps)
        if self._fused and not self.bias_correction:
            # The fused kernel works out 1 - beta in float32, which is off by 1e-5 for 0.999.
            mean_share /= 1 - ops.power(self.beta_1, steps)
            square_share /= 1 - ops.power(self.beta_2, steps)
        root = ops.sqrt(square_share)
        return learning_rate * self.weight_decay, learning_rate * root / mean_share, self.epsilon * root

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        """Leaves gradients as they are: `apply` has summed them, before clipping."""
        return grads_and_vars

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        base = super().get_config()
        return {
            **{key: base[key] for key in ("name", "learning_rate", "weight_decay", "global_clipnorm")},
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "loss_scale_factor": self.loss_scale_factor,
        }


def _as_kept(beta: float, fused: bool) -> float:
    return float(np.float32(beta)) if fused else beta


def _dense(gradient: Any) -> Any:
    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    return tf.convert_to_tensor(gradient)


def _sum_over_replicas(gradients: list[Any]) -> list[Any]:
    if keras.backend.backend() != "tensorflow":
        return gradients
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    present = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, [g for g in gradients if g is not None]))
    return [None if gradient is None else next(present) for gradient in gradients]


def _fused_adam(
    variable: Any,
    mean: Any,
    mean_square: Any,
    gradient: Any,
    rate: Any,
    epsilon: Any,
    beta_1: float,
    beta_2: float,
) -> None:
    """One pass over memory, a third of the time of single operations. Beta powers of 0: no correction of its own."""
    import tensorflow as tf

    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=mean.value.handle,
        v=mean_square.value.handle,
        beta1_power=tf.zeros((), variable.dtype),
        beta2_power=tf.zeros((), variable.dtype),
        lr=rate,
        beta1=tf.cast(beta_1, variable.dtype),
        beta2=tf.cast(beta_2, variable.dtype),
        epsilon=tf.cast(epsilon, variable.dtype),
        grad=gradient,
    )
