"""The exact posterior of a linear function on m arms, at the same cost whatever the step.

The kernel is k(x, x') = c² + xᵀx', so f(x) = ⟨θ, φ(x)⟩ with features φ(x) = (x, c) in p = d + 1
dimensions, in the user's own units, and ‖θ‖ is the norm of f. With c = 0 there is no constant and
p = d. Ridge regression is the Gaussian process with this kernel: with A = αI + Σ φφᵀ and b = Σ yφ,

    μ(x) = φᵀA⁻¹b,   σ²(x) = α φᵀA⁻¹φ,   γ = ½ log det(A/α) = ½ log det(I + K/α).

Notation: m arms, p features, n observations, regulariser α. `LinearPosterior` keeps P = αA⁻¹
(p, p), the posterior covariance of θ, beside means and variances of all arms: an observation costs
O(p² + mp).
"""

from __future__ import annotations

import math

import numpy as np

from partita._checks import as_number, point_text
from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput

from .posterior import lost

#: Rank-one updates before a fit from scratch, at least; p if that is more. A fit costs O(mp² + p³),
#: so it adds nothing to the order of a step.
REFIT_AFTER = 256
#: A variance may fall this far below zero by rounding, in units of the largest prior variance.
VARIANCE_TOLERANCE = 1e-9
#: The smallest α in units of the largest squared norm of features: below, rounding takes over.
SMALLEST_ALPHA = 1e-10
#: Features must be at most this large, and at least its inverse, so that floats hold their squares.
LARGEST_FEATURE = 1e50
#: The arrays of a `LinearPosterior` that change; standard deviations follow from the variances.
_ARRAYS = ("_gram", "_moment", "_cov", "_theta", "_variance", "mean")


def check_intercept(intercept: object) -> float:
    """The constant feature c, a number of at least 0."""
    number = as_number(intercept)
    if not 0.0 <= number <= LARGEST_FEATURE:
        raise InvalidInput(
            f"intercept={intercept!r}: give a finite number of at least 0. With 0 the function is "
            "θᵀx, without a constant."
        )
    return number


def linear_features(points: FloatArray, intercept: float) -> FloatArray:
    """φ(x) = (x, c) of points (n, d), (n, d + 1); without the last column where c = 0."""
    if intercept == 0.0:
        return np.array(points)
    return np.concatenate([points, np.full((len(points), 1), intercept)], axis=1)


def largest_norm(features: FloatArray, points: FloatArray) -> float:
    """max ‖φ‖ over arms (m, p); refused where floats could not hold its square, or f is just 0."""
    largest = float(np.abs(features).max())
    if largest == 0.0:
        raise InvalidInput(
            f"the only arm is {point_text(points[0])} and intercept=0, so the function is 0 there "
            "whatever θ is: give an intercept above 0."
        )
    if not 1 / LARGEST_FEATURE <= largest <= LARGEST_FEATURE:
        raise InvalidInput(
            f"the largest coordinate or intercept is {largest:g}: a linear policy needs it from "
            f"{1 / LARGEST_FEATURE:g} to {LARGEST_FEATURE:g}. Give coordinates in other units."
        )
    return float(np.sqrt(np.einsum("ij,ij->i", features, features)).max())


def check_ridge(alpha: float, largest: float) -> None:
    """Refuse a regulariser that rounding would swallow beside features of norm `largest`."""
    least = SMALLEST_ALPHA * largest**2
    if alpha < least:
        raise InvalidInput(
            f"alpha={alpha:g}: too small beside features (coordinates and intercept) of norm "
            f"{largest:g}. Give alpha of at least {least:g}, or coordinates in larger units, or "
            "measured from the middle of the arms."
        )


