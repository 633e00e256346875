"""Where the calibrated policy evaluates next: the choice of a region, and of a candidate in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, generator_state, wholes
from partita._types import BoolArray, FloatArray
from partita.gp import _loops
from partita.gp.fitting import JITTER
from partita.gp.settings import Settings
from partita.partition.sites import ArmSites, BoxSites

from .candidates import EXPLORATION, Candidates, Plan, Proposals, best_of, keep_best
from .climbs import MANY, climbs
from .limits import LEAST_CHANCE, Limits
from .model import Model
from .outlook import Forecast, Outlook, Preparation
from .regions import Region, Regions
from .values import Sums

#: How widely settings are drawn around their best, in posterior standard deviations, up to COOLING
#: observations; then as one over the root of them.
TEMPERATURE, COOLING = 1.0, 1000
#: Observations between two renewals of the candidates: while points are few, later, and at most.
RENEW_EARLY, RENEW_LATE, LATE_POINTS, RENEW_LAST = 8, 16, 128, 64
#: Later still, they are renewed after one in this many of all observations.
RENEW_PART = 128
#: A fresh candidate is evaluated only if f there may differ from f at a point evaluated before by
#: more than this part of what is unknown of the latter.
DISTINCT = 0.1
#: Regions whose candidates are kept at once.
WARM_REGIONS = 6
#: Without noise, evaluations are settled once the index promises less than this part of the
#: amplitude.
SETTLED = 1e-2
#: Of n settled evaluations, √(n/d) look for another maximum, as the model may be wrong: where a
#: value this many amplitudes above the best would be least surprising, in regions drawn this many
#: times. In many dimensions an evaluation rules out so little that more would not be worth their
#: price.
BETTER, DRAWN = 0.1, 4
#: Numbers that `Search` counts with.
_CLOCKS = ("_clock", "_turn", "_settled", "_explored", "_chosen")


class Shaped(NamedTuple):
    """A shaped value, and the variance of its noise."""

    value: float
    variance: float


@dataclass(eq=False)
class Search:
    """Keeps an outlook for each region, and chooses among the regions and their candidates."""

    _sites: ArmSites | BoxSites
    _sums: Sums
    _regions: Regions
    _model: Model
    proposals: Proposals
    random: np.random.Generator
    #: Whether fresh candidates are hardly ever points evaluated before.
    continuous: bool
    #: What must hold besides, if anything must; it counts in the index.
    limits: Limits | None = None
    #: One for each region, by number.
    outlooks: list[Outlook] = field(init=False)
    _clock: int = 0
    #: Renewals that came due, settled evaluations, and how many of those looked for another
    #: maximum.
    _turn: int = 0
    _settled: int = 0
    _explored: int = 0
    #: Whether a site was chosen since a renewal was prepared: 0 or 1. Where others choose, as with
    #: coordinates fixed, none is prepared.
    _chosen: int = 0
    #: The first half of a renewal that is due, done ahead.
    _preparation: Preparation | None = None
    #: What the model says of the last point that was chosen by its index.
    forecast: Forecast | None = None

    def __post_init__(self) -> None:
        self.outlooks = [Outlook(region) for region in self._regions]

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The outlooks and the generator, as plain data."""
        kept = [i for i, one in enumerate(self.outlooks) if one.candidates is not None]
        bounds = [(one.index, one.ceiling, one.floor) for one in self.outlooks]
        return {
            "random": generator_state(self.random),
            "proposals": self.proposals.state(),
            "stale": np.array([one.stale for one in self.outlooks], dtype=bool),
            "used_at": wholes(one.used_at for one in self.outlooks),
            "bounds": np.array(bounds, dtype=float),
            "kept": wholes(kept),
            "candidates": [
                one.candidates.state() for one in self.outlooks if one.candidates is not None
            ],
            "preparation": self._preparation_state(),
            **{name: getattr(self, name) for name in _CLOCKS},
        }

    def _preparation_state(self) -> State | None:
        """The settings that were drawn for the renewal that is prepared, and of which region."""
        ready = self._preparation
        if ready is None or not self._holds(ready):
            return None
        number = next(i for i, region in enumerate(self._regions) if region is ready.region)
        return {"region": number, "drawn": ready.drawn.state()}

    def restore(self, saved: Saved) -> None:
        """Restore saved outlooks, of regions and sites that are there already."""
        saved.generator("random", self.random)
        self.proposals.restore(saved.part("proposals"))
        for name in _CLOCKS:
            setattr(self, name, saved.integer(name))
        number = len(self._regions)
        stale = saved.flags("stale", (number,)).tolist()
        used_at = saved.wholes("used_at", (number,), 0, self._clock).tolist()
        bounds = saved.floats("bounds", (number, 3), -math.inf, math.inf).tolist()
        self.outlooks = [
            Outlook(region, None, stale[i], used_at[i], *bounds[i])
            for i, region in enumerate(self._regions)
        ]
        kept = saved.numbers("kept", number)
        states = saved.parts("candidates", WARM_REGIONS)
        saved.require(len(kept) == len(states), "candidates of each region that has some")
        for i, state in zip(kept, states, strict=True):
            if state is None:
                saved.refuse("candidates are missing")
            args = self._sites, self.proposals, RENEW_LAST
            self.outlooks[i].candidates = Candidates.restored(state, *args)
        self._preparation = None
        if "preparation" in saved:
            part = saved.part("preparation")
            region = self._regions[part.integer("region", 0, number - 1)]
            part.require(len(region.informed_by), "a region with data")
            drawn = Settings.restored(part.part("drawn"), self._sites.scaled.shape[1])
            self._preparation = self._prepared(region, drawn)

    # -- what has come -----------------------------------------------------------------------------

    def observe(
        self, number: int, site: int, value: float, std: float | None = None, count: int = 1
    ) -> None:
        """Record a value at a site of a region, or the mean of `count`; the sums hold it already.

        If the noise of a single value was told, `std` is that.
        """
        outlook = self.outlooks[number]
        self._use(outlook)
        candidates = outlook.candidates
        if candidates is None:
            return
        j = candidates.number_of(site, self._sites.scaled[site])
        if j is None or candidates.full or outlook.stale:
            outlook.stale = True
            if j is not None:
                candidates.played[j] = True
        else:
            candidates.observe(j, *self.shaped(candidates.settings, site, value, std, count))
            self._summarise(outlook)
            outlook.stale = candidates.full

    def shaped(
        self, settings: Settings, site: int, value: float, std: float | None, count: int = 1
    ) -> Shaped:
        """The shaped value that stands for one at a site, and the variance of its noise.

        Shaped means z_n of n values, each with precision n/noise, follow if one value more is
        observed at n z_n − (n − 1) z_(n−1), or k more with a mean of (n z_n − (n − k) z_(n−k))/k.
        """
        if std is not None:
            told = self._sums.told(site, value, std)
            seen = self._model.shaped(told, settings)
            return Shaped(float(seen.means[0]), float(seen.known[0]))
        seen = self._model.shaped(self._sums.last_steps(site, value, count), settings)
        steps, more = seen.counts * seen.means, float(seen.counts[0] - seen.counts[1:].sum())
        noise = float(seen.ratios[0]) * settings.noise_std**2
        return Shaped(float(steps[0] - steps[1:].sum()) / more, noise / more)

    def admit(self, number: int) -> None:
        """Take note that a region has one more site with values."""
        self.outlooks[number].revive()

    def renew_soon(self, number: int) -> None:
        """Have a region renewed before it is used again."""
        self.outlooks[number].stale = True

    def follow_cut(self, number: int) -> None:
        """Take note that a region was cut, and the last one is its upper half."""
        whole, self._preparation = self.outlooks[number], None
        self.outlooks[number] = whole.of_part(self._regions[number])
        self.outlooks.append(whole.of_part(self._regions[len(self.outlooks)]))

    def look_around(self) -> None:
        """Every second time, have one other region renewed, in turn: bounds there are old."""
        self._turn += 1
        if self._turn % 2:
            self.outlooks[self._turn // 2 % len(self.outlooks)].stale = True

    def renew_all(self, revive: bool = False) -> None:
        """Have all regions renewed; to `revive`, also those that had no candidates."""
        for outlook in self.outlooks:
            outlook.stale = True
            if revive:
                outlook.revive()

    # -- the choice --------------------------------------------------------------------------------

    def first_site(self, design: FloatArray, number: int) -> int:
        """The site of point `number` of a design, counted from 1, or any if that is used up."""
        if number <= len(design):
            return self.site_at(design[number - 1])
        return self.site_at(self.proposals.anywhere(self.random))

    def site_at(self, unit: FloatArray) -> int:
        """The site of a point (d,) of the unit cube, which is one of the domain exactly."""
        if isinstance(self._sites, BoxSites):
            return self._sites.register(unit)
        return self.proposals.arm(unit)

    def choose(self, probe: bool, told: int, pending: dict[int, int], explore: bool = True) -> int:
        """The site of the highest index, for a probe of the highest bound.

        `told` values have come, and `pending` says how often sites are awaited. Without noise,
        another maximum is looked for only to `explore`.
        """
        self._chosen = 1
        plan = Plan(pending, self._sites, self._regions.home)
        outlook = self._best_region(probe, told, plan)
        if explore and self._sums.exact and not probe and self._is_settled(outlook):
            self._settled += 1
            dim = self._sites.scaled.shape[1]
            if self._explored < math.sqrt(self._settled / dim):
                self._explored += 1
                return self._least_surprising(outlook, told, plan)
        width = self._model.reach(self._model.fit.best) if probe else EXPLORATION
        return self._best_candidate(outlook, width, plan)

    @property
    def points(self) -> FloatArray:
        """The points (n, d) of all sites, in the unit cube."""
        return self._sites.scaled

    def index_in_slice(
        self, candidates: Candidates, allowed: BoolArray, width: float
    ) -> FloatArray:
        """Means plus `width` deviations of the candidates `allowed`, -inf for others, (m,).

        Where all of them were evaluated, without noise, their means.
        """
        index = np.where(allowed, self._index(candidates, width), -math.inf)
        if index.max() == -math.inf:
            index = np.where(allowed, candidates.mean, -math.inf)
        return index

    def _note(self, candidates: Candidates, j: int) -> None:
        """Note what the model says of candidate j, by the values alone."""
        mean, variance = float(candidates.mean[j]), float(candidates.variance[j])
        self.forecast = Forecast(candidates.settings, candidates.points[j], mean, variance)

    def likeliest(self, number: int) -> list[Region]:
        """The `number` regions where the best point may be, by their model or their values."""

        def hope(outlook: Outlook) -> float:
            if math.isfinite(outlook.floor) and not outlook.stale:
                return outlook.floor
            own = outlook.region.own
            if self.limits is not None:
                own = own[self.limits.satisfied(own)]
            return self._sums.highest(own)

        return [one.region for one in sorted(self.outlooks, key=hope, reverse=True)[:number]]

    def _use(self, outlook: Outlook) -> None:
        outlook.used_at = self._clock = self._clock + 1

    def _best_region(self, probe: bool, told: int, plan: Plan) -> Outlook:
        """The region of the highest index, for a probe of the highest bound, ready to evaluate.

        One region is renewed at most: the best if that is due, or another. Those that wait for
        their turn are ready with the candidates that they have.
        """

        def merit(outlook: Outlook) -> float:
            return outlook.ceiling if probe else self._promise(outlook, plan)

        while True:
            best = max(self.outlooks, key=merit)
            if best.candidates is not None and not best.stale:
                break
            ranked, cold = not math.isinf(best.index), best.candidates is None
            self._use(best)
            self.renew(best, told, plan)
            if ranked and best.candidates is not None and len(best.candidates.points):
                other = max(self.outlooks, key=merit)
                return best if cold or other.candidates is None else self._used(other)
        due = self._next_due()
        if due is not None:
            self.renew(due, told, plan, spared=best)
            other = max(self.outlooks, key=merit)
            best = best if other.candidates is None else other
        return self._used(best)

    def _used(self, outlook: Outlook) -> Outlook:
        self._use(outlook)
        return outlook

    def _next_due(self) -> Outlook | None:
        """The region to be renewed next, if any: that prepared, or that of the highest index."""
        due = [one for one in self.outlooks if one.stale and not math.isinf(one.index)]
        if not due:
            return None
        ready = self._preparation
        if ready is not None and self._holds(ready):
            prepared = [one for one in due if one.region is ready.region]
            if prepared:
                return prepared[0]
        return max(due, key=lambda one: one.index)

    def prepare(self, told: int) -> bool:
        """Do half of the next renewal ahead, if one is due. Return True if there was one.

        Once for each choice: what is not used must not keep other work from being done.
        """
        if not self._chosen:
            return False
        best = max(self.outlooks, key=lambda one: one.index)
        needed = best.stale or best.candidates is None
        due = best if needed else self._next_due()
        if due is None:
            return False
        ready = self._preparation
        if ready is not None and ready.region is due.region and self._holds(ready):
            return False
        self._chosen, self._preparation = 0, self._prepared(due.region, self._drawn(told))
        return True

    def _any_region(self, told: int, plan: Plan, spared: Outlook) -> Outlook:
        """The region of a point drawn from the whole domain, ready to evaluate as `spared` is."""
        number = self._regions.number_at(self.proposals.anywhere(self.random))
        outlook = self.outlooks[number]
        self._use(outlook)
        if outlook.candidates is None:
            self.renew(outlook, told, plan, spared)
        return outlook

    def _promise(self, outlook: Outlook, plan: Plan) -> float:
        """The highest index in a region, as if pending evaluations had been observed."""
        candidates = outlook.candidates
        if candidates is None or len(self.outlooks) == 1:
            return outlook.index
        planned = candidates.planned(plan.plays_of(candidates))
        if planned is candidates:
            return outlook.index
        return candidates.settings.in_units(float(self._index(planned, EXPLORATION).max()))

    def _is_settled(self, outlook: Outlook) -> bool:
        """Whether nothing much can be gained any more, by the index."""
        candidates = outlook.candidates
        assert candidates is not None
        highest = float(self._index(candidates, EXPLORATION).max())
        return highest - candidates.best_played < SETTLED

    def _best_candidate(self, outlook: Outlook, width: float, plan: Plan) -> int:
        """The site in a region whose mean plus `width` standard deviations is the highest."""
        assert outlook.candidates is not None
        candidates = outlook.candidates.planned(plan.plays_of(outlook.candidates))
        j = self._choice(candidates, width)
        self._note(outlook.candidates, j)
        return self._site_of(candidates, j)

    def _choice(self, candidates: Candidates, width: float) -> int:
        """The number of the best candidate: an evaluated one if that is as good as the same."""
        index = self._index(candidates, width)
        j, s = int(np.argmax(index)), len(candidates.sites)
        if j >= s and s and not self._sums.exact:
            row = candidates.scaled[j : j + 1]
            likeness = _loops.matern(row, candidates.scaled[:s], candidates.settings.form)[0]
            near = int(np.argmax(likeness))
            if 2.0 - 2.0 * likeness[near] < DISTINCT**2 * candidates.variance[near]:
                j = near
        return j

    def _site_of(self, candidates: Candidates, j: int) -> int:
        """The site of candidate j, a new one if it has never been evaluated."""
        known = j < len(candidates.sites)
        return int(candidates.sites[j]) if known else self.site_at(candidates.points[j])

    def _least_surprising(self, outlook: Outlook, told: int, plan: Plan) -> int:
        """The site where a value much better than the best would be least surprising.

        That is the highest probability of improvement by a margin (Kushner 1964): the fewest
        standard deviations between f's mean and BETTER amplitudes above the best value, which
        `outlook` holds. Not all regions are looked at: that would take too long.
        """
        assert outlook.candidates is not None
        best = outlook.candidates.settings.in_units(outlook.candidates.best_played)
        least, where = math.inf, None
        for _ in range(DRAWN):
            candidates = self._any_region(told, plan, outlook).candidates
            assert candidates is not None
            planned = candidates.planned(plan.plays_of(candidates))
            away = planned.settings.from_units(best) + BETTER - planned.mean
            surprise = away / np.sqrt(np.maximum(planned.variance, JITTER))
            surprise[planned.played] = math.inf
            if self.limits is not None:
                surprise[self.limits.chances(planned.points) < LEAST_CHANCE] = math.inf
            if surprise.min(initial=math.inf) < least:
                least, where = float(surprise.min()), (planned, int(surprise.argmin()))
        if where is None:  # all has been evaluated
            return self._best_candidate(outlook, EXPLORATION, plan)
        return self._site_of(*where)

    def _index(self, candidates: Candidates, width: float) -> FloatArray:
        """Means plus `width` standard deviations, (m,).

        Without noise, evaluated points are left out unless there are no others.
        """
        index = candidates.mean + width * np.sqrt(candidates.variance)
        if self._sums.exact and not candidates.played.all():
            index[candidates.played] = -math.inf
        return self._weighed(candidates.points, index, candidates.settings)

    def _weighed(self, points: FloatArray, index: FloatArray, settings: Settings) -> FloatArray:
        """The index of points (m, d) once what must hold besides counts, (m,)."""
        if self.limits is None:
            return index
        bar = max(outlook.floor for outlook in self.outlooks)
        return self.limits.weigh(
            points, index, settings.from_units(bar) if math.isfinite(bar) else bar
        )

    # -- candidates of one region ------------------------------------------------------------------

    def renew(self, outlook: Outlook, told: int, plan: Plan, spared: Outlook | None = None) -> None:
        """Draw settings and candidates again, and compute the posterior of the candidates.

        `spared` keeps its candidates, however long ago it was used.
        """
        region, exact = outlook.region, self._sums.exact
        own = region.own
        ready = self._preparation
        if ready is None or ready.region is not region or not self._holds(ready):
            ready = self._prepared(region, self._drawn(told))
        else:
            self._preparation = None
        posterior, at_held = ready.posterior, ready.at_held
        held = self._sites.scaled[own]
        best = best_of(held, self._merits(held, at_held.mean), region)
        fresh = self.proposals.draw(self.random, region.lower, region.upper, best)
        if self.continuous and held.shape[1] > MANY:
            way = climbs(posterior, best, region.lower, region.upper)
            fresh = np.concatenate([fresh, self.proposals.snap(way, region.lower, region.upper)])
        if len(own) and (exact or not self.continuous):
            words = {row.tobytes() for row in held}
            fresh = np.array([row for row in fresh if row.tobytes() not in words])
            fresh = fresh.reshape(-1, held.shape[1])
        awaited = plan.new_in(region)
        outlook.candidates = keep_best(
            posterior,
            held,
            at_held,
            own,
            np.concatenate([fresh, awaited]),
            room=_renewal(len(own), told),
            reach=self._model.reach(self._model.fit.best),
            awaited=len(awaited),
            uncertain=exact,
            weigh=self._weighed if self.limits is not None else None,
        )
        outlook.stale = False
        self._summarise(outlook)
        self._cool(spared)

    def _drawn(self, told: int) -> Settings:
        """Settings from their posterior, less widely the more values have come."""
        temperature = TEMPERATURE * min(1.0, math.sqrt(COOLING / max(told, 1)))
        return self._model.fit.draw(self.random, temperature)

    def _prepared(self, region: Region, drawn: Settings) -> Preparation:
        """The first half of the renewal of a region, under drawn settings."""
        assert len(region.sites) or len(region.around), "a region has data"
        posterior = self._model.choosing(region.informed_by, drawn)
        at_held = posterior.moments_of(len(region.sites))
        changes = int(self._sums.changes[region.informed_by].sum())
        known = self._model.fit, changes, self._sums.agree
        return Preparation(region, drawn, posterior, at_held, *known)

    def _holds(self, ready: Preparation) -> bool:
        """Whether nothing has come since that changes what was prepared."""
        if ready.fit is not self._model.fit or ready.agree != self._sums.agree:
            return False
        region = ready.region  # sites around it leave it only when it gains one of its own
        changes = int(self._sums.changes[region.informed_by].sum())
        return len(region.sites) == len(ready.at_held.mean) and changes == ready.changes

    def _summarise(self, outlook: Outlook) -> None:
        """Compute what the choice between regions looks at."""
        candidates = outlook.candidates
        assert candidates is not None
        if not len(candidates.points):  # no arm is in it, or none was drawn
            outlook.index = outlook.ceiling = outlook.floor = -math.inf
            return
        settings, s = candidates.settings, len(candidates.sites)
        lower = candidates.mean[:s] - np.sqrt(candidates.variance[:s])
        if self.limits is not None:
            lower = lower[self.limits.feasible(candidates.points[:s])]
        best = float(lower.max(initial=-math.inf))
        outlook.floor = settings.in_units(best) if best > -math.inf else best
        outlook.index = settings.in_units(float(self._index(candidates, EXPLORATION).max()))
        outlook.ceiling = settings.in_units(candidates.ceiling)

    def reweigh(self, number: int) -> None:
        """Take note that what must hold counts otherwise in a region than it did."""
        if self.outlooks[number].candidates is not None:
            self._summarise(self.outlooks[number])

    def _merits(self, points: FloatArray, means: FloatArray) -> FloatArray:
        """Means of points (n, d), an amplitude lower where they are surely not feasible, (n,)."""
        return means if self.limits is None else means - 1.0 + self.limits.chances(points)

    def _cool(self, spared: Outlook | None) -> None:
        """Give up the candidates of the regions used longest ago, but for WARM_REGIONS of them."""
        warm = [outlook for outlook in self.outlooks if outlook.candidates is not None]
        if len(warm) > WARM_REGIONS:
            warm.sort(key=lambda outlook: (outlook is spared, outlook.used_at))
            for outlook in warm[:-WARM_REGIONS]:
                outlook.candidates = None


def _renewal(points: int, told: int) -> int:
    """Observations of a region with that many points until its candidates are renewed."""
    least = RENEW_EARLY if points <= LATE_POINTS else RENEW_LATE
    return max(least, min(told // RENEW_PART, RENEW_LAST))
