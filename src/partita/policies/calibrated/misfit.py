"""Bounds at a point that also hold where the fitted model is too smooth for what it was told.

A stationary model rounds off a tip: near it, values lie above the mean time and again. If those
within some distance of the point do so by more than chance allows, the bounds there also take in
what a model says in which f is higher by an unknown offset b on just those points.

Notation, as in `_region`: P points with data, L the factor of their noisy kernel; h (P,) is 1 at
the points near x and 0 elsewhere, g = L⁻¹h. Then b̂ = g·L⁻¹y/g·g with variance 1/g·g (generalised
least squares: universal kriging with the one basis function h), and f(x) rises by b(1 − g·L⁻¹k(x)).
"""

from __future__ import annotations

import numpy as np

from partita._types import FloatArray

from .region import Conditioned

#: What counts as near, in lengthscales: the point itself, and wider.
NEAR = np.array([1e-9, 0.05, 0.1, 0.2, 0.4])
#: Standard deviations from none at which an offset is taken for real.
MISFIT = 3.0


def bounds_at(known: Conditioned, point: FloatArray, reach: float) -> tuple[float, float]:
    """Bounds on f at a point (d,) of the data, in units of the amplitude.

    They are `reach` standard deviations about the mean, or means.
    """
    mean, variance, rows = known.moments_at(point[None, :])
    away = np.sqrt(((known.scaled - point / known.settings.scales) ** 2).sum(axis=1))
    product, solved = known.whiten((away[:, None] <= NEAR).astype(float))
    precision = np.einsum("ij,ij->j", solved, solved)
    offset, score = product / precision, product / np.sqrt(precision)
    rest = 1.0 - rows[:, 0] @ solved
    shifted = mean + rest * offset
    wide = reach * np.sqrt(variance + rest**2 / precision)
    simple = reach * np.sqrt(variance)
    lower, upper = (shifted - wide)[score < -MISFIT], (shifted + wide)[score > MISFIT]
    return (
        float(np.min(lower, initial=(mean - simple)[0])),
        float(np.max(upper, initial=(mean + simple)[0])),
    )