class LinearPosterior:
    """Means (m,) and standard deviations of a linear function at m arms, features (m, p).

    Data may lie anywhere, not at arms only.
    """

    __slots__ = (
        "_cov",
        "_features",
        "_floor",
        "_gram",
        "_moment",
        "_theta",
        "_updates",
        "_variance",
        "alpha",
        "gain",
        "mean",
        "std",
    )

    def __init__(self, features: FloatArray, alpha: float) -> None:
        """The prior: mean 0, variance ‖φ‖²."""
        p = features.shape[1]
        self.alpha = alpha
        self._features = features
        self._gram = np.zeros((p, p))  # Σ φφᵀ
        self._moment = np.zeros(p)  # Σ yφ
        self._cov = np.eye(p)
        self._theta = np.zeros(p)
        self._variance = np.einsum("ij,ij->i", features, features)
        self._floor = -VARIANCE_TOLERANCE * float(self._variance.max())
        self._updates = 0
        self.mean = np.zeros(len(features))
        self.std = np.sqrt(self._variance)
        self.gain = 0.0

    def observe(self, j: int, value: float) -> None:
        """Condition on one value at arm j."""
        self.observe_at(self._features[j], value)

    def observe_at(self, feature: FloatArray, value: float) -> None:
        """Condition on one value at a point with features (p,)."""
        self._gram += np.outer(feature, feature)
        self._moment += value * feature
        self._updates += 1
        if self._updates >= max(REFIT_AFTER, len(feature)):
            self.refit()
            return
        column = self._cov @ feature
        variance = max(float(feature @ column), 0.0)
        total = variance + self.alpha
        step = (value - float(feature @ self._theta)) / total
        self._theta += step * column
        self._cov -= np.outer(column, column / total)
        across = self._features @ column
        self.mean += step * across
        self._variance -= across * (across / total)
        self.gain += 0.5 * math.log1p(variance / self.alpha)
        np.sqrt(np.maximum(self._variance, 0.0), out=self.std)
        if self._variance.min() < self._floor:  # more than rounding explains: a fit tells
            self.refit()

    def observe_many(self, arms: IntArray, values: FloatArray) -> None:
        """Condition on values (n,) at arms (n,)."""
        self.observe_many_at(self._features[arms], values)

    def observe_many_at(self, features: FloatArray, values: FloatArray) -> None:
        """Condition on values (n,) at points with features (n, p)."""
        self._gram += features.T @ features
        self._moment += features.T @ values
        self.refit()

    def refit(self) -> None:
        """Compute everything afresh from Σ φφᵀ and Σ yφ. Variances come out non-negative."""
        from scipy.linalg import solve_triangular

        p = len(self._moment)
        try:
            factor = np.linalg.cholesky(self.alpha * np.eye(p) + self._gram)
        except np.linalg.LinAlgError:
            raise lost("fit") from None
        inverse = solve_triangular(factor, np.eye(p), lower=True)  # L⁻¹, A = LLᵀ
        self._theta = inverse.T @ (inverse @ self._moment)
        self._cov = self.alpha * (inverse.T @ inverse)
        self.gain = float(np.log(np.diagonal(factor)).sum() - 0.5 * p * math.log(self.alpha))
        self.mean = self._features @ self._theta
        rows = self._features @ inverse.T
        self._variance = self.alpha * np.einsum("ij,ij->i", rows, rows)
        self.std = np.sqrt(self._variance)
        self._updates = 0

    def state(self) -> State:
        """The data and the fit, as plain data."""
        arrays = {name: getattr(self, name).copy() for name in _ARRAYS}
        return {**arrays, "updates": self._updates, "gain": float(self.gain)}

    def restore(self, saved: Saved) -> None:
        """Restore a saved state, of the same arms."""
        for name in _ARRAYS:
            setattr(self, name, saved.floats(name, getattr(self, name).shape))
        even = np.allclose(self._gram, self._gram.T, 1e-9) and np.allclose(
            self._cov, self._cov.T, 1e-6, 1e-9
        )
        saved.require(even and (np.diagonal(self._gram) >= 0).all(), "matrices of sums of squares")
        most = -self._floor / VARIANCE_TOLERANCE
        saved.require((self._variance >= 2.0 * self._floor).all(), "variances of 0 or more")
        saved.require((self._variance <= 1.1 * most).all(), "variances below those of the prior")
        self.std = np.sqrt(np.maximum(self._variance, 0.0))
        self._updates, self.gain = saved.integer("updates"), saved.real("gain", -1e-6)

    def at(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation at any features (n, p), (n,) each."""
        variance = np.einsum("ij,ij->i", features @ self._cov, features)
        return features @ self._theta, np.sqrt(np.maximum(variance, 0.0))

    def plan(self) -> LinearPlan:
        """A plan with no pending evaluations yet."""
        return LinearPlan(self._features, self._cov.copy(), self._variance.copy(), self.alpha)


class LinearPlan:
    """Standard deviations (m,) as if pending evaluations had been observed."""

    __slots__ = ("_alpha", "_cov", "_features", "_variance", "std")

    def __init__(
        self, features: FloatArray, cov: FloatArray, variance: FloatArray, alpha: float
    ) -> None:
        self._features, self._cov, self._variance, self._alpha = features, cov, variance, alpha
        self.std = np.sqrt(np.maximum(variance, 0.0))

    def add(self, j: int, times: int = 1) -> None:
        """Lower the standard deviations by `times` more evaluations of arm j."""
        feature = self._features[j]
        column = self._cov @ feature
        total = max(float(feature @ column), 0.0) + self._alpha / times
        self._cov -= np.outer(column, column / total)
        across = self._features @ column
        self._variance -= across * (across / total)
        np.sqrt(np.maximum(self._variance, 0.0), out=self.std)
