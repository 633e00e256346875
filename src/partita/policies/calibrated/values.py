"""What has been told: what each value counts as, and the replicate sums that the model sees.

A told value enters in one place, `Intake.take`. It counts as it is, as the fence that it lies
beyond, or not at all, and what counts goes into `Sums`, which only the intake adds to.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._types import FloatArray, IntArray
from partita.gp.data import Data
from partita.gp.shapes import IDENTITY, Shape
from partita.partition.sites import ArmSites, BoxSites

#: Values this many interquartile ranges below or above the middle half are beyond a fence.
FENCE_BELOW, FENCE_ABOVE = 10.0, 30.0
#: The most values that fences are computed from, and the fewest.
FENCE_SAMPLE, FENCE_FROM = 4096, 16
#: Values beyond the fences that are remembered, so that they can be put back.
MOST_BEYOND = 4096
#: Values at the same site agree if they differ by less than this part of the variance between
#: sites, on average. They have no noise if at least EXACT_AGAIN replicates at EXACT_SITES do.
EXACT, EXACT_AGAIN, EXACT_SITES = 4e-6, 3, 4
#: Noise that was told to be less than this is taken for this: its square must not vanish.
LEAST_STD = 1e-140

_log = logging.getLogger(__name__)


def _whole() -> IntArray:
    return np.zeros(0, np.int64)


def _real() -> FloatArray:
    return np.zeros(0)


@dataclass(eq=False)
class Sums:
    """Count, mean and sum of squares about the mean of the values that count at each site.

    Values whose noise was told have sums of their own: their precision, one over the variance, and
    the mean that it weights.
    """

    _sites: ArmSites | BoxSites
    #: Values that count at each site, (n,), and how often these have changed, (n,).
    count: IntArray = field(default_factory=_whole)
    changes: IntArray = field(default_factory=_whole)
    _mean: FloatArray = field(default_factory=_real)
    _within: FloatArray = field(default_factory=_real)
    #: Values whose noise was told at each site, (n,), and whether some of it is not none.
    known: IntArray = field(default_factory=_whole)
    _precision: FloatArray = field(default_factory=_real)
    _known_mean: FloatArray = field(default_factory=_real)
    _told_noise: bool = False
    #: Whether values at the same site have been the same so far, so that one counts for all.
    agree: bool = False
    #: Whether values are taken to have no noise: they agree at several sites.
    exact: bool = False
    #: Squares about a site's mean, for each of its values, that are taken for none, if seen
    #: through this shape.
    _little: float = 0.0
    _shape: Shape = IDENTITY

    def reserve(self, site: int) -> None:
        """Make room for a site."""
        size = len(self.count)
        if site >= size:
            more = max(64, size, site + 1 - size)
            for name in ("count", "changes", "known"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(more, np.int64)))
            for name in ("_mean", "_within", "_precision", "_known_mean"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(more)))

    def add(self, site: int, value: float) -> None:
        """Let a value count at a site that has room."""
        self.count[site] += 1
        # Welford's update: sums of large values, and squares, would cancel.
        away = value - self._mean[site]
        self._mean[site] += away / self.count[site]
        self._within[site] += away * (value - self._mean[site])
        self.changes[site] += 1
        if self.agree:
            squares = self._within[site] * self._shape.slope(float(self._mean[site])) ** 2
            if squares > self.count[site] * self._little:
                self.agree = self.exact = False

    def add_known(self, site: int, value: float, std: float) -> None:
        """Let a value with noise that was told count at a site that has room."""
        precision = max(std, LEAST_STD) ** -2
        self.known[site] += 1
        self._precision[site] += precision
        self._known_mean[site] += (
            precision / self._precision[site] * (value - self._known_mean[site])
        )
        self.changes[site] += 1
        if std > 0:
            self._told_noise, self.exact = True, False

    def remove(self, site: int, value: float) -> None:
        """Let a value at a site count no longer."""
        count = int(self.count[site])
        if count == 1:
            self.forget(site)
            return
        before = self._mean[site]
        self.count[site] = count - 1
        self._mean[site] += (before - value) / (count - 1)
        squares = self._within[site] - (value - before) * (value - self._mean[site])
        self._within[site] = max(squares, 0.0)
        self.changes[site] += 1

    def forget(self, site: int) -> None:
        """Let no value at a site count."""
        self.count[site] = self._mean[site] = self._within[site] = 0
        self.changes[site] += 1

    def data(self, sites: IntArray) -> Data:
        """Replicate means of sites that have values, in the order of the sites.

        Sites with values of both kinds come again at the end, for those whose noise was told.
        """
        count, precision = self.count[sites], self._precision[sites]
        means, within = self._mean[sites], self._within[sites]
        if self.agree:
            count, within = np.minimum(count, 1), np.zeros(len(sites))
        known = np.full(len(sites), np.nan)
        if not precision.any():
            points, even = self._sites.scaled[sites], np.ones(len(sites))
            return Data(points, count.astype(float), means, within, even, known)
        only, both = (precision > 0) & (count == 0), (precision > 0) & (count > 0)
        known[only], means[only] = 1.0 / precision[only], self._known_mean[sites][only]
        again, more = sites[both], np.ones(int(both.sum()))
        return Data(
            self._sites.scaled[np.concatenate([sites, again])],
            np.concatenate([np.maximum(count, 1).astype(float), more]),
            np.concatenate([means, self._known_mean[again]]),
            np.concatenate([within, 0.0 * more]),
            np.ones(len(sites) + len(again)),
            np.concatenate([known, 1.0 / self._precision[again]]),
        )

    def told(self, site: int, value: float, std: float) -> Data:
        """Data of a single value at a site whose noise was told."""
        points, one = self._sites.scaled[site : site + 1], np.ones(1)
        variance = max(std, LEAST_STD) ** 2 * one
        return Data(points, one, value * one, 0.0 * one, one, variance)

    def last_steps(self, site: int, value: float) -> Data:
        """Data of a site as they are, and as they were before the last value came, if there were.

        Replicates that agree are one.
        """
        data = self.data(np.array([site]))
        count = float(data.counts[0])
        if count <= 1:
            return data.take(np.array([0]))
        both = data.take(np.array([0, 0]))
        both.counts[1], both.means[1] = (
            count - 1,
            both.means[0] - (value - both.means[0]) / (count - 1),
        )
        return both

    def highest(self, sites: IntArray) -> float:
        """The highest replicate mean of the sites."""
        means = np.where(self.count[sites] > 0, self._mean[sites], self._known_mean[sites])
        return float(means.max(initial=-np.inf))

    def detect_noise(self, sites: IntArray, shape: Shape) -> None:
        """Set `agree` and `exact` by the values at all sites that have some, seen through a shape.

        If values at the same site agree, replicates are counted once: many values with less noise
        than the model can have would make the amplitude seem small. They are taken to have no noise
        if there are several replicates and no two sites have the same mean: values that are often
        the same by chance, as yes and no are, do not pass.
        """
        ours = sites[self.count[sites] > 0]
        if not len(ours):  # all noise was told
            self.agree = self.exact = not self._told_noise
            return
        means = self._mean[ours]
        again = self.count[ours] > 1
        replicates = float((self.count[ours][again] - 1).sum())
        within = self._within[ours][again] * shape.slope(means[again]) ** 2
        self._shape, self._little = shape, EXACT * float(np.var(shape.forward(means)))
        self.agree = float(within.sum()) <= replicates * self._little
        differ = len(np.unique(means)) == len(ours) >= EXACT_SITES
        self.exact = self.agree and replicates >= EXACT_AGAIN and differ and not self._told_noise


class Taken(NamedTuple):
    """What a told value counts as, None if it does not, and whether earlier values are amended."""

    counts_as: float | None
    amended: bool


@dataclass
class _Beyond:
    """A value beyond a fence, and what counts instead of it: that fence, or nothing."""

    value: float
    counts_as: float | None


@dataclass(eq=False)
class Intake:
    """Decides what told values count as, and puts that into the sums.

    Values beyond a fence count as if at it. Fences are set from the quartiles of the values seen,
    anew whenever those have doubled in number. They never close in, and the range that they are
    multiples of is never less than that of the first values, which are from all over the domain:
    later plays are alike, near the best. What they have come to hold counts as it is again.
    If all values at a site, two at least, are beyond a fence, they are no accident: that fence
    opens. If a value was beyond the upper one and another at its site is not, it was luck, and does
    not count.
    """

    sums: Sums
    #: How many values come from all over the domain, and whether all count as they are.
    _first: int
    _keep: bool
    #: The fences; infinite until they are set.
    low: float = -math.inf
    high: float = math.inf
    #: Values seen, and how many of them are beyond a fence.
    seen: int = 0
    clipped: int = 0
    #: The latest values, and the sites of those from before there were fences.
    _recent: list[float] = field(default_factory=list)
    _first_sites: list[int] = field(default_factory=list)
    _least_span: float = 0.0
    #: Values beyond the fences by site, and how many are remembered.
    _beyond: dict[int, list[_Beyond]] = field(default_factory=dict)
    _remembered: int = 0
    #: A site with one value that is too good to be believed.
    _doubted: int | None = None
    _warned: bool = False

    @property
    def fenced(self) -> bool:
        """Whether there are fences."""
        return not math.isinf(self.low)

    def take(self, site: int, value: float, std: float | None = None) -> Taken:
        """Take in a value told at a site, as it is if its noise was told."""
        self.sums.reserve(site)
        if std is not None:
            self.seen += 1
            self.sums.add_known(site, value, std)
            return Taken(value, False)
        if self._keep:
            self.seen += 1
            self.sums.add(site, value)
            return Taken(value, False)
        amended = False
        if self._moves_fences(site, value):
            amended = self._fence_first()
            amended |= self._give_back()
        counts_as, more = self._put(site, value)
        return Taken(counts_as, amended or more)

    def take_doubted(self) -> int | None:
        """A site with one value too good to be believed, to be played again, or None; once."""
        site, self._doubted = self._doubted, None
        return site

    def _put(self, site: int, value: float) -> Taken:
        """Put a value into the sums, as it counts by the fences as they are."""
        if self.low <= value <= self.high:
            self.sums.add(site, value)
            return Taken(value, self._drop_luck(site))
        beyond = self._clip(site, value)
        if beyond.counts_as is not None:
            self.sums.add(site, beyond.counts_as)
        if not self._warned:
            self._warned = True
            _log.warning(
                "a value lies far outside all others, and counts as less extreme; "
                "CalibratedUCB(outliers='keep') takes such values as they are"
            )
        amended = self._open(site)
        there = self._beyond.get(site, [])
        if len(there) == 1 and there[0].value > self.high:
            self._doubted = site
        return Taken(beyond.counts_as, amended)

    def _clip(self, site: int, value: float) -> _Beyond:
        """Remember a value beyond the fences; above ordinary values at its site it is luck."""
        self.clipped += 1
        there = self._beyond.get(site, [])
        ordinary = self.sums.count[site] - sum(one.counts_as is not None for one in there)
        luck = value > self.high and ordinary > 0
        beyond = _Beyond(value, None if luck else min(max(value, self.low), self.high))
        if self._remembered < MOST_BEYOND:
            self._remembered += 1
            self._beyond.setdefault(site, []).append(beyond)
        return beyond

    def _drop_luck(self, site: int) -> bool:
        """Drop values above the fences at a site that gave an ordinary one; False if none."""
        lucky = [
            one
            for one in self._beyond.get(site, [])
            if one.value > self.high and one.counts_as is not None
        ]
        for one in lucky:
            assert one.counts_as is not None
            self.sums.remove(site, one.counts_as)
            one.counts_as = None
        return bool(lucky)

    def _open(self, site: int) -> bool:
        """Open a fence if all values at a site, two at least, are beyond it; False if nothing."""
        count = int(self.sums.count[site])
        values = [one.value for one in self._beyond.get(site, []) if one.counts_as is not None]
        if count < 2 or len(values) < count or min(values) < self.low < self.high < max(values):
            return False
        self.low, self.high = min(self.low, *values), max(self.high, *values)
        return self._give_back()

    def _give_back(self) -> bool:
        """Let values that are within the fences by now count as they are; False if none."""
        amended = False
        for site, there in list(self._beyond.items()):
            inside = [one for one in there if self.low <= one.value <= self.high]
            if not inside:
                continue
            amended = True
            for one in inside:
                if one.counts_as is not None:
                    self.sums.remove(site, one.counts_as)
                self.sums.add(site, one.value)
            self._beyond[site] = [one for one in there if one not in inside]
            if not self._beyond[site]:
                del self._beyond[site]
            self._remembered -= len(inside)
            self.clipped -= len(inside)
        return amended

    def _moves_fences(self, site: int, value: float) -> bool:
        """Note a value at a site, and set the fences anew if that is due; True if they moved."""
        if len(self._recent) < FENCE_SAMPLE:
            self._recent.append(value)
        else:
            self._recent[self.seen % FENCE_SAMPLE] = value
        self.seen += 1
        before = self.low, self.high
        if self.seen >= FENCE_FROM and self.seen & (self.seen - 1) == 0:
            self._widen()
        if not self.fenced and len(self._first_sites) < FENCE_SAMPLE:
            self._first_sites.append(site)
        return (self.low, self.high) != before

    def _widen(self) -> None:
        low, high = np.quantile(self._recent, [0.25, 0.75])
        if self.seen == FENCE_FROM:  # an outlier among the first must not set the scale
            first = np.array(self._recent[: self._first])
            self._least_span = 2.0 * float(np.median(np.abs(first - np.median(first))))
        span = max(float(high - low), self._least_span)
        below, above = float(low) - FENCE_BELOW * span, float(high) + FENCE_ABOVE * span
        if self.fenced:
            self.low, self.high = min(below, self.low), max(above, self.high)
        elif span > 0:
            self.low, self.high = below, above

    def _fence_first(self) -> bool:
        """Put values from before there were fences within them, once; False if none is beyond."""
        sites, values = self._first_sites, self._recent[: len(self._first_sites)]
        self._first_sites = []
        if len(sites) == FENCE_SAMPLE or not sites:
            return False
        if self.low <= min(values) and max(values) <= self.high:
            return False
        for site in set(sites):
            self.sums.forget(site)
        for site, value in zip(sites, values, strict=True):
            self._put(site, value)
        return True
