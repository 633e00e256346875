"""A quantity that must stay within bounds: its values, its model, how likely it does.

Its sites are those of the policy; sums, regions and settings are its own, as for f itself. So a
value and a prediction cost the same however many values there are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._types import BoolArray, FloatArray, IntArray, Interval
from partita.gp.settings import Fixed, Settings
from partita.partition.sites import ArmSites, BoxSites

from .model import Conditioned, Model, fit_work
from .regions import Region, Regions
from .values import Sums

#: Values at which the settings are fitted first; again after FACTOR times as many, and STEP more.
FIRST_FIT, FACTOR, STEP = 3, 1.4, 4
#: Fits of fewer values also start afresh.
RESTART = 40
#: Standard deviations below this are taken for this, in amplitudes: a value that is known.
LEAST_STD = 1e-9


class Moments(NamedTuple):
    """Posterior of a quantity at points, in units of what was told: each field (n,).

    `below` and `above` are standard deviations from the mean down to the lower bound of the
    interval, and up to the upper one; both are positive where the mean is inside.
    """

    mean: FloatArray
    std: FloatArray
    below: FloatArray
    above: FloatArray

    @property
    def probability(self) -> FloatArray:
        """The probability that the quantity is within its interval, (n,)."""
        return self.within()

    def within(self, more: float = 0.0) -> FloatArray:
        """The same if the interval were wider by `more` standard deviations at either end, (n,)."""
        from scipy.special import ndtr

        inside = ndtr(self.above + more) + ndtr(self.below + more) - 1.0
        return np.asarray(np.clip(inside, 0.0, 1.0))


class Quantity:
    """A quantity that is observed where f is, with a model of its own."""

    def __init__(
        self, sites: ArmSites | BoxSites, interval: Interval, delta: float, shaped: bool = True
    ) -> None:
        self.interval = interval
        self._sites = sites
        self._dim = sites.scaled.shape[1]
        self._sums = Sums(sites)
        self._regions = Regions(sites)
        self._model = Model(self._dim, self._sums, Fixed(), delta, shaped)
        self._seen, self._next_fit = 0, FIRST_FIT
        #: Posteriors of the regions, each with the number of changes and the settings it is by.
        self._posteriors: dict[Region, tuple[int, Settings, Conditioned]] = {}

    @property
    def known(self) -> bool:
        """Whether there are enough values for a model."""
        return self._seen >= FIRST_FIT

    @property
    def seen(self) -> int:
        """How many values there are."""
        return self._seen

    @property
    def played(self) -> IntArray:
        """All sites that have values, in the order of their first."""
        return self._regions.played

    def add(self, site: int, value: float, times: int = 1) -> None:
        """Take in a value at a site, as often as `times` says."""
        for _ in range(times):
            self._sums.add(site, value)
        self._seen += times
        if site not in self._regions.home:
            self._regions.add(site)
        number = self._regions.home[site]
        self._refit_if_due()
        due = [number]
        while due:
            number = due.pop()
            if self._regions.cut(number, self._model.fit.best.scales):
                due += [number, len(self._regions) - 1]

    def _refit_if_due(self) -> None:
        """Fit the settings if there are enough new values; of a larger fit, do some steps."""
        if self._model.learning:
            self._model.advance(self._regions, fit_work(self._seen))
        elif self._seen >= self._next_fit:
            self._next_fit = max(self._seen + STEP, int(self._seen * FACTOR))
            if self._seen < RESTART:
                self._model.learn(self._regions.played, restart=True)
            else:
                self._model.begin(self._regions.played)

    def moments(self, points: FloatArray) -> Moments:
        """The posterior at points (n, d) of the unit cube."""
        mean, std, below, above = (np.zeros(len(points)) for _ in range(4))
        for region in self._regions:
            rows = np.flatnonzero(region.holds(points))
            if len(rows):
                part = self._moments_in(region, points[rows])
                mean[rows], std[rows], below[rows], above[rows] = part
        return Moments(mean, std, below, above)

    def _moments_in(self, region: Region, points: FloatArray) -> Moments:
        posterior = self._posterior(region)
        at, settings = posterior.moments_at(points), posterior.settings
        deviation = np.maximum(np.sqrt(at.variance), LEAST_STD)
        lower, upper = (
            settings.from_units(bound) if math.isfinite(bound) else bound for bound in self.interval
        )
        up, down = (settings.in_units(at.mean + side * deviation) for side in (1.0, -1.0))
        return Moments(
            settings.in_units(at.mean),
            0.5 * (up - down),
            (at.mean - lower) / deviation,
            (upper - at.mean) / deviation,
        )

    def reach(self) -> float:
        """Standard deviations of bounds that hold all over the domain."""
        return self._model.reach(self._model.believed)

    def satisfied(self, sites: IntArray) -> BoolArray:
        """Which of the sites (n,) have values whose mean is within the interval, (n,)."""
        inside = np.zeros(len(sites), dtype=bool)
        told = np.array([site in self._regions.home for site in sites.tolist()], dtype=bool)
        if told.any():
            means = self._sums.data(sites[told]).means
            inside[told] = (means >= self.interval.lower) & (means <= self.interval.upper)
        return inside

    def _posterior(self, region: Region) -> Conditioned:
        """The posterior by the values that inform a region."""
        sites = region.informed_by
        changes, settings = int(self._sums.changes[sites].sum()), self._settings(region)
        kept = self._posteriors.get(region)
        if kept is not None and kept[0] == changes and kept[1] is self._model.believed:
            return kept[2]
        posterior = self._model.answering(sites, settings)
        alive = set(self._regions)
        self._posteriors = {r: p for r, p in self._posteriors.items() if r in alive}
        self._posteriors[region] = changes, self._model.believed, posterior
        return posterior

    def _settings(self, region: Region) -> Settings:
        """The settings to predict with.

        While all values are the same, nothing says how much others differ: as much as the bounds
        are away.
        """
        settings, means = self._model.believed, self._sums.data(region.informed_by).means
        if float(np.ptp(means)) > 0.0:
            return settings
        gaps = [abs(bound - float(means[0])) for bound in self.interval if math.isfinite(bound)]
        gap = min(gaps, default=0.0)
        return replace(settings, amplitude=gap) if gap > 0.0 else settings

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The values and what was learned, as plain data."""
        return {
            "sums": self._sums.state(),
            "regions": self._regions.state(),
            "model": self._model.state(),
            "seen": self._seen,
            "next_fit": self._next_fit,
        }

    def restore(self, saved: Saved) -> None:
        """Go on from saved values, at sites that are there already."""
        self._sums.restore(saved.part("sums"))
        self._regions.restore(saved.part("regions"))
        self._model.restore(saved.part("model"))
        self._seen, self._next_fit = saved.integer("seen"), saved.integer("next_fit")
        told = self._sums.count + self._sums.known
        saved.require(int(told.sum()) == self._seen < self._next_fit, "all values")
        played = np.flatnonzero(told).tolist()
        saved.require(sorted(self._regions.home) == played, "a region for each value")
