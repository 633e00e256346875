"""The candidates of a cell: the arms inside it, or on a box a lattice and the points told off it.

`ArmCandidates` and `BoxCandidates` answer the same questions; all that differs between finite
domains and boxes is here. A cell's *members* are what decides its candidates: its arms, or on a box
the sites with data inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray, WordArray
from partita.gp.posterior import Plan, Posterior, Prior
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern

from .cover import CellKey, Geometry
from .fresh import CellState, FreshArms, FreshBox, NoFresh
from .lattice import Lattice
from .sites import ArmSites, BoxSites, point_priorities

#: Told points off a box cell's lattice that are kept as candidates; from so many on they are data
#: only.
EXTRA_LIMIT = 256

#: Most dimensions in which an arm on a shared face belongs to every cell that touches it.
CLOSED_DIMS = 6

_NO_SITES = np.empty(0, dtype=np.int64)


class Layout(NamedTuple):
    """Points of a cell: m candidates, and sites with data that are none."""

    sites: IntArray  # (m,) site of each candidate, -1 where it has none yet
    silent: IntArray  # sites with data that are no candidates
    priority: WordArray  # (m,)


class Cell:
    """A cell of the cover that has data or has been played."""

    __slots__ = (
        "ceiling",
        "count",
        "distinct",
        "floor",
        "key",
        "plan",
        "posterior",
        "priority",
        "quota",
        "row",
        "row_size",
        "silent",
        "sites",
        "touched",
    )

    def __init__(self, key: CellKey, layout: Layout, posterior: Posterior, quota: float) -> None:
        self.key = key
        self.quota = quota  # with this many observations it may be due to split
        self.sites, self.silent, self.priority = layout
        self.posterior = posterior
        self.count = 0
        self.distinct = 0
        self.plan: Plan | None = None
        #: Bounds on f at the candidates that were known when the cell was made, (m,) each.
        self.ceiling: FloatArray | None = None
        self.floor: FloatArray | None = None
        self.touched = 0
        self.row = -1  # where the choice keeps this cell (`index.Table`), with how many candidates
        self.row_size = 0

    def inherit(self, ceiling: FloatArray, floor: FloatArray) -> None:
        """Keep bounds on f at the candidates, (m,) each, beside those known already."""
        self.ceiling = ceiling if self.ceiling is None else np.minimum(self.ceiling, ceiling)
        self.floor = floor if self.floor is None else np.maximum(self.floor, floor)

    def match_bounds(self, kept: npt.NDArray[np.intp] | None = None) -> None:
        """Make the inherited bounds as many as the candidates: those `kept`, then none known."""
        if self.ceiling is None or self.floor is None:
            return
        if kept is not None:
            self.ceiling, self.floor = self.ceiling[kept], self.floor[kept]
        missing = len(self.sites) - len(self.ceiling)
        if missing > 0:
            self.ceiling = np.append(self.ceiling, np.full(missing, np.inf))
            self.floor = np.append(self.floor, np.full(missing, -np.inf))


class ArmCandidates:
    """On a finite domain a cell's candidates are its arms, which are its members too.

    Deviates: above `CLOSED_DIMS` dimensions an arm on a face that cells share belongs to one of
    them only, since 2^d cells can meet there; bounds hold for any choice of data that does not look
    at the values.
    """

    lattice: Lattice | None = None

    def __init__(self, domain: Grid | Arms, geometry: Geometry, kernel: Matern, seed: int) -> None:
        self.sites = ArmSites(domain, geometry, seed)
        self.fresh = FreshArms()
        self.closed = domain.dim <= CLOSED_DIMS
        self.grid_shape = (domain.n,) * domain.dim if isinstance(domain, Grid) else None
        self._kernel = kernel
        self.scale = 1.0 / (geometry.per_side * kernel.scales(domain.dim))

    def points(self, cell: Cell) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        return self.sites.scaled[cell.sites]

    def point(self, cell: Cell, j: int) -> FloatArray:
        """Scaled coordinates of one candidate, (d,)."""
        return np.asarray(self.sites.scaled[cell.sites[j]])

    def prior(self, cell: Cell) -> Prior:
        """Kernel between a cell's candidates."""
        return Prior(self._kernel, self.sites.scaled[cell.sites] * self.scale)

    def lay_out(self, key: CellKey, members: IntArray) -> Layout:
        """Candidates of a cell with these members."""
        return Layout(members, _NO_SITES, self.sites.priority[members])

    def number(self, cell: Cell, site: int) -> int:
        """Candidate number of a site in a cell that holds it."""
        return int(np.searchsorted(cell.sites, site))

    def admit(self, cell: Cell, site: int) -> int:
        """Candidate number of a site that was no candidate before."""
        raise AssertionError("every arm is a candidate")

    def site(self, cell: Cell, j: int) -> int:
        """The site of a candidate."""
        return int(cell.sites[j])

    def first_site(self, key: CellKey) -> int:
        """The site to play first in a cell without data: the candidate of the lowest priority."""
        arms = self.fresh.arms[key]
        return int(arms[np.argmin(self.sites.priority[arms])])

    def take_fresh(self, key: CellKey, members: IntArray) -> IntArray:
        """Members of a cell that is no longer to be without data; those with new data are given."""
        return self.fresh.take(key)

    def give_fresh(self, key: CellKey, members: IntArray) -> None:
        """A cell with these members has no data."""
        self.fresh.add(key, members, int(self.sites.priority[members].min()))

    def note_split(self, key: CellKey) -> None:
        """A cell split; its children without data are given one by one."""

    def members(self, cell: Cell, new: IntArray = _NO_SITES) -> IntArray:
        """Members of a cell, sites `new` with data among them."""
        return cell.sites

    def quieten(self, cell: Cell, j: int) -> bool:
        """Whether data at candidate j made some candidates data only."""
        return False

    def drop(self, cell: Cell, site: int) -> bool:
        """Forget a candidate that was there for a play only; whether there was one."""
        return False

    def told(self, cell: Cell) -> IntArray | None:
        """Candidates that are not there for a pending play only; None for all."""
        return None


