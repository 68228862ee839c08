"""Picking vectors out of sequences."""

from keras import ops


def vectors_at(inputs, positions):
    """Returns the vectors that stand at given positions, flattened to rank 2.

    Args:
        inputs: float tensor, `(batch, seq_len, hidden_size)`; or `(real_tokens, hidden_size)`.
        positions: integer tensor, `(batch, count)`, each in `[0, seq_len)` of its own sequence; or, into inputs of
            rank 2, of any shape and each in `[0, real_tokens)`.

    Returns:
        A tensor `(number of positions, hidden_size)`.
    """
    rows = ops.cast(positions, "int32")
    if len(inputs.shape) == 3:
        batch, seq_len, hidden_size = ops.shape(inputs)
        rows = rows + ops.expand_dims(ops.arange(batch, dtype="int32") * seq_len, 1)
        inputs = ops.reshape(inputs, (-1, hidden_size))
    return ops.take(inputs, ops.reshape(rows, (-1,)), axis=0)


def only(vectors, chosen):
    """Returns the vectors, `(n, size)`, whose numbers are `chosen`; all of them where that is None."""
    return vectors if chosen is None else ops.take(vectors, chosen, axis=0)


def only_shape(vectors, chosen):
    """Returns the shape of what `only` returns."""
    return vectors.shape if chosen is None else (*chosen.shape, vectors.shape[-1])


def take_with_inverse(inputs, indices, inverse, here=None):
    """Returns the vectors at `indices`, with a gradient that takes too, where that of `ops.take` adds up in places.

    Args:
        inputs: float tensor, `(n, size)`.
        indices: integer tensor, each in `[0, n)`.
        inverse: integer tensor, `(n,)`; for each input a place in the flattened `indices` that names it. Gradients that
            arrive at other places are taken to be 0.
        here: float tensor, `(n, 1)`; 0 for inputs that `indices` does not name, and that have no gradient. None where
            it names all of them.

    Returns:
        A tensor `(*indices.shape, size)`.
    """

    @ops.custom_gradient
    def taken(inputs):
        size = inputs.shape[-1]

        def gradient(upstream):
            of_inputs = ops.take(ops.reshape(upstream, (-1, size)), inverse, axis=0)
            return of_inputs if here is None else of_inputs * ops.cast(here, of_inputs.dtype)

        return ops.take(inputs, indices, axis=0), gradient

    return taken(inputs)
