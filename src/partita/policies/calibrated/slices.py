"""The choice and the answers with some coordinates fixed: the slice of a context.

An ask looks at the few most hopeful regions that the slice meets. The posterior of each is kept
from ask to ask (`Kept`), and the candidates are drawn afresh, so an ask costs the same whatever was
asked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State, wholes
from partita._threads import one_thread
from partita._types import BoolArray, FloatArray, IntArray, Recommendation
from partita.gp import _loops
from partita.gp.settings import Settings
from partita.policies.feasible import unique
from partita.policies.fixed import Fixing

from .candidates import BEST, Candidates, Plan
from .kept import Kept, kernel_between
from .model import Conditioned, Model
from .outlook import Forecast
from .regions import MOST_DATA, Regions
from .search import Search
from .slice_points import SliceProposals
from .values import Sums

#: The regions of the highest floors in which an ask looks, and one more by chance.
LOOKED = 3
#: Sites that inform the posterior of a slice, at most.
MOST_INFORMING = 304
#: Fresh candidates of a slice: anywhere in it, and around the best points, for each coordinate that
#: is not fixed, one more than there are, up to five.
ANYWHERE, AROUND, MOST_COUNTED = 8, 12, 5
#: Evaluated points of the slice itself that are candidates, and pending points that are planned
#: for, at most: those of the highest mean, and the latest.
MOST_HELD, MOST_AWAITED = 24, 48
#: Standard deviations in the index. Contexts differ from ask to ask, which explores by itself.
EXPLORATION = 1.5
#: A fresh candidate is evaluated only if f there may differ from f at a point evaluated before by
#: more than this part of what is unknown of the latter. It is more than without a context: each
#: context has few values, so replicates are worth more.
DISTINCT = 0.8
#: Candidates whose variances are computed first, to see which others can have a higher index.
LEADERS = 24
#: Posteriors that are kept, and values that each takes in before it is made again, as a part of
#: its sites and at least and at most.
MOST_KEPT, ROOM_PART, LEAST_ROOM, MOST_ROOM = 32, 4, 8, 64
#: How wide the bounds of shaped values are: see `answers`.
SHAPED = 1.2
#: Searches for the best point of a slice and for its highest bound.
LOOKS = 3


class _Choice(NamedTuple):
    """A point that may be chosen, what the model says of it, and its index in units."""

    forecast: Forecast
    value: float


class _Part(NamedTuple):
    """The part of a slice in a region: its posterior, and points (n, d), evaluated ones first."""

    kept: Kept
    points: FloatArray
    sites: IntArray  # of the first ones


class _Near(NamedTuple):
    """An evaluated candidate near another, and the variance of the difference of f at them."""

    number: int
    away: float


class _View(NamedTuple):
    """The posterior of a slice, with the sites that it is by and the regions that it is of."""

    posterior: Conditioned
    sites: IntArray  # (P,), those in the slice first
    held: int  # the number of those
    means: FloatArray  # (P,), at the sites
    regions: list[int]
    whole: bool  # whether the slice meets no other regions


@dataclass(eq=False)
class Slices:
    """Chooses in a slice, and answers for it."""

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
        settings = kept.settings
        shaped = self._search.shaped(settings, site, value, std)
        target = (shaped.value - settings.mean) / settings.amplitude
        noise = shaped.variance / settings.amplitude**2
        with one_thread():
            kept.add(site, self._search.points[site], target, noise)

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
        meets = np.flatnonzero(self._regions.meet(where.numbers, where.values)).tolist()
        regions = self._looked(random, meets)
        kept = [self._posterior(number) for number in regions]
        fresh = self._draw(random, where, regions, self._likely(random, where, kept))
        width = self._model.reach(self._model.fit.best) if probe else EXPLORATION
        best = self._best_among(regions, kept, where, fresh, width, plan)
        while best is None:  # no candidate was in the regions
            fresh = self._proposals.anywhere(random, where, 1)
            regions = [self._regions.number_at(fresh[0])]
            kept = [self._posterior(regions[0])]
            best = self._best_among(regions, kept, where, fresh, width, plan)
        return best

    def _best_among(
        self,
        regions: list[int],
        kept: list[Kept],
        where: Fixing,
        fresh: FloatArray,
        width: float,
        plan: Plan,
    ) -> _Choice | None:
        """The best candidate of several regions, if there is one."""
        best: _Choice | None = None
        simple = not plan and self._search.limits is None and not self._sums.exact
        for number, posterior in zip(regions, kept, strict=True):
            part = self._part(number, posterior, where, fresh)
            if not len(part.points):
                continue
            if simple:
                bar = -math.inf if best is None else best.value
                choice = self._best_by_index(number, part, width, bar)
            else:
                choice = self._best_planned(number, part, where, width, plan)
            if best is None or choice.value > best.value:
                best = choice
        return best

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

    def _likely(
        self, random: np.random.Generator, where: Fixing, kept: list[Kept]
    ) -> FloatArray | None:
        """Points (b, d) of the slice at the best evaluated ones near it, by all posteriors."""
        if self._proposals.all_arms(where) is not None:
            return None
        points, hopes = [], []
        for posterior in kept:
            settings, at = posterior.settings, posterior.points[posterior.rows]
            points.append(at)
            hopes.append(settings.in_units(posterior.means() - _away(at, where, settings)))
        best = np.argsort(-np.concatenate(hopes), kind="stable")[:BEST]
        return self._moved(random, where, np.concatenate(points)[best])

    def _part(self, number: int, kept: Kept, where: Fixing, fresh: FloatArray) -> _Part:
        """The candidates in a region: the best of those evaluated, and those of `fresh` (n, d).

        A fresh one may be one of the former again, which comes before it and is chosen first.
        """
        at = kept.points[kept.rows]
        inside = where.holds(at)
        if len(self._regions) > 1:
            region = self._regions[number]
            inside &= region.holds(at)
            fresh = fresh[region.holds(fresh)]
        held = np.flatnonzero(inside)
        if len(held) > MOST_HELD:
            best = np.argsort(-kept.means()[held], kind="stable")[:MOST_HELD]
            held = held[np.sort(best)]
        return _Part(kept, np.concatenate([at[held], fresh]), kept.sites[held])

    def _best_by_index(self, number: int, part: _Part, width: float, bar: float) -> _Choice:
        """The best candidate of a region where only the index counts, above `bar` if there is one.

        A candidate's variance by all data is at most that by one of them, so a candidate whose
        index is too low with that variance cannot be the best: few variances are needed.
        """
        kept, settings = part.kept, part.kept.settings
        across = kept.across(part.points)
        mean = across @ kept.weights
        most = mean + width * np.sqrt(kept.spread(across))
        least = float(settings.from_units(bar)) if bar > -math.inf else bar
        order = np.argsort(-most, kind="stable")
        numbers = order[:LEADERS]
        moments = kept.moments(across[numbers])
        index = moments.mean + width * np.sqrt(moments.variance)
        rest = order[LEADERS:]
        rest = rest[most[rest] > max(least, float(index.max()))]
        variance = moments.variance
        if len(rest):
            more = kept.moments(across[rest])
            numbers, variance = np.append(numbers, rest), np.append(variance, more.variance)
            index = np.append(index, more.mean + width * np.sqrt(more.variance))
        self._note_floor(number, settings, mean[numbers] - np.sqrt(variance))
        first = int(np.argmax(index))
        j, value, square = int(numbers[first]), float(index[first]), float(variance[first])
        near = self._nearest(part, j)
        if near is not None:
            row = across[near.number : near.number + 1]
            if near.away < DISTINCT**2 * kept.spread(row)[0]:
                variance = kept.moments(row).variance
                if near.away < DISTINCT**2 * variance[0]:
                    j, square = near.number, float(variance[0])
        forecast = Forecast(settings, part.points[j], float(mean[j]), square)
        return _Choice(forecast, float(settings.in_units(value)))

    def _nearest(self, part: _Part, j: int) -> _Near | None:
        """The evaluated candidate that is most like candidate j, unless that is evaluated."""
        s = len(part.sites)
        if j < s or not s:
            return None
        settings = part.kept.settings
        row = part.points[j : j + 1] / settings.scales
        likeness = kernel_between(part.points[:s] / settings.scales, row, settings.form)[:, 0]
        near = int(np.argmax(likeness))
        return _Near(near, 2.0 - 2.0 * float(likeness[near]))

    def _best_planned(
        self, number: int, part: _Part, where: Fixing, width: float, plan: Plan
    ) -> _Choice:
        """The same with pending points, without noise, or with what must hold besides."""
        kept, settings = part.kept, part.kept.settings
        awaited = plan.new_in(self._regions[number])[-MOST_AWAITED:]
        points = unique(np.concatenate([part.points, awaited]))
        at = kept.moments(kept.across(points))
        candidates = Candidates(
            settings=settings,
            points=points,
            scaled=points / settings.scales,
            sites=part.sites,
            mean=at.mean,
            variance=at.variance,
            rows=at.rows,
            used=len(at.rows),
            ceiling=math.inf,
            played=np.arange(len(points)) < len(part.sites),
        )
        self._note_floor(number, settings, at.mean - np.sqrt(at.variance))
        planned = candidates.planned(plan.plays_of(candidates))
        index = self._search.index_in_slice(planned, where.holds(points), width)
        j = chosen = int(np.argmax(index))
        near = None if self._sums.exact else self._nearest(part._replace(points=points), j)
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

    # -- what is looked at ---------------------------------------------------------------------

    def _looked(self, random: np.random.Generator, meets: list[int]) -> list[int]:
        """Those of the highest floors, or that were never looked at, and one by chance."""
        if len(meets) <= LOOKED + 1:
            return meets

        def hope(number: int) -> float:
            floor = self._search.outlooks[number].floor
            return math.inf if floor == -math.inf else floor

        best = sorted(meets, key=hope, reverse=True)
        return [*best[:LOOKED], best[LOOKED + int(random.integers(len(best) - LOOKED))]]

    def _draw(
        self,
        random: np.random.Generator,
        where: Fixing,
        regions: list[int],
        centres: FloatArray | None,
    ) -> FloatArray:
        """Fresh points (m, d) of the slice: anywhere, and around centres (b, d); all of few."""
        if centres is None:
            points = self._proposals.all_arms(where)
            assert points is not None, "there are few"
            return points
        region = self._regions[regions[0]]
        many = min(centres.shape[1] - len(where.numbers) + 1, MOST_COUNTED)
        chosen = random.integers(len(centres), size=AROUND * many)
        side = region.upper - region.lower
        return np.concatenate(
            [
                centres,
                self._proposals.anywhere(random, where, ANYWHERE * many),
                self._proposals.around(random, where, centres[chosen], side),
            ]
        )

    def _moved(self, random: np.random.Generator, where: Fixing, points: FloatArray) -> FloatArray:
        """Points (n, d) moved into the slice; any point of it if none can be."""
        centres = self._proposals.valid(points, where)
        return centres if len(centres) else self._proposals.anywhere(random, where, 1)

    # -- answers -------------------------------------------------------------------------------

    def recommend(self, where: Fixing, settings: Settings) -> Recommendation:
        """The point of the slice with the highest mean less one standard deviation."""
        view, points, index = self._searched(where, settings, -1.0, self._model.answering)
        point = points[int(np.argmax(index))]
        at = view.posterior.moments_at(point[None, :])
        reach, units = self._reach(settings), view.posterior.settings.in_units
        mean, away = float(at.mean[0]), reach * math.sqrt(float(at.variance[0]))
        return Recommendation(point, units(mean), units(mean - away), units(mean + away))

    def ceiling(self, where: Fixing, settings: Settings) -> float:
        """The highest upper bound on f that was found in the slice."""
        reach = self._reach(settings)
        view, _, index = self._searched(where, settings, reach, self._model.doubting)
        return view.posterior.settings.in_units(float(index.max()))

    def _reach(self, settings: Settings) -> float:
        return self._model.reach(settings) * (1.0 if settings.shape.identity else SHAPED)

    def _searched(
        self,
        where: Fixing,
        settings: Settings,
        width: float,
        condition: Callable[[IntArray, Settings], Conditioned],
    ) -> tuple[_View, FloatArray, FloatArray]:
        """Points of the slice (m, d), and their means plus `width` standard deviations (m,)."""
        random = np.random.default_rng(LOOKS)
        view = self._view(random, where, settings, condition)
        points = self._search.points[view.sites[: view.held]]
        index = np.empty(0)
        centres = None
        for _ in range(LOOKS):
            points = unique(np.concatenate([points, self._drawn(random, where, view, centres)]))
            new = view.posterior.moments_at(points[len(index) :])
            index = np.append(index, new.mean + width * np.sqrt(new.variance))
            centres = points[np.argsort(-index, kind="stable")[:BEST]]
        return view, points, index

    def _view(
        self,
        random: np.random.Generator,
        where: Fixing,
        settings: Settings,
        condition: Callable[[IntArray, Settings], Conditioned],
    ) -> _View:
        """The posterior of a slice, by the sites of a few regions that it meets."""
        meets = np.flatnonzero(self._regions.meet(where.numbers, where.values)).tolist()
        regions = self._looked(random, meets)
        informed = [self._regions[number].informed_by for number in regions]
        sites = _each_once(np.concatenate(informed))
        points = self._search.points[sites]
        if len(sites) > MOST_INFORMING:
            # The squared correlation of a site's mean with f at its actions in the slice.
            counts = self._sums.data(sites).counts[: len(sites)]
            noise = settings.noise / np.maximum(counts, 1.0)
            told = _likeness(points, where, settings) ** 2 / (1.0 + noise)
            kept = np.sort(np.argsort(-told, kind="stable")[:MOST_INFORMING])
            sites, points = sites[kept], points[kept]
        inside = where.holds(points)
        sites = sites[np.argsort(~inside, kind="stable")]
        posterior = condition(sites, settings)
        means = posterior.means()[: len(sites)]
        whole = len(regions) == len(meets)
        return _View(posterior, sites, int(inside.sum()), means, regions, whole)

    def _drawn(
        self, random: np.random.Generator, where: Fixing, view: _View, centres: FloatArray | None
    ) -> FloatArray:
        """Fresh points (m, d) of the slice in the regions of a view, around the best or centres."""
        if self._proposals.all_arms(where) is not None:
            centres = None
        elif centres is None:
            points = self._search.points[view.sites]
            away = _away(points, where, view.posterior.settings)
            best = points[np.argsort(away - view.means, kind="stable")[:BEST]]
            centres = self._moved(random, where, best)
        points = self._draw(random, where, view.regions, centres)
        if view.whole:
            return points
        inside: BoolArray = np.zeros(len(points), dtype=np.bool_)
        for number in view.regions:
            inside |= self._regions[number].holds(points)
        return points[inside] if inside.any() else points

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


def _each_once(sites: IntArray) -> IntArray:
    """Sites in their order, each once."""
    first = np.unique(sites, return_index=True)[1]
    return np.asarray(sites[np.sort(first)])


def _away(points: FloatArray, where: Fixing, settings: Settings) -> FloatArray:
    """By how many amplitudes f at points (n, d) and at the same moved into the slice differ.

    Its standard deviation is √(2 − 2k), k the kernel between them.
    """
    return np.sqrt(np.maximum(2.0 - 2.0 * _likeness(points, where, settings), 0.0))


def _likeness(points: FloatArray, where: Fixing, settings: Settings) -> npt.NDArray[np.float64]:
    """The kernel (n,) between points (n, d) and the same points moved into the slice."""
    scales = settings.scales[where.numbers]
    scaled = np.ascontiguousarray(points[:, where.numbers] / scales)
    row = np.ascontiguousarray(where.values / scales)[None, :]
    return np.asarray(_loops.matern(row, scaled, settings.form)[0])
