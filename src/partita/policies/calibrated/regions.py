"""Where sites lie: regions, which tile the unit cube, each with the sites that inform it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State, joined, lengths, wholes
from partita._types import FloatArray, IntArray
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.feasible import between
from partita.policies.fixed import Fixing

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
        """Which of the points (n, d) are in it; a face belongs to the region above it."""
        return between(points, self.lower, self.upper)

    @property
    def side(self) -> FloatArray:
        """Its sides, (d,)."""
        return self.upper - self.lower

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
    _corners: FloatArray  # (n, 2, d), of all regions, as they were when last needed

    def __init__(self, sites: ArmSites | BoxSites) -> None:
        self._sites = sites
        dim = sites.scaled.shape[1]
        self._all = [Region(np.zeros(dim), np.ones(dim), [], np.empty(0, np.int64))]
        self._cuts, self.home = {}, {}
        self._corners = np.empty((0, 2, dim))

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
        """The number of the region that a point (d,) is in."""
        number, coordinates = 0, point.tolist()
        while True:
            cuts = self._cuts.get(number, [])
            above = next((cut.above for cut in cuts if coordinates[cut.axis] >= cut.where), None)
            if above is None:
                return number
            number = above

    def met(self, where: Fixing) -> list[int]:
        """The numbers of the regions that a slice meets."""
        if len(self) == 1:
            return [0]
        if len(self._corners) != len(self):  # only a cut changes corners
            self._corners = np.array([(region.lower, region.upper) for region in self])
        axes, values = where.numbers, where.values
        lower, upper = self._corners[:, 0, axes], self._corners[:, 1, axes]
        below = np.where(upper >= 1.0, values <= upper, values < upper)
        meets: list[int] = np.flatnonzero(((values >= lower) & below).all(axis=1)).tolist()
        return meets

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

    def state(self) -> State:
        """The cuts and the sites of the regions, as plain data; corners follow from the cuts."""
        cuts = np.zeros((len(self) - 1, 2), dtype=np.int64)
        for number, made in self._cuts.items():
            for cut in made:
                cuts[cut.above - 1] = number, cut.axis
        return {
            "cuts": cuts,
            "home": wholes(self.home),
            "own_lengths": lengths(region.sites for region in self),
            "own": joined([wholes(region.sites) for region in self], np.int64),
            "around_lengths": lengths(region.around for region in self),
            "around": joined([region.around for region in self], np.int64),
        }

    def restore(self, saved: Saved) -> None:
        """Restore saved regions, of sites that are there already."""
        dim = self._sites.scaled.shape[1]
        cuts = saved.wholes("cuts", (None, 2)).tolist()
        corners = [(np.zeros(dim), np.ones(dim))]
        self._cuts = {}
        for above, (number, axis) in enumerate(cuts, 1):
            saved.require(number < above and axis < dim, "cuts of regions that exist")
            lower, upper = corners[number]
            middle = 0.5 * (lower[axis] + upper[axis])
            saved.require(lower[axis] < middle < upper[axis], "regions of some width")
            corners.append((lower.copy(), upper))
            corners[number] = lower, upper.copy()
            corners[above][0][axis] = corners[number][1][axis] = middle
            self._cuts.setdefault(number, []).append(_Cut(axis, float(middle), above))
        home = saved.numbers("home", len(self._sites))
        last = len(self._sites) - 1
        own, around = (
            saved.cut(f"{name}_lengths", saved.wholes(name, (None,), 0, last), len(corners))
            for name in ("own", "around")
        )
        self._all = [
            Region(lower, upper, sites.tolist(), near)
            for (lower, upper), sites, near in zip(corners, own, around, strict=True)
        ]
        numbers = {site: i for i, region in enumerate(self._all) for site in region.sites}
        once = len(numbers) == len(home) == sum(map(len, own))
        saved.require(once and numbers.keys() == set(home), "each site in one region")
        self.home = {site: numbers[site] for site in home}
        for region in self._all:
            self._check(saved, region)

    def _check(self, saved: Saved, region: Region) -> None:
        """Refuse a region that has other sites than it can have, or more."""
        saved.require(region.holds(self._sites.scaled[region.own]).all(), "sites in their regions")
        few = len(region.sites) < REGION_POINTS
        narrow = float((region.upper - region.lower).max()) <= 2 * NARROWEST
        saved.require(few or narrow, "regions that are not due to be cut")
        near = set(region.around.tolist())
        some = len(near) == len(region.around) <= MOST_DATA and near <= self.home.keys()
        saved.require(some and not near & set(region.sites), "sites around regions")
        saved.require(bool(near or region.sites) or not self.home, "data for each region")

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
