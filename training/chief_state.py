"""All machines start from the chief's weights and optimizer, so that only the chief needs the run directory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from .team import Team

# Values are added up several at a time, and copied for it: not all of a large model at once.
_BYTES_AT_ONCE = 2**27


def take_from_chief(team: Team, strategy: tf.distribute.Strategy, state: Mapping[str, Sequence[Any]]) -> None:
    """Gives the variables the values they have on the chief, bit for bit.

    Args:
        team: the machines; all must call this.
        strategy: the strategy the variables were made under.
        state: variables by group.
    """
    if team.cluster is None:
        return
    for variables in _portions(_value(variable) for group in state.values() for variable in group):
        taken = _of_first_replica(strategy, variables)
        if not team.is_chief:
            for variable, bits in zip(variables, taken, strict=True):
                variable.assign(_from_bits(bits, variable.dtype))


def _of_first_replica(strategy: tf.distribute.Strategy, variables: list[tf.Variable]) -> list[tf.Tensor]:
    """Returns the bits of the values on the first replica of all: their sum with zeros from all others."""

    def on_replica() -> list[tf.Tensor]:
        replica = tf.distribute.get_replica_context()
        is_first = replica.replica_id_in_sync_group == 0
        bits = [_to_bits(tf.convert_to_tensor(variable)) for variable in variables]
        return [
            replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.where(is_first, value, tf.zeros_like(value)))
            for value in bits
        ]

    sums = tf.function(lambda: strategy.run(on_replica))()
    return [strategy.experimental_local_results(value)[0] for value in sums]


def _to_bits(value: tf.Tensor) -> tf.Tensor:
    """Returns integers that stand for the value: sums of floats would lose the sign of a zero."""
    if value.dtype.is_floating:
        size = value.dtype.size
        value = tf.bitcast(value, {2: tf.int16, 4: tf.int32, 8: tf.int64}[size])
        return tf.cast(value, tf.int32) if size == 2 else value
    return value if value.dtype in (tf.int32, tf.int64) else tf.cast(value, tf.int64)


def _from_bits(bits: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    if dtype.is_floating:
        return tf.bitcast(tf.cast(bits, tf.int16) if dtype.size == 2 else bits, dtype)
    return tf.cast(bits, dtype)


def _portions(variables: Iterable[tf.Variable]) -> Iterator[list[tf.Variable]]:
    portion: list[tf.Variable] = []
    size = 0
    for variable in variables:
        portion.append(variable)
        size += variable.shape.num_elements() * variable.dtype.size
        if size >= _BYTES_AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _value(variable: Any) -> tf.Variable:
    return variable.value if isinstance(variable, keras.Variable) else variable
