"""The candidates of a cell: the arms inside it, or on a box a lattice and other reported points.

`ArmCandidates` and `BoxCandidates` answer the same questions; all that differs between finite
domains and boxes is here. A cell's *members* are what decides its candidates: its arms, or on a box
the sites with data inside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partita._state import Saved, State, joined, lengths
from partita._types import FloatArray, IntArray, WordArray
from partita.gp.posterior import Prior
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern

from .cover import DEEPEST, CellKey, Geometry
from .fresh import CellState, FreshArms, FreshBox, NoFresh
from .lattice import Lattice
from .sites import ArmSites, BoxSites, point_priorities

#: With this many told points off its lattice a cell of a box keeps none of them as candidates.
EXTRA_LIMIT = 256

_NO_SITES = np.empty(0, dtype=np.int64)


class Layout:
    """The points of a cell: m candidates, and sites with data that are no candidates.

    `ArmCandidates` and `BoxCandidates` make and change it. When the candidates change, `priority`
    is a new array.
    """

    __slots__ = ("key", "priority", "silent", "sites")

    def __init__(
        self, key: CellKey, sites: IntArray, silent: IntArray, priority: WordArray
    ) -> None:
        self.key = key
        self.sites = sites  # (m,) site of each candidate, -1 where it has none yet
        self.silent = silent  # sites with data that are no candidates
        self.priority = priority  # (m,)


class ArmCandidates:
    """On a finite domain a cell's candidates are its arms, which are its members too."""

    lattice: Lattice | None = None

    def __init__(self, domain: Grid | Arms, geometry: Geometry, kernel: Matern, seed: int) -> None:
        self.sites = ArmSites(domain, geometry, seed)
        self.fresh = FreshArms()
        self.grid_shape = (domain.n,) * domain.dim if isinstance(domain, Grid) else None
        self._kernel = kernel
        self.scale = 1.0 / (geometry.per_side * kernel.scales(domain.dim))

    def points(self, layout: Layout) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        return self.sites.scaled[layout.sites]

    def point(self, layout: Layout, j: int) -> FloatArray:
        """Scaled coordinates of one candidate, (d,)."""
        return np.asarray(self.sites.scaled[layout.sites[j]])

    def prior(self, layout: Layout) -> Prior:
        """Kernel between a cell's candidates."""
        return Prior(self._kernel, self.sites.scaled[layout.sites] * self.scale)

    def lay_out(self, key: CellKey, members: IntArray) -> Layout:
        """Candidates of a cell with these members."""
        return Layout(key, members, _NO_SITES, self.sites.priority[members])

    def number(self, layout: Layout, site: int) -> int:
        """Candidate number of a site in a cell that holds it."""
        return int(np.searchsorted(layout.sites, site))

    def admit(self, layout: Layout, site: int) -> int:
        """Candidate number of a site that was no candidate before."""
        raise AssertionError("every arm is a candidate")

    def site(self, layout: Layout, j: int) -> int:
        """The site of a candidate."""
        return int(layout.sites[j])

    def site_at(self, scaled: FloatArray) -> int:
        """The site at scaled coordinates (d,)."""
        raise AssertionError("arms are no points between others")

    def first_site(self, key: CellKey) -> int:
        """The first site to evaluate in a cell without data: the candidate of lowest priority."""
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

    def members(self, layout: Layout, new: IntArray = _NO_SITES) -> IntArray:
        """Members of a cell, sites `new` with data among them."""
        return layout.sites

    def take_in(self, layout: Layout, site: int, j: int) -> bool:
        """Note the first data of a site, candidate j; return whether the candidates changed."""
        return False

    def drop(self, layout: Layout, site: int) -> IntArray | None:
        """Remove a candidate that served only an evaluation; return those kept, None for all."""
        return None

    def told(self, layout: Layout) -> IntArray | None:
        """Candidates that are not there for a pending evaluation only; None for all."""
        return None

    def state(self, layouts: list[Layout]) -> State:
        """Nothing: the arms of a cell follow from the cover."""
        return {}


