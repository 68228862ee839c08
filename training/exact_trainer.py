"""What trainers share whose step gives one update for a global batch, whatever the replicas and micro-batches."""

from collections.abc import Callable
from typing import Any, ClassVar

import keras
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.embedding_table import lookups_apart

from .configs import check_seed
from .dropout_seeds import fixed_dropout, seed_states
from .step_function import InputClock, step_function
from .step_health import StepHealth
from .step_sums import StepSums

Batch = tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]


class ExactTrainer(keras.Model):
    """Puts a train step around a model, for `fit`, that does not depend on how the batch is divided.

    Gradients are made dense, added up over micro-batches, then over replicas, then clipped by their global norm to the
    optimizer's `global_clipnorm`, then applied.

    A step whose loss or gradient is not finite is not taken: weights and the optimizer's running means keep
    every bit, and `health` counts it.

    Dropout comes from (seed, step, replica), so a run that is resumed from its weights, its optimizer and
    the number of its step goes on exactly.

    A subclass says what the loss is: `sums_of`, `normaliser`, `total_loss` and `gradient_factor`.

    Args:
        trained: the model, built under the strategy of this trainer. With a `mixed_float16` policy its loss is scaled.
        sums: what adds up the sums of the steps.
        seed: int. Seed of dropout.
        micro_batches: int. Parts that a replica's batch is worked through in.
        xla: bool. Whether forward and backward pass are compiled by XLA. Batches must all have one shape.
        **kwargs: passed to `keras.Model`.

    Raises:
        InputError: if an argument is out of its range.
    """

    # Keras sets them in `compile`.
    train_function: Callable[[Any], dict[str, tf.Tensor]] | None
    test_function: Callable[[Any], dict[str, tf.Tensor]] | None

    log_names: ClassVar[tuple[str, ...]]
    """Names of what a step returns."""
    target_names: tuple[str, ...]
    """Names of what a batch must have beside the inputs."""
    why_no_jit_compile: ClassVar[str] = "it fails under replicas"

    def __init__(
        self,
        trained: keras.Model,
        sums: StepSums,
        *,
        seed: int = 0,
        micro_batches: int = 1,
        xla: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_seed(seed)
        if type(micro_batches) is not int or micro_batches < 1:
            raise InputError(
                f"`micro_batches` must be a whole number from 1 on. Received: micro_batches={micro_batches!r}"
            )
        self.trained = trained
        self.seed = seed
        self.micro_batches = micro_batches
        self.xla = xla
        self.sums = sums
        self.health = StepHealth(loss_scaling=trained.dtype_policy.name == "mixed_float16")
        self.input_clock = InputClock()
        self._seed_states = seed_states(trained)

    def sums_of(self, x: Any, y: Any, *, training: bool) -> tuple[tuple[tf.Tensor, ...], tf.Tensor]:
        """Returns the sums of losses of a batch or of a part of it, and all sums in the order of `sums.names`."""
        raise NotImplementedError

    def normaliser(self, x: Any, y: Any) -> tf.Tensor:
        """Returns what `total_loss` divides by, of the batch of all replicas."""
        raise NotImplementedError

    def total_loss(self, loss_sums: tuple[tf.Tensor, ...], normaliser: tf.Tensor) -> tf.Tensor:
        """Returns the scalar whose gradients are taken and added up over the parts of the batch."""
        raise NotImplementedError

    def gradient_factor(self, global_sums: tf.Tensor) -> tf.Tensor | float:
        """Returns what the added gradients are still to be multiplied by, from the sums over all replicas."""
        return 1.0

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The sums of this trainer; Keras' own loss tracker averages over replicas and is not used."""
        return [self.sums]

    def state(self) -> dict[str, list[Any]]:
        """Returns all variables that a run needs to go on: `weights`, `optimizer` and `trainer`, each in one order."""
        return {
            "weights": list(self.trained.weights),
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
            "jit_compile": self.why_no_jit_compile,
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
            optimizer.build(self.trained.trainable_variables)

    def make_train_function(self, force: bool = False) -> None:
        """Makes the function that `fit` calls; `force` anew, for batches of another shape."""
        if self.train_function is not None and not force:
            return
        if not self._trains:
            raise InputError("`compile` must be given an `optimizer` before `fit`. Received: none")
        self.train_function = step_function(
            self.train_step,
            self.log_names,
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
            self.log_names,
            self.distribute_strategy,
            steps_per_execution=self.steps_per_execution,
            eager=self.run_eagerly,
        )

    def train_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Updates the weights; returns the losses and accuracies of this step's global batch."""
        replicas = tf.distribute.get_replica_context()
        x, y = self._inputs_and_targets(data)
        normaliser = self.normaliser(x, y)

        loss_scale = self.health.scale()
        gradients, sums = self._gradients(x, y, normaliser, replicas.replica_id_in_sync_group, loss_scale)
        *gradients, global_sums = replicas.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, sums])
        logs = self.sums.ratios(tf.unstack(global_sums))
        factor = self.gradient_factor(global_sums) / loss_scale
        norm = tf.linalg.global_norm(gradients) * factor
        finite = tf.math.is_finite(tf.reduce_sum(global_sums) + norm)
        scale = clipping(norm, self.optimizer.global_clipnorm) * factor
        self.optimizer.apply_reduced(
            gradients, self.trained.trainable_variables, scale=tf.where(finite, scale, tf.zeros_like(scale))
        )
        self.health.update(finite, tf.cast(self.optimizer.iterations.value, tf.int64))
        self.sums.update_state(tf.where(finite, sums, tf.zeros_like(sums)))
        return logs

    def test_step(self, data: Batch) -> dict[str, tf.Tensor]:
        """Adds a batch to the sums; rows and slots of weight 0 do not count."""
        x, y = self._inputs_and_targets(data)
        _, sums = self.sums_of(x, y, training=False)
        self.sums.update_state(sums)
        global_sums = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, sums)
        return self.sums.ratios(tf.unstack(global_sums))

    def _gradients(self, x, y, normaliser, replica, loss_scale) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Returns this replica's share of the dense gradients of the global loss, and its sums."""
        of_part: Callable[..., Any] = self._gradients_of_part
        if self.xla:
            of_part = tf.function(of_part, jit_compile=True)
        if self.micro_batches == 1:
            return of_part(x, y, normaliser, replica, 0, loss_scale)

        variables = self.trained.trainable_variables
        totals = [tf.zeros(variable.shape, variable.dtype) for variable in variables], tf.zeros(len(self.sums.names))
        take = _parts_of((x, y), self.micro_batches)

        def add_part(part: tf.Tensor, totals: Any) -> tuple[tf.Tensor, Any]:
            added = of_part(*take(part), normaliser, replica, part, loss_scale)
            return part + 1, tf.nest.map_structure(tf.add, totals, added)

        _, totals = tf.while_loop(
            lambda part, _: part < self.micro_batches,
            add_part,
            (tf.constant(0), totals),
            parallel_iterations=1,
            maximum_iterations=self.micro_batches,
        )
        return totals

    def _gradients_of_part(self, x, y, normaliser, replica, part, loss_scale) -> tuple[list[tf.Tensor], tf.Tensor]:
        lookups: list[tuple[Any, tf.Tensor, tf.Tensor]] = []

        def take_lookup(table: Any, ids: tf.Tensor, rows: tf.Tensor) -> None:
            tape.watch(rows)
            lookups.append((table, ids, rows))

        # On a GPU rows would be added in any order, and XLA lacks the operation.
        apart = not self.xla and not tf.config.list_logical_devices("GPU")
        with tf.GradientTape() as tape, lookups_apart(take_lookup if apart else None):
            step = self.optimizer.iterations.value
            with fixed_dropout(self._seed_states, self.seed, step, replica, part):
                loss_sums, sums = self.sums_of(x, y, training=True)
            loss = self.total_loss(loss_sums, normaliser) * loss_scale
        variables = self.trained.trainable_variables
        sources = [variable.value for variable in variables], [rows for _, _, rows in lookups]
        gradients, of_lookups = tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        # An embedding's gradient is a list of slices, whose squares Adam would take one by one.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        places = {id(variable): place for place, variable in enumerate(variables)}
        for (table, ids, _), of_rows in zip(lookups, of_lookups, strict=True):
            if id(table) in places:
                place = places[id(table)]
                gradients[place] = _with_rows_added(gradients[place], ids, of_rows)
        return gradients, sums

    def _inputs_and_targets(self, data: Any) -> Batch:
        """Returns the two halves of a batch; a third, weights of the samples, would be ignored."""
        if isinstance(data, tuple) and len(data) == 3 and data[2] is None:  # from `train_on_batch`
            data = data[:2]
        if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[1], dict):
            raise InputError(
                "`x` must be a dataset of pairs of inputs and targets, without sample weights; targets have their own. "
                f"Received: {type(data).__name__}{f' of {len(data)}' if isinstance(data, tuple) else ''}"
            )
        if missing := [name for name in self.target_names if name not in data[1]]:
            raise InputError(
                f"`x` must have targets with {', '.join(self.target_names)}. Received: no {', '.join(missing)}"
            )
        return data

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Does nothing: all is built, and Keras' way draws a batch and averages it over the replicas."""


def clipping(norm: tf.Tensor, largest: float | None) -> tf.Tensor:
    """Returns what gradients of a norm are multiplied by so that it is at most `largest`."""
    return tf.ones_like(norm) if largest is None else largest / tf.maximum(norm, largest)


def _with_rows_added(table: tf.Tensor, ids: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns a table with rows added to those at `ids`, which may repeat."""
    # Unlike `tf.tensor_scatter_nd_add` this does not copy a table that nothing else needs.
    return tf.raw_ops.ScatterNdNonAliasingAdd(input=table, indices=ids[:, None], updates=rows)


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
