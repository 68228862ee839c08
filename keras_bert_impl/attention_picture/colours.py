"""One scale of colours for all heads, so that they can be compared."""

import numpy as np

SHADES = 64
TICKS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 1)
"""Probabilities that the scale is marked at."""


def place(probabilities: np.ndarray | float) -> np.ndarray:
    """Returns where probabilities stand on the scale, from 0 to 1.

    By their square root: most are far below 0.1, and would all look like 0.
    """
    return np.sqrt(np.clip(probabilities, 0.0, 1.0))


def shade(probabilities: np.ndarray) -> np.ndarray:
    """Returns the indices in `palette` of probabilities, uint8."""
    return np.rint(place(probabilities) * (SHADES - 1)).astype("uint8")


def palette() -> np.ndarray:
    """Returns the colours of the shades, from nothing to everything: uint8, `(SHADES, 3)`."""
    import matplotlib

    return matplotlib.colormaps["BuPu"](np.linspace(0.0, 1.0, SHADES), bytes=True)[:, :3]
