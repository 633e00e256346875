"""Fences against outliers: values far outside all others count as if at a fence."""

from __future__ import annotations

import math

import numpy as np

#: Values further than so many interquartile ranges below or above the middle half count as there.
FENCE_BELOW, FENCE_ABOVE = 10.0, 30.0
#: Values that fences are computed from, and how many it takes.
FENCE_SAMPLE, FENCE_FROM = 4096, 16


class Fences:
    """Set from the quartiles of the values seen, anew whenever those have doubled in number.

    They never close in: later plays are alike, near the best.
    """

    def __init__(self) -> None:
        self.low, self.high = -math.inf, math.inf
        #: How many values have been seen.
        self.seen = 0
        self._recent: list[float] = []
        self._first_sites: list[int] = []

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
        span = float(high - low)
        below, above = float(low) - FENCE_BELOW * span, float(high) + FENCE_ABOVE * span
        if self.set:
            self.low, self.high = min(below, self.low), max(above, self.high)
        elif span > 0:
            self.low, self.high = below, above

    def clip(self, value: float) -> float:
        """A value, or the fence it is beyond."""
        return min(max(value, self.low), self.high)

    def take_first(self) -> list[tuple[int, float]]:
        """Sites and values from before there were fences, if some are beyond them; once."""
        sites, values = self._first_sites, self._recent[: len(self._first_sites)]
        self._first_sites = []
        if len(sites) == FENCE_SAMPLE or not sites:
            return []
        if self.low <= min(values) and max(values) <= self.high:
            return []
        return list(zip(sites, values, strict=True))
