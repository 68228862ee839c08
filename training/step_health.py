"""What a run remembers of steps that could not be taken, and the scale of float16 losses."""

import keras
import tensorflow as tf

FIRST_EXPONENT = 15
"""Loss scaling begins with 2 to this power."""

GROWTH_STEPS = 2000
"""After so many finite steps on end the scale is doubled."""

_LARGEST_EXPONENT = 60


class StepHealth:
    """Counts the steps whose loss or gradient was not finite, and scales the loss of float16.

    float16 loses gradients below 6e-8, so the loss is multiplied by a power of two and the gradient divided by
    it. A gradient that overflows halves the scale, and that step is not taken: it belongs to the search for the
    largest scale that fits, and is not counted as a step that went wrong. At a scale of 1 it is.

    All of it is one small variable, updated once a step: every one is a meeting of all replicas.

    Args:
        loss_scaling: bool. Whether to scale the loss.

    Reference:
        [Micikevicius et al., 2018](https://arxiv.org/abs/1710.03740), section 3.2.
    """

    def __init__(self, loss_scaling: bool) -> None:
        self.loss_scaling = loss_scaling
        exponent = FIRST_EXPONENT if loss_scaling else 0
        self.variable = keras.Variable(
            # exponent of the scale, finite steps since it changed; steps that went wrong, the first and the last one
            [exponent, 0, 0, 0, 0],
            dtype="int64",
            trainable=False,
            aggregation="only_first_replica",
            name="step_health",
        )

    def scale(self) -> tf.Tensor:
        """Returns what the loss is multiplied by: a float32 scalar."""
        return tf.pow(2.0, tf.cast(tf.convert_to_tensor(self.variable.value)[0], tf.float32))

    def update(self, finite: tf.Tensor, step: tf.Tensor) -> None:
        """Takes in how a step went.

        Args:
            finite: bool scalar. Whether loss and gradient were finite, the same on every replica.
            step: int64 scalar. The step's number, counted from 1.
        """
        exponent, good, bad, first, last = tf.unstack(tf.convert_to_tensor(self.variable.value))
        wrong = tf.logical_and(tf.logical_not(finite), tf.equal(exponent, 0))
        bad += tf.cast(wrong, tf.int64)
        first = tf.where(wrong & tf.equal(bad, 1), step, first)
        last = tf.where(wrong, step, last)
        if self.loss_scaling:
            good = tf.where(finite, good + 1, tf.zeros_like(good))
            grown = tf.greater_equal(good, GROWTH_STEPS)
            change = tf.where(finite, tf.cast(grown, tf.int64), -tf.ones_like(exponent))
            exponent = tf.clip_by_value(exponent + change, 0, _LARGEST_EXPONENT)
            good = tf.where(grown, tf.zeros_like(good), good)
        self.variable.assign(tf.stack([exponent, good, bad, first, last]))

    def loss_scale(self) -> float | None:
        """Returns the scale of the loss; None without scaling."""
        return 2.0 ** self._numbers()[0] if self.loss_scaling else None

    def non_finite_steps(self) -> int:
        """Returns the number of steps of the run whose loss or gradient was not finite."""
        return self._numbers()[2]

    def first_and_last_non_finite_step(self) -> tuple[int, int]:
        """Returns the numbers of the first and the last such step, counted from 1; 0 where there was none."""
        numbers = self._numbers()
        return numbers[3], numbers[4]

    def _numbers(self) -> list[int]:
        return [int(number) for number in tf.convert_to_tensor(self.variable.value).numpy()]
