"""Picking vectors out of sequences."""

from keras import ops


def vectors_at(inputs, positions):
    """Returns the vectors that stand at given positions of each sequence, flattened to rank 2.

    Args:
        inputs: float tensor, `(batch, seq_len, hidden_size)`.
        positions: integer tensor, `(batch, count)`, each in `[0, seq_len)`.

    Returns:
        A tensor `(batch * count, hidden_size)`.
    """
    batch, seq_len, hidden_size = ops.shape(inputs)
    first_rows = ops.expand_dims(ops.arange(batch, dtype="int32") * seq_len, 1)
    rows = ops.reshape(ops.cast(positions, "int32") + first_rows, (-1,))
    return ops.take(ops.reshape(inputs, (-1, hidden_size)), rows, axis=0)
