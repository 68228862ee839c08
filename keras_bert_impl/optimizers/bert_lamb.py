"""The optimizer for very large batches."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_impl.errors import InputError

from .bert_optimizer import BertOptimizer
from .roles import NOT_DECAYED


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertLamb(BertOptimizer):
    """LAMB: Adam's step with decoupled weight decay, made as long as a share of the variable's own norm.

    With `update = mean / (sqrt(mean_square) + epsilon) + decay * variable`, the step of a variable is
    `learning_rate * norm(variable) / norm(update) * update`, without the ratio where either norm is 0.

    There are two of that name, whose learning rates do not carry over. By default this is ALBERT's: no bias
    correction, and no ratio for what is not decayed (biases and LayerNorm). With `trust_ratio="all"` and
    `bias_correction=True` it is NVIDIA's, which is the paper's.

    Gradients, clipping and replicas are as with `BertAdamW`.

    Args:
        learning_rate: float, `LearningRateSchedule`, or callable of no argument.
        weight_decay: float. Of the variable in its update. 0 for none.
        beta_1: float in [0, 1). Decay of the running mean of the gradient.
        beta_2: float in [0, 1). Decay of the running mean of its square.
        epsilon: float. Added to the root of the mean square.
        bias_correction: bool. Whether to correct both running means, as the paper does.
        trust_ratio: string. `"decayed"`: the ratio is for variables of roles that are decayed; `"all"`: for
            every variable.
        global_clipnorm: float, or None. Largest norm of all gradients together.
        loss_scale_factor: float, or None. What the loss was multiplied by.
        not_decayed: strings. Roles without weight decay, of `"bias"`, `"layer_norm"` and `"embedding"`.
        layer_decay: float in (0, 1]. Factor of the learning rate from each layer to the one below it.
        name: string.

    Raises:
        InputError: if an argument is out of its range.

    Reference:
        [You et al., 2019](https://arxiv.org/abs/1904.00962), algorithm 2;
        lamb_optimizer.py of google-research/albert; optimization.py of NVIDIA's BERT for TensorFlow.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        trust_ratio: str = "decayed",
        global_clipnorm: float | None = 1.0,
        loss_scale_factor: float | None = None,
        not_decayed: Sequence[str] = NOT_DECAYED,
        layer_decay: float = 1.0,
        name: str = "bert_lamb",
    ) -> None:
        if trust_ratio not in ("decayed", "all"):
            raise InputError(f"`trust_ratio` must be decayed or all. Received: trust_ratio={trust_ratio!r}")
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
        self.trust_ratio = trust_ratio

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Takes one step with one variable; `learning_rate` is what `rates` returned."""
        index = self._get_variable_index(variable)
        mean, mean_square = self._means[index], self._mean_squares[index]
        rate, correction, epsilon = learning_rate
        self.assign_add(mean, (gradient - mean) * (1 - self.beta_1))
        self.assign_add(mean_square, (ops.square(gradient) - mean_square) * (1 - self.beta_2))
        update = mean / (ops.sqrt(mean_square) + epsilon)
        if self.bias_correction:
            update = update * correction
        if self._decayed[index] and self.weight_decay:
            update = update + variable * self.weight_decay
        if self._decayed[index] or self.trust_ratio == "all":
            rate = rate * _ratio(variable, update)
        self.assign_sub(variable, update * rate)

    def rates(self, factor: float, dtype: str) -> tuple[Any, ...]:
        """Returns the learning rate, and the factor and the epsilon that stand for bias correction."""
        learning_rate = ops.cast(self.learning_rate, "float32") * factor
        root = mean_share = ops.ones((), "float32")
        if self.bias_correction:
            steps = self.taken("float32")
            root = ops.sqrt(1 - ops.power(self.beta_2, steps))
            mean_share = 1 - ops.power(self.beta_1, steps)
        return tuple(ops.cast(number, dtype) for number in (learning_rate, root / mean_share, self.epsilon * root))

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {**super().get_config(), "trust_ratio": self.trust_ratio}


def _ratio(variable: Any, update: Any) -> Any:
    of_variable, of_update = (ops.sqrt(ops.sum(ops.square(value))) for value in (variable, update))
    both = ops.logical_and(of_variable > 0, of_update > 0)
    return ops.where(both, of_variable / ops.where(both, of_update, 1.0), 1.0)
