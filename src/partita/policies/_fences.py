"""Fences against outliers: values far outside all others count as if at a fence."""

from __future__ import annotations

import math

import numpy as np

#: Values further than so many interquartile ranges below or above the middle half count as there.
FENCE_BELOW, FENCE_ABOVE = 10.0, 30.0
#: Values that fences are computed from, and how many it takes.
FENCE_SAMPLE, FENCE_FROM = 4096, 16
#: Values beyond the fences that are remembered, so that they can be put back.
MOST_BEYOND = 4096


class Fences:
    """Set from the quartiles of the values seen, anew whenever those have doubled in number.

    They never close in, and the range that they are multiples of is never less than that of the
    first values, which are from all over the domain: later plays are alike, near the best. If all
    values at a site, two at least, are beyond a fence, they are no accident: that fence opens.

    Parameters
    ----------
    first
        How many values come from all over the domain.
    """

    def __init__(self, first: int) -> None:
        self.low, self.high = -math.inf, math.inf
        #: How many values have been seen, and how many of them were beyond a fence.
        self.seen = self.clipped = 0
        self._first = first
        self._least_span = 0.0
        self._recent: list[float] = []
        self._first_sites: list[int] = []
        #: Values beyond the fences, by site.
        self._beyond: dict[int, list[float]] = {}

    @property
    def set(self) -> bool:
        """Whether there are fences yet."""
        return not math.isinf(self.low)

    def see(self, site: int, value: float) -> bool:
        """Take note of a value at a site; whether the first fences were set by it."""
        if len(self._recent) < FENCE_SAMPLE:
            self._recent.append(value)
        else:
            self._recent[self.seen % FENCE_SAMPLE] = value
        self.seen += 1
        had = self.set
        if self.seen >= FENCE_FROM and self.seen & (self.seen - 1) == 0:
            self._widen()
        if not self.set and len(self._first_sites) < FENCE_SAMPLE:
            self._first_sites.append(site)
        return self.set and not had

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

    def clip(self, site: int, value: float) -> float:
        """A value at a site, or the fence it is beyond."""
        if self.low <= value <= self.high:
            return value
        self.clipped += 1
        if len(self._beyond) < MOST_BEYOND or site in self._beyond:
            self._beyond.setdefault(site, []).append(value)
        return min(max(value, self.low), self.high)

    def confirmed(self, site: int, count: int) -> list[tuple[int, list[float]]]:
        """Sites with the values to put back, if all `count` values at a site are beyond a fence."""
        values = self._beyond.get(site, [])
        if count < 2 or len(values) < count or min(values) < self.low < self.high < max(values):
            return []
        self.low, self.high = min(self.low, *values), max(self.high, *values)
        found = []
        for other, there in list(self._beyond.items()):
            if self.low <= min(there) and max(there) <= self.high:
                found.append((other, there))
                del self._beyond[other]
                self.clipped -= len(there)
        return found

    def take_first(self) -> list[tuple[int, float]]:
        """Sites and values from before there were fences, if some are beyond them; once."""
        sites, values = self._first_sites, self._recent[: len(self._first_sites)]
        self._first_sites = []
        if len(sites) == FENCE_SAMPLE or not sites:
            return []
        if self.low <= min(values) and max(values) <= self.high:
            return []
        return list(zip(sites, values, strict=True))
