"""Where initial values and dropout get their seeds from: (seed, path), and nothing else."""

import hashlib

import keras


def seed_for(seed: int, path: str) -> int:
    """Returns the seed of the part at `path`, below the part that has `seed`.

    The path is the part's name inside its parent, so it depends neither on a model's automatic name
    nor on how many models the process has made: the same seed gives the same weights again.
    """
    digest = hashlib.blake2b(f"{seed}/{path}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1  # 31 bits fit every backend's seed type


def truncated_normal(stddev: float, seed: int, path: str) -> keras.initializers.Initializer:
    """Returns a fresh initializer for the one variable at `path`: a normal cut off at two deviations."""
    return keras.initializers.TruncatedNormal(stddev=stddev, seed=seed_for(seed, path))
