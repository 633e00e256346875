"""The choice with some coordinates fixed: the slice of a context.

An ask looks at the few most hopeful regions that the slice meets. The posterior of each is kept
from ask to ask (`Kept`), and the candidates are drawn afresh, so an ask costs the same whatever was
asked before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.gp.settings import Settings
from partita.policies.feasible import unique
from partita.policies.fixed import Fixing

from .candidates import BEST, Candidates, Plan
from .kept import Hopeful, Kept
from .model import Model
from .outlook import Forecast
from .regions import MOST_DATA, Regions
from .search import Search, Shaped
from .slice_points import SliceProposals, looked
from .values import Sums

#: Evaluated points of the slice itself that are candidates, and pending points that are planned
#: for, at most: those of the highest mean, and the latest.
MOST_HELD, MOST_AWAITED = 24, 48
#: Standard deviations in the index. Contexts differ from ask to ask, which explores by itself.
EXPLORATION = 1.5
#: A fresh candidate is evaluated only if f there may differ from f at a point evaluated before by
#: more than this part of what is unknown of the latter. It is more than without a context: each
#: context has few values, so replicates are worth more.
DISTINCT = 0.8
#: Posteriors that are kept, and values that each takes in before it is made again, as a part of
#: its sites and at least and at most.
MOST_KEPT, ROOM_PART, LEAST_ROOM, MOST_ROOM = 32, 4, 8, 64


class _Choice(NamedTuple):
    """A point that may be chosen, what the model says of it, and its index in units."""

    forecast: Forecast
    value: float


class _Part(NamedTuple):
    """The part of a slice in a region: its posterior, and points (n, d), evaluated ones first."""

    kept: Kept
    points: FloatArray
    held: IntArray  # (s,) of the first ones, the numbers of their sites in the posterior's


class _Seen(NamedTuple):
    """A region, its posterior, and what that says of the slice."""

    number: int
    kept: Kept
    near: Hopeful


class _Near(NamedTuple):
    """An evaluated candidate near another, and the variance of the difference of f at them."""

    number: int
    away: float


def _hope(seen: _Seen) -> float:
    """The highest mean that is hoped for in a region, in units."""
    return float(seen.kept.settings.in_units(float(seen.near.hopes[0])))


@dataclass(eq=False)
class Slices:
    """Chooses in a slice."""

    _search: Search
    _sums: Sums
    _regions: Regions
    _model: Model
    _proposals: SliceProposals
    #: Posteriors by the number of the region, the one used last at the end.
    _kept: dict[int, Kept] = field(default_factory=dict)

    @property
    def arms(self) -> FloatArray | None:
        """The points (n, d) of a finite domain, in the unit cube."""
        return self._proposals.arms

    # -- what has come -------------------------------------------------------------------------

    def observe(self, number: int, site: int, value: float, std: float | None = None) -> None:
        """Take in a value at a site of a region, which the sums hold already."""
        kept = self._kept.get(number)
        if kept is None:
            return
        if kept.full:
            del self._kept[number]
            return
        settings, point = kept.settings, self._search.points[site]
        if settings.shape.identity and std is None and not self._sums.agree:  # as it is, quickly
            ratio = float(self._model.noise_at(point[None, :])[0])
            shaped = Shaped(value, ratio * settings.noise_std**2)
        else:
            shaped = self._search.shaped(settings, site, value, std)
        target = (shaped.value - settings.mean) / settings.amplitude
        noise = shaped.variance / settings.amplitude**2
        with one_thread():
            kept.add(site, point, target, noise)

    def renew_soon(self, number: int) -> None:
        """Make the posterior of a region again before it is used."""
        self._kept.pop(number, None)

    def renew_all(self) -> None:
        """Make all posteriors again before they are used."""
        self._kept.clear()

    # -- the choice ----------------------------------------------------------------------------

    def first(self, random: np.random.Generator, where: Fixing, unit: FloatArray) -> FloatArray:
        """A point (d,) of the slice to begin with: that next to a given one, if it is valid."""
        near = self._proposals.valid(unit[None, :], where)
        return np.asarray((near if len(near) else self._proposals.anywhere(random, where, 1))[0])

    def choose(
        self, random: np.random.Generator, where: Fixing, probe: bool, plan: Plan
    ) -> FloatArray:
        """The point (d,) of the slice with the highest index, for a probe the highest bound."""
        with one_thread():
            best = self._best(random, where, probe, plan)
        self._search.forecast = best.forecast
        return np.asarray(best.forecast.point)

    def _best(self, random: np.random.Generator, where: Fixing, probe: bool, plan: Plan) -> _Choice:
        regions = looked(random, self._search.outlooks, self._regions.met(where))
        seen = sorted((self._seen(number, where) for number in regions), key=_hope, reverse=True)
        side = self._regions[regions[0]].side
        compiled = all(one.kept.compiled for one in seen)
        fresh = self._proposals.draw(random, where, self._likely(where, seen), side, compiled)
        width = self._model.reach(self._model.fit.best) if probe else EXPLORATION
        best = self._best_among(seen, where, fresh, width, plan)
        while best is None:  # no candidate was in the regions
            fresh = self._proposals.anywhere(random, where, 1)
            seen = [self._seen(self._regions.number_at(fresh[0]), where)]
            best = self._best_among(seen, where, fresh, width, plan)
        return best

    def _best_among(
        self, seen: list[_Seen], where: Fixing, fresh: FloatArray, width: float, plan: Plan
    ) -> _Choice | None:
        """The best candidate of several regions, if there is one."""
        best: _Choice | None = None
        simple = not plan and self._search.limits is None and not self._sums.exact
        for one in seen:
            part = self._part(one, where, fresh)
            if not len(part.points):
                continue
            if simple:
                bar = -math.inf if best is None else best.value
                choice = self._best_by_index(one, part, where, width, bar)
            else:
                choice = self._best_planned(one.number, part, where, width, plan)
            if choice is not None and (best is None or choice.value > best.value):
                best = choice
        return best

    def _seen(self, number: int, where: Fixing) -> _Seen:
        kept = self._posterior(number)
        return _Seen(number, kept, kept.hopeful(where, BEST))

    def _posterior(self, number: int) -> Kept:
        """The posterior of a region, made if it is not kept."""
        kept = self._kept.pop(number, None)
        if kept is None:
            overall, sites = self._model.fit.best, self._regions[number].informed_by
            made = self._model.choosing(sites, overall)
            data = self._model.shaped(self._sums.data(sites), overall)
            room = min(max(len(sites) // ROOM_PART, LEAST_ROOM), MOST_ROOM)
            kept = Kept.of(made, data, sites, overall.amplitude**2, room)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self._kept[number] = kept
        return kept

    def _likely(self, where: Fixing, seen: list[_Seen]) -> FloatArray | None:
        """The best evaluated points (b, d) near the slice; None if all of it can be looked at."""
        if self._proposals.all_arms(where) is not None:
            return None
        if len(seen) == 1:
            return seen[0].near.points
        hopes = np.concatenate([one.kept.settings.in_units(one.near.hopes) for one in seen])
        best = np.argsort(-hopes, kind="stable")[:BEST]
        return np.asarray(np.concatenate([one.near.points for one in seen])[best])

    def _part(self, seen: _Seen, where: Fixing, fresh: FloatArray) -> _Part:
        """The candidates in a region: the best of those evaluated, and those of `fresh` (n, d).

        A fresh one may be one of the former again, which comes before it and is chosen first.
        """
        kept, region = seen.kept, self._regions[seen.number]
        held = kept.held(where, region)
        if len(held) > MOST_HELD:
            best = np.argsort(-kept.means()[held], kind="stable")[:MOST_HELD]
            held = held[np.sort(best)]
        if len(self._regions) > 1:
            fresh = fresh[region.holds(fresh)]
        return _Part(kept, np.concatenate([kept.at[held], fresh]), held)

    def _best_by_index(
        self, seen: _Seen, part: _Part, where: Fixing, width: float, bar: float
    ) -> _Choice | None:
        """The best candidate of a region where only the index counts, if it is above `bar`."""
        kept, settings = part.kept, part.kept.settings
        least = float(settings.from_units(bar)) if bar > -math.inf else bar
        mean, variance, across = kept.screen(part.points, where, seen.near.toward, width, least)
        looked_at = np.flatnonzero(variance >= 0.0)  # others are NaN
        if not len(looked_at):
            return None
        means, stds = mean[looked_at], np.sqrt(variance[looked_at])
        self._note_floor(seen.number, settings, means - stds)
        index = means + width * stds
        first = int(index.argmax())
        j, value = int(looked_at[first]), float(index[first])
        square = float(variance[j])
        near = self._nearest(part, j, across[:, j])
        if near is not None:
            left = float(variance[near.number])
            if math.isnan(left):
                left = float(kept.moments(across[:, near.number, None]).variance[0])
            if near.away < DISTINCT**2 * left:
                j, square = near.number, left
        forecast = Forecast(settings, part.points[j], float(mean[j]), square)
        return _Choice(forecast, float(settings.in_units(value)))

    def _nearest(self, part: _Part, j: int, row: FloatArray) -> _Near | None:
        """The evaluated candidate that is most like candidate j, unless that is evaluated.

        `row` (used,) is the kernel between candidate j and the data.
        """
        s = len(part.held)
        if j < s or not s:
            return None
        likeness = row[part.kept.rows[part.held]]
        near = int(likeness.argmax())
        return _Near(near, 2.0 - 2.0 * float(likeness[near]))

    def _best_planned(
        self, number: int, part: _Part, where: Fixing, width: float, plan: Plan
    ) -> _Choice:
        """The same with pending points, without noise, or with what must hold besides."""
        kept, settings = part.kept, part.kept.settings
        awaited = plan.new_in(self._regions[number])[-MOST_AWAITED:]
        points = unique(np.concatenate([part.points, awaited]))
        across = kept.across(points)
        at = kept.moments(across)
        candidates = Candidates(
            settings=settings,
            points=points,
            scaled=points / settings.scales,
            sites=kept.sites[part.held],
            mean=at.mean,
            variance=at.variance,
            rows=at.rows,
            used=len(at.rows),
            ceiling=math.inf,
            played=np.arange(len(points)) < len(part.held),
        )
        self._note_floor(number, settings, at.mean - np.sqrt(at.variance))
        planned = candidates.planned(plan.plays_of(candidates))
        index = self._search.index_in_slice(planned, where.holds(points), width)
        j = chosen = int(np.argmax(index))
        near = None if self._sums.exact else self._nearest(part, j, across[:, j])
        if near is not None and near.away < DISTINCT**2 * planned.variance[near.number]:
            chosen = near.number
        mean, variance = float(at.mean[chosen]), float(at.variance[chosen])
        forecast = Forecast(settings, points[chosen], mean, variance)
        return _Choice(forecast, float(settings.in_units(float(index[j]))))

    def _note_floor(self, number: int, settings: Settings, lower: FloatArray) -> None:
        """Note how good the best point of a region is, to look in the best ones next time."""
        outlook = self._search.outlooks[number]
        if outlook.candidates is None:  # else it says so itself
            outlook.floor = float(settings.in_units(float(lower.max())))

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The posteriors that are kept, as plain data."""
        return {
            "numbers": wholes(self._kept),
            "posteriors": [kept.state() for kept in self._kept.values()],
        }

    def restore(self, saved: Saved) -> None:
        """Restore saved posteriors, of regions and sites that are there already."""
        numbers = saved.numbers("numbers", len(self._regions))
        states = saved.parts("posteriors", MOST_KEPT)
        saved.require(len(numbers) == len(states), "a posterior for each region")
        points = self._search.points
        self._kept = {}
        for number, state in zip(numbers, states, strict=True):
            if state is None:
                saved.refuse("posteriors are missing")
            kept = Kept.restored(state, len(points), points.shape[1], 2 * MOST_DATA, MOST_ROOM)
            same = np.array_equal(points[kept.sites], kept.points[kept.rows])
            saved.require(same, "posteriors at their sites")
            self._kept[number] = kept
