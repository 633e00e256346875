"""The choice in many dimensions: a trend and an evolution of directions share the evaluations.

In many dimensions a Gaussian process of a few hundred points says little of f, and random
candidates hardly ever lead up. So points come in generations, from two that learn differently.

- A trend (`trend`) is fitted to all values nearby, and averages the noise of many. Points are where
  a draw of it is highest (Thompson sampling), within a box around the mean of the distribution, the
  trust region.
- An evolution (`evolution`, and `shares` for choices) draws points from a distribution. It learns by
  ranks which directions matter together, and how wide to search, whatever the form of f. The
  trend's points count in its generations like its own, so the distribution follows the better of
  the two.

After each generation, the one whose values rank higher gets more points of the next. The noise is
measured by evaluating some points twice (`doubles`). Where it is loud, points are ranked by the
trend as far as what it leaves over is noise, and the search stays as wide as it takes to tell where
f is higher. A guard (`guard`) goes back to the best stretch so far if generations get worse.

Notation: a point has k numbers and c marks of choices (`layout`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import BoolArray, FloatArray, IntArray
from partita.gp.data import Data
from partita.gp.shapes import SMALLEST
from partita.partition.sites import BoxSites

from .candidates import Proposals
from .doubles import Doubles
from .evolution import Evolution, usual_points
from .guard import Guard
from .layout import Layout
from .model import Model
from .shares import Shares
from .trend import Trend, fit_trend
from .values import Sums

#: Trends lead above this number of parameters.
MANY = 10
#: The points that a trend looks at are the nearest of those that had their first value last.
NEAREST = 4096
#: Observations between two trends: the least, the part of all observations, and the most.
RENEW_LEAST, RENEW_PART, RENEW_MOST = 8, 128, 48
#: Standard deviations of the draws of a trend.
TEMPERATURE = 1.0
#: The half-width of the box that the trend's points come from, and the width of the window of the
#: values that it looks at, in standard deviations of the distribution.
REACH, WINDOW = 1.0, 3.0
#: The half-width of that box is at most this, in sides of the domain.
FARTHEST = 0.12
#: The part of a generation that is the trend's: at first, at least and at most, and how much more
#: or less it gets after a generation.
FIRST_PART, LEAST_PART, MOST_PART, MORE, LESS = 0.5, 0.15, 0.9, 1.1, 0.9
#: A distribution that is too narrow for the noise gets wider by this factor. Far from the optimum f
#: is hardly ever a bowl: so of a step of this length the bend has to show only half as clearly.
WIDER, TRUSTED = 1.05, 0.1
#: A distribution that is narrower than this has found all there is: the next begins around the
#: answer, with this deviation, and twice the points, up to this many times the usual number.
FOUND, AGAIN, MOST_TIMES = 1e-7, 0.1, 8
#: The least deviation of a whole number, in steps to the next one.
WHOLE = 0.25
#: The number of the last means, and highest points of trends, whose values are compared for the
#: answer.
COMPARED = 8
#: Points of a generation that may be pending or late, as a multiple of its number.
PENDING = 8
#: Points tried until one is allowed, and new where there is no noise.
TRIES = 16
#: Without noise no point is evaluated twice: steps of this part of the region are added.
SHAKEN = 0.1
#: How far from the centre the first points lie, in sides of the domain.
FIRST_POINTS = 0.3
#: Values told, over the dimensions, from which a search begins at the best of them.
WARM = 2
#: The least noise of a value, over the square of the amplitude, and over the usual one.
LEAST_NOISE, SUREST = 1e-12, 1e-2
#: A generation without any value, as all evaluations failed, makes the search this much narrower.
FAILED = 0.7


class _Fitted(NamedTuple):
    """A trend of (x − origin)/scale, each (k,), and of marks less `marks` (c,)."""

    trend: Trend
    origin: FloatArray
    scale: FloatArray
    marks: FloatArray
    unit: float  # a shaped value of 1 in units of the trend


class _Ranked(NamedTuple):
    """Values (n,) that points are ranked by, and what part of what a trend leaves over is noise."""

    values: FloatArray
    noise: float  # from 0 to 1


@dataclass(eq=False)
class Follower:
    """Keeps a trend and a distribution; `choose` says where to evaluate next."""

    _sites: BoxSites
    _sums: Sums
    _model: Model
    _proposals: Proposals
    _layout: Layout
    evolution: Evolution = field(init=False)
    shares: Shares = field(init=False)
    doubles: Doubles = field(init=False)
    guard: Guard = field(default_factory=Guard)
    #: The part of the next generation that is the trend's.
    part: float = FIRST_PART
    _fitted: _Fitted | None = None
    #: Sites in the order of their first values, the last; and those that the trend looked at.
    _recent: list[int] = field(default_factory=list)
    _used: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    #: The number of values at the last renewal.
    _renewed: int = 0
    #: The sites of the generation under way, with late ones of those before; which of them are the
    #: trend's; which failed; and how many points were chosen in it.
    _sites_now: list[int] = field(default_factory=list)
    _by_trend: list[bool] = field(default_factory=list)
    _failed: list[int] = field(default_factory=list)
    _chosen: int = 0
    #: The last sites at the mean of the distribution, and at the highest point of the trend.
    _means: list[int] = field(default_factory=list)
    _tops: list[int] = field(default_factory=list)
    #: The answer of the search before this one, if it was better.
    _kept: int | None = None

    def __post_init__(self) -> None:
        dim = max(len(self._layout.numbers), 1)  # without numbers there is one that means nothing
        self.evolution = Evolution(np.full(dim, 0.5), usual_points(self._layout.parameters))
        self.shares = Shares(self._layout)
        self.doubles = Doubles(self._sums, self._model)

    @property
    def trend(self) -> Trend | None:
        """The trend that points are chosen by; None before the first choice."""
        return None if self._fitted is None else self._fitted.trend

    def first(self, points: FloatArray) -> FloatArray:
        """The first points to evaluate for uniform ones (n, d): the centre, and around it."""
        around, numbers = points.copy(), self._layout.numbers
        around[:, numbers] = 0.5 + 2.0 * FIRST_POINTS * (points[:, numbers] - 0.5)
        around[0, numbers] = 0.5
        return around

    def begin_with(self, site: int) -> None:
        """Take note of a site of the first design: it counts in the first generation."""
        self._join(site, trend=False)

    def admit(self, site: int) -> None:
        """Take note of a site that has its first value."""
        self._recent.append(site)
        if len(self._recent) > 2 * NEAREST:
            del self._recent[:-NEAREST]

    def fail(self, site: int) -> None:
        """Take note of a site whose evaluation failed: it ranks last in its generation."""
        self._failed = [*self._failed, site][-PENDING * self.evolution.points :]

    # -- the choice --------------------------------------------------------------------------------

    def choose(self, random: np.random.Generator, told: int) -> FloatArray:
        """The next point to evaluate, (d,) in the unit cube, when `told` values have come."""
        if self._fitted is None and told >= WARM * self._layout.parameters:
            self._begin_at_best()
        self._finish_generations()
        if self._fitted is None or told - self._renewed >= self._patience(told):
            self._renew(told)
        number, self._chosen = self._chosen, self._chosen + 1
        own, generation = self._own_points, self.evolution.generation
        if number == 0:
            point = self._highest(None)
        elif number == 1 and generation:
            again = self._means[-1:] if self.doubles.due(generation) else []
            if again and self._told(np.array(again))[0]:
                return np.asarray(self._sites.scaled[again[0]].copy())
            point = self._joined(self.evolution.mean, self.shares.likeliest())
        elif number <= own:
            point = self._highest(random)
        else:
            point = self._drawn(random)
        return self._allowed(random, point)

    def note(self, site: int) -> None:
        """Take note of the site of the point that was just chosen."""
        number = self._chosen - 1
        if number == 1 and self.evolution.generation:
            if site in self._means:
                self.doubles.add(site)
            if site not in self._means[-1:]:
                self._means = [*self._means, site][-COMPARED:]
            return
        if number == 0:
            self._tops = [*self._tops, site][-COMPARED:]
        self._join(site, trend=number <= self._own_points)

    @property
    def _own_points(self) -> int:
        """The number of points of a generation that are the trend's."""
        return round(self.part * self.evolution.points)

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

    def _joined(self, numbers: FloatArray, marks: FloatArray) -> FloatArray:
        """The point (d,) of numbers (k,) and marks (c,)."""
        return self._layout.joined(numbers[: len(self._layout.numbers)], marks)

    def _drawn(self, random: np.random.Generator) -> FloatArray:
        """A point (d,) of the distribution."""
        return self._joined(self.evolution.draw(random), self.shares.draw(random))

    def _highest(self, random: np.random.Generator | None) -> FloatArray:
        """Where the trend, or one drawn from its posterior, is highest in the region, (d,)."""
        assert self._fitted is not None
        trend, origin, scale, _, _ = self._fitted
        parts = trend.parts if random is None else trend.drawn(random, TEMPERATURE)
        mean, reach = self.evolution.mean, np.minimum(REACH * self.evolution.scale, FARTHEST)
        gaps = self._gaps
        if gaps is not None:
            reach = np.maximum(reach, gaps)
        k = len(origin)
        lower = (np.maximum(mean - reach, 0.0)[:k] - origin) / scale
        upper = (np.minimum(mean + reach, 1.0)[:k] - origin) / scale
        numbers = origin + scale * parts.highest(lower, upper)
        return self._joined(numbers, self.shares.likeliest(parts.constants))

    @property
    def _gaps(self) -> FloatArray | None:
        """How far the next whole number is from the mean of the distribution, (k,), if any are."""
        rules = self._proposals.rules
        if rules is None or not len(self._layout.numbers):
            return None
        mean = self._joined(self.evolution.mean, self.shares.likeliest())
        return np.asarray(rules.gaps(rules.snap(mean[None, :]))[0, self._layout.numbers])

    def _allowed(self, random: np.random.Generator, point: FloatArray) -> FloatArray:
        """The point of the domain nearest to a point (d,), or another if it may not be evaluated.

        Without noise it is one that was not evaluated before, if there is any nearby.
        """
        exact, numbers, rules = self._sums.exact, self._layout.numbers, self._proposals.rules
        if exact and len(numbers):
            shake = SHAKEN * REACH * self.evolution.scale
            point[numbers] += shake * random.standard_normal(len(numbers))
        for tried in range(TRIES):
            rows = self._proposals.settled(np.clip(point, 0.0, 1.0)[None, :])
            if len(rows) and not (exact and self._sites.holds(rows[0])):
                return np.asarray(rows[0])
            point = self._drawn(random)
            if rules is not None and 2 * tried > TRIES:  # steps of a few parameters from the mean
                mean = rules.snap(self._joined(self.evolution.mean, self.shares.likeliest())[None])
                point = rules.stir(random, mean, np.full(mean.shape, AGAIN))[0]
        return self._proposals.anywhere(random)

    # -- generations -------------------------------------------------------------------------------

    def _finish_generations(self) -> None:
        """Learn from each generation whose values are there."""
        sites, points = np.array(self._sites_now, dtype=np.int64), self.evolution.points
        ended = self._told(sites) | np.isin(sites, self._failed)
        while ended.sum() >= points:
            rows = np.flatnonzero(ended)[:points]
            self._learn(sites[rows], np.array(self._by_trend)[rows])
            for row in rows[::-1].tolist():
                del self._sites_now[row], self._by_trend[row]
            self._chosen = 0
            sites, ended = np.delete(sites, rows), np.delete(ended, rows)
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

    def _average(self, sites: IntArray) -> float:
        """The mean value of sites. Those whose noise was told count the more the less it is."""
        data = self._sums.data(sites).take(np.arange(len(sites)))
        if not data.told:
            return float(data.means.mean())
        noise = np.where(np.isnan(data.known), np.nanmedian(data.known), data.known)
        weights = 1.0 / (noise + max(SUREST * float(noise.max()), SMALLEST))
        return float(weights @ data.means / weights.sum())

    def _learn(self, sites: IntArray, trend: BoolArray) -> None:
        """Have the distribution learn from the sites of a generation, and share out the next."""
        told, evolution, before = self._told(sites), self.evolution, self.evolution.step
        if not told.any():
            evolution.step *= FAILED
            return
        values = np.full(len(sites), -math.inf)
        values[told] = self._values(sites[told])
        if trend.any() and not trend.all():
            ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
            better = ranks[trend].mean() > ranks[~trend].mean()
            part = self.part * (MORE if better else LESS)
            self.part = min(max(part, LEAST_PART), MOST_PART)
        self.guard.add(self._average(sites[told]))
        ranked = self._ranked(sites[told])
        values[told] = ranked.values
        points = self._sites.scaled[sites]
        best = np.argsort(-values, kind="stable")[: len(evolution.parents)]
        self.shares.update(points[best][:, self._layout.marks], evolution.parents)
        numbers = points[:, self._layout.numbers]
        if not len(self._layout.numbers):
            return
        evolution.update(numbers, values)
        if self._too_narrow(ranked.noise):
            evolution.widen(max(evolution.step, before) * WIDER)
        else:
            evolution.step = min(evolution.step, self.guard.longest)
        gaps = self._gaps
        if gaps is not None and gaps.any():
            evolution.keep_wide(WHOLE * gaps)
        if evolution.scale.max() < FOUND:
            self._begin_again()
        elif self._means:
            self._go_back()

    def _ranked(self, sites: IntArray) -> _Ranked:
        """Values of sites, as far as they say more than noise.

        What a trend leaves over is noise and what it cannot describe. The value of a site counts
        beside the trend as much as the latter is part of both.
        """
        rows = np.arange(len(sites))
        data = self._model.shaped(self._sums.data(sites), self._model.fit.best).take(rows)
        variances = self.doubles.variances(data)
        if variances is None or self._fitted is None:
            return _Ranked(data.means, 0.0)
        means = self._means_of(self._fitted, sites)
        spread = max(self._fitted.trend.spread / self._fitted.unit, SMALLEST)
        misfit = max(spread**2 - float(np.median(variances)), 0.0)
        noise = variances / np.maximum(variances + misfit, SMALLEST)
        return _Ranked(means + (1.0 - noise) * (data.means - means), float(noise.mean()))

    def _too_narrow(self, noise: float) -> bool:
        """Whether a wider search would tell sooner where f is higher; `noise` as in `_Ranked`.

        Evaluations cost as much as f falls within the distribution, Σ bend. The answer costs as
        much as slopes are in doubt, Σ doubt²/(4 bend). Their sum is least where bend = doubt/2.
        """
        if self._fitted is None or noise == 0.0:
            return False
        trend = self._fitted.trend
        doubt = math.sqrt(noise) * trend.doubt / (1.0 + (self.evolution.step / TRUSTED) ** 2)
        return trend.bend < 0.5 * doubt

    def _go_back(self) -> None:
        """Go back to where generations were better, if they have become worse."""
        evolution, exact = self.evolution, self._sums.exact
        best = self.guard.judge(evolution.mean, evolution.step, self._means[-1], exact)
        if best is None:
            return
        self.evolution = evolution.moved(best.mean, best.step)
        self._means, self._tops = [best.site], []
        if exact and self._told(np.array([best.site]))[0]:
            self._kept = best.site

    def _begin_again(self) -> None:
        """Search around the answer with a wider distribution and more points."""
        self._kept = answer = self.answer()
        assert answer is not None
        usual = usual_points(self._layout.parameters)
        points = min(2 * self.evolution.points, MOST_TIMES * usual)
        mean = self._sites.scaled[answer][self._layout.numbers]
        self.evolution, self.guard = Evolution(mean, points, AGAIN), Guard()
        self._means, self._tops = [], []

    def _begin_at_best(self) -> None:
        """Begin where the best of the values that were told are, by a trend of all."""
        sites = self._nearest()
        numbers = self._layout.numbers
        fitted = self._fit(sites, wide=True)
        deviations = fitted.trend.deviations(*self._away(fitted, sites))
        best = sites[np.argmax(self._means_of(fitted, sites) * fitted.unit - deviations)]
        self.evolution.mean[: len(numbers)] = self._sites.scaled[best][numbers]

    # -- the trend ---------------------------------------------------------------------------------

    def _renew(self, told: int) -> None:
        """Fit the trend again, around the mean of the distribution."""
        self._used = self._nearest()
        self._fitted, self._renewed = self._fit(self._used), told

    def _nearest(self) -> IntArray:
        """The sites nearest to the mean, of the last ones and those used before."""
        recent = np.array(self._recent[-NEAREST:], dtype=np.int64)
        sites, numbers = np.union1d(recent, self._used), self._layout.numbers
        if len(sites) <= NEAREST:
            return sites
        if not len(numbers):
            return sites[-NEAREST:]
        away = (self._sites.scaled[sites][:, numbers] - self.evolution.mean) / self.evolution.scale
        near = np.argpartition(np.einsum("ij,ij->i", away, away), NEAREST)[:NEAREST]
        return np.sort(sites[near])

    def _fit(self, sites: IntArray, wide: bool = False) -> _Fitted:
        """The trend around the mean, by the shaped values at sites."""
        settings, layout = self._model.fit.best, self._layout
        data = self._model.shaped(self._sums.data(sites), settings)
        noise = np.maximum(data.diagonal(settings.noise, settings.amplitude**2), LEAST_NOISE)
        k = len(layout.numbers)
        origin, scale = self.evolution.mean[:k], self.evolution.scale[:k]
        if wide:
            scale = np.ones(k)
        marks, unit = data.points[:, layout.marks], _unit(data)
        middle = marks.mean(axis=0)
        trend = fit_trend(
            (data.points[:, layout.numbers] - origin) / scale,
            data.means * unit,
            np.maximum(noise / float(np.median(noise)), SUREST),
            np.zeros(k),
            WINDOW,
            marks - middle,
            len(layout.groups),
        )
        return _Fitted(trend, origin.copy(), scale, middle, unit)

    def _away(self, fitted: _Fitted, sites: IntArray) -> tuple[FloatArray, FloatArray]:
        """The numbers (n, k) and marks (n, c) of sites, as a trend has them."""
        points = self._sites.scaled[sites]
        numbers = (points[:, self._layout.numbers] - fitted.origin) / fitted.scale
        return numbers, points[:, self._layout.marks] - fitted.marks

    def _means_of(self, fitted: _Fitted, sites: IntArray) -> FloatArray:
        """The trend at sites, (n,), in units of shaped values."""
        return fitted.trend.means(*self._away(fitted, sites)) / fitted.unit

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
                average = self._average(sites)
                if average > best:
                    best, site = average, int(sites[-1])
        if self._kept is not None and self._average(np.array([self._kept])) > best:
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
            fitted = {**self._fitted._asdict(), "trend": self._fitted.trend.state()}
        parts = {name: getattr(self, name).state() for name in _PARTS}
        sites = {name: wholes(getattr(self, f"_{name}")) for name in _SITES}
        return {
            **parts,
            **sites,
            "part": float(self.part),
            "fitted": fitted,
            "used": self._used,
            "renewed": self._renewed,
            "by_trend": np.array(self._by_trend, dtype=bool),
            "chosen": self._chosen,
            "kept": wholes([] if self._kept is None else [self._kept]),
        }

    def restore(self, saved: Saved) -> None:
        """Restore what was saved, of sites that are there already."""
        number, k = len(self._sites), len(self.evolution.mean)
        self.evolution = Evolution.restored(saved.part("evolution"), k)
        self.shares.restore(saved.part("shares"))
        self.doubles.restore(saved.part("doubles"), number)
        self.guard.restore(saved.part("guard"), k, number)
        self.part = saved.real("part", LEAST_PART, MOST_PART)
        self._fitted = None
        if "fitted" in saved:
            self._fitted = self._restored_fit(saved.part("fitted"))
        points = self.evolution.points
        most = {"recent": 2 * NEAREST, "means": COMPARED, "tops": COMPARED}
        for name in _SITES:
            sites = saved.numbers(name, number, distinct=name == "recent")
            few = len(sites) <= most.get(name, PENDING * points)
            saved.require(few, f"few sites of {name}")
            setattr(self, f"_{name}", sites)
        self._used = np.array(saved.numbers("used", number), dtype=np.int64)
        self._renewed, self._chosen = saved.integer("renewed"), saved.integer("chosen")
        self._by_trend = saved.flags("by_trend", (len(self._sites_now),)).tolist()
        kept = saved.numbers("kept", number)
        saved.require(len(kept) <= 1, "one site that is kept")
        self._kept = kept[0] if kept else None

    def _restored_fit(self, saved: Saved) -> _Fitted:
        k, c = len(self._layout.numbers), len(self._layout.marks)
        scale = saved.floats("scale", (k,))
        saved.require((scale > 0).all(), "positive scales")
        return _Fitted(
            Trend.restored(saved.part("trend"), k, c),
            saved.floats("origin", (k,), 0.0, 1.0),
            scale,
            saved.floats("marks", (c,), 0.0, 1.0),
            saved.real("unit", 0.0),
        )


#: The parts of the saved state, and its lists of sites.
_PARTS = ("evolution", "shares", "doubles", "guard")
_SITES = ("recent", "sites_now", "failed", "means", "tops")


def _unit(data: Data) -> float:
    """One over the range of the values (n,), however large or small they are."""
    most = max(float(np.abs(data.means).max(initial=0.0)), SMALLEST)
    return 1.0 / most / max(float(np.ptp(data.means / most)), SMALLEST)
