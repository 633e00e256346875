"""A region of the calibrated policy: its data, candidates that are renewed, and their posterior.

Notation: P points with data, m candidates (those of them that lie in the region, then fresh ones),
V = L⁻¹K(data, candidates). Values are in units of the amplitude, from the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.fitting import JITTER, Data, Fixed, Settings

from .deviations import EXPLORATION
from .proposals import between

Number = TypeVar("Number", float, FloatArray)

#: Observations between two renewals of the candidates: while points are few, later, and at most.
RENEW_EARLY, RENEW_LATE, LATE_POINTS, RENEW_LAST = 8, 16, 128, 64
#: Later still, they are renewed after one part in so many of all observations.
RENEW_PART = 128
#: Candidates that are kept until the next renewal: those of the highest index and upper bound.
KEPT, KEPT_OPEN = 160, 16
#: How many observations the overall amplitude counts for beside a region's own.
AMPLITUDE_WEIGHT = 10.0


@dataclass
class Moments:
    """Posterior of the candidates under one draw of the settings."""

    settings: Settings
    points: FloatArray  # (m, d) in the unit cube, the region's sites first
    scaled: FloatArray  # (m, d), divided by the lengthscales
    sites: IntArray  # (s,) sites of the first s candidates
    mean: FloatArray  # (m,)
    variance: FloatArray  # (m,)
    rows: FloatArray  # (r, m): V and room for more
    used: int
    #: The highest upper bound when candidates were drawn, those that were not kept included.
    ceiling: float
    #: Which candidates have been played, (m,).
    played: npt.NDArray[np.bool_]

    def observe(self, j: int, value: float) -> None:
        """Condition on a value at candidate j."""
        column = self._column(j)
        settings = self.settings
        scaled = (value - settings.mean) / settings.amplitude
        _loops.observe_rows(
            self.rows, self.used, self.mean, self.variance, column, j, scaled, settings.noise
        )
        self.used += 1
        self.played[j] = True

    def planned(self, pending: dict[int, int]) -> FloatArray:
        """Variances (m,) as if candidates had been observed as often as they are pending."""
        variance, mean = self.variance.copy(), self.mean.copy()
        rows = np.concatenate([self.rows[: self.used], np.empty((len(pending), len(mean)))])
        for k, (j, plays) in enumerate(pending.items()):
            noise, column = self.settings.noise / plays, self._column(j)
            _loops.observe_rows(rows, self.used + k, mean, variance, column, j, mean[j], noise)
        return variance

    def _column(self, j: int) -> FloatArray:
        """Kernel between candidate j and all, a new (m,)."""
        row = self.scaled[j : j + 1]
        return np.asarray(_loops.matern(row, self.scaled, self.settings.form)[0])

    @property
    def full(self) -> bool:
        """Whether there is no room for another observation."""
        return self.used >= len(self.rows)


class Region:
    """A box of the unit cube with the sites in it, and some around it that inform it."""

    def __init__(
        self, lower: FloatArray, upper: FloatArray, sites: list[int], around: IntArray
    ) -> None:
        self.lower, self.upper = lower, upper
        self.sites = sites
        self.around = around
        self.moments: Moments | None = None
        self.stale = True
        self.used_at = 0
        #: The highest score and upper bound of its candidates, when they were last computed.
        self.score = math.inf
        self.ceiling = math.inf
        self.best_lower = -math.inf
        #: How often its data has changed, and the highest bound by the fit and changes of its time.
        self.changes = 0
        self.bound: tuple[int, int, float] | None = None

    def holds(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Which of the points (n, d) lie in it; a face belongs to the region above it."""
        return between(points, self.lower, self.upper)

    @property
    def data(self) -> IntArray:
        """All sites that inform it, its own first, (P,)."""
        return np.concatenate([np.array(self.sites, dtype=np.int64), self.around])

    def revive(self) -> None:
        """Look for candidates again, if there were none."""
        if self.score == -math.inf:
            self.score, self.moments, self.stale = math.inf, None, True

    def trim(self, most: int, least: int) -> None:
        """Forget the farthest sites around it beyond `most` in all, keeping `least` at least."""
        self.around = self.around[: max(least, most - len(self.sites))]

    def split(
        self, scales: FloatArray, points: FloatArray, most: int, least: int
    ) -> tuple[int, Region, Region]:
        """Cut it across its longest side, in lengthscales; `points` (P, d) are of all its data.

        Both halves keep all of it, so that nothing is forgotten, until they have `most` themselves.
        Returns the side, and the halves.
        """
        axis = int(np.argmax((self.upper - self.lower) / scales))
        middle = 0.5 * (self.lower[axis] + self.upper[axis])
        halves = []
        data = self.data
        for below in (True, False):
            lower, upper = self.lower.copy(), self.upper.copy()
            (upper if below else lower)[axis] = middle
            half = Region(lower, upper, [], np.empty(0, np.int64))
            inside = half.holds(points)
            outside = np.flatnonzero(~inside)
            away = np.maximum(lower - points[outside], points[outside] - upper).clip(min=0) / scales
            near = np.argsort((away**2).sum(axis=1), kind="stable")
            half.sites = [int(site) for site in data[inside]]
            half.around = data[outside[near]]
            half.trim(most, least)
            half.score, half.ceiling, half.best_lower = self.score, self.ceiling, self.best_lower
            halves.append(half)
        return axis, halves[0], halves[1]


