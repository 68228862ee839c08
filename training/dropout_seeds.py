"""Dropout as a pure function of (seed, step, replica, part of the batch, layer)."""

import keras
import tensorflow as tf


def seed_states(model: keras.Model) -> list[keras.Variable]:
    """Returns the state of every random generator inside `model`, in the order of its layers."""
    return [variable for variable in model.variables if variable.name == "seed_generator_state"]


def fixed_dropout(
    states: list[keras.Variable], seed: int, step: tf.Tensor, replica: int | tf.Tensor, part: int | tf.Tensor
) -> keras.StatelessScope:
    """Returns a scope in which the generators hold states that come from the other arguments.

    Without it they count the calls they have seen, and a resumed run would have to know how many those
    were, for each replica. Inside the scope nothing is written back to them.

    Args:
        states: from `seed_states`.
        seed: seed of the run.
        step: steps done before this one.
        replica: number of the replica.
        part: number of the micro-batch.
    """
    key = tf.constant([seed - 2**64 if seed >= 2**63 else seed, 0x5EED], tf.int64)  # all 64 bits, as a signed number
    for number in (step, replica, part):
        key = tf.random.experimental.stateless_fold_in(key, tf.cast(number, tf.int64))
    values = tf.random.stateless_uniform((len(states), 2), key, 0, 2**30, tf.int64)
    mapping = list(zip(states, tf.unstack(values), strict=True))
    return keras.StatelessScope(state_mapping=mapping, initialize_variables=False)
