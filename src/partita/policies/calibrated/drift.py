"""Drift: notice that the world has changed, and say how many of the last values still hold.

A value that was asked for is compared with what the model forecast. While the world stays as it is,
the standardised errors are independent. After a change they agree with each other where they are
near each other, whether the change was a jump or a slow walk. That is a likelihood ratio at each
value, whose sum from the best beginning is watched (Page 1954, "Continuous inspection schemes").
Where it passes a threshold, the last values are predicted from few and from many of the values
before them, and those stay that predict best (as adaptive windows do: Bifet & Gavaldà 2007).

Notation: z errors, k the kernel between points, ρ the variance of a change over that of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import LARGEST, Saved, State, wholes
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.fitting import JITTER
from partita.gp.settings import Settings
from partita.partition.sites import ArmSites, BoxSites

from .model import Model
from .outlook import Forecast
from .report import Report

#: Values that are kept apart from the sums, to be learned again when others are forgotten.
LOGGED = 2048
#: Errors that are compared with each other, at most.
COMPARED = 256
#: Variances of a change, over that of the noise: a small one and a large one are watched for.
CHANGES = (0.3, 3.0)
#: A change is shared by points within this part of the lengthscales.
SHARED = 0.5
#: Errors larger than this, in standard deviations, are taken for this: some come by accident.
LARGEST_ERROR = 4.0
#: The evidence at which a change is looked for, beside the logarithm of the number of values since
#: the last one. A sum of logarithms of likelihood ratios passes h by chance once in eʰ values.
ALARM = 5.0
#: How much better the last values must be predicted once others are forgotten.
MARGIN = 4.0
#: Numbers of the last values that are predicted, and of those before that they are predicted from.
PREDICTED, REMEMBERED = (4, 8, 16, 32, 64), (512, 128, 32, 0)
#: Points that they are predicted from, at most.
MOST_POINTS = 128
#: Where values have no noise, errors are compared with this part of the amplitude's square.
LEAST_NOISE = 1e-3
#: How much better more values must predict to be forgotten, too.
BETTER = 1.0


class Values(NamedTuple):
    """Points (n, d), values (n,) in amplitudes from the mean, and the variances of their noise."""

    points: FloatArray
    values: FloatArray
    noise: FloatArray


@dataclass(eq=False)
class Log:
    """The last values: their sites, and each report as it came."""

    sites: list[int] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sites)

    def add(self, site: int, report: Report) -> None:
        """Take in a report at a site; of twice LOGGED, the older half goes."""
        self.sites.append(site)
        self.reports.append(report)
        if len(self.sites) >= 2 * LOGGED:
            self.keep(LOGGED)

    def keep(self, number: int) -> None:
        """Drop all but the last `number`."""
        start = len(self.sites) - number
        self.sites, self.reports = self.sites[start:], self.reports[start:]


class Detector:
    """Sums of evidence that recent errors agree with each other."""

    def __init__(self, dim: int) -> None:
        self.points, self.errors = np.empty((0, dim)), np.empty(0)
        #: For each of CHANGES, the sum, and which of the recent errors it began at.
        self.sums, self.starts = np.zeros(len(CHANGES)), np.zeros(len(CHANGES), dtype=np.int64)

    @property
    def evidence(self) -> float:
        """The highest of the sums."""
        return float(self.sums.max())

    def add(self, point: FloatArray, error: float, settings: Settings) -> None:
        """Take in a standardised error at a point (d,)."""
        z = min(max(error, -LARGEST_ERROR), LARGEST_ERROR)
        n = len(self.errors)
        likeness = np.empty(0)
        if n:
            scales = SHARED * settings.scales
            row = np.ascontiguousarray(point / scales)[None, :]
            likeness = _loops.matern(row, self.points / scales, settings.form)[0]
        for i, square in enumerate(CHANGES):
            start = int(self.starts[i])
            k = likeness[start:]
            # The change here by the errors before: mean and variance.
            total = float(k.sum()) + 1.0 / square
            mean, variance = float(k @ self.errors[start:]) / total, 1.0 + 1.0 / total
            ratio = 0.5 * (z * z - (z - mean) ** 2 / variance - math.log(variance))
            self.sums[i] += ratio
            if self.sums[i] < 0.0:
                self.sums[i], self.starts[i] = 0.0, n + 1
        self.points = np.concatenate([self.points, point[None, :]])
        self.errors = np.append(self.errors, z)
        drop = max(len(self.errors) - COMPARED, int(self.starts.min()) if n else 0)
        if drop > 0:
            self.points, self.errors = self.points[drop:], self.errors[drop:]
            self.starts = np.maximum(self.starts - drop, 0)


@dataclass(eq=False)
class Drift:
    """Watches values as they come. `CalibratedUCB` forgets what it says."""

    dim: int
    log: Log = field(default_factory=Log)
    detector: Detector = field(init=False)
    #: Forecasts of pending sites: mean, variance of f, variance of the noise, of shaped values.
    forecasts: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    #: The number of times that values were forgotten, and of values since the last time.
    changes: int = 0
    since: int = 0

    def __post_init__(self) -> None:
        self.detector = Detector(self.dim)

    def forecast(self, site: int, made: Forecast | None, model: Model) -> None:
        """Note what the model says of a site that is asked for."""
        if made is None:
            return
        settings, square = made.settings, made.settings.amplitude**2
        noise = max(settings.noise * float(model.noise_at(made.point[None, :])[0]), LEAST_NOISE)
        mean = settings.mean + settings.amplitude * made.mean
        self.forecasts[site] = mean, square * made.variance, square * noise

    def forget_forecasts(self) -> None:
        """Drop forecasts whose settings are no longer those of the model."""
        self.forecasts.clear()

    def take(self, site: int, point: FloatArray, report: Report, model: Model) -> None:
        """Take in a report at a site, whose point is (d,), before the model does."""
        self.log.add(site, report)
        self.since += 1
        made = self.forecasts.pop(site, None)
        if made is None:
            return
        mean, variance, noise = made
        shape = model.fit.best.shape
        if report.known:
            noise = max((report.std * float(shape.slope(report.value))) ** 2, LEAST_NOISE * noise)
        error = float(shape.forward(report.value)) - mean
        z = error / math.sqrt(max(variance + noise / report.number, 1e-300))
        self.detector.add(point, z, model.fit.best)

    @property
    def suspects(self) -> bool:
        """Whether so much speaks for a change that it should be looked for."""
        return self.detector.evidence > ALARM + math.log(1 + self.since)

    def remembered(self, sites: ArmSites | BoxSites, model: Model) -> int | None:
        """The number of the last values that still hold; None for all. The watch begins again."""
        self.detector = Detector(self.dim)
        told = self._values(sites, model)
        number, best, kept = len(told.values), MARGIN, None
        for last in PREDICTED:
            if last >= number:
                break
            every = _evidence(told, last, number - last, model.fit.best)
            for before in REMEMBERED:
                if last + before >= number:
                    continue
                gain = _evidence(told, last, before, model.fit.best) - every
                if gain > best + BETTER:
                    best, kept = gain, last + before
        return kept

    def renumber(self, numbers: dict[int, int]) -> None:
        """Give sites other numbers; forecasts of forgotten values say nothing."""
        self.log.sites = [numbers[site] for site in self.log.sites]
        self.forecasts.clear()
        self.changes, self.since = self.changes + 1, 0

    def _values(self, sites: ArmSites | BoxSites, model: Model) -> Values:
        """The last values, oldest first, shaped."""
        settings, reports = model.fit.best, self.log.reports[-LOGGED:]
        points = sites.scaled[np.array(self.log.sites[-LOGGED:], dtype=np.int64)]
        raw = np.array([report.value for report in reports])
        noise = np.maximum(settings.noise * model.noise_at(points), LEAST_NOISE)
        noise = noise / np.array([report.number for report in reports])
        known = np.array([report.known for report in reports])
        if known.any():
            stds = np.array([report.std if report.known else 0.0 for report in reports])
            told = (stds * settings.shape.slope(raw) / settings.amplitude) ** 2
            noise = np.where(known, np.maximum(told, LEAST_NOISE), noise)
        return Values(points, np.asarray(settings.from_units(raw)), noise)

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The last values and what was made of them, as plain data."""
        reports, detector = self.log.reports, self.detector
        return {
            "sites": wholes(self.log.sites),
            "reports": np.array([tuple(one) for one in reports], dtype=float).reshape(-1, 4),
            "points": detector.points.copy(),
            "errors": detector.errors.copy(),
            "sums": detector.sums.copy(),
            "starts": detector.starts.copy(),
            "forecast_sites": wholes(self.forecasts),
            "forecasts": np.array(list(self.forecasts.values()), dtype=float).reshape(-1, 3),
            "changes": self.changes,
            "since": self.since,
        }

    def restore(self, saved: Saved, sites: int) -> None:
        """Go on from what was saved, at sites that are there already."""
        numbers = saved.numbers("sites", sites, distinct=False)
        saved.require(len(numbers) < 2 * LOGGED, "few values")
        rows = saved.floats("reports", (len(numbers), 4), nan=True).tolist()
        self.log = Log(numbers, [Report.restored(saved, row) for row in rows])
        detector = self.detector = Detector(self.dim)
        detector.points = saved.floats("points", (None, self.dim), 0.0, 1.0)
        n = len(detector.points)
        saved.require(n <= COMPARED, "few errors")
        detector.errors = saved.floats("errors", (n,), -LARGEST_ERROR, LARGEST_ERROR)
        detector.sums = saved.floats("sums", (len(CHANGES),), 0.0)
        detector.starts = saved.wholes("starts", (len(CHANGES),), 0, n)
        awaited = saved.numbers("forecast_sites", sites)
        low = np.array([-LARGEST, 0.0, 0.0])
        made = saved.floats("forecasts", (len(awaited), 3), low).tolist()
        self.forecasts = {site: (m, v, e) for site, (m, v, e) in zip(awaited, made, strict=True)}
        self.changes, self.since = saved.integer("changes"), saved.integer("since")


