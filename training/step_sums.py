"""Sums over tokens and examples, from which every reported value comes."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

NAMES = (
    "mlm_loss_sum",
    "mlm_correct",
    "mlm_weight",
    "nsp_loss_sum",
    "nsp_correct",
    "nsp_weight",
    "tokens",
    "examples",
)


def ratios(sums: Any) -> dict[str, Any]:
    """Turns sums in the order of `NAMES` into mean losses and accuracies; NaN where nothing was counted.

    `loss` is the sum of the losses that something was counted for.
    """
    values = dict(zip(NAMES, sums, strict=True))
    mlm_loss = values["mlm_loss_sum"] / values["mlm_weight"]
    nsp_loss = values["nsp_loss_sum"] / values["nsp_weight"]
    loss = sum(tf.math.divide_no_nan(values[f"{part}_loss_sum"], values[f"{part}_weight"]) for part in ("mlm", "nsp"))
    return {
        "loss": tf.where(values["mlm_weight"] + values["nsp_weight"] > 0, loss, float("nan") * loss),
        "mlm_loss": mlm_loss,
        "mlm_accuracy": values["mlm_correct"] / values["mlm_weight"],
        "nsp_loss": nsp_loss,
        "nsp_accuracy": values["nsp_correct"] / values["nsp_weight"],
    }


class StepSums(keras.metrics.Metric):
    """Adds up the sums of many steps, on every replica its own share.

    One variable of float64 holds them all: one small operation per step, and exact counts.

    Args:
        names: names of the sums; those of pretraining if not given.
        ratios: turns sums in this order into what is reported.
        name: string.
        **kwargs: passed to `keras.metrics.Metric`.
    """

    def __init__(
        self,
        names: Sequence[str] = NAMES,
        ratios: Callable[[Any], dict[str, Any]] = ratios,
        name: str = "sums",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype="float64", **kwargs)
        self.names = tuple(names)
        self.ratios = ratios
        self.totals = self.add_variable((len(self.names),), initializer="zeros", dtype="float64", name="totals")

    def update_state(self, sums: tf.Tensor) -> None:
        """Adds one step's sums, a vector in the order of `names`."""
        self.totals.assign_add(tf.cast(sums, "float64"))

    def result(self) -> dict[str, tf.Tensor]:
        """Returns the ratios of what was added since the last reset, over all replicas."""
        return self.ratios(tf.unstack(tf.convert_to_tensor(self.totals.value)))

    def counts(self) -> dict[str, float]:
        """Returns the sums themselves since the last reset, over all replicas, by name."""
        return dict(zip(self.names, tf.convert_to_tensor(self.totals.value).numpy().tolist(), strict=True))
