"""The train step that gives one update for a global batch, whatever the number of replicas and micro-batches."""

from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.losses import MLM_EPSILON

from .cross_entropy import cross_entropy
from .dropout_seeds import fixed_dropout, seed_states
from .step_sums import NAMES, StepSums, ratios

Batch = tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]


class PretrainingTrainer(keras.Model):
    """Puts masked language modelling and next-sentence prediction around a `BertPretrainer`, for `fit`;
    or the former alone around a `BertMaskedLM`.

    The loss of a step is, over the batch of all replicas together,
    `sum(mask_weights * mlm) / (sum(mask_weights) + 1e-5)` and, where there are next-sentence labels,
    `sum(next_sentence_weights * nsp) / sum(next_sentence_weights)`. Gradients are made dense, added up
    over micro-batches, then over replicas, then clipped by their global norm to the optimizer's
    `global_clipnorm`, then applied.

    Dropout comes from (seed, step, replica), so a run that is resumed from its weights, its optimizer and
    the number of its step goes on exactly.

    Args:
        pretrainer: `BertPretrainer` or `BertMaskedLM`, built under the strategy of this trainer.
        seed: int. Seed of dropout.
        micro_batches: int. Parts that a replica's batch is worked through in.
        packed: bool. Whether batches of packed rows may come too. They go through the same layers.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: as for the pretrainer. For `fit` and `evaluate`, batches are pairs of these with
            `{"mask_labels", "mask_weights", "next_sentence_labels", "next_sentence_weights"}`.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1.
    """

    def __init__(
        self, pretrainer: keras.Model, *, seed: int = 0, micro_batches: int = 1, packed: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.pretrainer = pretrainer
        self.seed = seed
        self.micro_batches = micro_batches
        self._packed_form = pretrainer.packed_form() if packed else None
        self.sums = StepSums()
        self._seed_states = seed_states(pretrainer)
        self.built = True

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The sums of this trainer; Keras' own loss tracker averages over replicas and is not used."""
        return [self.sums]

    def call(self, inputs, training=None):
        """Returns the pretrainer's outputs."""
        model = self.pretrainer
        if self._packed_form is not None and "pair_ids" in inputs:
            model = self._packed_form
        return model(inputs, training=training)

    def train_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Updates the weights; returns the losses and accuracies of this step's global batch."""
        replicas = tf.distribute.get_replica_context()
        x, y = data
        weights = tf.stack([tf.reduce_sum(y["mask_weights"]), tf.reduce_sum(y["next_sentence_weights"])])
        weights = replicas.all_reduce(tf.distribute.ReduceOp.SUM, weights)

        gradients, sums = self._gradients(x, y, weights, replicas.replica_id_in_sync_group)
        *gradients, global_sums = replicas.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, sums])
        gradients, norm = clipped(gradients, self.optimizer.global_clipnorm)
        self.optimizer.apply_reduced(gradients, self.pretrainer.trainable_variables)

        logs = ratios(tf.unstack(global_sums))
        finite = tf.math.is_finite(logs["loss"] + norm)
        self.sums.update_state(sums, tf.where(finite, 0.0, 1 / replicas.num_replicas_in_sync))
        return logs

    def test_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Adds a batch to the sums; rows and slots of weight 0 do not count."""
        x, y = data
        _, sums = self._loss_sums(self.call(x, training=False), y)
        self.sums.update_state(sums)
        return ratios(tf.unstack(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, sums)))

    def _gradients(self, x, y, weights, replica) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Returns this replica's share of the dense gradients of the global loss, and its sums."""
        if self.micro_batches == 1:
            return self._gradients_of_part(x, y, weights, replica, 0)

        def parts(values: tf.Tensor) -> tf.Tensor:
            return tf.reshape(values, (self.micro_batches, -1, *values.shape[1:]))

        x, y = tf.nest.map_structure(parts, (x, y))
        variables = self.pretrainer.trainable_variables
        totals = [tf.zeros(variable.shape, variable.dtype) for variable in variables], tf.zeros(len(NAMES))

        def add_part(part: tf.Tensor, totals: Any) -> tuple[tf.Tensor, Any]:
            part_x, part_y = tf.nest.map_structure(lambda values: values[part], (x, y))
            added = self._gradients_of_part(part_x, part_y, weights, replica, part)
            return part + 1, tf.nest.map_structure(tf.add, totals, added)

        _, totals = tf.while_loop(
            lambda part, _: part < self.micro_batches,
            add_part,
            (tf.constant(0), totals),
            parallel_iterations=1,
            maximum_iterations=self.micro_batches,
        )
        return totals

    def _gradients_of_part(self, x, y, weights, replica, part) -> tuple[list[tf.Tensor], tf.Tensor]:
        with tf.GradientTape() as tape:
            step = self.optimizer.iterations.value
            with fixed_dropout(self._seed_states, self.seed, step, replica, part):
                outputs = self.call(x, training=True)
            (mlm_loss_sum, nsp_loss_sum), sums = self._loss_sums(outputs, y)
            loss = mlm_loss_sum / (weights[0] + MLM_EPSILON) + tf.math.divide_no_nan(nsp_loss_sum, weights[1])
        gradients = tape.gradient(
            loss,
            [variable.value for variable in self.pretrainer.trainable_variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # An embedding's gradient is a list of slices, whose squares Adam would take one by one.
        return [tf.convert_to_tensor(gradient) for gradient in gradients], sums

    def _loss_sums(self, outputs, y) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor]:
        """Returns the two sums of losses, and all sums in the order of `NAMES`."""
        mlm_loss_sum, mlm_correct = _weighted(outputs["mlm_logits"], y["mask_labels"], y["mask_weights"])
        mlm_weight = tf.reduce_sum(y["mask_weights"])
        nsp_loss_sum = nsp_correct = nsp_weight = tf.zeros(())
        if "nsp_logits" in outputs:
            nsp_weights = y["next_sentence_weights"]
            nsp_loss_sum, nsp_correct = _weighted(outputs["nsp_logits"], y["next_sentence_labels"], nsp_weights)
            nsp_weight = tf.reduce_sum(nsp_weights)
        sums = tf.stack([mlm_loss_sum, mlm_correct, mlm_weight, nsp_loss_sum, nsp_correct, nsp_weight])
        return (mlm_loss_sum, nsp_loss_sum), tf.stop_gradient(sums)

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Does nothing: all is built, and Keras' way draws a batch and averages it over the replicas."""


def clipped(gradients: list[tf.Tensor], largest: float | None) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns gradients whose norm over all of them is at most `largest`, and the norm they came with."""
    norm = tf.linalg.global_norm(gradients)
    if largest is None:
        return gradients, norm
    scale = largest / tf.maximum(norm, largest)
    return [gradient * scale for gradient in gradients], norm


def _weighted(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted sums of the labels' cross entropies and of the right answers."""
    losses, correct = cross_entropy(tf.reshape(logits, (-1, logits.shape[-1])), tf.reshape(labels, (-1,)))
    weights = tf.reshape(weights, (-1,))
    return tf.reduce_sum(weights * losses), tf.reduce_sum(weights * correct)
