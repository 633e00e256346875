"""The choice in many dimensions: a trend and an evolution of directions share the evaluations.

In many dimensions a Gaussian process of a few hundred points says little of f, and random
candidates hardly ever lead up. So points come in generations, from two that learn differently.

- A trend (`trend`) is fitted to all values nearby, and averages the noise of many. Points are where
  a draw of it is highest (Thompson sampling), within a box around the mean of the distribution, the
  trust region.
- An evolution (`evolution`) draws points from a distribution. It learns by ranks which directions
  matter together, and how wide to search, whatever the form of f. The trend's points count in its
  generations like its own, so the distribution follows the better of the two.

After each generation, the one whose values rank higher gets more points of the next. With noise the
distribution does not get narrower than the trend can be told from noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import BoolArray, FloatArray, IntArray
from partita.gp.shapes import SMALLEST
from partita.partition.sites import BoxSites

from .candidates import Proposals
from .evolution import Evolution, usual_points
from .model import Model
from .trend import Trend, fit_trend
from .values import Sums

#: Trends lead above this number of dimensions. In 20, a process of a few hundred points gives
#: better answers on BBOB's noisy functions: docs/high_dim.md.
MANY = 30
#: The points that a trend looks at are the nearest of those that had their first value last: the
#: number of each.
NEAREST, RECENT = 1500, 4096
#: Observations between two trends: the least, the part of all observations, and the most.
RENEW_LEAST, RENEW_PART, RENEW_MOST = 8, 128, 48
#: Standard deviations of the draws of a trend.
TEMPERATURE = 1.0
#: The half-width of the box that the trend's points come from, and the width of the window of the
#: values that it looks at, in standard deviations of the distribution.
REACH, WINDOW = 0.6, 3.0
#: The part of a generation that is the trend's: at first, at least and at most, and how much more
#: or less it gets after a generation.
FIRST_PART, LEAST_PART, MOST_PART, MORE, LESS = 0.5, 0.15, 0.9, 1.1, 0.9
#: Below this deviation, in sides of the domain, the distribution does not get narrower unless the
#: trend explains this part of the values' variance; if it does not, it gets wider by this factor.
NARROW, HEARD, WIDER = 0.03, 0.5, 1.05
#: A distribution that is narrower than this has found all there is: the next begins around the
#: answer, with this deviation, and twice the points, up to this many times the usual number.
FOUND, AGAIN, MOST_TIMES = 1e-7, 0.1, 8
#: The number of the last means, and highest points of trends, whose values are compared for the
#: answer.
COMPARED = 8
#: Points of a generation that may be pending or late, as a multiple of its number.
PENDING = 8
#: Without noise no point is evaluated twice: steps of this part of the region are added.
SHAKEN = 0.1
#: How far from the centre the first points lie, in sides of the domain.
FIRST_POINTS = 0.3
#: Values told, over the dimensions, from which a search begins at the best of them.
WARM = 2
#: The least noise of a value, over the square of the amplitude, and over the usual one.
LEAST_NOISE, SUREST = 1e-12, 1e-2


class _Fitted(NamedTuple):
    """A trend of (x − origin)/scale, each (d,)."""

    trend: Trend
    origin: FloatArray
    scale: FloatArray


@dataclass(eq=False)
class Follower:
    """Keeps a trend and a distribution; `choose` says where to evaluate next."""

    _sites: BoxSites
    _sums: Sums
    _model: Model
    _proposals: Proposals
    evolution: Evolution = field(init=False)
    #: The part of the next generation that is the trend's.
    part: float = FIRST_PART
    _fitted: _Fitted | None = None
    #: Sites in the order of their first values, the last; and those that the trend looked at.
    _recent: list[int] = field(default_factory=list)
    _used: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    #: The number of values at the last renewal.
    _renewed: int = 0
    #: The sites of the generation under way, with late ones of those before; which of them are the
    #: trend's; and how many points were chosen in it.
    _sites_now: list[int] = field(default_factory=list)
    _by_trend: list[bool] = field(default_factory=list)
    _chosen: int = 0
    #: The last sites at the mean of the distribution, and at the highest point of the trend.
    _means: list[int] = field(default_factory=list)
    _tops: list[int] = field(default_factory=list)
    #: The answer of the search before this one, if it was better.
    _kept: int | None = None

    def __post_init__(self) -> None:
        dim = self._sites.scaled.shape[1]
        self.evolution = Evolution(np.full(dim, 0.5), usual_points(dim))

    @property
    def trend(self) -> Trend | None:
        """The trend that points are chosen by; None before the first choice."""
        return None if self._fitted is None else self._fitted.trend

    def first(self, points: FloatArray) -> FloatArray:
        """The first points to evaluate for uniform ones (n, d): the centre, and around it."""
        around = 0.5 + 2.0 * FIRST_POINTS * (points - 0.5)
        around[0] = 0.5
        return around

    def begin_with(self, site: int) -> None:
        """Take note of a site of the first design: it counts in the first generation."""
        self._join(site, trend=False)

    def admit(self, site: int) -> None:
        """Take note of a site that has its first value."""
        self._recent.append(site)
        if len(self._recent) > 2 * RECENT:
            del self._recent[:-RECENT]

    # -- the choice --------------------------------------------------------------------------------

    def choose(self, random: np.random.Generator, told: int) -> FloatArray:
        """The next point to evaluate, (d,) in the unit cube, when `told` values have come."""
        if self._fitted is None and told >= WARM * len(self.evolution.mean):
            self._begin_at_best()
        self._finish_generations()
        if self._fitted is None or told - self._renewed >= self._patience(told):
            self._renew(told)
        number, self._chosen = self._chosen, self._chosen + 1
        own = round(self.part * self.evolution.points)
        if number == 0:
            point = self._highest(None)
        elif number == 1 and self.evolution.generation:
            point = self.evolution.mean
        elif number <= own:
            point = self._highest(random)
        else:
            point = self.evolution.draw(random)
        if self._sums.exact:
            shake = SHAKEN * REACH * self.evolution.scale
            point = point + shake * random.standard_normal(len(point))
        bottom, top = np.zeros(len(point)), np.ones(len(point))
        snapped = self._proposals.snap(np.clip(point, bottom, top)[None, :], bottom, top)
        return np.asarray(snapped[0])

    def note(self, site: int) -> None:
        """Take note of the site of the point that was just chosen."""
        number, own = self._chosen - 1, round(self.part * self.evolution.points)
        if number == 1 and self.evolution.generation:
            self._means = [*self._means, site][-COMPARED:]
            return
        if number == 0:
            self._tops = [*self._tops, site][-COMPARED:]
        self._join(site, trend=number <= own)

    def _join(self, site: int, trend: bool) -> None:
        """Have a site count in the generation; the oldest are given up if too many are awaited."""
        self._sites_now.append(site)
        self._by_trend.append(trend)
        most = PENDING * self.evolution.points
        del self._sites_now[:-most], self._by_trend[:-most]

    def _patience(self, told: int) -> int:
        """Observations until the trend is fitted again."""
        least = max(RENEW_LEAST, self.evolution.points // 2)
        return max(least, min(told // RENEW_PART, RENEW_MOST))

    def _highest(self, random: np.random.Generator | None) -> FloatArray:
        """Where the trend, or one drawn from its posterior, is highest in the region, (d,)."""
        assert self._fitted is not None
        trend, origin, scale = self._fitted
        parts = trend.parts if random is None else trend.drawn(random, TEMPERATURE)
        mean, reach = self.evolution.mean, REACH * self.evolution.scale
        lower = (np.maximum(mean - reach, 0.0) - origin) / scale
        upper = (np.minimum(mean + reach, 1.0) - origin) / scale
        return np.asarray(origin + scale * parts.highest(lower, upper))

    # -- generations -------------------------------------------------------------------------------

    def _finish_generations(self) -> None:
        """Learn from each generation whose values are there."""
        sites, points = np.array(self._sites_now, dtype=np.int64), self.evolution.points
        told = self._told(sites)
        while told.sum() >= points:
            rows = np.flatnonzero(told)[:points]
            trend = np.array(self._by_trend)[rows]
            self._learn(sites[rows], trend)
            for row in rows[::-1].tolist():
                del self._sites_now[row], self._by_trend[row]
            self._chosen = 0
            sites, told = np.delete(sites, rows), np.delete(told, rows)
            if self.evolution.points != points:
                return

    def _told(self, sites: IntArray) -> BoolArray:
        """Which of the sites have values, (n,)."""
        changes = self._sums.changes
        there = sites < len(changes)
        return (
            np.asarray(there & (changes[np.where(there, sites, 0)] > 0)) if len(changes) else there
        )

    def _values(self, sites: IntArray) -> FloatArray:
        """The mean value of each site, (n,)."""
        return self._sums.data(sites).means[: len(sites)]

    def _learn(self, sites: IntArray, trend: BoolArray) -> None:
        """Have the distribution learn from the sites of a generation, and share out the next."""
        values, evolution = self._values(sites), self.evolution
        if trend.any() and not trend.all():
            ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
            better = ranks[trend].mean() > ranks[~trend].mean()
            part = self.part * (MORE if better else LESS)
            self.part = min(max(part, LEAST_PART), MOST_PART)
        before = evolution.step
        evolution.update(self._sites.scaled[sites], values)
        widths = evolution.scale
        heard = self._fitted is None or self._fitted.trend.explained >= HEARD
        if not heard and np.median(widths) < NARROW:
            evolution.step = max(evolution.step, before) * WIDER
        if widths.max() < FOUND:
            self._begin_again()

    def _begin_again(self) -> None:
        """Search around the answer with a wider distribution and more points."""
        dim = len(self.evolution.mean)
        self._kept = answer = self.answer()
        assert answer is not None
        points = min(2 * self.evolution.points, MOST_TIMES * usual_points(dim))
        self.evolution = Evolution(self._sites.scaled[answer].copy(), points, AGAIN)
        self._means, self._tops = [], []

    def _begin_at_best(self) -> None:
        """Begin where the best of the values that were told are, by a trend of all."""
        sites = self._nearest()
        fitted, points = self._fit(sites, 1.0), self._sites.scaled[sites]
        away = (points - fitted.origin) / fitted.scale
        best = np.argmax(fitted.trend.means(away) - fitted.trend.deviations(away))
        self.evolution.mean = points[best].copy()

    # -- the trend ---------------------------------------------------------------------------------

    def _renew(self, told: int) -> None:
        """Fit the trend again, around the mean of the distribution."""
        self._used = self._nearest()
        self._fitted, self._renewed = self._fit(self._used), told

    def _nearest(self) -> IntArray:
        """The sites nearest to the mean, of the last ones and those used before."""
        recent = np.array(self._recent[-RECENT:], dtype=np.int64)
        sites = np.union1d(recent, self._used)
        if len(sites) <= NEAREST:
            return sites
        away = (self._sites.scaled[sites] - self.evolution.mean) / self.evolution.scale
        near = np.argpartition(np.einsum("ij,ij->i", away, away), NEAREST)[:NEAREST]
        return np.sort(sites[near])

    def _fit(self, sites: IntArray, wide: float | None = None) -> _Fitted:
        """The trend around the mean, by the shaped values at sites."""
        settings = self._model.fit.best
        data = self._model.shaped(self._sums.data(sites), settings)
        noise = np.maximum(data.diagonal(settings.noise, settings.amplitude**2), LEAST_NOISE)
        origin = self.evolution.mean
        scale = self.evolution.scale if wide is None else np.full(len(origin), wide)
        trend = fit_trend(
            (data.points - origin) / scale,
            _in_own_unit(data.means),
            np.maximum(noise / float(np.median(noise)), SUREST),
            np.zeros(len(origin)),
            WINDOW,
        )
        return _Fitted(trend, origin, scale)

    # -- answers -----------------------------------------------------------------------------------

    def answer(self) -> int | None:
        """The last evaluated mean of the distribution, or highest point of the trend.

        That whose last values were better on average; None if there are none.
        """
        best, site = -np.inf, self._kept
        for series in (self._means, self._tops):
            sites = np.array(series, dtype=np.int64)
            sites = sites[self._told(sites)]
            if len(sites):
                average = float(self._values(sites).mean())
                if average > best:
                    best, site = average, int(sites[-1])
        if self._kept is not None and float(self._values(np.array([self._kept]))[0]) > best:
            return self._kept
        return site

    @property
    def looks_at(self) -> set[int]:
        """The sites that trends may look at."""
        return {*self._recent, *self._used.tolist()}

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """Distribution, trend and sites, as plain data."""
        fitted = None
        if self._fitted is not None:
            trend, origin, scale = self._fitted
            fitted = {"trend": trend.state(), "origin": origin, "scale": scale}
        return {
            "evolution": self.evolution.state(),
            "part": float(self.part),
            "fitted": fitted,
            "recent": wholes(self._recent),
            "used": self._used,
            "renewed": self._renewed,
            "sites_now": wholes(self._sites_now),
            "by_trend": np.array(self._by_trend, dtype=bool),
            "chosen": self._chosen,
            "means": wholes(self._means),
            "tops": wholes(self._tops),
            "kept": wholes([] if self._kept is None else [self._kept]),
        }

    def restore(self, saved: Saved) -> None:
        """Restore what was saved, of sites that are there already."""
        dim, number = len(self.evolution.mean), len(self._sites)
        self.evolution = Evolution.restored(saved.part("evolution"), dim)
        self.part = saved.real("part", LEAST_PART, MOST_PART)
        self._fitted = None
        if "fitted" in saved:
            part = saved.part("fitted")
            trend = Trend.restored(part.part("trend"), dim)
            origin, scale = part.floats("origin", (dim,), 0.0, 1.0), part.floats("scale", (dim,))
            part.require((scale > 0).all(), "positive scales")
            self._fitted = _Fitted(trend, origin, scale)
        self._recent = saved.numbers("recent", number)
        saved.require(len(self._recent) <= 2 * RECENT, "few sites of a trend")
        self._used = np.array(saved.numbers("used", number), dtype=np.int64)
        self._renewed, self._chosen = saved.integer("renewed"), saved.integer("chosen")
        self._sites_now = saved.numbers("sites_now", number, distinct=False)
        self._by_trend = saved.flags("by_trend", (len(self._sites_now),)).tolist()
        few = len(self._sites_now) <= PENDING * self.evolution.points
        saved.require(few, "few sites of a generation")
        for name in ("means", "tops", "kept"):
            sites = saved.numbers(name, number, distinct=False)
            saved.require(len(sites) <= COMPARED, "few sites for the answer")
            if name == "kept":
                saved.require(len(sites) <= 1, "one site that is kept")
                self._kept = sites[0] if sites else None
            else:
                setattr(self, f"_{name}", sites)


def _in_own_unit(values: FloatArray) -> FloatArray:
    """Values (n,) over their range, however large or small they are."""
    values = values / max(float(np.abs(values).max(initial=0.0)), SMALLEST)
    return np.asarray(values / max(float(np.ptp(values)), SMALLEST))
