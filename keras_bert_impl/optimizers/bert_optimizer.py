"""What the optimizers share: the gradient of the whole batch, clipping, skipped steps, who decays and how fast."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError

from .roles import NOT_DECAYED, ROLES, is_decayed, layer_factors


class BertOptimizer(keras.optimizers.Optimizer):
    """Base of optimizers that keep running means of the gradient and of its square.

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
        not_decayed: strings. Roles without weight decay, of `"bias"`, `"layer_norm"` and `"embedding"`.
        layer_decay: float in (0, 1]. Factor of the learning rate from each layer to the one below it;
            see `roles.layer_factors`.
        global_clipnorm: float, or None. Largest norm of all gradients together.
        loss_scale_factor: float, or None. What the loss was multiplied by.
        name: string.

    Raises:
        InputError: if an argument is out of its range.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        weight_decay: float,
        beta_1: float,
        beta_2: float,
        epsilon: float,
        bias_correction: bool,
        not_decayed: Sequence[str] = NOT_DECAYED,
        layer_decay: float = 1.0,
        global_clipnorm: float | None,
        loss_scale_factor: float | None,
        name: str,
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
        if not 0 < layer_decay <= 1:
            raise InputError(f"`layer_decay` must be more than 0 and at most 1. Received: layer_decay={layer_decay!r}")
        if isinstance(not_decayed, str) or set(not_decayed) - set(ROLES):
            raise InputError(
                f"`not_decayed` must be a list of {', '.join(ROLES)}. Received: not_decayed={not_decayed!r}"
            )
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
        self.not_decayed = tuple(not_decayed)
        self.layer_decay = layer_decay
        # How many of the `iterations` were not taken.
        self.skipped = self.add_variable((), dtype="int", aggregation="only_first_replica", name="skipped")

    def build(self, variables: list[Any]) -> None:
        """Makes the two running means of every variable."""
        if self.built:
            return
        super().build(variables)
        self._means, self._mean_squares = self.add_optimizer_variables(variables, ["mean", "mean_square"])
        self._decayed = [is_decayed(variable, self.not_decayed) for variable in variables]
        self._factors = layer_factors(variables, self.layer_decay)

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        """Sums gradients over the replicas, clips them and takes one step.

        Args:
            grads: gradients, one for each variable.
            trainable_variables: the variables; those of the first call when not given.
        """
        grads = _sum_over_replicas([None if gradient is None else _dense(gradient) for gradient in grads])
        self.apply_reduced(grads, trainable_variables, scale=self._scale([g for g in grads if g is not None]))

    def apply_reduced(self, gradients: list[Any], variables: list[Any] | None = None, scale: Any = None) -> None:
        """Takes one step with gradients that are final but for a factor: no sum over replicas, no clipping.

        For a train step that has done these itself. Under a strategy it is called in each replica,
        with the same gradients.

        Args:
            gradients: dense gradients, one for each variable.
            variables: the variables; those of the first call when not given.
            scale: float32 scalar, what the gradients are multiplied by; None for 1. With 0 the step is
                not taken, whatever the gradients hold: all but `iterations` and `skipped`, which count it,
                stays as it is.
        """
        variables = list(self._trainable_variables if variables is None else variables)
        with keras.name_scope(self.name):
            if not self.built:
                self.build(variables)
            self._check_variables_are_known(variables)
            gradients, variables = self._filter_empty_gradients(gradients, variables)
            if scale is None:
                self._step(gradients, variables)
            else:
                scale = ops.cast(scale, "float32")
                self._scaled_step(gradients, variables, scale)
                self.skipped.assign_add(ops.cast(scale == 0, self.skipped.dtype))
        self._iterations.assign_add(1)

    def rates(self, factor: float, dtype: str) -> tuple[Any, ...]:
        """Returns the scalars of this step that `update_step` takes.

        Args:
            factor: what the learning rate is multiplied by.
            dtype: of the scalars.
        """
        raise NotImplementedError

    def _step(self, gradients: list[Any], variables: list[Any]) -> None:
        # Scalars are made once for all variables alike: graphs are built, and run, the faster.
        rates: dict[tuple[float, str], tuple[Any, ...]] = {}
        for gradient, variable in zip(gradients, variables, strict=True):
            alike = self._factors[self._get_variable_index(variable)], variable.dtype
            if alike not in rates:
                rates[alike] = self.rates(*alike)
            self.update_step(ops.cast(gradient, variable.dtype), variable, rates[alike])
            if variable.constraint is not None:
                self.assign(variable, variable.constraint(variable))

    def _scaled_step(self, gradients: list[Any], variables: list[Any], scale: Any) -> None:
        def scaled() -> list[Any]:
            factors = {gradient.dtype: ops.cast(scale, gradient.dtype) for gradient in gradients}
            return [gradient * factors[gradient.dtype] for gradient in gradients]

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            def step() -> None:
                # Without clipping, a pass over memory less.
                self._step(tf.cond(scale == 1, lambda: gradients, scaled), variables)

            tf.cond(scale == 0, lambda: None, step)
            return
        places = [self._get_variable_index(variable) for variable in variables]
        state = [*variables, *(slots[place] for slots in (self._means, self._mean_squares) for place in places)]
        before = [ops.convert_to_tensor(variable) for variable in state]
        self._step(scaled(), variables)
        for variable, value in zip(state, before, strict=True):
            variable.assign(ops.where(scale == 0, value, ops.convert_to_tensor(variable)))

    def _scale(self, gradients: list[Any]) -> Any:
        """Returns the factor of loss scale and clipping; None for 1."""
        if self.global_clipnorm is None:
            return None if self.loss_scale_factor is None else 1 / self.loss_scale_factor
        loss_scale = self.loss_scale_factor or 1.0
        squares = [ops.sum(ops.square(ops.cast(gradient, "float32"))) for gradient in gradients]
        norm = ops.sqrt(ops.sum(ops.stack(squares))) / loss_scale
        scale = self.global_clipnorm / ops.maximum(norm, self.global_clipnorm)
        # With an infinite norm this is not a number: 0 would skip the step and nobody would know.
        return (scale + 0 * norm) / loss_scale

    def taken(self, dtype: str) -> Any:
        """Returns how many steps will have been taken with the present one."""
        return ops.cast(self._iterations + 1 - self.skipped, dtype)

    def assign(self, variable: Any, value: Any) -> None:
        """Gives a variable a value: under a strategy, in each replica its own copy."""
        self._write("AssignVariableOp", super().assign, variable, value)

    def assign_add(self, variable: Any, value: Any) -> None:
        """Adds to a variable, as `assign`."""
        self._write("AssignAddVariableOp", super().assign_add, variable, value)

    def assign_sub(self, variable: Any, value: Any) -> None:
        """Subtracts from a variable, as `assign`."""
        self._write("AssignSubVariableOp", super().assign_sub, variable, value)

    def _write(self, operation: str, otherwise: Any, variable: Any, value: Any) -> None:
        if keras.backend.backend() != "tensorflow":
            otherwise(variable, value)
            return
        import tensorflow as tf

        # A mirrored variable's own methods want to leave the replica, which cannot be done inside a case.
        getattr(tf.raw_ops, operation)(resource=variable.value.handle, value=tf.cast(value, variable.dtype))

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        base = super().get_config()
        return {
            **{key: base[key] for key in ("name", "learning_rate", "weight_decay", "global_clipnorm")},
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "not_decayed": list(self.not_decayed),
            "layer_decay": self.layer_decay,
            "loss_scale_factor": self.loss_scale_factor,
        }


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
