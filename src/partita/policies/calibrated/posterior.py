"""The posterior by the data of a region, at any point, and its bounds.

Notation: P points with data, K their kernel, L the factor of K with noise, V = L⁻¹K(data, points).
Values are in units of the amplitude, from the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray
from partita.gp import _loops
from partita.gp.fitting import JITTER, Data, Fixed, Number, Settings

#: How many observations the overall amplitude counts for beside a region's own.
AMPLITUDE_WEIGHT = 10.0
#: Unrelated values of f that share delta, at most: short lengthscales in many dimensions.
MOST_PLACES = 1e6
#: Parts of delta below this are taken for this: 37 deviations.
LEAST_PART = 1e-300
#: What counts as near a point, in lengthscales: the point itself, and wider.
NEAR = np.array([1e-9, 0.05, 0.1, 0.2, 0.4])
#: Standard deviations from none at which an offset near a point is taken for real.
MISFIT = 3.0


class Moments(NamedTuple):
    """Posterior at points: means and variances (n,), and V = L⁻¹K(data, points), (P, n)."""

    mean: FloatArray
    variance: FloatArray
    rows: FloatArray

    def highest(self, width: float) -> float:
        """The highest of the means plus `width` standard deviations."""
        return float((self.mean + width * np.sqrt(self.variance)).max(initial=-math.inf))


@dataclass(frozen=True)
class Conditioned:
    """The process given data; made by `condition`."""

    settings: Settings
    scaled: FloatArray  # (P, d), points of the data over the lengthscales
    kernel: FloatArray  # (P, P), of the data without noise
    factor: FloatArray  # L
    values: FloatArray  # (P,), L⁻¹ of the values

    def in_units(self, value: Number) -> Number:
        """A value, or values, in the units of those that were told."""
        return self.settings.in_units(value)

    def moments_at(self, points: FloatArray) -> Moments:
        """Means and variances at points (n, d)."""
        scaled = points / self.settings.scales
        return self.moments_from(_loops.matern(self.scaled, scaled, self.settings.form))

    def moments_of(self, number: int) -> Moments:
        """Means and variances at the first `number` points of the data."""
        return self.moments_from(self.kernel[:, :number].copy())

    def moments_from(self, across: FloatArray) -> Moments:
        """Means and variances where the kernel to the data is `across` (P, n), overwritten."""
        from scipy.linalg import solve_triangular

        if not across.shape[1]:  # old releases of SciPy refuse to solve for nothing
            return Moments(np.empty(0), np.empty(0), across)
        with one_thread():
            rows = solve_triangular(
                self.factor, across, lower=True, overwrite_b=True, check_finite=False
            )
            mean = np.asarray(self.values @ rows)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", rows, rows), 0.0)
        return Moments(mean, variance, np.asarray(rows))


def condition(
    data: Data, drawn: Settings, overall: Settings, fixed: Fixed, believed: bool = False
) -> Conditioned:
    """Condition on the data under drawn settings.

    Mean and amplitude follow from the data, near the overall ones; the amplitude is the overall one
    if that is `believed`.
    """
    from scipy.linalg import cholesky, solve_triangular

    scaled = data.points / drawn.scales
    kernel = _loops.matern_among(scaled, drawn.form)
    noisy = kernel.copy()
    noisy[np.diag_indices(len(noisy))] += drawn.noise / data.counts + JITTER
    with one_thread():
        factor = cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
        whitened = solve_triangular(
            factor,
            np.stack([np.ones(len(scaled)), data.means - overall.mean], axis=1),
            lower=True,
            check_finite=False,
        )
    ones, values = whitened[:, 0], whitened[:, 1]
    # The mean has a prior of one amplitude around the overall one.
    shift = float(ones @ values) / (float(ones @ ones) + 1.0)
    values = values - shift * ones
    if fixed.amplitude is not None or fixed.noise_std is not None:
        amplitude = drawn.amplitude  # with τ it makes the noise that was given
    elif believed:
        amplitude = overall.amplitude
    else:
        misfit = float(values @ values) + float(data.within.sum()) / drawn.noise
        total, weight = float(data.counts.sum()), AMPLITUDE_WEIGHT
        square = (misfit + weight * overall.amplitude**2) / (total + weight)
        amplitude = math.sqrt(max(square, 1e-300))
    settings = replace(drawn, mean=overall.mean + shift, amplitude=amplitude)
    return Conditioned(settings, scaled, kernel, factor, values / settings.amplitude)


# -- bounds ----------------------------------------------------------------------------------------


def simultaneous(delta: float, scales: FloatArray) -> float:
    """Standard deviations in bounds that hold all over the domain at once, by the fitted model.

    f takes about ∏(1 + 1/ℓ_i) unrelated values, which share δ. A bound for one place by itself
    would not do: the recommended point is where the mean came out highest, often by luck.
    """
    places = math.exp(min(float(np.log1p(1.0 / scales).sum()), math.log(MOST_PLACES)))
    return -NormalDist().inv_cdf(max(delta / (2.0 * places), LEAST_PART))


class Bounds(NamedTuple):
    """Bounds on f at a point."""

    lower: float
    upper: float


def bounds_at(known: Conditioned, point: FloatArray, reach: float) -> Bounds:
    """Bounds at a point (d,) of the data, in its units, that hold where the model is too smooth.

    They are `reach` standard deviations about the mean, or means. A stationary model rounds off a
    tip: near it, values lie above the mean time and again. If those within some distance of the
    point do so by more than chance allows, the bounds also take in what a model says in which f is
    higher by an unknown offset b on just those points. With h (P,) 1 at those points and 0
    elsewhere and g = L⁻¹h, b̂ = g·L⁻¹y/g·g with variance 1/g·g (generalised least squares: universal
    kriging with the one basis function h), and f(x) rises by b(1 − g·L⁻¹k(x)).
    """
    mean, variance, rows = known.moments_at(point[None, :])
    away = np.sqrt(((known.scaled - point / known.settings.scales) ** 2).sum(axis=1))
    product, _, solved = known.moments_from((away[:, None] <= NEAR).astype(float))
    precision = np.einsum("ij,ij->j", solved, solved)
    offset, score = product / precision, product / np.sqrt(precision)
    rest = 1.0 - rows[:, 0] @ solved
    shifted = mean + rest * offset
    wide = reach * np.sqrt(variance + rest**2 / precision)
    simple = reach * np.sqrt(variance)
    lower, upper = (shifted - wide)[score < -MISFIT], (shifted + wide)[score > MISFIT]
    return Bounds(
        known.in_units(float(np.min(lower, initial=(mean - simple)[0]))),
        known.in_units(float(np.max(upper, initial=(mean + simple)[0]))),
    )