class BoxCandidates:
    """On a box a cell's candidates are a lattice, and told or pending points off it (*extras*).

    An extra is one of a told point anywhere, a point that a finer neighbour evaluated on a shared
    face, or one that the parent evaluated where lattices do not nest. A cell with `EXTRA_LIMIT` or
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
        self._kernel, self._geometry = kernel, geometry
        self.scale = 1.0 / (geometry.per_side * kernel.scales(domain.dim))
        self._seed = seed
        self._limit = EXTRA_LIMIT if mute else None
        self._size = len(lattice.offsets)
        self._nodes = {row.tobytes(): j for j, row in enumerate(lattice.offsets)}
        #: The kernel between lattice points by level, and the cell that it was computed for: for
        #: another the last bits may differ.
        self._matrices: dict[int, FloatArray] = {}
        self._computed_for: dict[int, CellKey] = {}

    def points(self, layout: Layout) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        base = self.lattice.points(layout.key)
        extras = layout.sites[self._size :]
        return np.concatenate([base, self.sites.scaled[extras]]) if len(extras) else base

    def point(self, layout: Layout, j: int) -> FloatArray:
        """Scaled coordinates of one candidate, (d,)."""
        if layout.sites[j] >= 0:
            return np.asarray(self.sites.scaled[layout.sites[j]])
        corner = np.array(layout.key[1:], dtype=float)
        return np.asarray((corner + self.lattice.offsets[j]) / float(2 ** layout.key[0]))

    def prior(self, layout: Layout) -> Prior:
        """Kernel between a cell's candidates, and silent sites."""
        points = self.points(layout) * self.scale
        if len(points) > self._size:
            return Prior(self._kernel, points)  # with extras there are no silent sites
        matrix = self._matrices.get(layout.key[0])
        if matrix is None:
            key = self._computed_for.setdefault(layout.key[0], layout.key)
            lattice = self.lattice.points(key) * self.scale
            matrix = self._matrices[key[0]] = Prior(self._kernel, lattice).matrix()
        silent = self.sites.scaled[layout.silent] * self.scale if len(layout.silent) else None
        return Prior(self._kernel, points, matrix, silent)

    def lay_out(self, key: CellKey, members: IntArray) -> Layout:
        """The lattice, then members off it; or those silent."""
        base = np.full(self._size, -1, dtype=np.int64)
        off_lattice = []
        for site in members.tolist():
            j = self._node(key, site)
            if j < 0:
                off_lattice.append(site)
            else:
                base[j] = site
        extras, silent = np.array(off_lattice, dtype=np.int64), _NO_SITES
        if self._is_crowded(len(extras)):
            extras, silent = silent, extras
        scaled = np.concatenate([self.lattice.points(key), self.sites.scaled[extras]])
        sites = np.concatenate([base, extras])
        return Layout(key, sites, silent, point_priorities(self._seed, scaled))

    def _node(self, key: CellKey, site: int) -> int:
        """Lattice node of a cell at a site, or -1."""
        offset = self.sites.scaled[site] * float(2 ** key[0]) - np.array(key[1:], dtype=float)
        return self._nodes.get((offset + 0.0).tobytes(), -1)

    def _is_crowded(self, extras: int) -> bool:
        return self._limit is not None and extras >= self._limit

    def number(self, layout: Layout, site: int) -> int:
        """Candidate number of a site in a cell that holds it; -1 if it is no candidate."""
        numbers = np.flatnonzero(layout.sites == site)
        if len(numbers):
            return int(numbers[0])
        j = self._node(layout.key, site)
        if j >= 0:
            layout.sites[j] = site
        return j

    def admit(self, layout: Layout, site: int) -> int:
        """Make a site off the lattice a candidate: its number, or -1 if others are silent."""
        if len(layout.silent):
            return -1
        layout.sites = np.append(layout.sites, site)
        priority = point_priorities(self._seed, self.sites.scaled[site : site + 1])
        layout.priority = np.append(layout.priority, priority)
        return len(layout.sites) - 1

    def site(self, layout: Layout, j: int) -> int:
        """The site of a candidate, registered if it is new."""
        if layout.sites[j] < 0:
            layout.sites[j] = self.sites.register(self.point(layout, j))
        return int(layout.sites[j])

    def site_at(self, scaled: FloatArray) -> int:
        """The site at scaled coordinates (d,), registered if it is new."""
        return self.sites.register(scaled)

    def first_site(self, key: CellKey) -> int:
        """The first site to evaluate in a cell without data: the candidate of lowest priority."""
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

    def members(self, layout: Layout, new: IntArray = _NO_SITES) -> IntArray:
        """Sites with data in a cell, `new` ones included."""
        held = np.concatenate([layout.sites[layout.sites >= 0], layout.silent, new])
        return np.unique(held[self.sites.count[held] > 0])

    def take_in(self, layout: Layout, site: int, j: int) -> bool:
        """Note the first data of a site, candidate j or -1; return whether the layout changed.

        Makes extras silent if there are too many: only the lattice is left then.
        """
        if j < 0:
            layout.silent = np.append(layout.silent, site)
            return True
        extras = layout.sites[self._size :]
        if j < self._size or not self._is_crowded(int((self.sites.count[extras] > 0).sum())):
            return False
        layout.silent = extras[self.sites.count[extras] > 0]
        layout.sites, layout.priority = layout.sites[: self._size], layout.priority[: self._size]
        return True

    def drop(self, layout: Layout, site: int) -> IntArray | None:
        """Forget an extra without data whose pending evaluation was cancelled.

        Returns the numbers of the candidates kept, or None if there was no such extra.
        """
        j = self.number(layout, site)
        if j < self._size or self.sites.count[site]:
            return None
        kept = np.delete(np.arange(len(layout.sites)), j)
        layout.sites, layout.priority = layout.sites[kept], layout.priority[kept]
        return kept

    def told(self, layout: Layout) -> IntArray | None:
        """Candidates that are not there for a pending evaluation only; None for all."""
        extras = layout.sites[self._size :]
        if (self.sites.count[extras] > 0).all():
            return None
        kept = np.ones(len(layout.sites), dtype=bool)
        kept[self._size :] = self.sites.count[extras] > 0
        return np.flatnonzero(kept)

    def state(self, layouts: list[Layout]) -> State:
        """The sites of cells, as plain data."""
        return {
            "lengths": lengths(layout.sites for layout in layouts),
            "sites": joined((layout.sites for layout in layouts), np.int64),
            "silent_lengths": lengths(layout.silent for layout in layouts),
            "silent": joined((layout.silent for layout in layouts), np.int64),
            "computed_for": self._geometry.rows(self._computed_for.values()),
        }

    def restored(self, saved: Saved, keys: list[CellKey]) -> list[Layout]:
        """The layouts of cells with these keys, whose sites are there already."""
        last = len(self.sites) - 1
        rows = saved.wholes("computed_for", (None, self._geometry.dim + 1)).tolist()
        self._matrices, self._computed_for = {}, {row[0]: tuple(row) for row in rows}
        for level, *corner in rows:
            inside = level <= DEEPEST + 1 and max(corner) < self._geometry.per_side << level
            saved.require(inside and len(self._computed_for) == len(rows), "a cell for each level")
        sites = saved.cut("lengths", saved.wholes("sites", (None,), -1, last), len(keys))
        silent = saved.cut("silent_lengths", saved.wholes("silent", (None,), 0, last), len(keys))
        return [self._restored(saved, *parts) for parts in zip(keys, sites, silent, strict=True)]

    def _restored(self, saved: Saved, key: CellKey, sites: IntArray, silent: IntArray) -> Layout:
        saved.require(len(sites) >= self._size, "a candidate for each lattice point")
        nodes, extras = sites[: self._size], sites[self._size :]
        saved.require((extras >= 0).all(), "a site for each further candidate")
        told = int((self.sites.count[extras] > 0).sum())
        crowded = len(extras) > 0 and (len(silent) > 0 or self._is_crowded(told))
        saved.require(not crowded, "silent sites alone where there are many")
        on = np.flatnonzero(nodes >= 0)
        lattice = self.lattice.points(key)
        same = self.sites.scaled[nodes[on]] == lattice[on]
        saved.require(same.all(), "sites on the lattice at its points")
        off = np.concatenate([extras, silent])
        saved.require(self._geometry.holds(key, self.sites.scaled[off]).all(), "sites in the cell")
        held = np.concatenate([nodes[on], off])
        saved.require(len(np.unique(held)) == len(held), "each site once in a cell")
        scaled = np.concatenate([lattice, self.sites.scaled[extras]])
        return Layout(key, sites, silent, point_priorities(self._seed, scaled))
