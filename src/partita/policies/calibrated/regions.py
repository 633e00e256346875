"""Where sites lie: regions, which tile the unit cube, each with the sites that inform it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.feasible import between

#: Sites of a region at which it is cut in two, the most that inform it, its own and others around
#: it, and how many of the latter it keeps in any case.
REGION_POINTS, MOST_DATA, AROUND = 256, 304, 48
#: A region narrower than this, in sides of the domain, is not cut.
NARROWEST = 1e-6


@dataclass(eq=False)
class Region:
    """A box of the unit cube with its sites, and some around it. `Regions` alone writes it."""

    lower: FloatArray  # (d,)
    upper: FloatArray  # (d,)
    sites: list[int]
    around: IntArray  # nearest first

    def holds(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Which of the points (n, d) lie in it; a face belongs to the region above it."""
        return between(points, self.lower, self.upper)

    @property
    def own(self) -> IntArray:
        """Its sites, in the order of their first values."""
        return np.array(self.sites, dtype=np.int64)

    @property
    def informed_by(self) -> IntArray:
        """All sites that inform it, its own first, (P,)."""
        return np.concatenate([self.own, self.around])

    def trim(self) -> None:
        """Forget the farthest of the sites around it beyond MOST_DATA in all."""
        self.around = self.around[: max(AROUND, MOST_DATA - len(self.sites))]


class _Cut(NamedTuple):
    axis: int
    where: float
    above: int  # the number of the region above


class Regions:
    """All regions by number, and the region of each site that has values."""

    _all: list[Region]
    _cuts: dict[int, list[_Cut]]  # by the number of the region that was cut, oldest first
    home: dict[int, int]  # the number of the region of each site with values, oldest first

    def __init__(self, sites: ArmSites | BoxSites) -> None:
        self._sites = sites
        dim = sites.scaled.shape[1]
        self._all = [Region(np.zeros(dim), np.ones(dim), [], np.empty(0, np.int64))]
        self._cuts, self.home = {}, {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Region:
        return self._all[number]

    def __iter__(self) -> Iterator[Region]:
        return iter(self._all)

    @property
    def played(self) -> IntArray:
        """All sites that have values, in the order of their first."""
        return np.array(list(self.home), dtype=np.int64)

    def number_at(self, point: FloatArray) -> int:
        """The number of the region that a point (d,) lies in."""
        number = 0
        while True:
            cuts = self._cuts.get(number, [])
            above = next((cut.above for cut in cuts if point[cut.axis] >= cut.where), None)
            if above is None:
                return number
            number = above

    def add(self, site: int) -> int:
        """Add a site that has its first value: the number of its region."""
        number = self.home[site] = self.number_at(self._sites.scaled[site])
        self._all[number].sites.append(site)
        self._all[number].trim()
        return number

    def cut(self, number: int, scales: FloatArray) -> bool:
        """Cut a region with too many sites across its longest side, in lengthscales.

        The upper half gets the next number. Both keep all that informed the whole, so that nothing
        is forgotten, until they have more of their own. False if there is nothing to cut, or it is
        too narrow.
        """
        whole = self._all[number]
        if len(whole.sites) < REGION_POINTS:
            return False
        axis = int(np.argmax((whole.upper - whole.lower) / scales))
        middle = 0.5 * (whole.lower[axis] + whole.upper[axis])
        upper, lower = whole.upper.copy(), whole.lower.copy()
        upper[axis] = lower[axis] = middle
        below = self._part(whole, whole.lower, upper, scales)
        above = self._part(whole, lower, whole.upper, scales)
        if not below.sites or not above.sites:  # all on one side: keep halving that one
            full = below if below.sites else above
            if float((full.upper - full.lower).max()) < NARROWEST:
                return False
        self._cuts.setdefault(number, []).append(_Cut(axis, float(middle), len(self._all)))
        for site in above.sites:
            self.home[site] = len(self._all)
        self._all[number] = below
        self._all.append(above)
        return True

    def _part(
        self, whole: Region, lower: FloatArray, upper: FloatArray, scales: FloatArray
    ) -> Region:
        """The region of a part of another, informed by the sites of that, nearest first."""
        data = whole.informed_by
        points = self._sites.scaled[data]
        inside = between(points, lower, upper)
        outside = np.flatnonzero(~inside)
        away = np.maximum(lower - points[outside], points[outside] - upper).clip(min=0) / scales
        near = np.argsort((away**2).sum(axis=1), kind="stable")
        part = Region(lower, upper, data[inside].tolist(), data[outside[near]])
        part.trim()
        return part
