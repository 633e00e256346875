"""Observations drawn from a Gaussian process, and their replicate means."""

import numpy as np

from partita.gp.data import uniform_noise
from partita.gp.settings import Settings
from partita.model.kernels import Matern


def start(dim):
    """Settings to begin a fit at."""
    return Settings(np.full(dim, 0.3), 0.1, 2, 0.0, 1.0)


def sample(points, scales, noise_std, form, rng, counts=None, mean=0.0, amplitude=1.0):
    """Single observations of a draw of the process: numbers of their points, and values."""
    where = np.repeat(np.arange(len(points)), 1 if counts is None else counts)
    kernel = Matern(form + 0.5, scales)(points) + 1e-10 * np.eye(len(points))
    f = mean + amplitude * np.linalg.cholesky(kernel) @ rng.standard_normal(len(points))
    return where, f[where] + noise_std * rng.standard_normal(len(where))


def replicates(points, where, values):
    """Replicate means of single values at the points that `where` numbers."""
    counts = np.bincount(where, minlength=len(points)).astype(float)
    means = np.bincount(where, values, len(points)) / counts
    return uniform_noise(points, counts, means, np.bincount(where, (values - means[where]) ** 2))


def case(dim, replicated, seed=0):
    """Nine points, observations of a draw at them, and their replicate means."""
    rng = np.random.default_rng(seed)
    points = rng.random((9, dim))
    counts = rng.integers(1, 5, 9) if replicated else None
    where, values = sample(points, np.full(dim, 0.4), 0.3, 1, rng, counts, mean=5.0, amplitude=2.0)
    return points, where, values, replicates(points, where, values)
