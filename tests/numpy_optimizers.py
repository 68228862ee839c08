"""The optimizers written out in NumPy, with clipping and the original's schedule: what others are compared with."""

import numpy as np


class NumpyAdamW:
    """No bias correction, decoupled decay, linear warm-up and decay."""

    def __init__(self, peak, warmup_steps, total_steps, clip):
        self.peak, self.warmup_steps, self.total_steps, self.clip = peak, warmup_steps, total_steps, clip
        self.moments, self.step = {}, 0

    def rate(self):
        if self.step < self.warmup_steps:
            return self.peak * self.step / self.warmup_steps
        return self.peak * (1 - self.step / self.total_steps)

    def update(self, weights, gradients):
        """Changes the weights, a dict of arrays; returns the norm of the gradients before they were clipped."""
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients.values()))
        scale = self.clip / max(norm, self.clip)
        for path, gradient in gradients.items():
            gradient = gradient * scale
            mean, square = self.moments.get(path, (0, 0))
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            self.moments[path] = mean, square
            step = mean / (np.sqrt(square) + 1e-6)
            decayed = path.split("/")[-1] not in ("bias", "gamma", "beta")
            if decayed:
                step = step + 0.01 * weights[path]
            weights[path] = weights[path] - self.rate() * self.factor(weights[path], step, decayed) * step
        self.step += 1
        return norm

    def factor(self, weight, step, decayed):
        return 1.0


class NumpyLamb(NumpyAdamW):
    """The step of a decayed variable is as long as the variable, times the rate."""

    def factor(self, weight, step, decayed):
        lengths = np.linalg.norm(weight.astype("float64")), np.linalg.norm(step.astype("float64"))
        return lengths[0] / lengths[1] if decayed and min(lengths) > 0 else 1.0
