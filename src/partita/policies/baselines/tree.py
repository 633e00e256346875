"""The tree of cells that the hierarchical policies share.

A *cell* is a box in the unit cube: coordinate i runs from c_i to c_i + 1 in units of p^(−k_i),
with p = 2 or 3 parts to a division and k_i divisions of that side so far. Only a longest side is
ever divided, so the k_i of a cell differ by at most one and its depth h = Σ k_i gives its shape.
The numbers c_i and k_i are whole, so cells and centres are exact up to one rounding, whatever order
they were made in.

A cell is evaluated at its *representative*. On a box that is the centre; on a finite domain the arm
nearest to the centre among those inside, the lowest number first. An arm belongs to the one child
whose half-open cell holds it, and children without arms are not made.
"""

from __future__ import annotations

import math
from array import array

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.model.domains import Arms, Box, Grid
from partita.partition.cover import Geometry
from partita.partition.sites import ArmSites, BoxSites

#: Divisions of a side, at most, by the parts of a division: cells stay wide enough for floats.
MAX_LEVEL = {2: 48, 3: 30}
#: A cell of a box is at least this many floating-point numbers wide.
MIN_CELL_FLOATS = 8
#: Integers of a node that are saved as they are.
_NUMBERS = ("depth", "first", "site", "_axis")


