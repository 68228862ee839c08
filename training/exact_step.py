"""The train step that gives one update for a global batch, whatever the number of replicas and micro-batches."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.real_tokens import real_slots
from keras_bert_impl.losses import MLM_EPSILON

from .configs import check_seed
from .cross_entropy import cross_entropy
from .dropout_seeds import fixed_dropout, seed_states
from .step_function import InputClock, step_function
from .step_health import StepHealth
from .step_sums import NAMES, StepSums, ratios

Batch = tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]

TARGETS = ("mask_labels", "mask_weights", "next_sentence_labels", "next_sentence_weights")

LOGS = ("loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy")


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class PretrainingTrainer(keras.Model):
    """Puts masked language modelling and next-sentence prediction around a `BertPretrainer`, for `fit`;
    or the former alone around a `BertMaskedLM`.

    The loss of a step is, over the batch of all replicas together,
    `sum(mask_weights * mlm) / (sum(mask_weights) + 1e-5)` and, where there are next-sentence labels,
    `sum(next_sentence_weights * nsp) / sum(next_sentence_weights)`. Gradients are made dense, added up
    over micro-batches, then over replicas, then clipped by their global norm to the optimizer's
    `global_clipnorm`, then applied.

    A step whose loss or gradient is not finite is not taken: weights and the optimizer's running means keep
    every bit, and `health` counts it.

    Dropout comes from (seed, step, replica), so a run that is resumed from its weights, its optimizer and
    the number of its step goes on exactly.

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

    # Keras sets them in `compile`.
    train_function: Callable[[Any], dict[str, tf.Tensor]] | None
    test_function: Callable[[Any], dict[str, tf.Tensor]] | None

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
        super().__init__(**kwargs)
        check_seed(seed)
        if type(micro_batches) is not int or micro_batches < 1:
            raise InputError(
                f"`micro_batches` must be a whole number from 1 on. Received: micro_batches={micro_batches!r}"
            )
        if xla and skip_padding:
            raise InputError("`skip_padding` must be False with `xla`, which needs fixed shapes. Received: True")
        self.skip_padding = skip_padding  # as it was asked for
        skip_padding = not xla if skip_padding is None else skip_padding
        self.pretrainer = pretrainer
        self.seed = seed
        self.micro_batches = micro_batches
        self.xla = xla
        self.packed = packed
        self._packed_form = pretrainer.packed_form() if packed else None
        self._unpadded_form = pretrainer.unpadded_form() if skip_padding else None
        self._packed_unpadded_form = pretrainer.unpadded_form(packed=True) if skip_padding and packed else None
        self.sums = StepSums()
        self.health = StepHealth(loss_scaling=pretrainer.dtype_policy.name == "mixed_float16")
        self.input_clock = InputClock()
        self._seed_states = seed_states(pretrainer)
        self.built = True

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The sums of this trainer; Keras' own loss tracker averages over replicas and is not used."""
        return [self.sums]

    def state(self) -> dict[str, list[Any]]:
        """Returns all variables that a run needs to go on: `weights`, `optimizer` and `trainer`, each in one order."""
        return {
            "weights": list(self.pretrainer.weights),
            "optimizer": list(self.optimizer.variables),
            "trainer": [self.health.variable],
        }

    def compile(self, optimizer: Any = None, *, steps_per_execution: int = 1, **kwargs: Any) -> None:
        """Takes the optimizer; losses and metrics are the trainer's own.

        Args:
            optimizer: one of `keras_bert_impl.optimizers`; None to evaluate only.
            steps_per_execution: int. Steps in each call of the compiled function.
            **kwargs: only `run_eagerly`, or values that ask for nothing.

        Raises:
            InputError: if something is asked for that would be ignored, or be wrong under replicas.
        """
        eager = bool(kwargs.pop("run_eagerly", False))
        reasons = {
            "loss": "the losses are the trainer's own",
            "loss_weights": "the losses are the trainer's own",
            "metrics": "the metrics are the trainer's own",
            "weighted_metrics": "the metrics are the trainer's own",
            "auto_scale_loss": "the loss of a `mixed_float16` model is scaled by itself",
            "jit_compile": "it fails under replicas; `PretrainingTrainer(..., xla=True)` compiles what can be",
        }
        for name, value in kwargs.items():
            if name not in reasons:
                raise InputError(f"`compile` does not know `{name}`. Received: {name}={value!r}")
            if name in reasons and value not in (None, False, "auto"):
                raise InputError(f"`{name}` must be left out: {reasons[name]}. Received: {name}={value!r}")
        if type(steps_per_execution) is not int or steps_per_execution < 1:
            raise InputError(
                "`steps_per_execution` must be a whole number from 1 on. "
                f"Received: steps_per_execution={steps_per_execution!r}"
            )
        if optimizer is not None and not hasattr(optimizer, "apply_reduced"):
            raise InputError(
                "`optimizer` must be one of keras_bert_impl.optimizers; those of Keras square repeated token ids "
                f"wrongly, and clip before replicas are added up. Received: optimizer={optimizer!r}"
            )
        super().compile(
            optimizer=optimizer or keras.optimizers.SGD(0.0),
            steps_per_execution=steps_per_execution,
            jit_compile=False,
            run_eagerly=eager,
        )
        self._trains = optimizer is not None

    def get_compile_config(self) -> dict[str, Any]:
        """Returns what `compile` was given, as plain JSON values."""
        optimizer = keras.saving.serialize_keras_object(self.optimizer) if self._trains else None
        return {"optimizer": optimizer, "steps_per_execution": self.steps_per_execution}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` says."""
        optimizer = keras.saving.deserialize_keras_object(config["optimizer"])
        self.compile(optimizer, steps_per_execution=config["steps_per_execution"])
        if optimizer is not None:
            optimizer.build(self.pretrainer.trainable_variables)

    def call(self, inputs, training=None):
        """Returns the pretrainer's outputs."""
        model = self.pretrainer
        if self._packed_form is not None and "pair_ids" in inputs:
            model = self._packed_form
        return model(inputs, training=training)

    def make_train_function(self, force: bool = False) -> None:
        """Makes the function that `fit` calls; `force` anew, for batches of another shape."""
        if self.train_function is not None and not force:
            return
        if not self._trains:
            raise InputError("`compile` must be given an `optimizer` before `fit`. Received: none")
        self.train_function = step_function(
            self.train_step,
            LOGS,
            self.distribute_strategy,
            steps_per_execution=self.steps_per_execution,
            clock=self.input_clock,
            eager=self.run_eagerly,
        )

    def make_test_function(self, force: bool = False) -> None:
        """Makes the function that `evaluate` calls; `force` anew, for batches of another shape."""
        if self.test_function is not None and not force:
            return
        self.test_function = step_function(
            self.test_step,
            LOGS,
            self.distribute_strategy,
            steps_per_execution=self.steps_per_execution,
            eager=self.run_eagerly,
        )

    def train_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Updates the weights; returns the losses and accuracies of this step's global batch."""
        replicas = tf.distribute.get_replica_context()
        x, y = _inputs_and_targets(data)
        weights = tf.stack([tf.reduce_sum(y["mask_weights"]), tf.reduce_sum(y["next_sentence_weights"])])
        weights = replicas.all_reduce(tf.distribute.ReduceOp.SUM, weights)

        loss_scale = self.health.scale()
        gradients, sums = self._gradients(x, y, weights, replicas.replica_id_in_sync_group, loss_scale)
        *gradients, global_sums = replicas.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, sums])
        logs = ratios(tf.unstack(global_sums))
        norm = tf.linalg.global_norm(gradients) / loss_scale
        finite = tf.math.is_finite(tf.reduce_sum(global_sums) + norm)
        scale = clipping(norm, self.optimizer.global_clipnorm) / loss_scale
        self.optimizer.apply_reduced(
            gradients, self.pretrainer.trainable_variables, scale=tf.where(finite, scale, tf.zeros_like(scale))
        )
        self.health.update(finite, tf.cast(self.optimizer.iterations.value, tf.int64))
        self.sums.update_state(tf.where(finite, sums, tf.zeros_like(sums)))
        return logs

    def test_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Adds a batch to the sums; rows and slots of weight 0 do not count."""
        x, y = _inputs_and_targets(data)
        _, sums = self._loss_sums(x, y, training=False)
        self.sums.update_state(sums)
        return ratios(tf.unstack(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, sums)))

    def _gradients(self, x, y, weights, replica, loss_scale) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Returns this replica's share of the dense gradients of the global loss, and its sums."""
        of_part: Callable[..., Any] = self._gradients_of_part
        if self.xla:
            of_part = tf.function(of_part, jit_compile=True)
        if self.micro_batches == 1:
            return of_part(x, y, weights, replica, 0, loss_scale)

        variables = self.pretrainer.trainable_variables
        totals = [tf.zeros(variable.shape, variable.dtype) for variable in variables], tf.zeros(len(NAMES))
        take = _parts_of((x, y), self.micro_batches)

        def add_part(part: tf.Tensor, totals: Any) -> tuple[tf.Tensor, Any]:
            added = of_part(*take(part), weights, replica, part, loss_scale)
            return part + 1, tf.nest.map_structure(tf.add, totals, added)

        _, totals = tf.while_loop(
            lambda part, _: part < self.micro_batches,
            add_part,
            (tf.constant(0), totals),
            parallel_iterations=1,
            maximum_iterations=self.micro_batches,
        )
        return totals

    def _gradients_of_part(self, x, y, weights, replica, part, loss_scale) -> tuple[list[tf.Tensor], tf.Tensor]:
        with tf.GradientTape() as tape:
            step = self.optimizer.iterations.value
            with fixed_dropout(self._seed_states, self.seed, step, replica, part):
                (mlm_loss_sum, nsp_loss_sum), sums = self._loss_sums(x, y, training=True)
            loss = mlm_loss_sum / (weights[0] + MLM_EPSILON) + tf.math.divide_no_nan(nsp_loss_sum, weights[1])
            loss *= loss_scale
        gradients = tape.gradient(
            loss,
            [variable.value for variable in self.pretrainer.trainable_variables],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # An embedding's gradient is a list of slices, whose squares Adam would take one by one.
        return [tf.convert_to_tensor(gradient) for gradient in gradients], sums

    def _loss_sums(self, x, y, *, training: bool) -> tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor]:
        """Returns the two sums of losses, and all sums in the order of `NAMES`."""
        labels, mask_weights = tf.reshape(y["mask_labels"], (-1,)), tf.reshape(y["mask_weights"], (-1,))
        unpadded = self._packed_unpadded_form if "pair_ids" in x else self._unpadded_form
        if unpadded is not None:
            outputs = unpadded({**x, "mask_weights": y["mask_weights"]}, training=training)
            slots = real_slots(y["mask_weights"])
            labels, mask_weights = tf.gather(labels, slots), tf.gather(mask_weights, slots)
        else:
            outputs = self.call(x, training=training)
        mlm_loss_sum, mlm_correct = _weighted(outputs["mlm_logits"], labels, mask_weights)
        nsp_loss_sum = nsp_correct = nsp_weight = tf.zeros(())
        if "nsp_logits" in outputs:
            nsp_weights = tf.reshape(y["next_sentence_weights"], (-1,))
            nsp_labels = tf.reshape(y["next_sentence_labels"], (-1,))
            nsp_loss_sum, nsp_correct = _weighted(outputs["nsp_logits"], nsp_labels, nsp_weights)
            nsp_weight = tf.reduce_sum(nsp_weights)
        sums = [mlm_loss_sum, mlm_correct, tf.reduce_sum(mask_weights), nsp_loss_sum, nsp_correct, nsp_weight]
        return (mlm_loss_sum, nsp_loss_sum), tf.stop_gradient(tf.stack([*sums, *_size(x)]))

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

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Does nothing: all is built, and Keras' way draws a batch and averages it over the replicas."""


def clipping(norm: tf.Tensor, largest: float | None) -> tf.Tensor:
    """Returns what gradients of a norm are multiplied by so that it is at most `largest`."""
    return tf.ones_like(norm) if largest is None else largest / tf.maximum(norm, largest)


def _inputs_and_targets(data: Any) -> Batch:
    """Returns the two halves of a batch; a third, weights of the samples, would be ignored."""
    if isinstance(data, tuple) and len(data) == 3 and data[2] is None:  # from `train_on_batch`
        data = data[:2]
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[1], dict):
        raise InputError(
            "`x` must be a dataset of pairs of inputs and targets, without sample weights; targets have their own. "
            f"Received: {type(data).__name__}{f' of {len(data)}' if isinstance(data, tuple) else ''}"
        )
    if missing := [name for name in TARGETS if name not in data[1]]:
        raise InputError(f"`x` must have targets with {', '.join(TARGETS)}. Received: no {', '.join(missing)}")
    return data


def _parts_of(batch: Batch, count: int) -> Any:
    """Returns a function from the number of a micro-batch to its rows; a batch of any size is divided."""
    rows = batch[0]["token_ids"].shape[0]
    if rows is not None and rows % count == 0:
        parts = tf.nest.map_structure(
            lambda values: tf.reshape(values, (count, -1, *keras.ops.shape(values)[1:])), batch
        )
        return lambda part: tf.nest.map_structure(lambda values: values[part], parts)

    def some_rows(part: tf.Tensor) -> Batch:
        size = tf.shape(batch[0]["token_ids"])[0]
        bounds = part * size // count, (part + 1) * size // count
        return tf.nest.map_structure(lambda values: values[bounds[0] : bounds[1]], batch)

    return some_rows


def _size(x: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the numbers of real tokens and of examples in a batch."""
    if "pair_ids" in x:
        tokens, examples = tf.math.count_nonzero(x["pair_ids"]), tf.reduce_sum(tf.reduce_max(x["pair_ids"], axis=1))
    else:
        tokens, examples = tf.math.count_nonzero(x["padding_mask"]), tf.shape(x["padding_mask"])[0]
    return tf.cast(tokens, tf.float32), tf.cast(examples, tf.float32)


def _weighted(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted sums of the labels' cross entropies and of the right answers."""
    losses, correct = cross_entropy(tf.reshape(logits, (-1, logits.shape[-1])), labels)
    return tf.reduce_sum(weights * losses), tf.reduce_sum(weights * correct)
