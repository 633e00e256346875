"""Where the calibrated policy plays next: candidates of the regions, and the choice among them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.gp import _loops
from partita.gp.fitting import Fit, Fixed, Settings, first_settings
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.partition.sites import ArmSites, BoxSites

from .deviations import EXPLORATION, simultaneous
from .proposals import BEST, Proposals
from .records import AROUND, MOST_DATA, Records
from .region import Conditioned, Moments, Region, condition, renewal

#: How widely settings are drawn around their best, in posterior standard deviations, up to so many
#: observations; then as one over the root of them.
TEMPERATURE, COOLING = 1.0, 1000
#: A fresh candidate is played only if f there may differ from f at a point played before by more
#: than this part of what is unknown of the latter.
DISTINCT = 0.1
#: Regions whose posterior is kept at once.
WARM_REGIONS = 6
#: Pending points that are planned for, in a region.
MOST_PLANNED = 128
#: Without noise, once the index promises less than this part of the amplitude, one play in so many
#: goes where least is known: the model may be wrong, and there is no other use for it.
SETTLED, EXPLORE_EVERY = 1e-2, 4
#: How often the highest bound is looked for, around the best means, then around what was found.
LOOKS = 3


class Search:
    """Keeps candidates of the regions and their posterior, and chooses among them.

    Attributes
    ----------
    fit : the most likely settings
    reach : standard deviations of the bounds
    """

    def __init__(
        self,
        domain: Grid | Arms | Box | Mixed,
        sites: ArmSites | BoxSites,
        records: Records,
        fixed: Fixed,
        delta: float,
        random: np.random.Generator,
    ) -> None:
        self._sites = sites
        self._records = records
        self._fixed = fixed
        self._delta = delta
        self._random = random
        self._continuous = isinstance(domain, Box)
        dim = domain.dim
        self.proposals = Proposals(domain)
        self.fit = Fit(first_settings(dim, fixed), np.zeros((dim + 1, dim + 1)))
        self.reach = simultaneous(delta, self.fit.best.scales)
        self._clock = 0
        self._turn = 0
        self._fits = 0
        self._settled = 0

    def anywhere(self) -> int:
        """Any site of the domain."""
        return self.site_at(self.proposals.anywhere(self._random))

    def site_at(self, unit: FloatArray) -> int:
        """The site of a point (d,) of the unit cube, which is one of the domain exactly."""
        if isinstance(self._sites, BoxSites):
            return self._sites.register(unit)
        return self.proposals.arm(unit)

    def choose(self, probe: bool, told: int, pending: dict[int, int], explore: bool = True) -> int:
        """The site of the highest index, for a probe of the highest bound.

        `told` values have come, and `pending` says how often sites are awaited. Where least is
        known is gone to, without noise, only to `explore`.
        """
        region = self._best_region(probe, told, pending)
        if explore and self._records.exact and not probe and self._is_settled(region):
            self._settled += 1
            if self._settled % EXPLORE_EVERY == 0:
                return self._choice(self._any_region(told, pending), math.inf, pending)
        return self._choice(region, self.reach if probe else EXPLORATION, pending)

    def observe(self, site: int, value: float) -> None:
        """Take in a value that the records have taken in already."""
        region = self._records.region_of(site)
        region.used_at = self._clock = self._clock + 1
        moments = region.moments
        if moments is None or region.stale:
            return
        known = np.flatnonzero(moments.sites == site)
        if len(known):
            j = int(known[0])
        else:
            same = (moments.points == self._sites.scaled[site]).all(axis=1)
            j = int(np.argmax(same)) if same.any() else -1
        if j < 0 or moments.full:
            region.stale = True
        else:
            moments.observe(j, value)
            self._score(region)
            region.stale = moments.full

    def look_around(self) -> None:
        """Every second time, have one other region renewed, in turn: bounds there are old."""
        self._turn += 1
        if self._turn % 2:
            self._records.regions[self._turn // 2 % len(self._records.regions)].stale = True

    def start_over(self) -> None:
        """Have all regions renewed: what they know has changed."""
        for region in self._records.regions:
            region.stale = True

    def learn(self, fit: Fit) -> None:
        """Use other settings from now on."""
        self.fit = fit
        self._fits += 1
        self.reach = simultaneous(self._delta, fit.best.scales)
        self.start_over()
        for region in self._records.regions:
            region.revive()

    def condition(
        self, sites: IntArray, settings: Settings, overall: Settings | None = None
    ) -> Conditioned:
        """The posterior given the values at sites, with more noise where that is needed.

        Mean and amplitude are near the `overall` ones, those of the fit if not given; without noise
        the amplitude is the overall one if given.
        """
        data = self._records.data(sites)
        believed = self._records.exact and overall is not None
        for extra in (1.0, 10.0, 100.0):
            try:
                tried = settings if extra == 1.0 else _noisier(settings, extra)
                return condition(data, tried, overall or self.fit.best, self._fixed, believed)
            except np.linalg.LinAlgError:
                continue
        raise NumericalError("the data could not be fitted: are values of very different sizes?")

    def highest_bound(self, region: Region, settings: Settings) -> float:
        """The highest upper bound found in a region, by its data and settings as they are.

        Kept until they change. What is looked at does not depend on what was asked before, nor
        changes what will be.
        """
        if region.bound is not None and region.bound[:2] == (self._fits, region.changes):
            return region.bound[2]
        reach = simultaneous(self._delta, settings.scales)
        known = self.condition(region.data, settings, settings)
        held = self._sites.scaled[np.array(region.sites, dtype=np.int64)]
        there = known.moments_of(len(held))
        top = there.upper(reach)
        best = _best_of(held, there.mean, region)
        random = np.random.default_rng(LOOKS)
        for _ in range(LOOKS):
            fresh = self.proposals.draw(random, region.lower, region.upper, best)
            if not len(fresh):
                break
            new = known.moments_at(fresh)
            top = max(top, new.upper(reach))
            best = _best_of(fresh, new.mean + reach * np.sqrt(new.variance), region)
        value = known.in_units(top)
        region.bound = self._fits, region.changes, value
        return value

    # -- one region -----------------------------------------------------------------------------

    def _best_region(self, probe: bool, told: int, pending: dict[int, int]) -> Region:
        """The region of the highest score, for a probe of the highest bound, ready to play."""
        regions = self._records.regions
        for region in regions:
            if region.stale and not (math.isinf(region.score) and len(regions) > 1):
                self.renew(region, told, pending)
        while True:
            region = max(regions, key=lambda r: r.ceiling if probe else self._promise(r, pending))
            region.used_at = self._clock = self._clock + 1
            if region.moments is not None:
                return region
            scored = not math.isinf(region.score)
            self.renew(region, told, pending)
            if scored and region.moments is not None and len(region.moments.points):
                return region

    def _is_settled(self, region: Region) -> bool:
        """Whether nothing much can be gained any more, by the index."""
        moments = region.moments
        assert moments is not None
        best = moments.mean[moments.played].max(initial=-math.inf)
        index, _ = self._index(moments, EXPLORATION, {})
        return bool(index.max() - best < SETTLED)

    def _any_region(self, told: int, pending: dict[int, int]) -> Region:
        """The region of a point drawn from the whole domain, ready to play."""
        number = self._records.number_at(self.proposals.anywhere(self._random))
        region = self._records.regions[number]
        region.used_at = self._clock = self._clock + 1
        if region.moments is None or region.stale:
            self.renew(region, told, pending)
        return region

    def _promise(self, region: Region, pending: dict[int, int]) -> float:
        """The highest index in a region, as if pending plays had been observed."""
        moments = region.moments
        if moments is None or len(self._records.regions) == 1:
            return region.score
        planned = self.planned_in(region, pending)
        if not planned:
            return region.score
        index, _ = self._index(moments, EXPLORATION, planned)
        return moments.settings.mean + moments.settings.amplitude * float(index.max())

    def renew(self, region: Region, told: int, pending: dict[int, int]) -> None:
        """Draw settings and candidates anew, and compute the posterior of the candidates."""
        region.trim(MOST_DATA, AROUND)
        data_sites = region.data
        inside = len(region.sites)
        if not len(data_sites):
            raise AssertionError("a region has data")
        temperature = TEMPERATURE * min(1.0, math.sqrt(COOLING / max(told, 1)))
        known = self.condition(data_sites, self.fit.draw(self._random, temperature))
        held = self._sites.scaled[data_sites[:inside]]
        there = known.moments_of(inside)
        best = _best_of(held, there.mean, region)
        fresh = self.proposals.draw(self._random, region.lower, region.upper, best)
        if inside and (self._records.exact or not self._continuous):
            words = {row.tobytes() for row in held}
            fresh = np.array([row for row in fresh if row.tobytes() not in words])
            fresh = fresh.reshape(-1, held.shape[1])
        awaited = self._awaited_in(region, pending)
        fresh = np.concatenate([fresh, awaited])
        region.moments = known.candidates(
            held,
            there,
            fresh,
            data_sites[:inside],
            room=renewal(inside, told),
            reach=self.reach,
            awaited=len(awaited),
            uncertain=self._records.exact,
        )
        region.stale = False
        self._score(region)
        self._cool()

    def _score(self, region: Region) -> None:
        """Renew what the choice between regions looks at."""
        moments = region.moments
        assert moments is not None
        if not len(moments.points):  # no arm lies in it, or none was drawn
            region.score = region.ceiling = region.best_lower = -math.inf
            return
        settings = moments.settings
        std = np.sqrt(moments.variance)
        upper, _ = self._index(moments, EXPLORATION, {})
        region.score = settings.mean + settings.amplitude * float(upper.max())
        region.ceiling = settings.mean + settings.amplitude * moments.ceiling
        s = len(moments.sites)
        lower = moments.mean[:s] - std[:s]
        region.best_lower = (
            settings.mean + settings.amplitude * float(lower.max()) if s else -math.inf
        )

    def _choice(self, region: Region, width: float, pending: dict[int, int]) -> int:
        """The site to play in a region, whose mean plus so many deviations is the highest."""
        moments = region.moments
        assert moments is not None
        index, variance = self._index(moments, width, self.planned_in(region, pending))
        j = int(np.argmax(index))
        s = len(moments.sites)
        if j >= s and s and not self._records.exact:
            row = moments.scaled[j : j + 1]
            likeness = _loops.matern(row, moments.scaled[:s], moments.settings.form)[0]
            near = int(np.argmax(likeness))
            if 2.0 - 2.0 * likeness[near] < DISTINCT**2 * variance[near]:
                j = near
        if j < s:
            return int(moments.sites[j])
        return self.site_at(moments.points[j])

    def _index(
        self, moments: Moments, width: float, planned: dict[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Means plus so many deviations, (m,), and variances as if `planned` had been observed.

        The deviations alone, if those are infinitely many.
        Where values have no noise, what has been played is left out unless nothing else is there.
        """
        variance = moments.planned(planned) if planned else moments.variance
        std = np.sqrt(variance)
        index = std if math.isinf(width) else moments.mean + width * std
        if self._records.exact:
            done = moments.played.copy()
            done[list(planned)] = True
            if not done.all():
                index[done] = -math.inf
        return index, variance

    def _awaited_in(self, region: Region, pending: dict[int, int]) -> FloatArray:
        """Points (n, d) of a region that are pending and have no value yet."""
        new = [site for site in pending if site not in self._records.home]
        points = self._sites.scaled[np.array(new, dtype=np.int64)]
        return np.asarray(points[region.holds(points)][-MOST_PLANNED:])

    def planned_in(self, region: Region, pending: dict[int, int]) -> dict[int, int]:
        """How often candidates of a region are pending; of many, those of the highest index."""
        moments = region.moments
        if not pending or moments is None:
            return {}
        places = {row.tobytes(): j for j, row in enumerate(moments.points)}
        found: dict[int, int] = {}
        for site, plays in pending.items():
            j = places.get(self._sites.scaled[site].tobytes())
            if j is not None:
                found[j] = found.get(j, 0) + plays
        if len(found) > MOST_PLANNED:
            index = moments.mean + EXPLORATION * np.sqrt(moments.variance)
            kept = sorted(found, key=lambda j: -index[j])[:MOST_PLANNED]
            found = {j: found[j] for j in kept}
        return found

    def _cool(self) -> None:
        """Give up the posteriors of the regions used longest ago."""
        warm = [region for region in self._records.regions if region.moments is not None]
        if len(warm) > WARM_REGIONS:
            warm.sort(key=lambda region: region.used_at)
            for region in warm[:-WARM_REGIONS]:
                region.moments = None


def _best_of(points: FloatArray, values: FloatArray, region: Region) -> FloatArray:
    """The points (b, d) of the highest values, the middle of the region if there are none."""
    if not len(points):
        return 0.5 * (region.lower + region.upper)[None, :]
    return points[np.argsort(-values, kind="stable")[:BEST]]


def _noisier(settings: Settings, factor: float) -> Settings:
    return replace(settings, noise=settings.noise * factor + 1e-6 * factor)