def _evidence(told: Values, last: int, before: int, settings: Settings) -> float:
    """The log density of the last values given the values just before them, but for a constant.

    Single errors count up to LARGEST_ERROR deviations. The mean has a prior of one amplitude, as in
    `model.condition`.
    """
    from scipy.linalg import cholesky, solve_triangular

    end = len(told.values)
    new = Values(*(part[end - last :] for part in told))
    old = _merged(Values(*(part[end - last - before : end - last] for part in told)))
    old = _nearest(old, new.points, settings)
    points = np.ascontiguousarray(np.concatenate([old.points, new.points]) / settings.scales)
    kernel = _loops.matern_among(points, settings.form) + 1.0
    kernel[np.diag_indices(len(points))] += np.concatenate([old.noise, new.noise]) + JITTER
    values = np.concatenate([old.values, new.values])
    with one_thread():
        factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        errors = solve_triangular(factor, values, lower=True, check_finite=False)[-last:]
    squares = np.minimum(errors**2, LARGEST_ERROR**2)
    return float(-0.5 * squares.sum() - np.log(np.diag(factor)[-last:]).sum())


def _merged(told: Values) -> Values:
    """The same values with those at the same point as one."""
    if not len(told.values):
        return told
    points, place = np.unique(told.points, axis=0, return_inverse=True)
    place, weight = place.reshape(-1), 1.0 / told.noise
    total = np.bincount(place, weight, len(points))
    return Values(points, np.bincount(place, weight * told.values) / total, 1.0 / total)


def _nearest(told: Values, points: FloatArray, settings: Settings) -> Values:
    """Of the values, those at the MOST_POINTS points most like some of the others (n, d)."""
    if len(told.values) <= MOST_POINTS:
        return told
    ours, others = told.points / settings.scales, points / settings.scales
    likeness = _loops.matern(ours, others, settings.form).max(axis=1)
    kept: IntArray = np.sort(np.argsort(-likeness, kind="stable")[:MOST_POINTS])
    return Values(*(part[kept] for part in told))