def renewal(points: int, told: int) -> int:
    """Observations of a region with so many points until its candidates are renewed."""
    least = RENEW_EARLY if points <= LATE_POINTS else RENEW_LATE
    return max(least, min(told // RENEW_PART, RENEW_LAST))


def condition(
    data: Data, drawn: Settings, overall: Settings, fixed: Fixed, believed: bool = False
) -> Conditioned:
    """Factorise the data under drawn settings; mean and amplitude follow from the data."""
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
    total = float(data.counts.sum())
    misfit = float(values @ values) + float(data.within.sum()) / drawn.noise
    weight = AMPLITUDE_WEIGHT
    square = (misfit + weight * overall.amplitude**2) / (total + weight)
    amplitude = overall.amplitude if believed else math.sqrt(max(square, 1e-300))
    if fixed.amplitude is not None or fixed.noise_std is not None:
        amplitude = drawn.amplitude  # with τ it makes the noise that was given
    settings = replace(drawn, mean=overall.mean + shift, amplitude=amplitude)
    return Conditioned(settings, scaled, kernel, factor, values / settings.amplitude)


class PointMoments(NamedTuple):
    """Posterior at points: means and variances (n,), and V = L⁻¹K(data, points), (P, n)."""

    mean: FloatArray
    variance: FloatArray
    rows: FloatArray

    def upper(self, reach: float) -> float:
        """The highest of the means plus so many standard deviations."""
        return float((self.mean + reach * np.sqrt(self.variance)).max(initial=-math.inf))


@dataclass
class Conditioned:
    """Data (P, d) over lengthscales, their kernel, the factor L of it with noise, L⁻¹ of values."""

    settings: Settings
    scaled: FloatArray
    kernel: FloatArray
    factor: FloatArray
    values: FloatArray

    def in_units(self, value: Number) -> Number:
        """What a value, or values, in units of the amplitude and from the mean stand for."""
        return self.settings.mean + self.settings.amplitude * value

    def moments_at(self, points: FloatArray) -> PointMoments:
        """Means and variances at points (n, d)."""
        across = _loops.matern(self.scaled, points / self.settings.scales, self.settings.form)
        return self._moments(across)

    def moments_of(self, number: int) -> PointMoments:
        """Means and variances at the first points of the data."""
        return self._moments(self.kernel[:, :number].copy())

    def _moments(self, across: FloatArray) -> PointMoments:
        """Means and variances where the kernel to the data is `across` (P, n), overwritten."""
        mean, rows = self.whiten(across)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", rows, rows), 0.0)
        return PointMoments(mean, variance, rows)

    def whiten(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """L⁻¹ of columns (P, n), which it overwrites, after their products with L⁻¹ of values."""
        from scipy.linalg import solve_triangular

        if not columns.shape[1]:  # old releases of SciPy refuse to solve for nothing
            return np.empty(0), columns
        with one_thread():
            rows = solve_triangular(
                self.factor, columns, lower=True, overwrite_b=True, check_finite=False
            )
            return np.asarray(self.values @ rows), np.asarray(rows)

    def candidates(
        self,
        held: FloatArray,
        known: PointMoments,
        fresh: FloatArray,
        sites: IntArray,
        room: int,
        reach: float,
        awaited: int,
        uncertain: bool = False,
    ) -> Moments:
        """Posterior of candidates, those `held` (s, d) as `known` and `fresh` ones (f, d).

        Those of the highest index are kept, and there is room for more observations. The others
        would have to overtake them within as many. Bounds are `reach` standard deviations away.
        The last of the fresh ones, so many as are `awaited`, are pending and kept in any case, and
        so are the most `uncertain` if asked for.
        """
        new = self.moments_at(fresh)
        of_held, of_fresh = _highest(known, new, reach, awaited, uncertain)
        points = np.concatenate([held[of_held], fresh[of_fresh]])
        used, s = len(known.rows), len(of_held)
        rows = np.empty((used + room, len(points)))
        rows[:used, :s], rows[:used, s:] = known.rows[:, of_held], new.rows[:, of_fresh]
        return Moments(
            self.settings,
            points,
            points / self.settings.scales,
            sites[of_held],
            np.concatenate([known.mean[of_held], new.mean[of_fresh]]),
            np.concatenate([known.variance[of_held], new.variance[of_fresh]]),
            rows,
            used,
            max(known.upper(reach), new.upper(reach)),
            np.arange(len(points)) < s,
        )


def _highest(
    held: PointMoments, fresh: PointMoments, reach: float, awaited: int, uncertain: bool
) -> tuple[IntArray, IntArray]:
    """Numbers of the candidates to keep, of both kinds, in their order."""
    mean = np.concatenate([held.mean, fresh.mean])
    if len(mean) <= KEPT:
        return np.arange(len(held.mean)), np.arange(len(fresh.mean))
    std = np.sqrt(np.concatenate([held.variance, fresh.variance]))
    best = np.argpartition(-mean - EXPLORATION * std, KEPT)[:KEPT]
    open_ = np.argpartition(-mean - reach * std, KEPT_OPEN)[:KEPT_OPEN]
    last = np.arange(len(mean) - awaited, len(mean))
    most = np.argpartition(-std, KEPT_OPEN)[:KEPT_OPEN] if uncertain else last
    kept = np.unique(np.concatenate([best, open_, last, most]))
    s = int(np.searchsorted(kept, len(held.mean)))
    return kept[:s], kept[s:] - len(held.mean)
