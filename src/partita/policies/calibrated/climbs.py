"""Candidates for many dimensions: climbs of the posterior mean from the best points.

In twenty dimensions or more, random steps from a point hardly ever lead up. The gradient of the
mean says where up is, at the price of one product with the data.
"""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray

from .model import Conditioned

#: Climbs are made above this number of dimensions.
MANY = 10
#: Steps of a climb, and the lengths of the first and the last, in lengthscales times √d: ever
#: shorter, so that a climb settles on a top.
STEPS, FIRST, LAST = 12, 0.3, 0.01


def climbs(
    posterior: Conditioned, starts: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Points (k, d) on the way up from `starts` (b, d), within the box between two corners."""
    from scipy.linalg import solve_triangular

    scales = posterior.settings.scales
    weights = solve_triangular(
        posterior.factor, posterior.values, lower=True, trans=1, check_finite=False
    )
    at, low, high = starts / scales, lower / scales, upper / scales
    lengths = math.sqrt(starts.shape[1]) * np.geomspace(FIRST, LAST, STEPS)
    passed = []
    for length in lengths:
        slope = _slopes(posterior, weights, at)
        # What would leave the box does not count as up.
        slope[((at <= low) & (slope < 0)) | ((at >= high) & (slope > 0))] = 0.0
        norm = np.sqrt((slope**2).sum(axis=1, keepdims=True))
        at = np.clip(at + length * slope / np.maximum(norm, 1e-300), low, high)
        passed.append(at * scales)
    return np.asarray(np.clip(np.concatenate(passed), lower, upper))


def _slopes(posterior: Conditioned, weights: FloatArray, at: FloatArray) -> FloatArray:
    """The gradient of the mean at points (b, d), both in lengthscales, (b, d)."""
    data = posterior.scaled
    squares = (at**2).sum(axis=1)[:, None] + (data**2).sum(axis=1) - 2.0 * at @ data.T
    away = np.sqrt(np.maximum(squares, 0.0))
    if posterior.settings.form == 1:
        fall = 3.0 * np.exp(-math.sqrt(3.0) * away)
    else:
        root = math.sqrt(5.0) * away
        fall = (5.0 / 3.0) * (1.0 + root) * np.exp(-root)
    pull = fall * weights
    return np.asarray(pull @ data - pull.sum(axis=1, keepdims=True) * at)
