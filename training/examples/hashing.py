"""Integer hashes: every random choice that must not depend on what was drawn before it.

`mix` is the finaliser of splitmix64 (Steele et al., 2014), a one-to-one map of 64-bit numbers.
"""

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def mix(values: np.ndarray) -> np.ndarray:
    """Returns well-mixed 64-bit numbers, equal ones for equal values only."""
    values = values ^ (values >> _SHIFTS[0])
    values *= _MULTIPLIERS[0]
    values ^= values >> _SHIFTS[1]
    values *= _MULTIPLIERS[1]
    return values ^ (values >> _SHIFTS[2])


def hash_of(*parts: int | np.ndarray) -> np.ndarray:
    """Returns a 64-bit hash of the parts in their order; arrays among them are broadcast."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        number = np.atleast_1d(np.asarray(part if isinstance(part, np.ndarray) else int(part) % 2**64, np.uint64))
        state = mix((state + _STEP) ^ mix(number + _STEP))
    return state


def as_below(hashes: np.ndarray, limit: int) -> np.ndarray:
    """Maps hashes to whole numbers in [0, limit), each as often as the others to within limit / 2**32."""
    return ((hashes >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)