class Tree:
    """Nested cells, numbered as they come: 0 is the whole domain, children follow their parent.

    Node data are flat arrays: `parent`, `depth`, `first` (the first child, −1 for a leaf), `width`
    (how many children, whose numbers are consecutive) and `site` (the representative's number in
    `sites`; on a box −1 until someone asks for it).
    """

    def __init__(self, domain: Grid | Arms | Box, parts: int) -> None:
        self.domain = domain
        self.parts = parts
        self.dim = domain.dim
        self.parent = array("q", [-1])
        self.depth = array("q", [0])
        self.first = array("q", [-1])
        self.width = array("b", [0])
        self.site = array("q", [-1])
        self._axis = array("q", [-1])
        #: Lower end of a child along the axis its parent was divided on.
        self._cut = array("d", [-math.inf])
        self._corner = np.zeros((64, self.dim), dtype=np.int64)
        self._level = np.zeros((64, self.dim), dtype=np.int8)
        self._power = float(parts) ** np.arange(MAX_LEVEL[parts] + 2)
        self._holder: dict[int, int] = {}
        geometry = Geometry(self.dim, 1)
        self.sites: ArmSites | BoxSites
        if isinstance(domain, Box):
            self.sites = BoxSites(domain, geometry)
            self._side = domain.upper - domain.lower
            self._max_depth = _finest_level(domain, parts) * self.dim
        else:
            self.sites = ArmSites(domain, geometry, 0)
            self._unit = domain.unit_points
            self._order = np.arange(domain.size)
            self._begin, self._end = array("q", [0]), array("q", [domain.size])
            self._max_depth = MAX_LEVEL[parts] * self.dim
            self.site[0] = self._nearest(0)

    def __len__(self) -> int:
        return len(self.parent)

    # -- representatives ----------------------------------------------------------------------

    def representative(self, node: int) -> int:
        """The number of the site that stands for a cell."""
        site = self.site[node]
        if site < 0:
            site = self.register(self.x(node))
            self.site[node] = site
            self._holder.setdefault(site, node)
        return site

    def x(self, node: int) -> FloatArray:
        """The representative of a cell in the user's units, (d,)."""
        if isinstance(self.domain, Box):
            return self._user(self._corner[node], self._level[node])
        return np.array(self.domain.points[self.site[node]])

    def beside(self, node: int, axis: int) -> tuple[FloatArray, FloatArray]:
        """Centres of the two outer thirds of a cell along an axis, in the user's units."""
        corner, level = self._corner[node].copy(), self._level[node].copy()
        level[axis] += 1
        corner[axis] *= self.parts
        low = self._user(corner, level)
        corner[axis] += self.parts - 1
        return low, self._user(corner, level)

    def longest(self, node: int) -> list[int]:
        """Axes of a cell's longest sides."""
        level = self._level[node]
        return list(np.flatnonzero(level == level.min()).tolist())

    def register(self, x: FloatArray) -> int:
        """The number of the site at a point (d,) of a box."""
        # Keyed by the user's coordinates: what `ask` returned is found again, to the last bit.
        assert isinstance(self.sites, BoxSites)
        return self.sites.register(x, x)

    def locate(self, points: FloatArray) -> IntArray:
        """Numbers of the sites at points (n, d) in the user's units."""
        if isinstance(self.sites, BoxSites):
            return np.array([self.register(row) for row in points + 0.0], dtype=np.int64)
        return self.sites.locate(points)

    def _user(self, corner: IntArray, level: npt.NDArray[np.int8]) -> FloatArray:
        """Centre of a cell of a box: (2c + 1)/(2p^k), both exact, in the user's units."""
        unit = (2 * corner + 1) / (2.0 * self._power[level])
        return np.asarray(self.domain.lower + unit * self._side)

    # -- dividing -------------------------------------------------------------------------------

    def divisible(self, node: int) -> bool:
        """Whether a cell has, or can be given, children."""
        if isinstance(self.domain, Box):
            return self.depth[node] < self._max_depth
        return self._end[node] - self._begin[node] > 1

    def split(self, node: int, axis: int | None = None) -> range:
        """Divide a leaf, along its first longest side unless told; the numbers of its children.

        Empty if the cell cannot be divided.
        """
        if not self.divisible(node):
            return range(0)
        if axis is None:
            axis = self.depth[node] % self.dim
        finite = not isinstance(self.domain, Box)
        numbered = finite and self.depth[node] >= self._max_depth
        base = int(self._corner[node, axis]) * self.parts
        cuts = self._cuts(node, axis)
        parts = [(slot, 0, 0) for slot in range(self.parts)]
        if finite:
            parts = self._divide_arms(node, axis, None if numbered else cuts)
        children = self._append(node, len(parts))
        for child, (slot, begin, end) in zip(children, parts, strict=True):
            if finite:
                self._begin[child], self._end[child] = begin, end
            if numbered:
                self._cut[child] = float(self._order[begin])
            else:
                self._corner[child, axis] = base + slot
                self._level[child, axis] += 1
                self._cut[child] = cuts[slot]
            if finite:
                self.site[child] = self._nearest(child)
        if self.parts == 3 and not finite:  # the middle one keeps the centre
            self.site[children[1]] = self.site[node]
        self._axis[node] = self.dim if numbered else axis
        return children

    def _cuts(self, node: int, axis: int) -> list[float]:
        """Lower ends of the parts of a cell along an axis, each rounded once."""
        base = int(self._corner[node, axis]) * self.parts
        scale = self.parts ** (int(self._level[node, axis]) + 1)
        return [(base + slot) / scale for slot in range(self.parts)]

    def _append(self, node: int, count: int) -> range:
        """Room for `count` children of a node, which start as copies of its cell."""
        first = len(self.parent)
        children = range(first, first + count)
        while len(self._corner) < children.stop:
            self._corner = np.concatenate([self._corner, np.zeros_like(self._corner)])
            self._level = np.concatenate([self._level, np.zeros_like(self._level)])
        self._corner[first : children.stop] = self._corner[node]
        self._level[first : children.stop] = self._level[node]
        depth = self.depth[node] + 1
        for _ in children:
            self.parent.append(node)
            self.depth.append(depth)
            self.first.append(-1)
            self.width.append(0)
            self.site.append(-1)
            self._axis.append(-1)
            self._cut.append(0.0)
        if not isinstance(self.domain, Box):
            self._begin.extend(children)
            self._end.extend(children)
        self.first[node], self.width[node] = first, count
        return children

    # -- arms -------------------------------------------------------------------------------------

    def _divide_arms(
        self, node: int, axis: int, cuts: list[float] | None
    ) -> list[tuple[int, int, int]]:
        """Sort a cell's arms by the part that holds them: number and range of each with arms.

        Without `cuts`, where arms are too close for cells to tell them apart, by their numbers.
        """
        begin, end = self._begin[node], self._end[node]
        members = self._order[begin:end]
        if cuts is None:
            part = np.arange(len(members)) * self.parts // len(members)
        else:
            part = np.searchsorted(cuts[1:], self._unit[members, axis], side="right")
        self._order[begin:end] = members[np.argsort(part, kind="stable")]
        counts = np.bincount(part, minlength=self.parts).tolist()
        ranges = []
        for slot, count in enumerate(counts):
            if count:
                ranges.append((slot, begin, begin + count))
            begin += count
        return ranges

    def _nearest(self, node: int) -> int:
        members = self._order[self._begin[node] : self._end[node]]
        centre = (2 * self._corner[node] + 1) / (2.0 * self._power[self._level[node]])
        return int(members[np.argmin(((self._unit[members] - centre) ** 2).sum(axis=1))])

    # -- questions --------------------------------------------------------------------------------

    def leaf(self, site: int) -> int:
        """The leaf that holds a site."""
        node = self._holder.get(site, 0)
        if self.first[node] >= 0:
            at = self._coordinates(site)
            while (child := self.first[node]) >= 0:
                value, last = at[self._axis[node]], child + self.width[node] - 1
                while child < last and value >= self._cut[child + 1]:
                    child += 1
                node = child
            self._holder[site] = node
        return node

    def _coordinates(self, site: int) -> list[float]:
        """A site's place in the unit cube; for an arm also its number, for `_divide_arms`."""
        if isinstance(self.domain, Box):
            unit = (self.sites.x(site) - self.domain.lower) / self._side
            return list(unit.tolist())
        return [*self._unit[site].tolist(), float(site)]

    def size(self, depth: int) -> float:
        """Half the diagonal of a cell of this depth, in the unit cube."""
        level, short = divmod(depth, self.dim)
        squared = (self.dim - short + short / self.parts**2) / float(self.parts) ** (2 * level)
        return 0.5 * math.sqrt(squared)

    def radius(self, node: int) -> float:
        """How far a cell reaches from its representative: to its corners, or its farthest arm."""
        if isinstance(self.domain, Box):
            return self.size(self.depth[node])
        members = self._order[self._begin[node] : self._end[node]]
        away = self._unit[members] - self._unit[self.site[node]]
        return float(np.sqrt((away**2).sum(axis=1).max()))

    # -- saved state ------------------------------------------------------------------------------

    def state(self) -> State:
        """The cells and sites as plain data."""
        n, finite = len(self), not isinstance(self.domain, Box)
        numbers = {name: np.array(getattr(self, name), dtype=np.int64) for name in _NUMBERS}
        return {
            **numbers,
            "width": np.array(self.width, dtype=np.int8),
            "cut": np.array(self._cut),
            "corner": self._corner[:n].copy(),
            "level": self._level[:n].copy(),
            "sites": self.sites.state(),
            "order": self._order.copy() if finite else None,
            "begin": np.array(self._begin, dtype=np.int64) if finite else None,
            "end": np.array(self._end, dtype=np.int64) if finite else None,
        }

    def restore(self, saved: Saved) -> None:
        """Restore a saved tree of the same domain."""
        sites = saved.part("sites")
        if isinstance(self.sites, BoxSites):
            self.sites.restore(sites, in_units=True)
        else:
            self.sites.restore(sites)
        depth = saved.wholes("depth", (None,))
        shape = (len(depth),)
        first = saved.wholes("first", shape, -1)
        width = saved.bytes("width", shape, self.parts)
        inner = np.flatnonzero(first >= 0)
        inner = inner[np.argsort(first[inner], kind="stable")]
        starts = 1 + np.cumsum(width[inner], dtype=np.int64) - width[inner]
        saved.require(np.array_equal(first[inner], starts), "children one after the other")
        saved.require((first[inner] > inner).all(), "children after their parents")
        saved.require((width[inner] > 0).all() and not width[first < 0].any(), "some children")
        parent = np.concatenate([[-1], np.repeat(inner, width[inner])])
        saved.require(len(parent) == len(depth), "a parent for each cell")
        saved.require(not depth[0] and (depth[1:] == depth[parent[1:]] + 1).all(), "depths")
        level = saved.bytes("level", (*shape, self.dim), MAX_LEVEL[self.parts])
        corner = saved.wholes("corner", (*shape, self.dim))
        saved.require((corner < self._power[level]).all(), "cells inside the cube")
        saved.require((np.ptp(level, axis=1) <= 1).all(), "cells of even sides")
        finite = not isinstance(self.domain, Box)
        axis = saved.wholes("_axis", shape, -1, self.dim - (not finite))
        saved.require(((axis >= 0) == (first >= 0)).all(), "an axis for each division")
        cut = saved.floats("cut", shape, -math.inf, max(1.0, float(len(self.sites))))
        site = saved.wholes("site", shape, 0 if finite else -1, len(self.sites) - 1)
        if finite:
            self._restore_arms(saved, first, width)
        else:
            even = np.array_equal(depth, level.sum(axis=1)) and (width[inner] == self.parts).all()
            saved.require(even and (depth <= self._max_depth).all(), "divisions of a box")
        self.parent, self.depth, self.first, self.site, self._axis = (
            array("q", numbers.tobytes()) for numbers in (parent, depth, first, site, axis)
        )
        self.width, self._cut = array("b", width.tobytes()), array("d", cut.tobytes())
        self._corner, self._level = corner, level
        self._holder = {}

    def _restore_arms(self, saved: Saved, first: IntArray, width: npt.NDArray[np.int8]) -> None:
        """Read which arms each cell has: its children share them."""
        size, shape = len(self.sites), first.shape
        order = saved.wholes("order", (size,), 0, size - 1)
        saved.require(len(np.unique(order)) == size, "each arm once")
        begin = saved.wholes("begin", shape, 0, size - 1)
        end = saved.wholes("end", shape, begin + 1, size)
        inner = np.flatnonzero(first >= 0)
        last = first[inner] + width[inner] - 1
        ends = np.array_equal(begin[first[inner]], begin[inner]) and np.array_equal(
            end[last], end[inner]
        )
        saved.require(ends and begin[0] == 0 and end[0] == size, "all arms of a cell")
        followed = np.setdiff1d(np.arange(1, len(first)), last)  # by a sibling
        saved.require((end[followed] == begin[followed + 1]).all(), "no arm left out")
        self._order = order
        self._begin, self._end = array("q", begin.tobytes()), array("q", end.tobytes())


def _finest_level(domain: Box, parts: int) -> int:
    """Divisions of a side that leave cells wide enough for floats to tell apart."""
    side = domain.upper - domain.lower
    floats = float((side / np.spacing(np.maximum(-domain.lower, domain.upper))).min())
    return min(MAX_LEVEL[parts], int(math.log(floats / MIN_CELL_FLOATS) / math.log(parts)))
