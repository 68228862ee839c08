"""Adam's and LAMB's updates written out in float64 from the published formulas, and variables to try them on."""

import keras
import numpy as np

SHAPES = {
    "embeddings/table": (6, 3),
    "block_0/kernel": (5, 3),
    "block_1/kernel": (3, 4),
    "block_1/bias": (4,),
    "block_1/gamma": (3,),
    "pooler/kernel": (3, 2),
}


def variables(dtype="float32"):
    """Variables with paths as in a model of two blocks."""
    rng = np.random.default_rng(0)
    made = []
    for path, shape in SHAPES.items():
        scope, name = path.split("/")
        with keras.name_scope(scope):
            made.append(keras.Variable(rng.normal(size=shape), dtype=dtype, name=name))
    assert [variable.path for variable in made] == list(SHAPES)
    return made


def gradients(step, size=1.0):
    """Float32 gradients of a step."""
    rng = np.random.default_rng(100 + step)
    return [(rng.normal(size=shape) * size).astype("float32") for shape in SHAPES.values()]


class NumpyUpdates:
    """Takes steps.

    Args:
        values: arrays.
        decayed: for each, whether it is decayed.
        adapted: for each, whether LAMB's ratio is applied; None for Adam.
        factors: for each, what the learning rate is multiplied by.
        epsilon, decay, clip, correct, betas: as of the optimizers.
    """

    def __init__(
        self,
        values,
        decayed,
        *,
        adapted=None,
        factors=None,
        epsilon=1e-6,
        decay=0.01,
        clip=1.0,
        correct=False,
        betas=(0.9, 0.999),
    ):
        self.values = [value.astype("float64") for value in values]
        self.means = [np.zeros_like(value) for value in self.values]
        self.squares = [np.zeros_like(value) for value in self.values]
        self.decayed = decayed
        self.adapted = adapted or [False] * len(values)
        self.factors = factors or [1.0] * len(values)
        self.epsilon, self.decay, self.clip, self.correct, self.betas = epsilon, decay, clip, correct, betas
        self.step = 0

    def apply(self, gradients, rate):
        """Takes one step."""
        self.step += 1
        gradients = [gradient.astype("float64") for gradient in gradients]
        norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
        if self.clip:
            gradients = [gradient * min(1.0, self.clip / norm) for gradient in gradients]
        first, second = self.betas
        for i, gradient in enumerate(gradients):
            self.means[i] = first * self.means[i] + (1 - first) * gradient
            self.squares[i] = second * self.squares[i] + (1 - second) * gradient**2
            mean, square = self.means[i], self.squares[i]
            if self.correct:
                mean, square = mean / (1 - first**self.step), square / (1 - second**self.step)
            update = mean / (np.sqrt(square) + self.epsilon)
            if self.decayed[i]:
                update = update + self.decay * self.values[i]
            lengths = np.linalg.norm(self.values[i]), np.linalg.norm(update)
            ratio = lengths[0] / lengths[1] if self.adapted[i] and min(lengths) > 0 else 1.0
            self.values[i] = self.values[i] - rate * self.factors[i] * ratio * update
