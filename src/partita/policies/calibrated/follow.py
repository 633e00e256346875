"""The choice in many dimensions: a trend and an evolution of directions share the evaluations.

In many dimensions a Gaussian process of a few hundred points says little of f, and random
candidates hardly ever lead up. So points come in generations, from players that learn differently.

- A trend (`trend`) is fitted to all values nearby, and averages the noise of many. Points are where
  a draw of it is highest (Thompson sampling), within a box around the mean of the distribution, the
  trust region.
- An evolution (`evolution`, and `shares` for choices) draws points from a distribution. It learns
  by ranks which directions matter together, and how wide to search, whatever the form of f. The
  others' points count in its generations like its own, so it follows the best of them.
- In up to 30 dimensions the Gaussian process is a player, too.

After each generation, those whose values rank higher get more points of the next. The noise is
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
from partita.gp.shapes import SMALLEST
from partita.partition.sites import BoxSites

from .candidates import Proposals
from .doubles import Doubles
from .evolution import Evolution, usual_points
from .fits import SUREST, Fits
from .guard import Guard
from .layout import Layout
from .model import Model
from .shares import Shares
from .trend import Trend
from .values import Sums

#: Trends lead above MANY parameters, if at least one in NUMBERS of them is a number. The process is
#: a player up to PROCESS parameters.
MANY, NUMBERS, PROCESS = 10, 3, 30
#: Standard deviations of the draws of a trend.
TEMPERATURE = 1.0
#: The half-width of the box that the trend's points come from, in standard deviations of the
#: distribution, and the most in sides of the domain.
REACH, FARTHEST = 1.0, 0.12
#: The part of a generation that is each player's, evolution, trend and process: at first, and at
#: least; and how much more or less it gets after a generation. The process, which takes most of the
#: time, leaves when it gets no points any more.
FIRST_PARTS, LEAST_PARTS = np.array([0.35, 0.35, 0.3]), np.array([0.1, 0.15, 0.0])
MORE, LESS = 1.1, 0.9
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
#: The players.
_EVOLUTION, _TREND, _PROCESS = range(3)
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
#: A generation without any value, as all evaluations failed, makes the search this much narrower,
#: down to this step.
FAILED, LEAST_FAILED = 0.7, 0.01


class _Ranked(NamedTuple):
    """Values (n,) that points are ranked by, and what part of what a trend leaves over is noise."""

    values: FloatArray
    noise: float  # from 0 to 1


class _Gaps(NamedTuple):
    """How far the next whole numbers are, for a distribution in a generation."""

    of: Evolution
    generation: int
    gaps: FloatArray


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
    #: The trend, and the sites that it looks at.
    fits: Fits = field(init=False)
    guard: Guard = field(default_factory=Guard)
    #: The part of the next generation that is each player's.
    parts: FloatArray = field(init=False)
    #: The sites of the generation under way, with late ones of those before; whose they are; which
    #: failed; and how many points were chosen in it.
    _sites_now: list[int] = field(default_factory=list)
    _players: list[int] = field(default_factory=list)
    _failed: list[int] = field(default_factory=list)
    _chosen: int = 0
    #: The last sites at the mean of the distribution, and at the highest point of the trend.
    _means: list[int] = field(default_factory=list)
    _tops: list[int] = field(default_factory=list)
    #: The answer of the search before this one, if it was better; and the site of the highest value
    #: of all generations, which is the answer without noise.
    _kept: int | None = None
    _best: int | None = None
    _known_gaps: _Gaps | None = None

    def __post_init__(self) -> None:
        middle = np.full(len(self._layout.numbers), 0.5)
        self.evolution = Evolution(middle, usual_points(self._layout.parameters))
        number = 3 if self._layout.parameters <= PROCESS else 2
        self.parts = FIRST_PARTS[:number] / FIRST_PARTS[:number].sum()
        self.shares = Shares(self._layout)
        self.doubles = Doubles(self._sums, self._model)
        self.fits = Fits(self._sites, self._sums, self._model, self._layout)

    @property
    def trend(self) -> Trend | None:
        """The trend that points are chosen by; None before the first choice."""
        return None if self.fits.last is None else self.fits.last.trend

    def first(self, points: FloatArray) -> FloatArray:
        """The first points to evaluate for uniform ones (n, d): the centre, and around it."""
        around, numbers = points.copy(), self._layout.numbers
        around[:, numbers] = 0.5 + 2.0 * FIRST_POINTS * (points[:, numbers] - 0.5)
        around[0, numbers] = 0.5
        return around

    def begin_with(self, site: int) -> None:
        """Take note of a site of the first design: it counts in the first generation."""
        self._join(site, _EVOLUTION)

    def fail(self, site: int) -> None:
        """Take note of a site whose evaluation failed: it ranks last in its generation."""
        self._failed = [*self._failed, site][-PENDING * self.evolution.points :]

    # -- the choice --------------------------------------------------------------------------------

    @property
    def with_process(self) -> bool:
        """Whether the Gaussian process is a player that gets points."""
        return self._points_of(_PROCESS) > 0

    def choose(self, random: np.random.Generator, told: int) -> FloatArray | None:
        """The next point to evaluate, (d,) in the unit cube, when `told` values have come.

        None if it is the turn of the process.
        """
        if self.fits.last is None and told >= WARM * self._layout.parameters:
            self.evolution.mean = self.fits.best(self.evolution)
        self._finish_generations()
        if self.fits.due(told, self.evolution.points):
            self.fits.renew(told, self.evolution)
        number, self._chosen = self._chosen, self._chosen + 1
        if self._is_mean(number):
            again = self._means[-1:] if self.doubles.due(self.evolution.generation) else []
            if again and self._told(np.array(again))[0]:
                return np.asarray(self._sites.scaled[again[0]].copy())
            return self._allowed(random, self._middle)
        player = self._player(number)
        if player == _PROCESS:
            return None
        if player == _TREND:
            point = self._highest(None if number == 0 else random)
        else:
            point = self._drawn(random)
        return self._allowed(random, point)

    def note(self, site: int) -> None:
        """Take note of the site of the point that was just chosen."""
        number = self._chosen - 1
        if self._is_mean(number):
            if site in self._means:
                self.doubles.add(site)
            if site not in self._means[-1:]:
                self._means = [*self._means, site][-COMPARED:]
            return
        if number == 0:
            self._tops = [*self._tops, site][-COMPARED:]
        self._join(site, self._player(number))

    def _is_mean(self, number: int) -> bool:
        """Whether a choice of a generation is the mean of the distribution, and no player's."""
        return number == 1 and self.evolution.generation > 0

    def _player(self, number: int) -> int:
        """Whose a choice of a generation is, by its number: the trend's come first."""
        trend, process = self._points_of(_TREND), self._points_of(_PROCESS)
        if number <= trend:
            return _TREND
        return _PROCESS if number <= trend + process else _EVOLUTION

    def _points_of(self, player: int) -> int:
        """The number of points of a generation that are a player's."""
        return round(self.evolution.points * float(self.parts[player : player + 1].sum()))

    def _join(self, site: int, player: int) -> None:
        """Have a site count in the generation; the oldest are given up if too many are awaited."""
        self._sites_now.append(site)
        self._players.append(player)
        most = PENDING * self.evolution.points
        del self._sites_now[:-most], self._players[:-most]

    @property
    def _middle(self) -> FloatArray:
        """The mean of the distribution, with the likeliest choices, (d,)."""
        return self._layout.joined(self.evolution.mean, self.shares.likeliest())

    def _drawn(self, random: np.random.Generator) -> FloatArray:
        """A point (d,) of the distribution."""
        return self._layout.joined(self.evolution.draw(random), self.shares.draw(random))

    def _highest(self, random: np.random.Generator | None) -> FloatArray:
        """Where the trend, or one drawn from its posterior, is highest in the region, (d,)."""
        assert self.fits.last is not None
        trend, origin, scale, _, _ = self.fits.last
        parts = trend.parts if random is None else trend.drawn(random, TEMPERATURE)
        mean, reach = self.evolution.mean, np.minimum(REACH * self.evolution.scale, FARTHEST)
        gaps = self._gaps
        if gaps is not None:
            reach = np.maximum(reach, gaps)
        lower = (np.maximum(mean - reach, 0.0) - origin) / scale
        upper = (np.minimum(mean + reach, 1.0) - origin) / scale
        numbers = origin + scale * parts.highest(lower, upper)
        return self._layout.joined(numbers, self.shares.likeliest(parts.constants))

    @property
    def _gaps(self) -> FloatArray | None:
        """How far the next whole number is from the mean of the distribution, (k,), if any are."""
        rules, now = self._proposals.rules, self.evolution
        if rules is None:
            return None
        known = self._known_gaps
        if known is None or known.of is not now or known.generation != now.generation:
            middle = rules.snap(self._middle[None, :])
            gaps = np.asarray(rules.gaps(middle)[0, self._layout.numbers])
            known = self._known_gaps = _Gaps(now, now.generation, gaps)
        return known.gaps

    def _allowed(self, random: np.random.Generator, point: FloatArray) -> FloatArray:
        """The point of the domain nearest to a point (d,), or another if it may not be evaluated.

        Without noise it is one that was not evaluated before, if there is any nearby.
        """
        exact, numbers, rules = self.doubles.exact, self._layout.numbers, self._proposals.rules
        if exact:
            shake = SHAKEN * REACH * self.evolution.scale
            point[numbers] += shake * random.standard_normal(len(numbers))
        for tried in range(TRIES):
            rows = self._proposals.settled(np.clip(point, 0.0, 1.0)[None, :])
            if len(rows) and not (exact and self._sites.holds(rows[0])):
                return np.asarray(rows[0])
            point = self._drawn(random)
            if rules is not None and 2 * tried > TRIES:  # steps of a few parameters from the mean
                middle = rules.snap(self._middle[None, :])
                point = rules.stir(random, middle, np.full(middle.shape, AGAIN))[0]
        return self._proposals.anywhere(random)

    # -- generations -------------------------------------------------------------------------------

    def _finish_generations(self) -> None:
        """Learn from each generation whose values are there."""
        sites, points = np.array(self._sites_now, dtype=np.int64), self.evolution.points
        ended = self._told(sites) | np.isin(sites, self._failed)
        while ended.sum() >= points:
            rows = np.flatnonzero(ended)[:points]
            self._learn(sites[rows], np.array(self._players)[rows])
            for row in rows[::-1].tolist():
                del self._sites_now[row], self._players[row]
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

    def _learn(self, sites: IntArray, players: IntArray) -> None:
        """Have the distribution learn from the sites of a generation, and share out the next."""
        told, evolution, before = self._told(sites), self.evolution, self.evolution.step
        if not told.any():
            evolution.step = min(evolution.step, max(FAILED * evolution.step, LEAST_FAILED))
            return
        values = np.full(len(sites), -math.inf)
        values[told] = self._values(sites[told])
        highest = int(np.argmax(values))
        if self._best is None or values[highest] > self._values(np.array([self._best]))[0]:
            self._best = int(sites[highest])
        self._share_out(players, values)
        self.guard.add(self._average(sites[told]))
        ranked = self._ranked(sites[told])
        values[told] = ranked.values
        points = self._sites.scaled[sites]
        best = np.argsort(-values, kind="stable")[: len(evolution.parents)]
        self.shares.update(points[best][:, self._layout.marks], evolution.parents)
        numbers = points[:, self._layout.numbers]
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

    def _share_out(self, players: IntArray, values: FloatArray) -> None:
        """Give players more or less of the next generation, by how their values rank."""
        ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        for player in range(len(self.parts)):
            own = ranks[players == player]
            if len(own):
                self.parts[player] *= MORE if own.mean() > ranks.mean() else LESS
        self.parts = np.maximum(self.parts / self.parts.sum(), LEAST_PARTS[: len(self.parts)])
        self.parts /= self.parts.sum()

    def _ranked(self, sites: IntArray) -> _Ranked:
        """Values of sites, as far as they say more than noise.

        What a trend leaves over is noise and what it cannot describe. The value of a site counts
        beside the trend as much as the latter is part of both.
        """
        rows = np.arange(len(sites))
        data = self._model.shaped(self._sums.data(sites), self._model.fit.best).take(rows)
        variances = self.doubles.variances(data)
        fitted = self.fits.last
        if variances is None or fitted is None:
            return _Ranked(data.means, 0.0)
        means = self.fits.means(fitted, sites)
        spread = max(fitted.trend.spread / fitted.unit, SMALLEST)
        misfit = max(spread**2 - float(np.median(variances)), 0.0)
        noise = variances / np.maximum(variances + misfit, SMALLEST)
        return _Ranked(means + (1.0 - noise) * (data.means - means), float(noise.mean()))

    def _too_narrow(self, noise: float) -> bool:
        """Whether a wider search would tell sooner where f is higher; `noise` as in `_Ranked`.

        Evaluations cost as much as f falls within the distribution, Σ bend. The answer costs as
        much as slopes are in doubt, Σ doubt²/(4 bend). Their sum is least where bend = doubt/2.
        """
        trend = self.trend
        if trend is None or noise == 0.0:
            return False
        doubt = math.sqrt(noise) * trend.doubt / (1.0 + (self.evolution.step / TRUSTED) ** 2)
        return trend.bend < 0.5 * doubt

    def _go_back(self) -> None:
        """Go back to where generations were better, if they have become worse."""
        evolution, exact = self.evolution, self.doubles.exact
        best = self.guard.judge(evolution.mean, evolution.step, self._means[-1], exact)
        if best is None:
            return
        self.evolution = evolution.moved(best.mean, best.step)
        self._means, self._tops = [best.site], []
        if exact and self._told(np.array([best.site]))[0]:
            self._kept = best.site

    def _begin_again(self) -> None:
        """Search around the answer with a wider distribution and more points."""
        answer = self.answer()
        if answer is None:  # nothing has been told of this search yet
            return
        self._kept = answer
        usual = usual_points(self._layout.parameters)
        points = min(2 * self.evolution.points, MOST_TIMES * usual)
        mean = self._sites.scaled[answer][self._layout.numbers]
        self.evolution, self.guard = Evolution(mean, points, AGAIN), Guard()
        self._means, self._tops = [], []

    # -- answers -----------------------------------------------------------------------------------

    def answer(self) -> int | None:
        """The last evaluated mean of the distribution, or highest point of the trend.

        That whose last values were better on average; None if there are none.
        """
        best, site = -np.inf, self._kept
        if self.doubles.exact and self._best is not None:
            sites = np.array([self._best, *self._means], dtype=np.int64)
            sites = sites[self._told(sites)]
            return int(sites[np.argmax(self._values(sites))])
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

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """Distribution, trend and sites, as plain data."""
        parts = {name: getattr(self, name).state() for name in _PARTS}
        sites = {name: wholes(getattr(self, f"_{name}")) for name in _SITES}
        return {
            **parts,
            **sites,
            "parts": self.parts.copy(),
            "players": wholes(self._players),
            "chosen": self._chosen,
            "kept": wholes([] if self._kept is None else [self._kept]),
            "best": wholes([] if self._best is None else [self._best]),
        }

    def restore(self, saved: Saved) -> None:
        """Restore what was saved, of sites that are there already."""
        number, k = len(self._sites), len(self.evolution.mean)
        self.evolution = Evolution.restored(saved.part("evolution"), k)
        self.shares.restore(saved.part("shares"))
        self.doubles.restore(saved.part("doubles"), number)
        self.guard.restore(saved.part("guard"), k, number)
        self.parts = saved.floats("parts", self.parts.shape, 0.0, 1.0)
        saved.require(abs(float(self.parts.sum()) - 1.0) < 1e-9, "parts of a whole")
        self.fits.restore(saved.part("fits"), number)
        points = self.evolution.points
        most = {"means": COMPARED, "tops": COMPARED}
        for name in _SITES:
            sites = saved.numbers(name, number, distinct=False)
            few = len(sites) <= most.get(name, PENDING * points)
            saved.require(few, f"few sites of {name}")
            setattr(self, f"_{name}", sites)
        self._chosen = saved.integer("chosen")
        players = saved.wholes("players", (len(self._sites_now),), 0, len(self.parts) - 1)
        self._players = players.tolist()
        for name in ("kept", "best"):
            site = saved.numbers(name, number)
            saved.require(len(site) <= 1, f"at most one site that is {name}")
            setattr(self, f"_{name}", site[0] if site else None)


#: The parts of the saved state, and its lists of sites.
_PARTS = ("evolution", "shares", "doubles", "guard", "fits")
_SITES = ("sites_now", "failed", "means", "tops")
