"""The train step of fine-tuning: one update for a global batch, whatever the number of replicas and micro-batches."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from ..exact_trainer import ExactTrainer
from ..step_sums import StepSums

SUMS = ("loss_sum", "weight", "tokens", "examples")

LossSums = Callable[[Any, dict[str, Any]], tuple[Any, Any]]


class FinetuningTrainer(ExactTrainer):
    """Puts the loss of a task around its model, for `fit`.

    The loss of a step is, over the batch of all replicas together, the sum of the weighted losses by the sum of the
    weights. A batch may have any number of rows, and a replica or micro-batch of it none.

    Args:
        model: a model of a task, built under the strategy of this trainer. Where it has an `unpadded_form`, nothing
            is computed for padding.
        loss_sums: from the model's outputs and the targets of a batch to the weighted sum of its losses and the sum
            of the weights, float32 scalars.
        targets: names of the targets that `loss_sums` reads.
        seed: int. Seed of dropout.
        micro_batches: int. Parts that a replica's batch is worked through in.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: as for the model. For `fit` and `evaluate`, batches are pairs of these with a dict of targets.

    Raises:
        InputError: if an argument is out of its range.
    """

    log_names = ("loss",)

    def __init__(
        self,
        model: keras.Model,
        loss_sums: LossSums,
        *,
        targets: Sequence[str] = (),
        seed: int = 0,
        micro_batches: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, StepSums(SUMS, _ratios), seed=seed, micro_batches=micro_batches, **kwargs)
        self.target_names = tuple(targets)
        self._task_loss_sums = loss_sums
        self._form = model.unpadded_form() if hasattr(model, "unpadded_form") else model
        self.built = True

    def call(self, inputs, training=None):
        """Returns the model's outputs."""
        return self._form(inputs, training=training)

    def sums_of(self, x, y, *, training: bool) -> tuple[tuple[tf.Tensor], tf.Tensor]:
        """Returns the sum of the weighted losses; and the sums in the order of `SUMS`."""
        loss_sum, weight = self._task_loss_sums(self(x, training=training), y)
        tokens = tf.cast(tf.math.count_nonzero(x["padding_mask"]), tf.float32)
        sums = tf.stack([loss_sum, weight, tokens, tf.cast(_rows(x), tf.float32)])
        return (loss_sum,), tf.stop_gradient(sums)

    def normaliser(self, x, y) -> tf.Tensor:
        """Returns the number of rows. What the loss is to be divided by, the weights, only `loss_sums` knows."""
        rows = tf.cast(_rows(x), tf.float32)
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, rows)

    def total_loss(self, loss_sums: tuple[tf.Tensor, ...], normaliser: tf.Tensor) -> tf.Tensor:
        """Returns the share of the loss by row, which keeps float16 gradients of one size with any batch."""
        return loss_sums[0] / tf.maximum(normaliser, 1.0)

    def gradient_factor(self, global_sums: tf.Tensor) -> tf.Tensor:
        """Returns what makes the gradient of the loss by row that of the loss by weight."""
        _, weight, _, rows = tf.unstack(global_sums)
        return tf.where(weight > 0, rows / weight, tf.ones_like(weight))

    def _gradients_of_part(self, x, y, normaliser, replica, part, loss_scale) -> tuple[list[tf.Tensor], tf.Tensor]:
        def nothing() -> tuple[list[tf.Tensor], tf.Tensor]:
            variables = self.trained.trainable_variables
            return [tf.zeros(variable.shape, variable.dtype) for variable in variables], tf.zeros(len(SUMS))

        def something() -> tuple[list[tf.Tensor], tf.Tensor]:
            return super(FinetuningTrainer, self)._gradients_of_part(x, y, normaliser, replica, part, loss_scale)

        # The last batch of an epoch may have fewer rows than there are parts.
        return tf.cond(_rows(x) > 0, something, nothing)


def _ratios(sums: Any) -> dict[str, Any]:
    """Turns sums in the order of `SUMS` into the mean loss; NaN where nothing was counted."""
    loss_sum, weight, *_ = sums
    return {"loss": loss_sum / weight}


def _rows(x: dict[str, tf.Tensor]) -> tf.Tensor:
    return tf.shape(x["token_ids"])[0]
