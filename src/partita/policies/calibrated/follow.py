"""The choice in many dimensions: follow a trend of f from point to point.

In many dimensions a Gaussian process of a few hundred points says little of f, and random
candidates hardly ever lead up. So points are drawn where a trend is highest, by Thompson sampling:
slopes and curves are drawn from their posterior (`trend`), and the point is the highest of that
trend within a radius of the centre. The centre moves to where the trend is highest, and the radius
shrinks while that is inside (trust regions, as Eriksson et al. 2019, "Scalable global optimization
via local Bayesian optimization", on a trend instead of a Gaussian process). The trend looks at the
nearest points within a window as wide as some radii.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.gp.shapes import SMALLEST
from partita.partition.sites import BoxSites

from .candidates import Proposals
from .model import Model
from .trend import Trend, fit_trend
from .values import Sums

#: Trends lead above this number of dimensions. In 20, a process of a few hundred points gives
#: better answers on BBOB's noisy functions: docs/high_dim.md.
MANY = 30
#: The points that a trend looks at are the nearest of those that had their first value last: the
#: number of each.
NEAREST, RECENT = 1500, 4096
#: Observations between two trends: the least, dimensions for each, the part of all observations,
#: and the most.
RENEW_LEAST, RENEW_DIMS, RENEW_PART, RENEW_MOST = 8, 5, 128, 32
#: Standard deviations of the draws of a trend.
TEMPERATURE = 0.6
#: The radius at first, in sides of the domain, at least, and the width of the window in radii.
FIRST_RADIUS, LEAST_RADIUS, WINDOW = 0.5, 0.05, 4.0
#: The radius grows if more than this part of the coordinates would go beyond it.
OUTSIDE, GROWTH, SHRINKAGE = 0.5, 1.1, 0.93
#: The part of the way to the trend's highest point that the centre goes.
STRIDE = 0.7
#: Without noise no point is evaluated twice: steps of this part of the radius are added.
SHAKEN = 0.1
#: How far from the centre the first points lie, in sides of the domain.
FIRST_POINTS = 0.3
#: The least noise of a value, over the square of the amplitude, and over the usual one.
LEAST_NOISE, SUREST = 1e-12, 1e-2


@dataclass(eq=False)
class Follower:
    """Keeps a centre, a radius and a trend; `choose` says where to evaluate next."""

    _sites: BoxSites
    _sums: Sums
    _model: Model
    _proposals: Proposals
    centre: FloatArray = field(init=False)  # (d,), in the unit cube
    radius: float = FIRST_RADIUS
    trend: Trend | None = None
    #: Sites in the order of their first values, the last; and those that the trend looked at.
    _recent: list[int] = field(default_factory=list)
    _used: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    #: The number of values at the last renewal, and points chosen since.
    _renewed: int = 0
    _chosen: int = 0

    def __post_init__(self) -> None:
        self.centre = np.full(self._sites.scaled.shape[1], 0.5)

    def first(self, points: FloatArray) -> FloatArray:
        """The first points to evaluate for uniform ones (n, d): the centre, and around it."""
        around = 0.5 + 2.0 * FIRST_POINTS * (points - 0.5)
        around[0] = 0.5
        return around

    def admit(self, site: int) -> None:
        """Take note of a site that has its first value."""
        self._recent.append(site)
        if len(self._recent) > 2 * RECENT:
            del self._recent[:-RECENT]

    # -- the choice --------------------------------------------------------------------------------

    def choose(self, random: np.random.Generator, told: int) -> FloatArray:
        """The next point to evaluate, (d,) in the unit cube, when `told` values have come."""
        if self.trend is None or told - self._renewed >= self._patience(told):
            self._renew(told)
        assert self.trend is not None
        parts = self.trend.parts
        if self._chosen:  # the first is where the trend itself is highest
            parts = self.trend.drawn(random, TEMPERATURE)
        self._chosen += 1
        lower, upper = self._corners()
        at = self.trend.centre
        point = at + parts.highest(lower - at, upper - at)
        if self._sums.exact:
            point = point + SHAKEN * self.radius * random.standard_normal(len(point))
        bottom, top = np.zeros(len(point)), np.ones(len(point))
        snapped = self._proposals.snap(np.clip(point, bottom, top)[None, :], bottom, top)
        return np.asarray(snapped[0])

    def _patience(self, told: int) -> int:
        """Observations until the trend is fitted again."""
        least = max(RENEW_LEAST, len(self.centre) // RENEW_DIMS)
        return max(least, min(told // RENEW_PART, RENEW_MOST))

    def _corners(self) -> tuple[FloatArray, FloatArray]:
        """The box that points are chosen from."""
        lower = np.maximum(self.centre - self.radius, 0.0)
        return lower, np.minimum(self.centre + self.radius, 1.0)

    def _renew(self, told: int) -> None:
        """Fit the trend again, and move centre and radius."""
        self._used = self._nearest()
        self.trend = trend = self._fit(self._used)
        lower, upper = self._corners()
        step = trend.parts.highest(lower - self.centre, upper - self.centre)
        beyond = float((np.abs(step) >= 0.99 * self.radius).mean())
        self.centre = np.clip(self.centre + STRIDE * step, 0.0, 1.0)
        radius = self.radius * (GROWTH if beyond > OUTSIDE else SHRINKAGE)
        self.radius = min(max(radius, LEAST_RADIUS), FIRST_RADIUS)
        self._renewed, self._chosen = told, 0

    def _nearest(self) -> IntArray:
        """The sites nearest to the centre, of the last ones and those used before."""
        recent = np.array(self._recent[-RECENT:], dtype=np.int64)
        sites = np.union1d(recent, self._used)
        if len(sites) <= NEAREST:
            return sites
        away = ((self._sites.scaled[sites] - self.centre) ** 2).sum(axis=1)
        return np.sort(sites[np.argpartition(away, NEAREST)[:NEAREST]])

    def _fit(self, sites: IntArray) -> Trend:
        """The trend around the centre, by the shaped values at sites."""
        settings = self._model.fit.best
        data = self._model.shaped(self._sums.data(sites), settings)
        noise = np.maximum(data.diagonal(settings.noise, settings.amplitude**2), LEAST_NOISE)
        return fit_trend(
            data.points,
            _in_own_unit(data.means),
            np.maximum(noise / float(np.median(noise)), SUREST),
            self.centre,
            WINDOW * self.radius,
        )

    # -- answers -----------------------------------------------------------------------------------

    def answer(self) -> int | None:
        """The site with the highest trend less one standard deviation; None if there is no trend.

        The trend is fitted to all values; nothing changes.
        """
        if self.trend is None:
            return None
        sites = self._nearest()
        trend, points = self._fit(sites), self._sites.scaled[sites]
        return int(sites[np.argmax(trend.means(points) - trend.deviations(points))])

    @property
    def looks_at(self) -> set[int]:
        """The sites that trends may look at."""
        return {*self._recent, *self._used.tolist()}

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """Centre, radius, trend and sites, as plain data."""
        return {
            "centre": self.centre,
            "radius": float(self.radius),
            "trend": None if self.trend is None else self.trend.state(),
            "recent": wholes(self._recent),
            "used": self._used,
            "renewed": self._renewed,
            "chosen": self._chosen,
        }

    def restore(self, saved: Saved) -> None:
        """Restore what was saved, of sites that are there already."""
        dim, number = len(self.centre), len(self._sites)
        self.centre = saved.floats("centre", (dim,), 0.0, 1.0)
        self.radius = saved.real("radius", LEAST_RADIUS, FIRST_RADIUS)
        self.trend = Trend.restored(saved.part("trend"), dim) if "trend" in saved else None
        self._recent = saved.numbers("recent", number)
        saved.require(len(self._recent) <= 2 * RECENT, "few sites of a trend")
        self._used = np.array(saved.numbers("used", number), dtype=np.int64)
        self._renewed, self._chosen = saved.integer("renewed"), saved.integer("chosen")


def _in_own_unit(values: FloatArray) -> FloatArray:
    """Values (n,) over their range, however large or small they are."""
    values = values / max(float(np.abs(values).max(initial=0.0)), SMALLEST)
    return np.asarray(values / max(float(np.ptp(values)), SMALLEST))
