"""Where initial values and dropout get their seeds from: (seed, path), and nothing else."""

import contextlib
import contextvars
import hashlib
from collections.abc import Iterator
from typing import Any

import keras


def seed_for(seed: int, path: str) -> int:
    """Returns the seed of the part at `path`, below the part that has `seed`.

    The path is the part's name inside its parent, so it depends neither on a model's automatic name
    nor on how many models the process has made: the same seed gives the same weights again.
    """
    digest = hashlib.blake2b(f"{seed}/{path}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1  # 31 bits fit every backend's seed type


def truncated_normal(stddev: float, seed: int, path: str) -> "SeededNormal":
    """Returns a fresh initializer for the one variable at `path`: a normal cut off at two deviations."""
    return SeededNormal(stddev=stddev, seed=seed_for(seed, path))


_withheld: contextvars.ContextVar[list | None] = contextvars.ContextVar("withheld", default=None)


@contextlib.contextmanager
def withheld_initial_values() -> Iterator[list]:
    """Lets models be built without drawing random values, which whoever builds them then has to supply.

    Yields a list that gets the initializer of every variable that was not drawn.
    """
    initializers: list = []
    token = _withheld.set(initializers)
    try:
        yield initializers
    finally:
        _withheld.reset(token)


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class SeededNormal(keras.initializers.TruncatedNormal):
    """A normal cut off at two deviations; zeros while initial values are withheld."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """Returns the values, or zeros."""
        withheld = _withheld.get()
        if withheld is None:
            return super().__call__(shape, dtype)
        withheld.append(self)
        return keras.ops.zeros(shape, dtype)
