"""The policy that needs no knobs: it learns kernel, noise and scale from the values it is told."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._checks import check_choice, check_delta, check_horizon, check_scale, check_seed
from partita._types import FloatArray, IntArray, Prediction, Recommendation
from partita.errors import InvalidInput, NumericalError
from partita.gp.fitting import Fixed, Settings, fit, profile
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed
from partita.model.noise import Noise, sub_gaussian_constant
from partita.partition.cover import Geometry
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.base import Policy, check_kernel

from .deviations import simultaneous
from .intake import Intake
from .misfit import bounds_at
from .records import REGION_POINTS, Records
from .region import RENEW_EARLY, Conditioned, Region
from .search import Search

#: Keeps the draws independent of a test function or noise drawn under the same seed.
STREAM = 5
#: The settings are fitted again after this many times the observations, and at least so many more.
REFIT_FACTOR, REFIT_STEP = 1.4, 4
#: Fits of fewer observations also start afresh; later that finds nothing better.
RESTART = 40
#: Points that a fit looks at, at most.
FIT_POINTS = 200
#: Probes by step t, as a multiple of √t: plays where f could be highest by its bounds, not by the
#: index. They find what the index, two deviations wide, would never look at.
PROBES = 0.5
#: Values told before the model is asked, if more is asked for than the first design.
FEWEST = 3
#: Cancelled plays that count as pending for a while, at most.
MOST_GIVEN_UP = 64
#: Values for each dimension, and as many more, before the fitted model can certify anything.
CERTIFIED_FROM = 10
#: Upper bounds are remembered each time there are so many times the values.
NOTE_FACTOR = 2.5


@dataclass(frozen=True, slots=True)
class RegionView:
    """A region: corners in the unit cube, values told in it, and the highest index it had."""

    lower: FloatArray
    upper: FloatArray
    count: int
    index: float


class CalibratedUCB(Policy):
    """Needs nothing but the domain: it learns amplitude, lengthscales, noise and mean as it goes.

    The index is the posterior mean plus two standard deviations, over candidates that are renewed
    every few plays: points played before, some anywhere, and most around the best means at many
    scales. Settings are the most likely ones given the replicate means, fitted again at
    geometrically spaced steps; each renewal draws its lengthscales and noise from their posterior
    around those (Laplace's approximation), so that the policy does not stay with a wrong
    lengthscale or a lucky value. A region that holds many distinct points is cut in two, so a
    step costs the same for ever.

    Bounds come from the fitted model (`guarantee == "calibrated"`): docs/calibrated.md measures how
    often they hold. Values far outside all others (by ten interquartile ranges) count as if at a
    fence, unless all values at their point are: `clipped` says how many, `outliers` can stop it.
    Where values have no noise (those at the same points agree), no point is played twice.
    Where noise differs from place to place the model uses its average: means stay right, bounds
    are too wide where it is quiet and too narrow where it is loud.

    Parameters
    ----------
    domain : Grid, Arms, Box or Mixed
    horizon : int, optional
        Evaluations planned, if known. The policy does not need it.
    seed : int
        Draws candidates and settings.
    kernel : Matern, optional
        Used as given, if nu is 3/2 or 5/2, and not estimated.
    noise : a noise model, optional
        Its constant is used as the noise's standard deviation, and not estimated.
    norm_bound : float, optional
        B: the amplitude is then B/√(20 d), as in `PiGPUCB`, and not estimated.
    outliers : "clip" or "keep"
        Whether values far outside all others count as less extreme, as they should if they are
        accidents of measuring; or as they are, as they must if rare large losses are part of what
        f is on average.
    delta : float
        Bounds are meant to hold with probability 1 − delta, all together.
    """

    guarantee = "calibrated"
    plays_mixed = True
    plans_from_pending = True

    def __init__(
        self,
        domain: Grid | Arms | Box | Mixed,
        *,
        horizon: int | None = None,
        seed: int = 0,
        kernel: Matern | None = None,
        noise: Noise | None = None,
        norm_bound: float | None = None,
        delta: float = 0.1,
        outliers: str = "clip",
    ) -> None:
        super().__init__(domain)
        self.outliers = check_choice("outliers", outliers, ("clip", "keep"))
        self.horizon = None if horizon is None else check_horizon(horizon)
        self.seed = check_seed(seed)
        self.delta = check_delta(delta)
        self._fixed = _fixed(domain, kernel, noise, norm_bound)
        geometry = Geometry(domain.dim, 1)
        self._sites: ArmSites | BoxSites = (
            BoxSites(domain, geometry)
            if isinstance(domain, Box | Mixed)
            else ArmSites(domain, geometry, self.seed)
        )
        self._records = Records(self._sites)
        random = np.random.default_rng([self.seed, STREAM])
        self._search = Search(domain, self._sites, self._records, self._fixed, self.delta, random)
        self._start = self._first_design()
        self._asked = 0
        self._probes = 0
        self._intake = Intake(self._sites, self._records, len(self._start), self.outliers == "keep")
        #: Sites that were cancelled and count as pending until as many values have been told.
        self._given_up: deque[int] = deque(maxlen=MOST_GIVEN_UP)
        self._cancelled = 0
        self._next_fit = len(self._start)
        #: Observations at the last fit before the first design was told in full.
        self._fitted = 0
        #: The settings that answers come from, once the first design was told in full.
        self._believed = self._search.fit.best
        #: Upper bounds on f as they once were, each after so many values.
        self._ceilings: list[tuple[int, float]] = []

    # -- asking ---------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, FloatArray]:
        self._asked += 1
        first = len(self._start)
        if self._told < first and (self._asked <= first or self._told < FEWEST):
            site = self._first_site()
        else:
            if self._fitted < self._told < first:  # several are under way: fit what is there
                self._refit()
                self._fitted = self._told
            doubted = self._intake.take_doubted()
            if doubted is not None:
                return doubted, self._sites.x(doubted)
            probe = self._probes < PROBES * math.sqrt(max(self._told - first, 0))
            self._probes += probe
            explore = not self._cancelled  # where evaluations fail, least is known
            site = self._search.choose(probe, self._told, self._awaited(), explore)
        return site, self._sites.x(site)

    def _awaited(self) -> dict[int, int]:
        """How often each site is pending, or was given up of late."""
        plays = self._pending_plays()
        for site in self._given_up:
            plays[site] = plays.get(site, 0) + 1
        return plays

    def _first_site(self) -> int:
        """A point of the first design, or any point if that is used up and nothing is told."""
        if self._asked <= len(self._start):
            return self._search.site_at(self._start[self._asked - 1])
        return self._search.anywhere()

    # -- telling --------------------------------------------------------------------------------

    def _locate(self, points: FloatArray) -> IntArray:
        return self._sites.locate(points)

    def _record(self, site: int, value: float, asked: bool) -> None:
        counted = self._take(site, value)
        if self._given_up:
            self._given_up.popleft()
        region = self._records.region_of(site)
        if counted is not None:
            self._search.observe(site, counted)
        if self._keep_up(site):
            self._note_ceiling()
        if region.stale and len(self._records.regions) > 1 and self._told >= len(self._start):
            self._search.look_around()

    def _record_many(self, sites: IntArray, values: FloatArray) -> None:
        for site, value in zip(sites.tolist(), values.tolist(), strict=True):
            self._take(site, value)
            self._records.region_of(site).stale = True
            self._keep_up(site)

    def _released(self, site: int) -> None:
        self._given_up.append(site)
        self._cancelled += 1
        if self._cancelled % RENEW_EARLY == 0:  # other candidates are needed
            number = self._records.number_at(self._sites.scaled[site])
            self._records.regions[number].stale = True

    def _take(self, site: int, value: float) -> float | None:
        """Remember a value at a site; what it counts as, if at all."""
        counted, amended = self._intake.take(site, value)
        if amended:
            self._search.start_over()
            self._next_fit = self._intake.seen
        return counted

    def _keep_up(self, site: int) -> bool:
        """Fit the settings again, and cut the site's region in two, where that is due.

        Whether they were fitted.
        """
        due = self._intake.seen >= self._next_fit
        if due:
            self._refit()
            self._next_fit = max(
                self._intake.seen + REFIT_STEP, int(self._intake.seen * REFIT_FACTOR)
            )
        full = [self._records.home[site]]
        while full:
            number = full.pop()
            if len(self._records.regions[number].sites) < REGION_POINTS:
                continue
            if self._records.cut(number, self._search.fit.best.scales):
                full += [number, len(self._records.regions) - 1]
        return due

    def _refit(self) -> None:
        """Find the most likely settings."""
        if self._fixed.noise_std is None:
            self._records.find_noise()
        data = self._records.spread_out(FIT_POINTS)
        found = self._search.fit
        if float(np.ptp(data.means)) == 0.0 and float(data.within.sum()) == 0.0:
            level = replace(found.best, mean=float(data.means[0]))
            self._search.learn(replace(found, best=level))  # flat so far: nothing else to learn
            self._believed = level
            return
        try:
            restart, exact = self._intake.seen < RESTART, self._records.exact
            found = fit(data, found.best, self._fixed, restart, exact)
        except NumericalError:
            return
        self._search.learn(found)
        self._believed = found.best
        if self._records.exact and self._fixed.amplitude is None:
            apart = self._records.far_apart(FIT_POINTS, found.best.scales)
            _, square = profile(apart, found.best.scales, found.best.noise, found.best.form)
            size = max(math.sqrt(square), found.best.amplitude)
            self._believed = replace(found.best, amplitude=size)

    # -- answers --------------------------------------------------------------------------------

    def recommend(self) -> Recommendation:
        """The point played before with the highest mean less one standard deviation."""
        if not self._records.home:
            site = self._search.site_at(self._start[0])
            return Recommendation(self._sites.x(site), 0.0, -math.inf, math.inf)
        settings = self._answering()
        likely = sorted(self._records.regions, key=self._hope, reverse=True)[:3]
        best: tuple[float, int, float, Conditioned] | None = None
        for region in likely:
            if not region.sites:
                continue
            sites = np.array(region.sites, dtype=np.int64)
            known = self._search.condition(region.data, settings, settings)
            mean, variance, _ = known.moments_at(self._sites.scaled[sites])
            lowered = mean - np.sqrt(variance)
            j = int(np.argmax(lowered))
            worth = known.in_units(float(lowered[j]))
            if best is None or worth > best[0]:
                best = worth, int(sites[j]), known.in_units(float(mean[j])), known
        assert best is not None
        _, site, mean_there, known = best
        reach = simultaneous(self.delta, settings.scales)
        lower, upper = map(known.in_units, bounds_at(known, self._sites.scaled[site], reach))
        return Recommendation(self._sites.x(site), mean_there, lower, upper)

    def _hope(self, region: Region) -> float:
        """How good the best point of a region may be, roughly: by its model, or by its values."""
        if math.isfinite(region.best_lower) and not region.stale:
            return region.best_lower
        return self._records.highest(region)

    def certificate(self) -> float:
        """An estimate of what f(x*) − f(recommended x) can still be, by the fitted model.

        Infinite while there are fewer than ten values for each dimension, and ten more: a model of
        so few is easily wrong. If f has turned out higher than the bounds of earlier fits, those of
        this one may be as wrong: what they were short of counts in proportion to the values they
        knew.
        """
        if self._told < CERTIFIED_FROM * (self.domain.dim + 1):
            return math.inf
        answer = self.recommend()
        short = [known / self._told * (answer.lower - upper) for known, upper in self._ceilings]
        return self._ceiling(answer) - answer.lower + max([0.0, *short])

    def _note_ceiling(self) -> None:
        """Remember now and then what f is at most, to see later whether that was so."""
        before = self._ceilings[-1][0] if self._ceilings else 0
        if self._told >= NOTE_FACTOR * before:
            with suppress(NumericalError):
                self._ceilings.append((self._told, self._ceiling(self.recommend())))

    def _ceiling(self, answer: Recommendation) -> float:
        """The highest upper bound on f, by the fitted model and at the answer."""
        settings = self._answering()
        bounds = [self._search.highest_bound(region, settings) for region in self._records.regions]
        return max(*bounds, answer.upper)

    def _answering(self) -> Settings:
        """The settings that answers come from: the most likely, by what has been told."""
        best = self._search.fit.best
        if self._told >= len(self._start) or self._fitted == self._told:
            return self._believed
        data = self._records.spread_out(FIT_POINTS)
        width = float(np.ptp(data.means))
        if self._told >= FEWEST and width > 0:
            try:
                return fit(data, best, self._fixed, restart=True).best
            except NumericalError:
                pass
        known = self._fixed.amplitude is not None or self._fixed.noise_std is not None
        amplitude = best.amplitude if known or width == 0 else width
        return replace(best, mean=float(data.means.mean()), amplitude=amplitude)

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at points (n, d) of the domain, under the most likely settings."""
        checked = self.domain.check(X)
        points = (
            self.domain.to_unit(checked)
            if isinstance(self.domain, Box | Mixed)
            else (self._sites.scaled[self._sites.locate(checked)])
        )
        n, best = len(points), self._answering()
        mean, std = np.full(n, best.mean), np.full(n, best.amplitude)
        for region in self._records.regions:
            rows = np.flatnonzero(region.holds(points))
            sites = region.data
            if not len(rows) or not len(sites):
                continue
            known = self._search.condition(sites, best, best)
            there, variance, _ = known.moments_at(points[rows])
            mean[rows] = known.in_units(there)
            std[rows] = known.settings.amplitude * np.sqrt(variance)
        reach = simultaneous(self.delta, best.scales) * std
        return Prediction(mean, std, mean - reach, mean + reach)

    @property
    def clipped(self) -> int:
        """How many values were far outside all others, and count as less extreme."""
        return self._intake.clipped

    @property
    def cover(self) -> list[RegionView]:
        """The regions, which tile the unit cube."""
        sites = self._sites
        return [
            RegionView(
                region.lower.copy(),
                region.upper.copy(),
                int(sites.count[np.array(region.sites, dtype=np.int64)].sum()),
                region.score,
            )
            for region in self._records.regions
        ]

    @property
    def settings(self) -> dict[str, Any]:
        """What has been learned: lengthscales (in sides of the domain), noise, amplitude, mean."""
        best = self._answering()
        return {
            "nu": best.form + 0.5,
            "lengthscales": best.scales.copy(),
            "noise_std": best.noise_std,
            "amplitude": best.amplitude,
            "mean": best.mean,
        }

    # -- bookkeeping ----------------------------------------------------------------------------

    def _first_design(self) -> FloatArray:
        """Points to begin with, (n, d) in the unit cube: quasi-random, of the domain."""
        from scipy.stats import qmc

        dim = self.domain.dim
        number = max(4, min(2 * dim + 2, 16))
        sobol = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng([self.seed, STREAM, 1]))
        points = sobol.random(2 ** math.ceil(math.log2(number)))[:number]
        more = np.random.default_rng([self.seed, STREAM, 2])
        return self._search.proposals.first(more, points)[:number]


def _fixed(
    domain: Grid | Arms | Box | Mixed,
    kernel: Matern | None,
    noise: Noise | None,
    norm_bound: float | None,
) -> Fixed:
    scales = form = std = amplitude = None
    if kernel is not None:
        checked = check_kernel(kernel, domain)
        if checked.nu not in (1.5, 2.5):
            raise InvalidInput(f"kernel={kernel!r}: CalibratedUCB takes nu=1.5 or nu=2.5.")
        scales, form = checked.scales(domain.dim), checked.closed_form
    if noise is not None:
        std = check_scale("noise constant", sub_gaussian_constant(noise))
    if norm_bound is not None:
        amplitude = check_scale("norm_bound", norm_bound) / math.sqrt(20 * domain.dim)
    return Fixed(scales, form, std, amplitude)
