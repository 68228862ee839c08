"""The train step that gives one update for a global batch, whatever the number of replicas and micro-batches."""

from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.real_tokens import real_slots
from keras_bert_impl.losses import MLM_EPSILON

from .cross_entropy import cross_entropy
from .exact_trainer import ExactTrainer
from .step_sums import StepSums


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PretrainingTrainer(ExactTrainer):
    """Puts masked language modelling and next-sentence prediction around a `BertPretrainer`, for `fit`;
    or the former alone around a `BertMaskedLM`.

    The loss of a step is, over the batch of all replicas together,
    `sum(mask_weights * mlm) / (sum(mask_weights) + 1e-5)` and, where there are next-sentence labels,
    `sum(next_sentence_weights * nsp) / sum(next_sentence_weights)`. The rest of the step is that of
    `ExactTrainer`.

    Args:
        pretrainer: `BertPretrainer` or `BertMaskedLM`, built under the strategy of this trainer. With a
            `mixed_float16` policy its loss is scaled.
        seed: int. Seed of dropout.
        micro_batches: int. Parts that a replica's batch is worked through in.
        packed: bool. Whether batches of packed rows may come too. They go through the same layers.
        xla: bool. Whether forward and backward pass are compiled by XLA. Batches must all have one shape.
        skip_padding: bool, or None for yes without XLA. Whether padding and unused slots of predictions are
            left out of the computation. The shapes of a step then follow its batch, which XLA cannot do.
        **kwargs: passed to `keras.Model`.

    Call arguments:
        inputs: as for the pretrainer. For `fit` and `evaluate`, batches are pairs of these with
            `{"mask_labels", "mask_weights", "next_sentence_labels", "next_sentence_weights"}`.

    Raises:
        InputError: if an argument is out of its range, or `xla` and `skip_padding` are both asked for.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1.
    """

    log_names = ("loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")
    target_names = ("mask_labels", "mask_weights", "next_sentence_labels", "next_sentence_weights")
    why_no_jit_compile = "it fails under replicas; `PretrainingTrainer(..., xla=True)` compiles what can be"

    def __init__(
        self,
        pretrainer: keras.Model,
        *,
        seed: int = 0,
        micro_batches: int = 1,
        packed: bool = False,
        xla: bool = False,
        skip_padding: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pretrainer, StepSums(), seed=seed, micro_batches=micro_batches, xla=xla, **kwargs)
        if xla and skip_padding:
            raise InputError("`skip_padding` must be False with `xla`, which needs fixed shapes. Received: True")
        self.skip_padding = skip_padding  # as it was asked for
        skip_padding = not xla if skip_padding is None else skip_padding
        self.pretrainer = pretrainer
        self.packed = packed
        self._packed_form = pretrainer.packed_form() if packed else None
        self._unpadded_form = pretrainer.unpadded_form() if skip_padding else None
        self._packed_unpadded_form = pretrainer.unpadded_form(packed=True) if skip_padding and packed else None
        self.built = True

    def call(self, inputs, training=None):
        """Returns the pretrainer's outputs."""
        model = self.pretrainer
        if self._packed_form is not None and "pair_ids" in inputs:
            model = self._packed_form
        return model(inputs, training=training)

    def sums_of(self, x, y, *, training: bool) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor]:
        """Returns the two sums of losses, and all sums in the order of `step_sums.NAMES`."""
        labels, mask_weights = tf.reshape(y["mask_labels"], (-1,)), tf.reshape(y["mask_weights"], (-1,))
        unpadded = self._packed_unpadded_form if "pair_ids" in x else self._unpadded_form
        if unpadded is not None:
            outputs = unpadded({**x, "mask_weights": y["mask_weights"]}, training=training)
            slots = real_slots(y["mask_weights"])
            labels, mask_weights = tf.gather(labels, slots), tf.gather(mask_weights, slots)
        else:
            outputs = self.call(x, training=training)
        # The unpadded form's logits in training are a transpose.
        by_class = training and unpadded is not None
        mlm_loss_sum, mlm_correct = _weighted(outputs["mlm_logits"], labels, mask_weights, by_class=by_class)
        nsp_loss_sum = nsp_correct = nsp_weight = tf.zeros(())
        if "nsp_logits" in outputs:
            nsp_weights = tf.reshape(y["next_sentence_weights"], (-1,))
            nsp_labels = tf.reshape(y["next_sentence_labels"], (-1,))
            nsp_loss_sum, nsp_correct = _weighted(outputs["nsp_logits"], nsp_labels, nsp_weights)
            nsp_weight = tf.reduce_sum(nsp_weights)
        sums = [mlm_loss_sum, mlm_correct, tf.reduce_sum(mask_weights), nsp_loss_sum, nsp_correct, nsp_weight]
        return (mlm_loss_sum, nsp_loss_sum), tf.stop_gradient(tf.stack([*sums, *_size(x)]))

    def normaliser(self, x, y) -> tf.Tensor:
        """Returns the two sums of weights."""
        weights = tf.stack([tf.reduce_sum(y["mask_weights"]), tf.reduce_sum(y["next_sentence_weights"])])
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, weights)

    def total_loss(self, loss_sums: tuple[tf.Tensor, ...], normaliser: tf.Tensor) -> tf.Tensor:
        """Returns this part's share of the loss."""
        mlm_loss_sum, nsp_loss_sum = loss_sums
        mlm_weight, nsp_weight = tf.unstack(normaliser)
        return mlm_loss_sum / (mlm_weight + MLM_EPSILON) + tf.math.divide_no_nan(nsp_loss_sum, nsp_weight)

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            "name": self.name,
            "pretrainer": keras.saving.serialize_keras_object(self.pretrainer),
            "seed": self.seed,
            "micro_batches": self.micro_batches,
            "packed": self.packed,
            "xla": self.xla,
            "skip_padding": self.skip_padding,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "PretrainingTrainer":
        """Builds the trainer and its model from `get_config`."""
        pretrainer = keras.saving.deserialize_keras_object(config["pretrainer"], custom_objects)
        return cls(**{**config, "pretrainer": pretrainer})


def _size(x: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the numbers of real tokens and of examples in a batch."""
    if "pair_ids" in x:
        tokens, examples = tf.math.count_nonzero(x["pair_ids"]), tf.reduce_sum(tf.reduce_max(x["pair_ids"], axis=1))
    else:
        tokens, examples = tf.math.count_nonzero(x["padding_mask"]), tf.shape(x["padding_mask"])[0]
    return tf.cast(tokens, tf.float32), tf.cast(examples, tf.float32)


def _weighted(
    logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor, *, by_class: bool = False
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted sums of the labels' cross entropies and of the right answers."""
    if len(logits.shape) > 2:
        logits = tf.reshape(logits, (-1, logits.shape[-1]))
    losses, correct = cross_entropy(logits, labels, by_class=by_class)
    return tf.reduce_sum(weights * losses), tf.reduce_sum(weights * correct)
