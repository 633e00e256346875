"""What must hold besides a high value: quantities within bounds, and evaluations that succeed.

A candidate's index counts by how likely all of that is (Gardner et al. 2014, "Bayesian optimization
with inequality constraints", with the upper confidence bound in place of expected improvement):
what it is above the best feasible value is multiplied by the probability. Until some point is
feasible, the most likely one is evaluated.

Whether an evaluation succeeds is a quantity of 0 and 1, with a model of its own from the first
failure on. Failures by chance are noise to it: its mean is then the same everywhere, and so is the
weight. Where failures depend on place the mean falls to 0, and places much less likely to succeed
than the best are left alone, the more strictly the more evaluations have failed of late.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._types import BoolArray, FloatArray, IntArray, Interval
from partita.partition.sites import ArmSites, BoxSites

from .quantity import Quantity

#: Standard deviations in a quantity's favour while no feasible point is known.
HOPE = 1.0
#: Of evaluations, the part that may fail because of their place, and that may break a constraint:
#: these tell more.
BUDGET, OUTSIDE = 0.15, 0.25
#: The least chance of success, over the highest, of a point that is evaluated: while failures are
#: within their budget, and at most; and how many failures more make the difference.
LEAST_CHANCE, STRICTEST, DEBT = 0.5, 0.9, 4.0
#: After this many successes, and as many as there were failures, one evaluation pays no heed to
#: failures: they may have come by chance.
AGAIN = 2
#: Standard deviations in favour of a place where it is not known whether evaluations succeed, while
#: failures are within their budget.
OPTIMISM = 1.0
#: Sites evaluated last that show how likely success is where nothing is against it.
RECENT = 32
#: Candidates whose weights are remembered.
REMEMBERED = 8


class Limit(NamedTuple):
    """What is known of a quantity at a point: its mean, bounds, and how likely it is within."""

    mean: float
    lower: float
    upper: float
    probability: float


def _owed(debt: float, broken: bool, budget: float) -> float:
    """A debt after one evaluation more, of which a part `budget` may be broken."""
    return min(max(debt + broken - budget, 0.0), 2.0 * DEBT)


class Weights(NamedTuple):
    """How much points count, from 0 to 1, and which are likely to fail; each (m,)."""

    chance: FloatArray
    risky: BoolArray


class Limits:
    """The quantities, and whether evaluations succeed."""

    def __init__(
        self, sites: ArmSites | BoxSites, intervals: Iterable[Interval], delta: float
    ) -> None:
        self._sites, self.delta = sites, delta
        self.quantities = [Quantity(sites, interval, delta) for interval in intervals]
        #: Whether evaluations succeed, 1 or 0; None until one has failed.
        self.success: Quantity | None = None
        #: Failures more than their budget, none of them by chance; and values outside.
        self._debt = self._broken = 0.0
        #: Failures, and successes since the last one, or since one was looked at again.
        self._failures = self._streak = 0
        self._changes = 0
        #: Weights of candidates, by the identity of their points, which are kept along.
        self._weights: dict[int, tuple[FloatArray, int, Weights]] = {}

    # -- what has come -----------------------------------------------------------------------------

    def measure(self, site: int, values: Sequence[float]) -> None:
        """Take in the value of each quantity at a site."""
        for quantity, value in zip(self.quantities, values, strict=True):
            quantity.add(site, value)
        within = all(
            quantity.interval.lower <= value <= quantity.interval.upper
            for quantity, value in zip(self.quantities, values, strict=True)
        )
        self._broken = _owed(self._broken, not within, OUTSIDE)
        self._changes += 1

    def succeed(self, site: int) -> None:
        """Take in that an evaluation at a site gave a value."""
        if self.success is not None:
            self.success.add(site, 1.0)
            self._streak = 0 if self._looks_again else self._streak + 1
            self._debt = _owed(self._debt, False, BUDGET + 1.0 - self._usual_chance())
            self._changes += 1

    def fail(self, site: int, earlier: IntArray) -> None:
        """Take in that an evaluation at a site failed.

        `earlier` holds the number of values at each site that came before the first failure.
        """
        if self.success is None:
            self.success = Quantity(self._sites, Interval(0.5, math.inf), self.delta, shaped=False)
            for told in np.flatnonzero(earlier).tolist():
                self.success.add(told, 1.0, int(earlier[told]))
        self.success.add(site, 0.0)
        self._streak, self._failures = 0, self._failures + 1
        self._debt = _owed(self._debt, True, BUDGET + 1.0 - self._usual_chance())
        self._changes += 1

    @property
    def _looks_again(self) -> bool:
        """Whether the next evaluation may be where others failed: it may have been by chance."""
        return self._streak >= AGAIN + self._failures

    def _usual_chance(self) -> float:
        """The chance of success where it is highest of late: what is less is because of a place."""
        assert self.success is not None
        if not self.success.known:
            return 1.0
        recent = self.success.played[-RECENT:]
        sites = recent[self.success.satisfied(recent)]
        if not len(sites):
            return 1.0
        chance = self.success.moments(self._sites.scaled[sites]).mean
        return float(np.clip(np.quantile(chance, 0.75), 0.0, 1.0))

    # -- for the choice ----------------------------------------------------------------------------

    def weigh(self, points: FloatArray, index: FloatArray, bar: float) -> FloatArray:
        """The index of candidates (m, d), once what must hold counts; a new array (m,).

        `bar` is the highest value of a feasible point in the same units, −∞ if none is known.
        """
        finite = np.isfinite(index)
        weights, risky = self._weighed(points, hope=bar == -math.inf)
        weighed = index.copy()
        if bar > -math.inf:
            above = index > bar
            weighed[above] = bar + (index[above] - bar) * weights[above]
        elif self.quantities:
            weighed[finite] = np.log(np.maximum(weights[finite], 1e-300))
        if risky.any() and finite.any():  # last, the likeliest first
            last = finite & risky
            weighed[last] = weighed[finite].min() - 2.0 + weights[last]
        return weighed

    def chances(self, points: FloatArray) -> FloatArray:
        """How much each of the points (m, d) counts, from 0 to 1, (m,)."""
        return self._weighed(points, hope=False).chance

    def _weighed(self, points: FloatArray, hope: bool) -> Weights:
        key = -id(points) if hope else id(points)
        kept = self._weights.get(key)
        if kept is not None and kept[0] is points and kept[1] == self._changes:
            return kept[2]
        chance = np.ones(len(points))
        for quantity in self.quantities:
            if quantity.known:
                chance *= quantity.moments(points).within(HOPE if hope else 0.0)
        success = self._success(points)
        strict = STRICTEST * min(self._broken / DEBT, 1.0)
        risky = success.risky | (chance < strict * chance.max(initial=0.0))
        weights = Weights(chance * success.chance, risky)
        self._weights.pop(key, None)
        self._weights[key] = points, self._changes, weights
        while len(self._weights) > REMEMBERED:
            del self._weights[next(iter(self._weights))]
        return weights

    def _success(self, points: FloatArray) -> Weights:
        """Chances of success at points (m, d), over the best of them."""
        known = self.success is not None and self.success.known
        if self.success is None or not known or not len(points) or self._looks_again:
            return Weights(np.ones(len(points)), np.zeros(len(points), dtype=bool))
        moments, strict = self.success.moments(points), min(self._debt / DEBT, 1.0)
        favour = OPTIMISM * (1.0 - strict)
        chance = np.clip(moments.mean + favour * moments.std, 1e-3, 1.0)
        chance = chance / chance.max()
        return Weights(chance, chance < LEAST_CHANCE + strict * (STRICTEST - LEAST_CHANCE))

    # -- for answers -------------------------------------------------------------------------------

    @property
    def measured(self) -> bool:
        """Whether there are quantities, with enough values for their models."""
        return bool(self.quantities) and all(quantity.known for quantity in self.quantities)

    def probability(self, points: FloatArray) -> FloatArray:
        """The probability that all quantities are within their intervals at points (n, d), (n,)."""
        product = np.ones(len(points))
        for quantity in self.quantities:
            product *= quantity.moments(points).probability
        return product

    def feasible(self, points: FloatArray) -> BoolArray:
        """At which of the points (n, d) all holds with probability 1 − δ, by the models, (n,)."""
        if not self.quantities:
            return np.ones(len(points), dtype=bool)
        if not self.measured:
            return np.zeros(len(points), dtype=bool)
        return np.asarray(self.probability(points) >= 1.0 - self.delta)

    def likelihood(self, points: FloatArray) -> FloatArray:
        """A number that is the higher the more likely all holds at points (n, d), (n,).

        Unlike the probability, it tells points apart at which there is next to none.
        """
        from scipy.special import log_ndtr  # late: SciPy takes a while to import

        total = np.zeros(len(points))
        for quantity in self.quantities:
            if quantity.known:
                moments = quantity.moments(points)
                total += log_ndtr(np.minimum(moments.below, moments.above))
        return total

    def possible(self, points: FloatArray) -> BoolArray:
        """At which of the points (n, d) all quantities may be within, by their bounds, (n,)."""
        may = np.ones(len(points), dtype=bool)
        for quantity in self.quantities:
            if quantity.known:
                moments, reach = quantity.moments(points), quantity.reach()
                may &= (moments.below >= -reach) & (moments.above >= -reach)
        return may

    def satisfied(self, sites: IntArray) -> BoolArray:
        """At which of the sites (n,) the values themselves were within the intervals, (n,)."""
        inside = np.ones(len(sites), dtype=bool)
        for quantity in self.quantities:
            inside &= quantity.satisfied(sites)
        return inside

    def at(self, point: FloatArray) -> list[Limit]:
        """What is known of each quantity at a point (d,)."""
        known = []
        for quantity in self.quantities:
            if not quantity.known:
                known.append(Limit(math.nan, -math.inf, math.inf, math.nan))
                continue
            moments, reach = quantity.moments(point[None, :]), quantity.reach()
            mean, std = float(moments.mean[0]), float(moments.std[0])
            chance = float(moments.probability[0])
            known.append(Limit(mean, mean - reach * std, mean + reach * std, chance))
        return known

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """What was observed and learned, as plain data."""
        return {
            "quantities": [quantity.state() for quantity in self.quantities],
            "success": None if self.success is None else self.success.state(),
            "debt": float(self._debt),
            "broken": float(self._broken),
            "failures": self._failures,
            "streak": self._streak,
        }

    def restore(self, saved: Saved) -> None:
        """Go on from what was saved, at sites that are there already."""
        number = len(self.quantities)
        parts = saved.parts("quantities", number)
        saved.require(len(parts) == number, "a state of each quantity")
        for quantity, part in zip(self.quantities, parts, strict=True):
            if part is None:
                saved.refuse("a quantity is missing")
            quantity.restore(part)
        if "success" in saved:
            self.success = Quantity(self._sites, Interval(0.5, math.inf), self.delta, shaped=False)
            self.success.restore(saved.part("success"))
        self._debt = saved.real("debt", 0.0, 2.0 * DEBT)
        self._broken = saved.real("broken", 0.0, 2.0 * DEBT)
        self._failures, self._streak = saved.integer("failures"), saved.integer("streak")
