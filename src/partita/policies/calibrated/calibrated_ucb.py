"""The policy that needs no knobs: it learns kernel, noise and scale from the values it is told."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._checks import check_choice, check_delta, check_horizon, check_seed
from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Interval, Prediction, Recommendation
from partita.errors import InvalidInput, NumericalError
from partita.gp.settings import Settings
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed
from partita.model.noise import Noise
from partita.partition.cover import Geometry
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.base import Policy

from .answers import Answers
from .candidates import Proposals
from .given import as_fixed
from .limits import Limit, Limits
from .model import Model
from .regions import Regions
from .search import RENEW_EARLY, Search
from .values import Sums

#: Keeps the draws independent of a test function or noise drawn under the same seed.
STREAM = 5
#: The settings are fitted again after this many times the values, and at least REFIT_STEP more.
REFIT_FACTOR, REFIT_STEP = 1.4, 4
#: Fits of fewer observations also start afresh; later that finds nothing better.
RESTART = 40
#: Probes by step t, as a multiple of √t: plays where f could be highest by its bounds, not by the
#: index. They find what the index, two deviations wide, would never look at.
PROBES = 0.5
#: Values told before the model is asked, if more is asked for than the first design.
FEWEST = 3
#: Cancelled plays that count as pending for a while, at most.
MOST_GIVEN_UP = 64
#: Values for each dimension, and as many more, before the fitted model can certify anything.
CERTIFIED_FROM = 10
#: Regions that the recommended point is looked for in.
LIKELIEST = 3
#: What the state of the policy is made of, and numbers that it counts with.
_PARTS = ("sites", "sums", "regions", "model", "search", "answers")
_COUNTS = ("asked", "probes", "cancelled", "fitted", "seen", "next_fit")


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
    scales. Settings are fitted again at geometrically spaced steps; each renewal draws some from
    their posterior, so that the policy does not stay with a wrong lengthscale or a lucky value. A
    region that holds many distinct points is cut in two, so a step costs the same for ever.

    Values may span orders of magnitude, with noise that grows with them: a monotone shape of the
    values is learned along, the identity unless the data speak against it, and so is where the
    noise is loud. Answers and bounds are of E[y], in the units of what was told. Where values at
    the same points agree there is no noise, and no point is played twice.

    Bounds come from the fitted model (`guarantee == "calibrated"`): docs/calibrated.md measures how
    often they hold. The noise of single values can be told: `tell(x, y, std=...)`.

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
        Whether values far outside all others may count as less extreme, as the shape and the noise
        that are learned make them; or all count as they are, without a shape, as rare large losses
        must that are part of what f is on average.
    delta : float
        Bounds are meant to hold with probability 1 − delta, all together.
    """

    guarantee = "calibrated"
    plays_mixed = True
    plans_from_pending = True
    takes_std = True
    state_version = 2

    _sites: ArmSites | BoxSites
    #: What was told; where it lies; the settings that explain it; what follows.
    _sums: Sums
    _regions: Regions
    _model: Model
    _search: Search
    _answers: Answers
    #: What must hold besides; None while nothing must and nothing has failed.
    _limits: Limits | None
    #: The first design, (n, d) in the unit cube.
    _start: FloatArray
    _asked: int
    _probes: int
    #: Sites that were cancelled, which count as pending until as many values have been told.
    _given_up: deque[int]
    _cancelled: int
    #: Values at which settings are fitted next, and at the last fit of an unfinished first design.
    _next_fit: int
    _fitted: int
    #: Values taken in: of many that are told at once, those so far.
    _seen: int

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
        fixed = as_fixed(domain, kernel, noise, norm_bound)
        geometry = Geometry(domain.dim, 1)
        self._sites = (
            BoxSites(domain, geometry)
            if isinstance(domain, Box | Mixed)
            else ArmSites(domain, geometry, self.seed)
        )
        self._sums = sums = Sums(self._sites)
        self._regions = Regions(self._sites)
        self._model = Model(domain.dim, sums, fixed, self.delta, self.outliers == "clip")
        shared = self._sites, sums, self._regions, self._model, Proposals(domain)
        random = np.random.default_rng([self.seed, STREAM])
        self._search = Search(*shared, random, continuous=isinstance(domain, Box))
        self._answers = Answers(*shared)
        self._limits = None
        self._start = self._first_design()
        self._asked = self._probes = self._cancelled = self._fitted = self._seen = 0
        self._given_up = deque(maxlen=MOST_GIVEN_UP)
        self._next_fit = len(self._start)

    def _first_design(self) -> FloatArray:
        """Points to begin with, (n, d) in the unit cube: quasi-random, of the domain."""
        from scipy.stats import qmc

        dim = self.domain.dim
        number = max(4, min(2 * dim + 2, 16))
        sobol = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng([self.seed, STREAM, 1]))
        points = sobol.random(2 ** math.ceil(math.log2(number)))[:number]
        random = np.random.default_rng([self.seed, STREAM, 2])
        return self._search.proposals.first(random, points)[:number]

    # -- what must hold besides -----------------------------------------------------------------

    def constrain(self, intervals: Sequence[Interval]) -> None:
        """Have quantities within intervals where f is recommended; to be called before any tell.

        `measure` reports them. Each has a model of its own, as f has.
        """
        if self._told or self._pending:
            raise InvalidInput("constrain(...): the policy has been played already. Make a new one")
        self._limit(Limits(self._sites, intervals, self.delta))

    def _limit(self, limits: Limits) -> None:
        self._limits = self._search.limits = self._answers.limits = limits

    def measure(self, x: npt.ArrayLike, values: Sequence[float]) -> None:
        """Report the quantities at a point (d,), just before its value is told."""
        assert self._limits is not None
        self._limits.measure(self._site(np.asarray(x, dtype=float)), values)

    def fail(self, x: npt.ArrayLike) -> None:
        """Give up a pending point whose evaluation failed, and learn where that is likely."""
        point = np.asarray(x, dtype=float)
        self.cancel(point)
        if self._limits is None:
            self._limit(Limits(self._sites, (), self.delta))
        assert self._limits is not None
        site = self._site(point)
        counts = self._sums.count + self._sums.known
        self._limits.fail(site, counts)
        self._search.reweigh(self._regions.number_at(self._sites.scaled[site]))

    def limits_at(self, x: npt.ArrayLike) -> list[Limit]:
        """What is known at a point (d,) of each quantity that must be within an interval."""
        if self._limits is None:
            return []
        points = self.domain.check(np.asarray(x, dtype=float)[None, :])
        return self._limits.at(self._unit(points)[0])

    # -- asking ---------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, FloatArray]:
        self._asked += 1
        site = self._next_site()
        return site, self._sites.x(site)

    def _next_site(self) -> int:
        """A site of the first design, or that of the highest index."""
        first = len(self._start)
        if self._told < first and (self._asked <= first or self._told < FEWEST):
            return self._search.first_site(self._start, self._asked)
        if self._fitted < self._told < first:  # several are under way: fit what is there
            self._refit()
            self._fitted = self._told
        probe = self._probes < PROBES * math.sqrt(max(self._told - first, 0))
        self._probes += probe
        explore = not self._cancelled  # where evaluations fail, least is known
        return self._search.choose(probe, self._told, self._awaited(), explore)

    def _awaited(self) -> dict[int, int]:
        """How often each site is pending, or was given up of late."""
        plays = self._pending_plays()
        for site in self._given_up:
            plays[site] = plays.get(site, 0) + 1
        return plays

    def _released(self, site: int) -> None:
        self._given_up.append(site)
        self._cancelled += 1
        if self._cancelled % RENEW_EARLY == 0:  # other candidates are needed
            self._search.renew_soon(self._regions.number_at(self._sites.scaled[site]))

    # -- telling: the walk of one observation ---------------------------------------------------

    def _locate(self, points: FloatArray) -> IntArray:
        return self._sites.locate(points)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        """Value → the sums of its site → its region → the posterior there → the index."""
        if self._given_up:
            self._given_up.popleft()
        number = self._take(site, value, std)
        if self._limits is not None:
            self._limits.succeed(site)
        self._search.observe(number, site, value, std)
        outlook = self._search.outlooks[number]  # a cut would replace it
        fitted = self._refit_if_due()
        self._cut_if_due(number)
        if fitted and self._answers.note_due(self._told):
            with suppress(NumericalError):
                self._answers.note(self.recommend(), self._answering(), self._told)
        if outlook.stale and len(self._regions) > 1 and self._told >= len(self._start):
            self._search.look_around()

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        noises = [None] * len(values) if stds is None else stds.tolist()
        for site, value, std in zip(sites.tolist(), values.tolist(), noises, strict=True):
            number = self._take(site, value, std)
            if self._limits is not None:
                self._limits.succeed(site)
            self._search.renew_soon(number)
            self._refit_if_due()
            self._cut_if_due(number)

    def _take(self, site: int, value: float, std: float | None) -> int:
        """Take a value in: the number of the region of its site."""
        self._sums.add(site, value, std)
        self._seen += 1
        if site not in self._regions.home:
            self._search.admit(self._regions.add(site))
        return self._regions.home[site]

    def _refit_if_due(self) -> bool:
        """Fit the settings again if there are enough more values; False if there are not."""
        seen = self._seen
        if seen < self._next_fit:
            return False
        self._refit()
        self._next_fit = max(seen + REFIT_STEP, int(seen * REFIT_FACTOR))
        return True

    def _refit(self) -> None:
        """Learn the settings from all values."""
        if self._model.learn(self._regions.played, restart=self._seen < RESTART):
            self._search.renew_all(revive=True)

    def _cut_if_due(self, number: int) -> None:
        """Cut a region in two, and its halves, while they hold too many sites."""
        scales, due = self._model.fit.best.scales, [number]
        while due:
            number = due.pop()
            if self._regions.cut(number, scales):
                self._search.follow_cut(number)
                due += [number, len(self._regions) - 1]

    # -- saved state ----------------------------------------------------------------------------

    def _state(self) -> State:
        parts = {name: getattr(self, f"_{name}").state() for name in _PARTS}
        counts = {name: int(getattr(self, f"_{name}")) for name in _COUNTS}
        limits = None if self._limits is None else self._limits.state()
        rest = {"given_up": wholes(self._given_up), "limits": limits}
        return {**super()._state(), **parts, **counts, **rest}

    def _restore(self, saved: Saved) -> None:
        saved.require("limits" in saved or self._limits is None, "constraints")
        for name in _PARTS:  # in this order: each looks at those before
            getattr(self, f"_{name}").restore(saved.part(name))
        self._restore_plays(saved, self._sites.points)
        for name in _COUNTS:
            setattr(self, f"_{name}", saved.integer(name))
        given_up = saved.numbers("given_up", len(self._sites), distinct=False)
        saved.require(len(given_up) <= MOST_GIVEN_UP, "few cancelled plays")
        self._given_up = deque(given_up, maxlen=MOST_GIVEN_UP)
        told = self._sums.count + self._sums.known
        whole = int(told.sum()) == self._told == self._seen and self._fitted <= self._told
        saved.require(whole, "all values")
        played = np.flatnonzero(told).tolist()
        saved.require(sorted(self._regions.home) == played, "a region for each value")
        if "limits" in saved:
            if self._limits is None:
                self._limit(Limits(self._sites, (), self.delta))
            assert self._limits is not None
            self._limits.restore(saved.part("limits"))

    # -- answers --------------------------------------------------------------------------------

    def recommend(self) -> Recommendation:
        """The point played before with the highest mean less one standard deviation."""
        if not self._regions.home:
            site = self._search.site_at(self._start[0])
            return Recommendation(self._sites.x(site), 0.0, -math.inf, math.inf)
        return self._answers.recommend(self._search.likeliest(LIKELIEST), self._answering())

    def certificate(self) -> float:
        """An estimate of what f(x*) − f(recommended x) can still be, by the fitted model.

        Infinite while there are fewer than ten values for each dimension, and ten more: a model of
        that few is easily wrong. If f has turned out higher than the bounds of earlier fits, those
        of this one may be as wrong: what they were short of counts in proportion to the values that
        they knew.
        """
        if self._told < CERTIFIED_FROM * (self.domain.dim + 1):
            return math.inf
        return self._answers.certificate(self.recommend(), self._answering(), self._told)

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at points (n, d) of the domain, under the most likely settings."""
        return self._answers.predict(self._unit(self.domain.check(X)), self._answering())

    def _unit(self, points: FloatArray) -> FloatArray:
        """Points (n, d) of the domain in the unit cube."""
        if isinstance(self.domain, Box | Mixed):
            return self.domain.to_unit(points)
        return np.asarray(self._sites.scaled[self._sites.locate(points)])

    def _answering(self) -> Settings:
        """The settings that answers come from: the most likely, by what has been told."""
        if self._told >= len(self._start) or self._fitted == self._told:
            return self._model.believed
        return self._model.guess(self._regions.played, enough=self._told >= FEWEST)

    @property
    def cover(self) -> list[RegionView]:
        """The regions, which tile the unit cube."""
        count, views = self._sums.count + self._sums.known, []
        for outlook in self._search.outlooks:
            region, index = outlook.region, outlook.index
            values = int(count[region.own].sum())
            views.append(RegionView(region.lower.copy(), region.upper.copy(), values, index))
        return views

    @property
    def settings(self) -> dict[str, Any]:
        """What has been learned: lengthscales (in sides of the domain), noise, amplitude, mean.

        If values are shaped, `shape` says how, amplitude and mean are those of shaped values, and
        the noise is that of a value as high as the recommended one.
        """
        best = self._answering()
        settings: dict[str, Any] = {
            "nu": best.form + 0.5,
            "lengthscales": best.scales.copy(),
            "noise_std": best.noise_std,
            "amplitude": best.amplitude,
            "mean": best.mean,
            "shape": "identity",
        }
        answer = self.recommend()
        ratio = self._model.noise_at(self._unit(answer.x[None, :]))
        settings["noise_std"] *= math.sqrt(float(ratio[0]))
        if not best.shape.identity:
            settings["noise_std"] /= best.shape.slope(answer.mean)
            settings |= {"shape": "asinh", "centre": best.shape.centre, "size": best.shape.size}
        return settings
