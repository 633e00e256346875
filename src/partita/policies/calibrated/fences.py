"""Fences against outliers: values far outside all others count as if at a fence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

#: Values further than so many interquartile ranges below or above the middle half count as there.
FENCE_BELOW, FENCE_ABOVE = 10.0, 30.0
#: Values that fences are computed from, and how many it takes.
FENCE_SAMPLE, FENCE_FROM = 4096, 16
#: Values beyond the fences that are remembered, so that they can be put back.
MOST_BEYOND = 4096


class Change(NamedTuple):
    """What counted at a site, and what is to count instead; None is nothing."""

    site: int
    before: float | None
    after: float | None


@dataclass
class _Beyond:
    """A value beyond a fence, and what counts instead of it: that fence, or nothing."""

    value: float
    counts_as: float | None


class Fences:
    """Set from the quartiles of the values seen, anew whenever those have doubled in number.

    They never close in, and the range that they are multiples of is never less than that of the
    first values, which are from all over the domain: later plays are alike, near the best. What
    they have come to hold counts as it is again. If all values at a site, two at least, are beyond
    a fence, they are no accident: that fence opens. If a value was beyond the upper one and another
    at its site is not, it was luck, and does not count.

    Parameters
    ----------
    first
        How many values come from all over the domain.
    """

    def __init__(self, first: int) -> None:
        self.low, self.high = -math.inf, math.inf
        #: How many values have been seen, and how many of them are beyond a fence.
        self.seen = self.clipped = 0
        self._first = first
        self._least_span = 0.0
        self._recent: list[float] = []
        self._first_sites: list[int] = []
        self._beyond: dict[int, list[_Beyond]] = {}
        self._remembered = 0

    @property
    def set(self) -> bool:
        """Whether there are fences."""
        return not math.isinf(self.low)

    def see(self, site: int, value: float) -> bool:
        """Take note of a value at a site; whether fences were set or moved by it."""
        if len(self._recent) < FENCE_SAMPLE:
            self._recent.append(value)
        else:
            self._recent[self.seen % FENCE_SAMPLE] = value
        self.seen += 1
        before = self.low, self.high
        if self.seen >= FENCE_FROM and self.seen & (self.seen - 1) == 0:
            self._widen()
        if not self.set and len(self._first_sites) < FENCE_SAMPLE:
            self._first_sites.append(site)
        return (self.low, self.high) != before

    def _widen(self) -> None:
        low, high = np.quantile(self._recent, [0.25, 0.75])
        if self.seen == FENCE_FROM:  # an outlier among the first must not set the scale
            first = np.array(self._recent[: self._first])
            self._least_span = 2.0 * float(np.median(np.abs(first - np.median(first))))
        span = max(float(high - low), self._least_span)
        below, above = float(low) - FENCE_BELOW * span, float(high) + FENCE_ABOVE * span
        if self.set:
            self.low, self.high = min(below, self.low), max(above, self.high)
        elif span > 0:
            self.low, self.high = below, above

    def take_first(self) -> list[tuple[int, float]]:
        """Sites and values from before there were fences, if some are beyond them; once."""
        sites, values = self._first_sites, self._recent[: len(self._first_sites)]
        self._first_sites = []
        if len(sites) == FENCE_SAMPLE or not sites:
            return []
        if self.low <= min(values) and max(values) <= self.high:
            return []
        return list(zip(sites, values, strict=True))

    def clip(self, site: int, value: float, others: int) -> float | None:
        """What a value at a site counts as, at which so many others count; None for nothing."""
        if self.low <= value <= self.high:
            return value
        self.clipped += 1
        there = self._beyond.get(site, [])
        ordinary = others - sum(one.counts_as is not None for one in there)
        counts_as = min(max(value, self.low), self.high)
        found = _Beyond(value, None if value > self.high and ordinary > 0 else counts_as)
        if self._remembered < MOST_BEYOND:
            self._remembered += 1
            self._beyond.setdefault(site, []).append(found)
        return found.counts_as

    def doubted(self, site: int) -> bool:
        """Whether all that is known of a site is one value beyond the upper fence."""
        there = self._beyond.get(site, [])
        return len(there) == 1 and there[0].value > self.high

    def lucky(self, site: int) -> list[Change]:
        """What no longer counts at a site that has given an ordinary value."""
        found = []
        for one in self._beyond.get(site, []):
            if one.value > self.high and one.counts_as is not None:
                found.append(Change(site, one.counts_as, None))
                one.counts_as = None
        return found

    def confirmed(self, site: int, count: int) -> list[Change]:
        """What counts instead, if all `count` values at a site are beyond a fence, which opens."""
        there = self._beyond.get(site, [])
        values = [one.value for one in there if one.counts_as is not None]
        if count < 2 or len(values) < count or min(values) < self.low < self.high < max(values):
            return []
        self.low, self.high = min(self.low, *values), max(self.high, *values)
        return self.held()

    def held(self) -> list[Change]:
        """What counts instead at sites with values that are within the fences by now."""
        found = []
        for site, there in list(self._beyond.items()):
            inside = [one for one in there if self.low <= one.value <= self.high]
            if inside:
                found += [Change(site, one.counts_as, one.value) for one in inside]
                self._beyond[site] = [one for one in there if one not in inside]
                if not self._beyond[site]:
                    del self._beyond[site]
                self._remembered -= len(inside)
                self.clipped -= len(inside)
        return found
