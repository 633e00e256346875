"""The Gaussian process that explains the values: settings that are learned, posteriors, bounds.

Notation: P points with data, K their kernel, L the factor of K with noise, V = L⁻¹K(data, points).
Means and variances are in units of the amplitude, from the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.gp import _loops
from partita.gp.data import Data, farthest
from partita.gp.fitting import Fit, fit
from partita.gp.journal import Paused
from partita.gp.likelihood import JITTER, profile
from partita.gp.noise_map import NoiseMap
from partita.gp.settings import FARTHEST, Fixed, Settings, first_settings
from partita.gp.shapes import IDENTITY

from .learning import Fitting
from .regions import Regions
from .values import Sums

#: Points that a fit looks at, at most.
FIT_POINTS = 200
#: The work that a tell does for a fit, in about microseconds (`gp.likelihood.step_cost`): the most,
#: as long as there are few values and new settings matter most, and the least.
MOST_WORK, LEAST_WORK, FEW = 12_000.0, 3000.0, 250
#: The points that those of a fit are chosen from, at most.
MOST_LOOKED = 4000
#: Points nearer than this to others, in lengthscales, say little about the amplitude without noise.
APART = 0.1
#: Data that cannot be factorised are tried with this many times the noise.
MORE_NOISE = (10.0, 100.0)
#: Standard errors within which what shaped values leave out of the mean is taken for chance, and
#: that bounds allow it to be off.
CHANCE = 2.0
#: How many observations the overall amplitude counts for beside a region's own.
AMPLITUDE_WEIGHT = 10.0
#: Unrelated values of f that share delta, at most: short lengthscales in many dimensions.
MOST_PLACES = 1e6
#: Parts of delta below this are taken for this: 37 deviations.
LEAST_PART = 1e-300
#: The most that the noise's variance is over the amplitude's square in bounds on all of f.
MOST_RATIO = 1.0
#: What counts as near a point, in lengthscales: the point itself, and wider.
NEAR = np.array([1e-9, 0.05, 0.1, 0.2, 0.4])
#: Standard deviations from none at which an offset near a point is taken for real.
MISFIT = 3.0


class Model:
    """The settings, fitted to the sums of the sites; nothing else holds or writes them."""

    fit: Fit  # the most likely settings, and how far off they may be: the choice draws from these
    believed: Settings  # those that answers come from

    #: Points that a fit looks at, at most.
    fit_points: int = FIT_POINTS
    #: Where the noise is loud, if it is not the same everywhere.
    _noise: NoiseMap | None
    #: The fit that is under way.
    _fitting: Fitting | None

    def __init__(
        self, dim: int, sums: Sums, fixed: Fixed, delta: float, shaped: bool = True
    ) -> None:
        self.sums, self._fixed, self._delta = sums, fixed, delta
        #: What is known of f's values or noise is known of them as they are.
        self._shaped = shaped and not fixed.anything
        self._noise = self._fitting = None
        self.fit = Fit(first_settings(dim, fixed), np.zeros((dim + 1, dim + 1)))
        self.believed = self.fit.best

    def learn(self, played: IntArray, restart: bool) -> bool:
        """Fit the settings to the values at all sites that have some; False if that failed.

        The search begins at the last settings, and afresh as well to `restart`.
        """
        self.begin(played, restart)
        return self._advance(lambda: played, math.inf)

    # -- a fit, some steps at a time ---------------------------------------------------------------

    @property
    def learning(self) -> bool:
        """Whether a fit is under way."""
        return self._fitting is not None

    def begin(self, played: IntArray, restart: bool = False) -> None:
        """Begin a fit to the values as they are now; one that was under way is given up."""
        if self._fixed.noise_std is None:
            self.sums.detect_noise(played, self.fit.best.shape)
        # Steep at a tie, a shape would seem likely.
        shaped = self._shaped and not self.sums.tied
        self._fitting = Fitting(self._spread_out(played), restart, self.sums.exact, shaped)

    def give_up(self) -> None:
        """End a fit that is under way without its settings."""
        self._fitting = None

    def advance(self, regions: Regions, work: float) -> bool:
        """Spend work on the fit that is under way. Return True if there are new settings now.

        Until then the last ones hold. If values turn out to have noise after all, the fit begins
        again.
        """
        return self._advance(lambda: regions.played, work)

    def _advance(self, played: Callable[[], IntArray], work: float) -> bool:
        fitting = self._fitting
        if fitting is None:
            return False
        if fitting.exact and not self.sums.exact:
            self.begin(played(), fitting.restart)
            return False
        data, last = fitting.data, self.fit
        if float(np.ptp(data.means)) == 0.0 and float(data.within.sum()) == 0.0:
            # Flat: nothing else to learn.
            level = replace(last.best, mean=float(data.means[0]), shape=IDENTITY)
            self.fit, self.believed, self._fitting = replace(last, best=level), level, None
            return True
        fitting.journal.spend(work)
        try:
            self.fit, self._noise = fitting.carry_on(last.best, self._fixed)
        except Paused:
            return False
        except NumericalError:
            self._fitting = None
            return False
        self._fitting = None
        self.believed = best = self.fit.best
        if fitting.exact and self._fixed.amplitude is None:
            data = best.shape.data(self._far_apart(played()))
            apart = profile(data, best.scales, best.noise, best.form, best.amplitude**2)
            self.believed = replace(best, amplitude=max(math.sqrt(apart.square), best.amplitude))
        return True

    def state(self) -> State:
        """What was learned, as plain data."""
        same = self.believed is self.fit.best
        return {
            "fit": self.fit.state(),
            "believed": None if same else self.believed.state(),
            "noise": None if self._noise is None else self._noise.state(),
            "fitting": None if self._fitting is None else self._fitting.state(),
        }

    def restore(self, saved: Saved) -> None:
        """Restore what was learned."""
        dim = len(self.fit.best.scales)
        self.fit = Fit.restored(saved.part("fit"), dim)
        self.believed = self.fit.best
        if "believed" in saved:
            self.believed = Settings.restored(saved.part("believed"), dim)
        self._noise = NoiseMap.restored(saved.part("noise"), dim) if "noise" in saved else None
        self._fitting = None
        if "fitting" in saved:
            self._fitting = Fitting.restored(saved.part("fitting"), dim)
            self._fitting.repeat(self.fit.best, self._fixed)

    def noise_at(self, points: FloatArray) -> FloatArray:
        """Variances of the noise at points (n, d), over the overall one, (n,)."""
        return np.ones(len(points)) if self._noise is None else self._noise.at(points)

    def shaped(self, data: Data, settings: Settings) -> Data:
        """Data of values as data of shaped ones, with the noise of each place."""
        if self._noise is not None:
            data = data._replace(ratios=self._noise.at(data.points))
        return settings.shape.data(data, settings.noise_std**2)

    def guess(self, played: IntArray, enough: bool) -> Settings:
        """Settings for answers while the first design is under way; nothing is learned.

        If there are `enough` values, they are fitted.
        """
        data, best, given = self._spread_out(played), self.fit.best, self._fixed
        width = float(np.ptp(data.means))
        if enough and width > 0:
            try:
                return fit(data, best, given, restart=True).best
            except NumericalError:
                pass
        free = given.amplitude is None and given.noise_std is None and width > 0
        amplitude = width if free else best.amplitude
        return replace(best, mean=float(data.means.mean()), amplitude=amplitude)

    def reach(self, settings: Settings) -> float:
        """Standard deviations of bounds that hold all over the domain."""
        return simultaneous(self._delta, settings.scales)

    def choosing(self, sites: IntArray, drawn: Settings) -> Conditioned:
        """The posterior by the values at sites, for the choice under drawn settings."""
        return self._condition(sites, drawn, self.fit.best, False)

    def answering(self, sites: IntArray, settings: Settings) -> Conditioned:
        """The posterior by the values at sites, for answers under given settings."""
        return self._condition(sites, settings, settings, self.sums.exact)

    def doubting(self, sites: IntArray, settings: Settings) -> Conditioned:
        """The posterior for bounds on all of f: its amplitude is at least the noise's deviation.

        Under loud noise values hardly show f, and the likeliest amplitude is small. But what is
        smaller than the noise cannot be told from it, unless there are many values at a place:
        then their number counts, whatever the amplitude.
        """
        if settings.noise <= MOST_RATIO or self._fixed.amplitude is not None:
            return self.answering(sites, settings)
        amplitude = settings.noise_std / math.sqrt(MOST_RATIO)
        doubted = replace(settings, noise=MOST_RATIO, amplitude=amplitude)
        return self._condition(sites, doubted, doubted, True)

    def _condition(
        self, sites: IntArray, settings: Settings, overall: Settings, believed: bool
    ) -> Conditioned:
        """The posterior by the values at sites, with more noise where that is needed."""
        data = self.shaped(self.sums.data(sites), settings)
        noise = settings.noise
        for tried in (noise, *(factor * noise + 1e-6 * factor for factor in MORE_NOISE)):
            try:
                noisy = replace(settings, noise=tried)
                return condition(data, noisy, overall, self._fixed, believed)
            except np.linalg.LinAlgError:
                continue
        raise NumericalError("the data could not be fitted: are values of very different sizes?")

    def _spread_out(self, played: IntArray) -> Data:
        """Replicate means of FIT_POINTS sites at most, each as far from those before as can be.

        The points evaluated most lie around the best ones; a fit that looked at them alone would
        take the rest of the domain to be as flat.
        """
        if len(played) <= self.fit_points:
            return self.sums.data(played)
        looked = _some(played)
        return self.sums.data(looked[farthest(self.sums.points(looked), self.fit_points)])

    def _far_apart(self, played: IntArray) -> Data:
        """The same, without points very near to others, in lengthscales.

        Where values have no noise, those are foretold so well that the amplitude seems small.
        """
        looked = _some(played)
        points = self.sums.points(looked) / self.fit.best.scales
        return self.sums.data(looked[farthest(points, FIT_POINTS, APART)])


def _some(played: IntArray) -> IntArray:
    """At most MOST_LOOKED of the sites, evenly from the first to the last."""
    if len(played) <= MOST_LOOKED:
        return played
    return played[np.linspace(0, len(played) - 1, MOST_LOOKED).astype(np.int64)]


def fit_work(seen: int) -> float:
    """The work that a tell does for a fit when there are `seen` values."""
    return max(MOST_WORK * min(1.0, FEW / max(seen, 1)), LEAST_WORK)


# -- the posterior by the data of a region ---------------------------------------------------------


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

    def moments_at(self, points: FloatArray) -> Moments:
        """Means and variances at points (n, d)."""
        scaled = points / self.settings.scales
        return self.moments_from(_loops.matern(self.scaled, scaled, self.settings.form))

    def moments_of(self, number: int) -> Moments:
        """Means and variances at the first `number` points of the data."""
        return self.moments_from(self.kernel[:, :number].copy())

    def means(self) -> FloatArray:
        """Means at the points of the data, (P,)."""
        from scipy.linalg import solve_triangular

        with one_thread():
            weights = solve_triangular(
                self.factor, self.values, lower=True, trans=1, check_finite=False
            )
            return np.asarray(self.kernel @ weights)

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
    noisy[np.diag_indices(len(noisy))] += data.diagonal(drawn.noise, overall.amplitude**2) + JITTER
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
        misfit = float(values @ values) + data.within_points() / drawn.noise
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


def bounds_at(posterior: Conditioned, point: FloatArray, reach: float) -> Bounds:
    """Bounds at a point (d,) of the data, in its units, that hold where the model is too smooth.

    They are `reach` standard deviations about the mean, or means. A stationary model rounds off a
    tip: near it, values lie above the mean time and again. If those within some distance of the
    point do so by more than chance allows, the bounds also take in what a model says in which f is
    higher by an unknown offset b on just those points. With h (P,) 1 at those points and 0
    elsewhere and g = L⁻¹h, b̂ = g·L⁻¹y/g·g with variance 1/g·g (generalised least squares:
    universal kriging with the one basis function h), and f(x) rises by b(1 − g·L⁻¹k(x)).
    """
    mean, variance, rows = posterior.moments_at(point[None, :])
    away = np.sqrt(((posterior.scaled - point / posterior.settings.scales) ** 2).sum(axis=1))
    product, _, solved = posterior.moments_from((away[:, None] <= NEAR).astype(float))
    precision = np.einsum("ij,ij->j", solved, solved)
    offset, score = product / precision, product / np.sqrt(precision)
    rest = 1.0 - rows[:, 0] @ solved
    shifted = mean + rest * offset
    wide = reach * np.sqrt(variance + rest**2 / precision)
    simple = reach * np.sqrt(variance)
    lower, upper = (shifted - wide)[score < -MISFIT], (shifted + wide)[score > MISFIT]
    return Bounds(
        posterior.settings.in_units(float(np.min(lower, initial=(mean - simple)[0]))),
        posterior.settings.in_units(float(np.max(upper, initial=(mean + simple)[0]))),
    )


class LeftOut(NamedTuple):
    """What shaped values leave out of the mean at a point, and its standard error, as values."""

    mean: float
    error: float


def left_out(posterior: Conditioned, raw: Data, point: FloatArray, mean: float) -> LeftOut:
    """What E[y] is above the posterior mean at a point (d,), by the data `raw` of a posterior.

    A shape makes means into something like medians, which differ where the noise of shaped values
    is skewed. The residuals y − g⁻¹(m), m the posterior mean of shaped values, say by how much
    (after Duan 1983, "Smearing estimate"): their mean near the point, in units of the local size
    1/g' of a value, with the kernel's square for weights. Nothing, if it may be chance.
    """
    settings, shape = posterior.settings, posterior.settings.shape
    rows = np.flatnonzero(np.isnan(raw.known))
    if shape.identity or not len(rows):
        return LeftOut(0.0, 0.0)
    expected = settings.in_units(posterior.moments_of(len(raw.means)).mean)
    slope = shape.slope(expected)
    with np.errstate(over="ignore"):  # what is too large for a number is cut
        residual = np.clip((raw.means - expected) * slope, -FARTHEST, FARTHEST)[rows]
        counts, within = raw.counts[rows], np.minimum(raw.within * slope**2, FARTHEST**2)[rows]
    scaled = point[None, :] / settings.scales
    near = _loops.matern(scaled, posterior.scaled[rows], settings.form)[0] ** 2
    total = float(near @ counts)
    if not total > 0.0:
        return LeftOut(0.0, 0.0)
    average = float(near @ (counts * residual)) / total
    square = float(near @ (counts * (residual - average) ** 2 + within)) / total
    error = math.sqrt(square * float(near**2 @ counts)) / total
    if abs(average) <= CHANCE * error:
        return LeftOut(0.0, 0.0)
    size = 1.0 / shape.slope(mean)
    return LeftOut(size * average, size * error)
