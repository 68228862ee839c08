"""What Keras' loop calls with an iterator: one or several steps, with the time spent waiting for input."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Step = Callable[[Any], dict[str, tf.Tensor]]


class InputClock:
    """Adds up the seconds that steps waited for their batches.

    On a GPU the computation runs behind the calls, so what is waited for here may not be felt there: the figure is
    an upper bound.
    """

    def __init__(self) -> None:
        self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64, name="input_wait")

    def seconds(self) -> float:
        """Returns the seconds since the last reset."""
        return float(self._seconds.numpy())

    def reset(self) -> None:
        """Starts from 0."""
        self._seconds.assign(0.0)

    def add(self, seconds: tf.Tensor) -> None:
        """Adds seconds, within a step function."""
        self._seconds.assign_add(tf.cast(seconds, tf.float64))


def step_function(
    step: Step,
    names: Sequence[str],
    strategy: tf.distribute.Strategy,
    *,
    steps_per_execution: int = 1,
    clock: InputClock | None = None,
    eager: bool = False,
) -> Callable[[Any], dict[str, tf.Tensor]]:
    """Returns a function from an iterator to the logs of the last of `steps_per_execution` steps.

    Keras' own reduces the logs over replicas, which fails on several machines; here a step returns the same logs on
    every replica, and those of the first are taken. And it says how long it waited for input.

    Args:
        step: what each replica does with its part of a batch; returns global scalars of float32.
        names: the names of these scalars.
        strategy: the strategy that the replicas compute under.
        steps_per_execution: steps in a call. Fewer are made where the iterator ends.
        clock: takes the time spent waiting.
        eager: whether to run without a graph.

    Returns:
        A function that raises `StopIteration` or `tf.errors.OutOfRangeError` where the iterator has no batch left.
    """

    @tf.autograph.experimental.do_not_convert
    def one_step(data: Any) -> dict[str, tf.Tensor]:
        logs = strategy.run(step, args=(data,))
        return {name: strategy.experimental_local_results(logs[name])[0] for name in names}

    def timed(take: Callable[[], Any], what: Callable[[Any], Any]) -> Any:
        before = _now()
        with tf.control_dependencies([before]):
            taken = take()
        with tf.control_dependencies(tf.nest.flatten(what(taken), expand_composites=True)):
            after = _now()
        if clock is not None:
            clock.add(after - before)
        return taken

    @tf.autograph.experimental.do_not_convert
    def one_from(iterator: Any) -> dict[str, tf.Tensor]:
        return one_step(timed(iterator.get_next, lambda batch: batch))

    @tf.autograph.experimental.do_not_convert
    def several_from(iterator: Any) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        def has_next(done: tf.Tensor, more: tf.Tensor, logs: Any) -> tf.Tensor:
            return tf.logical_and(done < steps_per_execution, more)

        def take_one(done: tf.Tensor, more: tf.Tensor, logs: dict[str, tf.Tensor]) -> Any:
            batch = timed(iterator.get_next_as_optional, lambda batch: batch.has_value())
            there = batch.has_value()
            logs = tf.cond(there, lambda: one_step(batch.get_value()), lambda: logs)
            return done + tf.cast(there, tf.int32), there, logs

        state = tf.constant(0), tf.constant(True), {name: tf.zeros(()) for name in names}
        done, _, logs = tf.while_loop(has_next, take_one, state, parallel_iterations=1)
        return done, logs

    one_batch = one_step
    if not eager:
        # Not `one_step` itself: a function of its own within `tf.cond` fails on several machines.
        one_batch = tf.function(one_step, reduce_retracing=True)
        one_from = tf.function(one_from, reduce_retracing=True)
        several_from = tf.function(several_from, reduce_retracing=True)

    def function(iterator: Any) -> dict[str, tf.Tensor]:
        if isinstance(iterator, tf.data.Iterator | tf.distribute.DistributedIterator):
            if steps_per_execution == 1:
                return one_from(iterator)
            done, logs = several_from(iterator)
            if not int(done):
                raise StopIteration
            return logs
        # `train_on_batch` hands over a single batch in a generator.
        for batch in iterator:
            logs = one_batch(batch)
        return logs

    return function


def _now() -> tf.Tensor:
    # TensorFlow's own clock refuses to work where operations are asked to be deterministic.
    return tf.numpy_function(lambda: np.float64(time.perf_counter()), [], tf.float64)
