"""The policy without required settings: it learns kernel, noise and scale from the values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._checks import check_choice, check_delta, check_flag, check_horizon, check_seed
from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Interval, Prediction, Recommendation
from partita.errors import InvalidInput, NumericalError
from partita.gp.settings import Settings
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed
from partita.model.noise import Noise
from partita.model.outcomes import Outcomes
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.base import Policy
from partita.policies.fixed import Fixing
from partita.policies.repeats import Counted

from .answers import Answers
from .candidates import Plan, Proposals
from .drift import Drift
from .follow import MANY as FOLLOWED_FROM
from .follow import NUMBERS, Follower
from .given import as_fixed
from .layout import Layout
from .limits import Limit, Limits
from .model import FIT_POINTS, Model, fit_work
from .outlook import Outlook
from .places import new_sites, quasi_random, unit_points, unit_slice
from .regions import Region, Regions
from .report import Report
from .search import RENEW_EARLY, Search
from .slice_answers import SliceAnswers
from .slice_points import SliceProposals
from .slices import Slices
from .values import Sums
from .views import RegionView, described, views_of

#: Keeps the draws independent of a test function or noise drawn under the same seed.
STREAM = 5
#: The settings are fitted again when the number of values has grown by this factor, and by at least
#: REFIT_STEP.
REFIT_FACTOR, REFIT_STEP = 1.4, 4
#: The same where a trend leads: with the process as a player, and without. Then only answers and
#: the shape need the settings, and a fit looks at this number of points.
SHARED_REFIT, FOLLOWED_REFIT, FOLLOWED_POINTS = 2.0, 4.0, 100
#: A mean of more than one in this many of all values has candidates renewed before the next choice;
#: of fewer, it is taken in like a single value.
FEW_OF_ALL = 32
#: Fits of fewer observations also start from scratch; later that finds nothing better.
RESTART = 40
#: So does the fit after a bulk tell that brought more than this many times the values.
RESTART_GROWTH = 4
#: In more dimensions than this, fits of fewer than RESTART observations are not done at once
#: either, but this work of them in a tell; a step takes several times its `step_cost` there.
SPREAD_FROM, EARLY_WORK = 10, 4000.0
#: The number of probes up to evaluation t, as a multiple of √t. A probe evaluates the point of the
#: highest upper bound instead of the highest index. Probes find maxima that the index, only two
#: standard deviations wide, would miss.
PROBES = 0.5
#: The same with coordinates fixed, where the index is narrower.
SLICE_PROBES = 0.25
#: The number of values needed to use the model when more points are asked for than the first
#: design has.
FEWEST = 3
#: The largest number of cancelled evaluations that count as pending for a while.
MOST_GIVEN_UP = 64
#: The certificate is infinite with fewer than this number times (d + 1) values.
CERTIFIED_FROM = 10
#: Values after a change at which the settings, which were learned before it, are fitted again.
KEEP_SETTINGS = 40
#: Values told at once after which a change is looked for, in a policy for drift.
MANY = 64
#: So it is above this number of dimensions, and where a trend leads: it was not measured there.
CERTIFIED_DIMS = 20
#: The number of regions in which the recommended point is searched.
LIKELIEST = 3
#: The parts of the policy's saved state, and its counters.
_PARTS = ("sites", "sums", "regions", "model", "search", "slices", "answers")
_COUNTS = ("asked", "probes", "cancelled", "fitted", "seen", "next_fit")


class CalibratedUCB(Policy):
    """UCB with learned settings: needs only the domain, and learns everything else from the values.

    It learns amplitude, lengthscales, noise and mean. The index is the posterior mean plus two
    standard deviations. It is maximised over candidates that are renewed every few evaluations:
    evaluated points, some random points, and most around the best means at many scales. Settings
    are fitted again at geometrically spaced times. Each renewal draws settings from their
    posterior, so that the policy does not keep a wrong lengthscale or trust a lucky value. A region
    with many distinct points is split in two, so the cost of an evaluation does not grow.

    With more than ten parameters, real or mixed, a trend of f and an evolution of directions choose
    beside this model, up to 30 parameters, and without it beyond: docs/high_dim.md.

    Values may span orders of magnitude, with noise that grows with them. For this, a monotone
    transformation of the values is learned (the identity, unless the data speak against it), and
    also where the noise is large. Recommendations and bounds are for E[y], in the units of the
    values. If repeated values at the same points agree, the values are treated as noise-free, and
    no point is evaluated twice.

    Bounds come from the fitted model (`guarantee == "calibrated"`): docs/calibrated.md measures how
    often they hold. The noise of single values is used if known: `tell(x, y, std=...)`.

    Parameters
    ----------
    domain : Grid, Arms, Box or Mixed
    horizon : int, optional
        The planned number of evaluations. The policy does not need it.
    seed : int
        The seed for candidates and settings.
    kernel : Matern, optional
        If given (nu must be 3/2 or 5/2), it is used and not estimated.
    noise : a noise model, optional
        If given, its constant is used as the noise's standard deviation, which is not estimated.
    norm_bound : float, optional
        If given, the amplitude is B/√(20 d), as in `PiGPUCB`, and not estimated.
    outcomes : (low, high), optional
        What f can be, such as (0, 1) for an accuracy; None for an end that is not known. Answers
        respect it. Values outside are refused only if `noise` rules them out. Choices do not use
        it.
    outliers : "clip" or "keep"
        "clip": values far outside all others may get less weight, by the learned transformation and
        noise. "keep": all values count fully, without a transformation. Use it if rare large losses
        are an important part of the mean.
    drift : bool
        Whether f may change in time. If so, values that no longer hold are forgotten, and answers
        are about f as it is now. Changes are noticed by values of points that were asked for.
    delta : float
        Bounds are meant to hold with probability 1 − delta, all at the same time.
    """

    guarantee = "calibrated"
    plays_mixed = True
    plans_from_pending = True
    takes_std = True
    takes_fixed = True
    takes_count = True
    state_version = 6

    _sites: ArmSites | BoxSites
    #: The values; their regions; the fitted settings; the search and the answers.
    _sums: Sums
    _regions: Regions
    _model: Model
    _search: Search
    _answers: Answers
    #: What must hold besides; None while nothing must and nothing has failed.
    _limits: Limits | None
    #: What notices that f has changed; None if it does not.
    _drift: Drift | None
    #: What chooses in boxes of many dimensions; None elsewhere.
    _follower: Follower | None
    #: The first design, (n, d) in the unit cube.
    _start: FloatArray
    _asked: int
    _probes: int
    #: Cancelled sites, which count as pending until the given number of values has been reported.
    _given_up: deque[int]
    _cancelled: int
    #: The number of values at the next fit, and at the last fit during the first design.
    _next_fit: int
    _fitted: int
    #: The number of reports processed: in a bulk tell, those so far. A mean of many values is one
    #: report: what is fitted, and when, follows the reports.
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
        outcomes: tuple[float | None, float | None] | None = None,
        delta: float = 0.1,
        outliers: str = "clip",
        drift: bool = False,
    ) -> None:
        super().__init__(domain)
        self.drift = check_flag("drift", drift)
        self.outliers = check_choice("outliers", outliers, ("clip", "keep"))
        self.horizon = None if horizon is None else check_horizon(horizon)
        self.seed = check_seed(seed)
        self.delta = check_delta(delta)
        fixed = as_fixed(domain, kernel, noise, norm_bound)
        self.outcomes, self.noise = Outcomes.of(outcomes), noise
        if self.outcomes is not None:
            self.outcomes.check_assumptions(noise)
        self._sites = new_sites(domain, self.seed)
        self._sums = sums = Sums(self._sites)
        self._model = Model(domain.dim, sums, fixed, self.delta, self.outliers == "clip")
        self._assemble(Proposals(domain), np.random.default_rng([self.seed, STREAM]))
        self._limits = None
        self._drift = Drift(domain.dim) if self.drift else None
        self._follower = self._new_follower(known=kernel is not None or norm_bound is not None)
        self._start = self._first_design()
        self._asked = self._probes = self._cancelled = self._fitted = self._seen = 0
        self._given_up = deque(maxlen=MOST_GIVEN_UP)
        self._next_fit = len(self._start)

    def _assemble(self, proposals: Proposals, random: np.random.Generator) -> None:
        """Make regions, search and answers again, for the sites, sums and model that there are."""
        self._regions = Regions(self._sites)
        shared = self._sites, self._sums, self._regions, self._model, proposals
        self._search = Search(*shared, random, continuous=isinstance(self.domain, Box))
        self._answers = Answers(*shared)
        inside = SliceProposals(proposals)
        self._slices = Slices(self._search, self._sums, self._regions, self._model, inside)
        self._slice_answers = SliceAnswers(self._search, self._regions, self._model, inside)

    def _new_follower(self, known: bool) -> Follower | None:
        """What follows a trend in many dimensions, unless f is `known` or may change."""
        sites, domain = self._sites, self.domain
        if not isinstance(sites, BoxSites) or known or self.drift:
            return None
        proposals = self._search.proposals
        layout = Layout.of(domain.dim, proposals.rules)
        if layout.parameters <= FOLLOWED_FROM:
            return None
        if NUMBERS * len(layout.numbers) < layout.parameters:  # choices alone are the process's
            return None
        return Follower(sites, self._sums, self._model, proposals, layout)

    @property
    def _followed(self) -> Follower | None:
        """What chooses, if a trend leads: not where something must hold besides."""
        return self._follower if self._limits is None else None

    @property
    def _led(self) -> bool:
        """Whether a trend has chosen points: not if all were asked for with some fixed."""
        return self._followed is not None and self._followed.trend is not None

    @property
    def _unfitted(self) -> bool:
        """Whether settings matter little, as a trend leads and the process is no player."""
        followed = self._followed
        return self._led and followed is not None and not followed.with_process

    def _first_design(self) -> FloatArray:
        """The first points to evaluate, (n, d) in the unit cube: quasi-random, in the domain."""
        dim = self.domain.dim
        number = max(4, min(2 * dim + 2, 16))
        if self._follower is not None:
            number = max(number, dim // 2)
        points = quasi_random(dim, number, [self.seed, STREAM, 1])
        if self._follower is not None:
            points = self._follower.first(points)
        random = np.random.default_rng([self.seed, STREAM, 2])
        return self._search.proposals.first(random, points)[:number]

    # -- what must hold besides -----------------------------------------------------------------

    def constrain(self, intervals: Sequence[Interval]) -> None:
        """Have quantities within intervals where f is recommended; to be called before any tell.

        `measure` reports them. Each has a model of its own, as f has.
        """
        if self.drift:
            raise InvalidInput(
                "constrain(...): constraints cannot be combined with drift=True. Leave out one"
            )
        if self._told or self._pending:
            raise InvalidInput("constrain(...): the policy has been used already. Make a new one")
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
        if self._followed is not None:
            self._followed.fail(self._site(point))
            return
        if self._limits is None:
            self._limit(Limits(self._sites, (), self.delta))
        assert self._limits is not None
        site = self._site(point)
        self._limits.fail(site, self._sums.changes)  # a mean of many values is one success
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
        self._search.forecast = None
        site = self._next_site()
        self._note_forecast(site)
        return site, self._sites.x(site)

    def _note_forecast(self, site: int) -> None:
        if self._drift is not None:
            self._drift.forecast(site, self._search.forecast, self._model)

    @property
    def _first(self) -> int:
        """The values of the first design; none where settings are known from before a change."""
        return 0 if self._drift is not None and self._drift.changes else len(self._start)

    def _next_site(self) -> int:
        """The next site of the first design, or the site with the highest index."""
        first = self._first
        if self._seen < first and (self._asked <= first or self._seen < FEWEST):
            site = self._search.first_site(self._start, self._asked)
            if self._followed is not None:
                self._followed.begin_with(site)
            return site
        if self._followed is not None:  # it needs no settings
            point = self._followed.choose(self._search.random, self._seen)
            site = self._processed(probe=False) if point is None else self._search.site_at(point)
            self._followed.note(site)
            return site
        if self._fitted < self._seen < first:  # several are pending: fit the values so far
            self._refit()
            self._fitted = self._seen
        probe = self._probes < PROBES * math.sqrt(max(self._seen - first, 0))
        self._probes += probe
        return self._processed(probe)

    def _processed(self, probe: bool) -> int:
        """The site that the Gaussian process chooses."""
        explore = not self._cancelled  # exploring would return to points that fail
        return self._search.choose(probe, self._seen, self._awaited(), explore)

    def worth(self, x: npt.ArrayLike) -> float:
        """How many evaluations at x (d,), asked for just now, what is known of f there is worth.

        That is the variance of one value's noise over that of f, by the settings that chose x. It
        is 0 while the first design is evaluated.
        """
        entry = self._pending_points.get(np.asarray(x, dtype=float).tobytes())
        forecast = self._search.forecast
        if entry is None or self._seen < self._first:
            return 0.0
        point = self._sites.scaled[entry[0]][None, :]
        if forecast is None or not np.array_equal(forecast.point, point[0]):
            posterior = self._model.choosing(self._region_at(point).informed_by, self._answering())
            variance, settings = float(posterior.moments_at(point).variance[0]), posterior.settings
        else:
            variance, settings = forecast.variance, forecast.settings
        noise = float(self._model.noise_at(point)[0]) * settings.noise
        return noise / variance if variance > 0 else math.inf

    def _region_at(self, point: FloatArray) -> Region:
        """The region of a point (1, d) of the unit cube."""
        return self._regions[self._regions.number_at(point[0])]

    def _propose_fixed(self, fixed: Mapping[int, float]) -> tuple[int, FloatArray]:
        where = self._unit_slice(fixed)
        self._asked += 1
        self._search.forecast = None
        random, first, seen = self._search.random, self._first, self._seen
        if seen < first and (self._asked <= first or seen < FEWEST):
            place = self._start[min(self._asked, first) - 1]
            if self._asked > first:
                place = random.random(self.domain.dim)
            return self._at_fixed(self._slices.first(random, where, place), fixed)
        if self._fitted < seen < first:
            self._refit()
            self._fitted = seen
        probe = self._probes < SLICE_PROBES * math.sqrt(max(seen - first, 0))
        self._probes += probe
        plan = Plan(self._awaited(), self._sites, self._regions.home)
        unit = self._slices.choose(random, where, probe, plan)
        site, x = self._at_fixed(unit, fixed)
        self._note_forecast(site)
        return site, x

    def _at_fixed(self, unit: FloatArray, fixed: Mapping[int, float]) -> tuple[int, FloatArray]:
        """The site at a point (d,) of the unit cube, and its point with the values as given."""
        if not isinstance(self._sites, BoxSites):
            site = self._search.site_at(unit)
            return site, self._sites.x(site)
        x = self._sites.to_user(unit[None, :])[0]
        for number, value in fixed.items():
            x[number] = value
        return self._sites.register(unit, x), x

    def _unit_slice(self, fixed: Mapping[int, float]) -> Fixing:
        """The slice of the unit cube where coordinates of the domain have values."""
        return unit_slice(self.domain, self._slices.arms, fixed)

    def _awaited(self) -> dict[int, int]:
        """The number of times each site is pending, or was recently cancelled."""
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

    def tell(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        std: npt.ArrayLike | None = None,
        count: npt.ArrayLike | None = None,
    ) -> None:
        """Report values: see `Policy.tell`. Those that `outcomes` and `noise` rule out are refused.

        Nothing changes if the call raises an error.
        """
        if self.outcomes is not None:
            # With a count, std is the spread of the values, and 0 does not mean exact.
            self.outcomes.check_all(y, std if count is None else None, self.noise, "tell")
        super().tell(x, y, std=std, count=count)

    def _locate(self, points: FloatArray) -> IntArray:
        return self._sites.locate(points)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        """Value → the sums of its site → its region → the posterior there → the index."""
        if self._given_up:
            self._given_up.popleft()
        self._watch(site, Report(value, std=math.nan if std is None else std))
        number = self._take(site, value, std)
        if self._limits is not None:
            self._limits.succeed(site)
        self._search.observe(number, site, value, std)
        self._slices.observe(number, site, value, std)
        outlook = self._search.outlooks[number]  # a cut would replace it
        self._cut_if_due(number)
        self._look_around(outlook)
        self._work_ahead()
        if self._drift is not None and self._drift.suspects:
            self._forget(self._drift.remembered(self._sites, self._model))

    def _look_around(self, outlook: Outlook) -> None:
        """Have another region renewed, too, if that of the last values is to be."""
        if outlook.stale and len(self._regions) > 1 and self._seen >= len(self._start):
            self._search.look_around()

    def _work_ahead(self) -> None:
        """Do one piece of what is due, so that no ask or tell has to do it all.

        That is half of a renewal if it is needed next, or some steps of a fit, or the bound of one
        region for a note.
        """
        due = not self._model.learning and self._seen >= self._next_fit
        # Others would change the region.
        alone = not self._pending and self._seen >= self._first and not self._led
        if not due and alone and self._search.prepare(self._seen):
            return
        if self._model.learning or due:
            # Notes are for certificates alone.
            noted = self._refit_if_due() and self._certifiable
            if noted and self._answers.note_due(self._told):
                self._answers.begin_note(self._told)
        elif self._answers.noting:
            with suppress(NumericalError):
                self._answers.carry_on_note(self._best, self._answering())

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        """The same for many: between the first fits and the last, fits would be for nothing.

        Regions are cut by the settings of the first. The last search for settings begins afresh,
        too, since a lot has been learned since the fit before.
        """
        noises = [None] * len(values) if stds is None else stds.tolist()
        end, fitted = self._seen + len(values), self._seen
        for site, value, std in zip(sites.tolist(), values.tolist(), noises, strict=True):
            number = self._take(site, value, std)
            if self._limits is not None:
                self._limits.succeed(site)
            self._renew_soon(number)
            if self._seen < RESTART or self._seen == end:
                afresh = self._seen > RESTART_GROWTH * fitted
                fitted = self._seen if self._refit_if_due(afresh, at_once=True) else fitted
            self._cut_if_due(number)
        if self._drift is not None:
            for site, value, std in zip(sites.tolist(), values.tolist(), noises, strict=True):
                self._watch(site, Report(value, std=math.nan if std is None else std))
            if len(values) >= MANY:
                self._forget(self._drift.remembered(self._sites, self._model))

    def _record_repeated(
        self, site: int, mean: float, count: int, std: float | None, asked: bool
    ) -> None:
        assert std is not None  # see `_check_repeated`
        for _ in range(min(count, len(self._given_up))):
            self._given_up.popleft()
        self._watch(site, Report(mean, float(count), spread=std))
        self._sums.add_repeated(site, mean, count, std)
        number = self._place(site)
        if self._limits is not None:
            self._limits.succeed(site)
        if count * FEW_OF_ALL >= self._told or self._sums.agree:
            self._renew_soon(number)
        else:
            self._search.observe(number, site, mean, count=count)
            self._slices.renew_soon(number)
        outlook = self._search.outlooks[number]
        self._cut_if_due(number)
        self._look_around(outlook)
        self._refit_if_due()

    def _check_repeated(self, counted: Counted) -> None:
        if np.isnan(counted.stds[counted.counts > 1]).any():
            raise InvalidInput(
                "tell(x, mean, count=...): CalibratedUCB learns the noise from how values differ. "
                "Give their sample deviation as well, std=np.std(values, ddof=1)."
            )

    def _take(self, site: int, value: float, std: float | None) -> int:
        """Record a value, and return the number of the region of its site."""
        self._sums.add(site, value, std)
        return self._place(site)

    def _place(self, site: int) -> int:
        """Count a report, and return the number of the region of its site."""
        self._seen += 1
        if site not in self._regions.home:
            self._search.admit(self._regions.add(site))
            if self._follower is not None:
                self._follower.fits.admit(site)
        return self._regions.home[site]

    def _refit_if_due(self, afresh: bool = False, at_once: bool = False) -> bool:
        """Fit the settings if there are enough new values; return whether there are new settings.

        Of a larger fit, only some steps are done, unless it is to be done `at_once`. The next call
        goes on with it.
        """
        seen = self._seen
        if self._model.learning and not (at_once and seen >= self._next_fit):
            early = seen < RESTART and self.domain.dim > SPREAD_FROM
            work = EARLY_WORK if early else fit_work(seen)
            learned = self._model.advance(self._regions, work)
            return learned and self._put_in_force()
        if seen < self._next_fit:
            return False
        led = FOLLOWED_REFIT if self._unfitted else SHARED_REFIT
        factor = led if self._led else REFIT_FACTOR
        self._next_fit = max(seen + REFIT_STEP, int(seen * factor))
        early = seen < RESTART
        if at_once or (early and self.domain.dim <= SPREAD_FROM):
            return self._refit(afresh)
        self._limit_fits()
        self._model.begin(self._regions.played, restart=early)
        return early and self._model.advance(self._regions, EARLY_WORK) and self._put_in_force()

    def _refit(self, afresh: bool = False) -> bool:
        """Learn the settings from all values; the search begins afresh, too, if asked or early."""
        self._limit_fits()
        learned = self._model.learn(self._regions.played, afresh or self._seen < RESTART)
        return learned and self._put_in_force()

    def _limit_fits(self) -> None:
        """Set how many points a fit looks at: fewer where a trend leads."""
        self._model.fit_points = FOLLOWED_POINTS if self._unfitted else FIT_POINTS

    def _put_in_force(self) -> bool:
        """Have new settings used everywhere; True."""
        if self._drift is not None:
            self._drift.forget_forecasts()
        self._search.renew_all(revive=True)
        self._slices.renew_all()
        return True

    def _renew_soon(self, number: int) -> None:
        """Have a region renewed before it is used again."""
        self._search.renew_soon(number)
        self._slices.renew_soon(number)

    def _cut_if_due(self, number: int) -> None:
        """Split a region in two, and its halves, while they have too many sites."""
        scales, due = self._model.fit.best.scales, [number]
        while due:
            number = due.pop()
            if self._regions.cut(number, scales):
                self._search.follow_cut(number)
                self._slices.renew_soon(number)
                due += [number, len(self._regions) - 1]

    # -- what no longer holds -------------------------------------------------------------------

    def _watch(self, site: int, report: Report) -> None:
        """Compare a report with its forecast, if f may change in time."""
        if self._drift is not None:
            self._drift.take(site, self._sites.scaled[site].copy(), report, self._model)

    def _forget(self, number: int | None) -> None:
        """Forget all but the last `number` reports. The settings that were learned stay.

        Sites get new numbers, so that forgotten ones take no memory.
        """
        if number is None or self._drift is None:
            return
        log, old, moved = self._drift.log, self._sites, {}
        log.keep(number)
        self._sites = old if isinstance(old, ArmSites) else new_sites(self.domain, self.seed)
        pending = [entry[0] for entry in self._pending_points.values()]
        for site in [*log.sites, *pending]:
            if site not in moved:
                moved[site] = self._moved(old, site)
        for entry in self._pending_points.values():
            entry[0] = moved[entry[0]]
        self._drift.renumber(moved)
        self._sums = self._model.sums = Sums(self._sites)
        self._assemble(self._search.proposals, self._search.random)
        self._model.give_up()
        self._limits, self._seen = None, 0
        self._given_up.clear()
        for site, report in zip(log.sites, log.reports, strict=True):
            if report.number > 1:
                self._sums.add_repeated(site, report.value, int(report.number), report.spread)
            else:
                self._sums.add(site, report.value, report.std if report.known else None)
            self._cut_if_due(self._place(site))
        self._probes = int(PROBES * math.sqrt(self._seen))
        self._fitted, self._next_fit = self._seen, self._seen + KEEP_SETTINGS

    def _moved(self, old: ArmSites | BoxSites, site: int) -> int:
        """The number of a site of old ones among the sites that there are now."""
        if isinstance(self._sites, ArmSites):
            return site
        return self._sites.register(old.scaled[site].copy(), old.x(site))

    # -- saved state ----------------------------------------------------------------------------

    def _state(self) -> State:
        parts = {name: getattr(self, f"_{name}").state() for name in _PARTS}
        counts = {name: int(getattr(self, f"_{name}")) for name in _COUNTS}
        limits = None if self._limits is None else self._limits.state()
        drift = None if self._drift is None else self._drift.state()
        follower = None if self._follower is None else self._follower.state()
        rest = {"given_up": wholes(self._given_up), "limits": limits, "drift": drift}
        rest["follower"] = follower
        return {**super()._state(), **parts, **counts, **rest}

    def _restore(self, saved: Saved) -> None:
        saved.require("limits" in saved or self._limits is None, "constraints")
        for name in _PARTS:  # in this order: each part uses those before it
            getattr(self, f"_{name}").restore(saved.part(name))
        self._restore_plays(saved, self._sites.points)
        for name in _COUNTS:
            setattr(self, f"_{name}", saved.integer(name))
        given_up = saved.numbers("given_up", len(self._sites), distinct=False)
        saved.require(len(given_up) <= MOST_GIVEN_UP, "few cancelled evaluations")
        self._given_up = deque(given_up, maxlen=MOST_GIVEN_UP)
        saved.require(("drift" in saved) == self.drift, "drift as it was set")
        told = self._sums.count + self._sums.known
        changed = False
        if self._drift is not None:
            self._drift.restore(saved.part("drift"), len(self._sites))
            changed = self._drift.changes > 0
        total = int(told.sum())
        whole = (total < self.told if changed else total == self.told) and total >= self._seen
        saved.require(whole and self._seen >= self._fitted, "all values")
        played = np.flatnonzero(told).tolist()
        saved.require(sorted(self._regions.home) == played, "a region for each value")
        if self._follower is not None:
            self._follower.restore(saved.part("follower"))
            saved.require(
                self._follower.fits.looks_at <= set(played), "sites of the trend with values"
            )
        self._limit_fits()
        if self._drift is not None:
            saved.require(set(self._drift.log.sites) <= set(played), "sites of the last values")
        if "limits" in saved:
            if self._limits is None:
                self._limit(Limits(self._sites, (), self.delta))
            assert self._limits is not None
            self._limits.restore(saved.part("limits"))

    # -- answers --------------------------------------------------------------------------------

    def recommend(self) -> Recommendation:
        """The evaluated point with the highest mean minus one standard deviation.

        Where a trend leads, in many dimensions, these are the trend's; the answer's bounds are not.
        """
        best = self._best()
        return best if self.outcomes is None else self.outcomes.limited(best, proven=False)

    def _best(self) -> Recommendation:
        """The recommendation of the model alone, without `outcomes`."""
        if not self._regions.home:
            site = self._search.site_at(self._start[0])
            return Recommendation(self._sites.x(site), 0.0, -math.inf, math.inf)
        led = None if self._followed is None else self._followed.answer()
        if led is not None:
            return self._answers.at(led, self._answering())
        return self._answers.recommend(self._search.likeliest(LIKELIEST), self._answering())

    def certificate(self) -> float:
        """An estimate of a bound on f(x*) − f(recommended x), by the fitted model; not a proof.

        It fails where a narrow peak hides between the evaluations (`partita.policies.held`).

        It is infinite with fewer than 10 (d + 1) values, because a model of so few values is often
        wrong, and in many dimensions, where nothing was measured: where a trend leads, and above
        20. If f has exceeded the upper bounds of earlier fits, the present bounds may be as wrong.
        So the amount by which it exceeded them is added, in proportion to the number of values that
        those fits had.
        """
        bound = math.inf
        if self._certified:
            bound = self._answers.certificate(self._best(), self._answering(), self._held)
        if self.outcomes is None:
            return bound
        return self.outcomes.certificate(bound, self._best(), proven=False)

    @property
    def _held(self) -> int:
        """The number of values that have not been forgotten."""
        return self._told if self._first else self._seen

    @property
    def _certifiable(self) -> bool:
        """Whether there are few enough dimensions for a certificate."""
        return self._follower is None and self.domain.dim <= CERTIFIED_DIMS

    @property
    def _certified(self) -> bool:
        """Whether there are enough values, and few enough dimensions, for a certificate."""
        dim = self.domain.dim
        return self._certifiable and self._held >= CERTIFIED_FROM * (dim + 1)

    def recommend_fixed(self, fixed: Mapping[int, float]) -> Recommendation:
        """The best point with some coordinates fixed, by its mean less one standard deviation.

        It need not have been evaluated, nor any other with these coordinates.
        """
        return self.recommend_fixed_each([fixed])[0]

    def recommend_fixed_each(self, fixed: Sequence[Mapping[int, float]]) -> list[Recommendation]:
        """The answers of `recommend_fixed` for many, which share the work of most of it."""
        slices = [self._unit_slice(one) for one in fixed]
        if self._regions.home:
            answers = self._slice_answers.recommend(slices, self._answering())
        else:
            random = np.random.default_rng
            first = [self._slices.first(random(self.seed), w, self._start[0]) for w in slices]
            answers = [Recommendation(unit, 0.0, -math.inf, math.inf) for unit in first]
        return [
            answer._replace(x=self._x_fixed(answer.x, one))
            for answer, one in zip(answers, fixed, strict=True)
        ]

    def certificate_fixed(self, fixed: Mapping[int, float]) -> float:
        """What f can be above f at `recommend_fixed`, with the same coordinates fixed."""
        where = self._unit_slice(fixed)
        if not self._certified:
            return math.inf
        settings = self._answering()
        answer = self._slice_answers.recommend([where], settings)[0]
        ceiling = max(answer.upper, self._slice_answers.ceiling(where, settings))
        return ceiling - answer.lower + self._answers.shortfall(self.recommend(), self._held)

    def _x_fixed(self, unit: FloatArray, fixed: Mapping[int, float]) -> FloatArray:
        """A point (d,) of the unit cube in the domain's units, with the values as given."""
        if not isinstance(self._sites, BoxSites):
            return self._sites.x(self._search.site_at(unit))
        x = self._sites.to_user(unit[None, :])[0]
        for number, value in fixed.items():
            x[number] = value
        return np.asarray(x)

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at points (n, d) of the domain, under the most likely settings."""
        posterior = self._answers.predict(self._unit(self.domain.check(X)), self._answering())
        if self.outcomes is None:
            return posterior
        return self.outcomes.prediction(posterior, proven=False)

    def _unit(self, points: FloatArray) -> FloatArray:
        """Points (n, d) of the domain in the unit cube."""
        return unit_points(self.domain, self._sites, points)

    def _answering(self) -> Settings:
        """The settings used for answers: the most likely ones, given the values so far."""
        if self._seen >= self._first or self._fitted == self._seen:
            return self._model.believed
        return self._model.guess(self._regions.played, enough=self._seen >= FEWEST)

    @property
    def cover(self) -> list[RegionView]:
        """The regions, which tile the unit cube."""
        return views_of(self._search.outlooks, self._sums)

    @property
    def settings(self) -> dict[str, Any]:
        """The learned lengthscales (relative to the domain's sides), noise, amplitude and mean.

        If values are transformed, `shape` describes how; then amplitude and mean are those of
        transformed values, and the noise is that of a value as high as the recommended one.
        """
        best, answer = self._answering(), self._best()
        ratio = self._model.noise_at(self._unit(answer.x[None, :]))
        return described(best, answer.mean, float(ratio[0]))
