"""A trend of f around a point, in many dimensions: linear and quadratic in every coordinate.

Notation: z (n, d) points less a centre, m (n, c) marks, one for each value of each choice, which
are 1 where a point has it, less their mean; φ = (1, z, z², m) the p = 2d + 1 + c features, w (n,)
their weights, G = ΦᵀWΦ, A = G + τP with a prior P, L the factor of A, θ = A⁻¹ΦᵀWy the coefficients.

A value at z is taken to be off the trend by noise, and by what the trend leaves out. The latter
grows with the distance, as the square of it: so its weight is 1/(noise + (|z|/(√d h))⁴), h the
width of a window. All of the data is used in p numbers, so that a fit costs n p², however noisy
the values are; a Gaussian process could only look at a few hundred of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray

#: Shares of the values' variance that the trend may leave over: the most likely is taken.
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6, 0.9)
#: How much smaller than the linear part the quadratic part is thought to be, as a variance.
CURVED = 4.0
#: The part of the prior's precision against curves that is not against curving alike everywhere: a
#: bowl is likelier than curves of all kinds.
ALIKE = 0.99
#: The prior precision of the level, which is as good as none.
LEVEL = 1e-6


class Parts(NamedTuple):
    """A separable function Σ slope_i z_i + curve_i z_i², each (d,), and constants (c,) of marks."""

    slope: FloatArray
    curve: FloatArray
    constants: FloatArray

    def highest(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Where it is highest between two corners (d,), without the marks, (d,)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            top = np.where(self.curve < 0.0, -0.5 * self.slope / self.curve, lower)
        places = np.stack([lower, upper, np.clip(top, lower, upper)])
        values = self.slope * places + self.curve * places**2
        return np.asarray(places[np.argmax(values, axis=0), np.arange(len(lower))])


class Trend(NamedTuple):
    """A fitted trend: centre, level and coefficients, how sure they are, and what is left over."""

    centre: FloatArray  # (d,)
    level: float
    coefficients: FloatArray  # (p,)
    inverse: FloatArray  # L⁻¹, (p, p): a draw is θ + L⁻ᵀ times white noise
    spread: float  # the standard deviation of a value of weight 1 about the trend
    explained: float  # the part of the values' variance that it explains, from 0 to 1

    @property
    def parts(self) -> Parts:
        """The most likely slopes and curves."""
        return self._parts(self.coefficients)

    def drawn(self, random: np.random.Generator, temperature: float) -> Parts:
        """Slopes and curves from their posterior, this many times as far from the most likely."""
        white = random.standard_normal(len(self.coefficients))
        return self._parts(self.coefficients + temperature * self.spread * (white @ self.inverse))

    def _parts(self, coefficients: FloatArray) -> Parts:
        dim = len(self.centre)
        return Parts(*np.split(coefficients[1:], [dim, 2 * dim]))

    def means(self, points: FloatArray, marks: FloatArray | None = None) -> FloatArray:
        """The trend at points (n, d) with marks (n, c), (n,)."""
        rows = features(points - self.centre, marks)
        return np.asarray(self.level + rows @ self.coefficients)

    def deviations(self, points: FloatArray, marks: FloatArray | None = None) -> FloatArray:
        """Standard deviations of the trend at points (n, d) with marks (n, c), (n,)."""
        with one_thread():
            solved = features(points - self.centre, marks) @ self.inverse.T
        return np.asarray(self.spread * np.sqrt((solved**2).sum(axis=1)))

    @property
    def bend(self) -> float:
        """How much f falls from the centre along a coordinate, a unit away, on average."""
        curve = self.parts.curve
        return -float(curve.mean()) if len(curve) else 0.0

    @property
    def doubt(self) -> float:
        """The standard deviation of a slope, on average over the coordinates."""
        dim = len(self.centre)
        squares = (self.inverse[:, 1 : dim + 1] ** 2).sum(axis=0)
        return self.spread * math.sqrt(float(squares.mean())) if dim else 0.0

    def state(self) -> State:
        """The trend as plain data."""
        numbers = {name: float(getattr(self, name)) for name in ("level", "spread", "explained")}
        return {**self._asdict(), **numbers}

    @staticmethod
    def restored(saved: Saved, dim: int, marks: int = 0) -> Trend:
        """The trend that was saved, of a number of coordinates and marks."""
        p = 2 * dim + 1 + marks
        return Trend(
            saved.floats("centre", (dim,)),
            saved.real("level"),
            saved.floats("coefficients", (p,)),
            saved.floats("inverse", (p, p)),
            saved.real("spread", 0.0),
            saved.real("explained", 0.0, 1.0),
        )


def features(away: FloatArray, marks: FloatArray | None = None) -> FloatArray:
    """The features (n, p) of points less the centre (n, d), with marks (n, c)."""
    parts = [np.ones((len(away), 1)), away, away**2]
    return np.concatenate(parts if marks is None else [*parts, marks], axis=1)


def weights_of(away: FloatArray, noise: FloatArray, window: float) -> FloatArray:
    """Weights (n,) of values at points less the centre (n, d), of noise (n,) around 1."""
    square = (away**2).sum(axis=1) / (max(away.shape[1], 1) * window**2)
    return np.asarray(1.0 / (noise + square**2))


def fit_trend(
    points: FloatArray,
    values: FloatArray,
    noise: FloatArray,
    centre: FloatArray,
    window: float,
    marks: FloatArray | None = None,
    choices: int = 0,
) -> Trend:
    """The trend around a centre (d,) by values (n,) at points (n, d), of noise (n,) around 1.

    The points have marks (n, c) of a number of choices.
    """
    from scipy.linalg import cho_solve, cholesky, lapack

    away = points - centre
    weights = weights_of(away, noise, window)
    total = float(weights.sum())
    level = float(weights @ values) / total
    left, rows = values - level, features(away, marks)
    prior = _prior(away, marks, weights / total, choices)
    best = None
    with one_thread():
        scaled = rows * np.sqrt(weights)[:, None]
        gram, products = scaled.T @ scaled, rows.T @ (weights * left)
        square = max(float(weights @ left**2), 1e-300)
        for share in SHARES:
            ratio = share / (1.0 - share)
            factor = cholesky(gram + ratio * prior, lower=True, check_finite=False)
            coefficients = cho_solve((factor, True), products, check_finite=False)
            misfit = max(square - float(products @ coefficients), 1e-12 * square)
            # The logarithm of the likelihood, the spread at its best, without what is the same.
            likelihood = (
                0.5 * len(prior) * math.log(ratio)
                - 0.5 * total * math.log(misfit)
                - float(np.log(np.diagonal(factor)).sum())
            )
            if best is None or likelihood > best[0]:
                best = likelihood, factor, coefficients, misfit
        assert best is not None
        _, factor, coefficients, misfit = best
        inverse = np.ascontiguousarray(lapack.dtrtri(factor, lower=1)[0])
    spread, explained = math.sqrt(misfit / total), min(max(1.0 - misfit / square, 0.0), 1.0)
    return Trend(centre, level, coefficients, inverse, spread, explained)


def _prior(
    away: FloatArray, marks: FloatArray | None, weights: FloatArray, choices: int
) -> FloatArray:
    """P (p, p): all coordinates and choices together explain about the whole variance."""
    dim = away.shape[1]
    params = dim + choices
    size = max(float(weights @ (away**2).sum(axis=1)) / max(dim, 1), 1e-12)
    curved = CURVED * params * size**2
    parts = [np.array([LEVEL]), np.full(dim, params * size), np.full(dim, curved)]
    if marks is not None:
        square = float(weights @ (marks**2).sum(axis=1)) / max(marks.shape[1], 1)
        parts.append(np.full(marks.shape[1], params * max(square, 1e-12)))
    prior = np.diag(np.concatenate(parts))
    prior[dim + 1 : 2 * dim + 1, dim + 1 : 2 * dim + 1] -= ALIKE * curved / max(dim, 1)
    return prior