class BoxCandidates:
    """On a box a cell's candidates are a lattice, and told or pending points off it (*extras*).

    An extra is one of a told point anywhere, a point that a finer neighbour played on a shared
    face, or one that the parent played where lattices do not nest. A cell with `EXTRA_LIMIT` or
    more of them with data keeps none as candidates: they are *silent*, data only.
    """

    grid_shape: tuple[int, ...] | None = None

    def __init__(
        self,
        domain: Box,
        geometry: Geometry,
        kernel: Matern,
        seed: int,
        lattice: Lattice,
        mute: bool,
        state: Callable[[CellKey], CellState] | None,
    ) -> None:
        """`state(key)` says what has become of a cell, None that every cell is made at once.

        `mute` says whether cells may silence extras.
        """
        self.sites = BoxSites(domain, geometry)
        self.fresh: FreshBox | NoFresh = (
            NoFresh() if state is None else FreshBox(geometry, seed, state)
        )
        self.lattice = lattice
        self.closed = lattice.closed
        self._kernel = kernel
        self.scale = 1.0 / (geometry.per_side * kernel.scales(domain.dim))
        self._seed = seed
        self._limit = EXTRA_LIMIT if mute else None
        self._size = len(lattice.offsets)
        self._nodes = {row.tobytes(): j for j, row in enumerate(lattice.offsets)}
        self._matrices: dict[int, FloatArray] = {}

    def points(self, cell: Cell) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        base = self.lattice.points(cell.key)
        extras = cell.sites[self._size :]
        return np.concatenate([base, self.sites.scaled[extras]]) if len(extras) else base

    def point(self, cell: Cell, j: int) -> FloatArray:
        """Scaled coordinates of one candidate, (d,)."""
        if cell.sites[j] >= 0:
            return np.asarray(self.sites.scaled[cell.sites[j]])
        corner = np.array(cell.key[1:], dtype=float)
        return np.asarray((corner + self.lattice.offsets[j]) / float(2 ** cell.key[0]))

    def prior(self, cell: Cell) -> Prior:
        """Kernel between a cell's candidates, and silent sites."""
        points = self.points(cell) * self.scale
        if len(points) > self._size:
            return Prior(self._kernel, points)  # with extras there are no silent sites
        matrix = self._matrices.get(cell.key[0])
        if matrix is None:
            matrix = self._matrices[cell.key[0]] = Prior(self._kernel, points).matrix()
        silent = self.sites.scaled[cell.silent] * self.scale if len(cell.silent) else None
        return Prior(self._kernel, points, matrix, silent)

    def lay_out(self, key: CellKey, members: IntArray) -> Layout:
        """The lattice, then members off it; or those silent."""
        base = np.full(self._size, -1, dtype=np.int64)
        found = []
        for site in members.tolist():
            j = self._node(key, site)
            if j < 0:
                found.append(site)
            else:
                base[j] = site
        extras, silent = np.array(found, dtype=np.int64), _NO_SITES
        if self._is_crowded(len(extras)):
            extras, silent = silent, extras
        scaled = np.concatenate([self.lattice.points(key), self.sites.scaled[extras]])
        return Layout(np.concatenate([base, extras]), silent, point_priorities(self._seed, scaled))

    def _node(self, key: CellKey, site: int) -> int:
        """Lattice node of a cell at a site, or -1."""
        offset = self.sites.scaled[site] * float(2 ** key[0]) - np.array(key[1:], dtype=float)
        return self._nodes.get((offset + 0.0).tobytes(), -1)

    def _is_crowded(self, extras: int) -> bool:
        return self._limit is not None and extras >= self._limit

    def number(self, cell: Cell, site: int) -> int:
        """Candidate number of a site in a cell that holds it; -1 if it is no candidate."""
        known = np.flatnonzero(cell.sites == site)
        if len(known):
            return int(known[0])
        j = self._node(cell.key, site)
        if j >= 0:
            cell.sites[j] = site
        return j

    def admit(self, cell: Cell, site: int) -> int:
        """Make a site off the lattice a candidate: its number, or -1 if others are silent."""
        if len(cell.silent):
            return -1
        cell.sites = np.append(cell.sites, site)
        priority = point_priorities(self._seed, self.sites.scaled[site : site + 1])
        cell.priority = np.append(cell.priority, priority)
        cell.match_bounds()
        return len(cell.sites) - 1

    def site(self, cell: Cell, j: int) -> int:
        """The site of a candidate, registered if it is new."""
        if cell.sites[j] < 0:
            cell.sites[j] = self.sites.register(self.point(cell, j))
        return int(cell.sites[j])

    def first_site(self, key: CellKey) -> int:
        """The site to play first in a cell without data: the candidate of the lowest priority."""
        points = self.lattice.points(key)
        return self.sites.register(points[np.argmin(point_priorities(self._seed, points))])

    def take_fresh(self, key: CellKey, members: IntArray) -> IntArray:
        """Members of a cell that is no longer to be without data; those with new data are given."""
        self.fresh.note(key)
        return members

    def give_fresh(self, key: CellKey, members: IntArray) -> None:
        """A cell has no data."""
        self.fresh.note(key)

    def note_split(self, key: CellKey) -> None:
        """A cell split: its children are fresh, but for those that get data."""
        self.fresh.add_children(key)

    def members(self, cell: Cell, new: IntArray = _NO_SITES) -> IntArray:
        """Sites with data in a cell, `new` ones included."""
        held = np.concatenate([cell.sites[cell.sites >= 0], cell.silent, new])
        return np.unique(held[self.sites.count[held] > 0])

    def quieten(self, cell: Cell, j: int) -> bool:
        """After data at candidate j: make extras silent if there are too many."""
        extras = cell.sites[self._size :]
        if j < self._size or not self._is_crowded(int((self.sites.count[extras] > 0).sum())):
            return False
        cell.silent = extras[self.sites.count[extras] > 0]
        cell.sites, cell.priority = cell.sites[: self._size], cell.priority[: self._size]
        cell.match_bounds(np.arange(self._size))
        return True

    def drop(self, cell: Cell, site: int) -> bool:
        """Forget an extra without data whose pending play was cancelled; whether there was one."""
        j = self.number(cell, site)
        if j < self._size or self.sites.count[site]:
            return False
        kept = np.delete(np.arange(len(cell.sites)), j)
        cell.sites, cell.priority = cell.sites[kept], cell.priority[kept]
        cell.match_bounds(kept)
        return True

    def told(self, cell: Cell) -> IntArray | None:
        """Candidates that are not there for a pending play only; None for all."""
        extras = cell.sites[self._size :]
        if (self.sites.count[extras] > 0).all():
            return None
        kept = np.ones(len(cell.sites), dtype=bool)
        kept[self._size :] = self.sites.count[extras] > 0
        return np.flatnonzero(kept)
