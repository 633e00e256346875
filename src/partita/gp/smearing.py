"""What shaped values leave out of the mean: rare large values whose share differs over the domain.

A shape makes means into something like medians. With symmetric noise of shaped values that changes
nothing but a factor, which `Shape.correction` puts back. Where the noise is skewed, E[y] − g⁻¹(m)
remains, m the posterior mean of shaped values. In units of the local size of a value,
q = (y − g⁻¹(m)) g'(g⁻¹(m)), it is estimated from the residuals of all points (after Duan 1983,
"Smearing estimate"): a constant κ plus a Gaussian process over the domain, each only if the data
speak for it.

Notation: n_j plays of point j, K the kernel matrix, q ~ κ + N(0, v (λK + diag(1/n_j))).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray

from . import _loops
from .data import Data
from .fitting import Settings

#: Variances of the process that are tried, over that of the noise of q.
RATIOS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
#: How much more likely the process must make the data, in nats, and how many deviations κ from 0.
EVIDENCE, DEVIATIONS = 3.0, 3.0


@dataclass(frozen=True)
class Smearing:
    """What the mean is above what shaped values say, at points of the unit cube."""

    constant: float
    scaled: FloatArray  # (P, d), points over the lengthscales
    weights: FloatArray  # (P,), of the kernel to them
    scales: FloatArray
    form: int

    def shift(self, points: FloatArray, shaped: FloatArray) -> FloatArray:
        """What to add to shaped means (n,) at points (n, d), so that they are of the mean."""
        q = self.constant + np.zeros(len(points))
        if self.weights.any():
            q += _loops.matern(points / self.scales, self.scaled, self.form) @ self.weights
        return np.asarray(np.arcsinh(np.sinh(shaped) + q * np.cosh(shaped)) - shaped)


def learn_smearing(data: Data, means: FloatArray, settings: Settings) -> Smearing | None:
    """What is left out at data of values, given posterior means (P,) of shaped ones; or None."""
    shape = settings.shape
    known = ~np.isnan(data.known)
    if shape.identity or known.any():
        return None
    expected = shape.inverse(means)
    root = np.sqrt(data.counts / data.ratios)
    q = (data.means - expected) * shape.slope(expected)
    scaled = data.points / settings.scales
    kernel = _loops.matern_among(scaled, settings.form)
    with one_thread():
        sizes, vectors = np.linalg.eigh(root[:, None] * kernel * root)
    sizes = np.maximum(sizes, 0.0)
    ones, values = vectors.T @ root, vectors.T @ (root * q)

    def fitted(ratio: float, constant: float | None) -> tuple[float, float, float]:
        """The log likelihood, κ, and its deviations from 0."""
        spread = 1.0 + ratio * sizes
        precision = float(ones @ (ones / spread))
        best = float(ones @ (values / spread)) / precision if constant is None else constant
        rest = values - best * ones
        variance = max(float(rest @ (rest / spread)) / len(q), 1e-300)
        likelihood = -0.5 * (len(q) * math.log(variance) + float(np.log(spread).sum()))
        return likelihood, best, best * math.sqrt(precision / variance)

    ratio, (likelihood, constant, deviations) = 0.0, fitted(0.0, None)
    tried = {r: fitted(r, None) for r in RATIOS}
    best = max(tried, key=lambda r: tried[r][0])
    if tried[best][0] > likelihood + EVIDENCE:
        ratio, (_, constant, deviations) = best, tried[best]
    if abs(deviations) < DEVIATIONS:
        constant = 0.0
    if not ratio and not constant:
        return None
    rest = (values - constant * ones) / (1.0 + ratio * sizes)
    return Smearing(
        constant, scaled, ratio * root * (vectors @ rest), settings.scales, settings.form
    )
