"""Fits of a trend around the mean of a distribution, to the values nearby, as they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.gp.shapes import SMALLEST
from partita.partition.sites import BoxSites

from .evolution import Evolution
from .layout import Layout
from .model import Model
from .trend import Trend, fit_trend
from .values import Sums

#: The points that a trend looks at are the nearest of those that had their first value last.
NEAREST = 4096
#: Observations between two trends: the least, the part of all observations, and the most.
RENEW_LEAST, RENEW_PART, RENEW_MOST = 8, 128, 48
#: The width of the window of values that a trend looks at, in deviations of the distribution.
WINDOW = 3.0
#: The least noise of a value, over the square of the amplitude, and over the usual one.
LEAST_NOISE, SUREST = 1e-12, 1e-2
#: Values that are all the same are as many units apart as can be.
LARGEST_UNIT = 2.0 / SMALLEST / SMALLEST


class Fitted(NamedTuple):
    """A trend of (x − origin)/scale, each (k,), and of marks less `marks` (c,)."""

    trend: Trend
    origin: FloatArray
    scale: FloatArray
    marks: FloatArray
    unit: float  # a shaped value of 1 in units of the trend


class Fits:
    """Keeps the last trend, and the sites that trends look at."""

    def __init__(self, sites: BoxSites, sums: Sums, model: Model, layout: Layout) -> None:
        self._sites, self._sums, self._model, self._layout = sites, sums, model, layout
        self.last: Fitted | None = None
        #: Sites in the order of their first values, the last; and those of the last trend.
        self._recent: list[int] = []
        self._used: IntArray = np.empty(0, dtype=np.int64)
        #: The number of values at the last renewal.
        self._renewed = 0

    def admit(self, site: int) -> None:
        """Take note of a site that has its first value."""
        self._recent.append(site)
        if len(self._recent) > 2 * NEAREST:
            del self._recent[:-NEAREST]

    def due(self, told: int, points: int) -> bool:
        """Whether to fit the trend again, with a number of values and of points a generation."""
        least = max(RENEW_LEAST, points // 2)
        patience = max(least, min(told // RENEW_PART, RENEW_MOST))
        return self.last is None or told - self._renewed >= patience

    def renew(self, told: int, around: Evolution) -> None:
        """Fit the trend again, around the mean of a distribution."""
        self._used = self._nearest(around)
        self.last = self._fit(self._used, around.mean, around.scale)
        self._renewed = told

    def best(self, around: Evolution) -> FloatArray:
        """The numbers (k,) of the site that a trend of all is the surest to be high at."""
        sites, numbers = self._nearest(around), self._layout.numbers
        fitted = self._fit(sites, around.mean, np.ones(len(numbers)))
        deviations = fitted.trend.deviations(*self._away(fitted, sites))
        best = sites[np.argmax(self.means(fitted, sites) * fitted.unit - deviations)]
        return np.asarray(self._sites.scaled[best][numbers])

    def means(self, fitted: Fitted, sites: IntArray) -> FloatArray:
        """A trend at sites, (n,), in units of shaped values."""
        return fitted.trend.means(*self._away(fitted, sites)) / fitted.unit

    @property
    def looks_at(self) -> set[int]:
        """The sites that trends may look at."""
        return {*self._recent, *self._used.tolist()}

    def _nearest(self, around: Evolution) -> IntArray:
        """The sites nearest to the mean, of the last ones and those used before."""
        recent = np.array(self._recent[-NEAREST:], dtype=np.int64)
        sites, numbers = np.union1d(recent, self._used), self._layout.numbers
        if len(sites) <= NEAREST:
            return sites
        away = (self._sites.scaled[sites][:, numbers] - around.mean) / around.scale
        near = np.argpartition(np.einsum("ij,ij->i", away, away), NEAREST)[:NEAREST]
        return np.sort(sites[near])

    def _fit(self, sites: IntArray, origin: FloatArray, scale: FloatArray) -> Fitted:
        """A trend by the shaped values at sites, in this scale around an origin, each (k,)."""
        settings, layout = self._model.fit.best, self._layout
        data = self._model.shaped(self._sums.data(sites), settings)
        noise = np.maximum(data.diagonal(settings.noise, settings.amplitude**2), LEAST_NOISE)
        marks, unit = data.points[:, layout.marks], _unit(data.means)
        middle = marks.mean(axis=0)
        trend = fit_trend(
            (data.points[:, layout.numbers] - origin) / scale,
            data.means * unit,
            np.maximum(noise / float(np.median(noise)), SUREST),
            np.zeros(len(origin)),
            WINDOW,
            marks - middle,
            len(layout.groups),
        )
        return Fitted(trend, origin.copy(), scale, middle, unit)

    def _away(self, fitted: Fitted, sites: IntArray) -> tuple[FloatArray, FloatArray]:
        """The numbers (n, k) and marks (n, c) of sites, as a trend has them."""
        points = self._sites.scaled[sites]
        numbers = (points[:, self._layout.numbers] - fitted.origin) / fitted.scale
        return numbers, points[:, self._layout.marks] - fitted.marks

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The trend and the sites, as plain data."""
        fitted = None
        if self.last is not None:
            fitted = {**self.last._asdict(), "trend": self.last.trend.state()}
        return {
            "last": fitted,
            "recent": wholes(self._recent),
            "used": self._used,
            "renewed": self._renewed,
        }

    def restore(self, saved: Saved, number: int) -> None:
        """Restore what was saved, of a number of sites."""
        self.last = self._restored(saved.part("last")) if "last" in saved else None
        self._recent = saved.numbers("recent", number)
        saved.require(len(self._recent) <= 2 * NEAREST, "few sites of a trend")
        self._used = np.array(saved.numbers("used", number), dtype=np.int64)
        self._renewed = saved.integer("renewed")

    def _restored(self, saved: Saved) -> Fitted:
        k, c = len(self._layout.numbers), len(self._layout.marks)
        scale = saved.floats("scale", (k,))
        saved.require((scale > 0).all(), "positive scales")
        return Fitted(
            Trend.restored(saved.part("trend"), k, c),
            saved.floats("origin", (k,), 0.0, 1.0),
            scale,
            saved.floats("marks", (c,), 0.0, 1.0),
            saved.real("unit", SMALLEST, LARGEST_UNIT),
        )


def _unit(values: FloatArray) -> float:
    """One over the range of the values (n,), however large or small they are."""
    most = max(float(np.abs(values).max(initial=0.0)), SMALLEST)
    return 1.0 / most / max(float(np.ptp(values / most)), SMALLEST)
