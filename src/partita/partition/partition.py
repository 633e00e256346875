"""The partition: cells with their candidates and posteriors, kept up to date as data arrives.

`Partition` follows an observation to every cell that holds its point, updates their posteriors and
splits those that are due. It knows nothing of widths or of choosing: it reports which cells
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from partita._state import BadState, Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.gp.posterior import DensePosterior, Plan, absorb
from partita.gp.rows import new_posterior
from partita.gp.warm import WarmCovariances
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern

from .candidates import ArmCandidates, BoxCandidates, Layout
from .cell import Cell, Inherited, cells_state, restore_cells
from .cover import DEEPEST, CellKey, Geometry, SplitRule, check_cover, levels_left
from .fresh import CellState, FreshArms, FreshBox, FreshCell
from .lattice import Lattice
from .sites import ArmSites

_NO_SITES = np.empty(0, dtype=np.int64)


#: What an observation did: cells that changed or are new, and cells that are gone. A bare tuple,
#: since a named one takes longer to make than a step can spare.
Changes = tuple[list[Cell], list[Cell]]


class Place(NamedTuple):
    """A cell that holds a site, and the site's candidate number in it, -1 where it is data only."""

    cell: Cell
    number: int


class DataAt(NamedTuple):
    """Points of a cell that have data: their numbers in it, and their sites, (k,) each."""

    where: IntArray
    sites: IntArray


class Partition:
    """Cells, their data and posteriors: π-GP-UCB (Janz et al. 2020) without the choice."""

    def __init__(
        self,
        domain: Grid | Arms | Box,
        geometry: Geometry,
        rule: SplitRule,
        kernel: Matern,
        alpha: float,
        seed: int,
        lattice: Lattice | None = None,
        explicit: bool = False,
    ) -> None:
        """`lattice` is needed on a box; with `explicit`, cells without data are made as well."""
        self.explicit = explicit
        self.geometry, self.rule, self.kernel, self.alpha = geometry, rule, kernel, alpha
        self.leaves: dict[CellKey, Cell] = {}
        self.split: set[CellKey] = set()
        self.altered: list[Cell] = []
        self._fine: list[float] = []
        self._where: dict[int, list[Place]] = {}
        self._warm = WarmCovariances()
        self.candidates: ArmCandidates | BoxCandidates
        if isinstance(domain, Box):
            if lattice is None:
                raise AssertionError("a box needs a lattice")
            self.candidates = BoxCandidates(
                domain,
                geometry,
                kernel,
                seed,
                lattice,
                not rule.never,
                None if explicit else self.state_of,
            )
        else:
            self.candidates = ArmCandidates(domain, geometry, kernel, seed)
        self.sites = self.candidates.sites
        self.fresh = self.candidates.fresh
        self.lattice = self.candidates.lattice
        if not isinstance(domain, Box):
            self._grow(self._first_members(np.arange(domain.size)))
        elif explicit:
            self._grow([(key, _NO_SITES) for key in geometry.first_cells()])

    # -- reading ------------------------------------------------------------------------------

    def state_of(self, key: CellKey) -> CellState:
        """What has become of a cell."""
        cell = self.leaves.get(key)
        if cell is None:
            return CellState.DATA if key in self.split else CellState.FRESH
        return CellState.DATA if cell.count else CellState.EMPTY

    @property
    def cells_created(self) -> int:
        """|∪A_t|: all the cells there have ever been, |A_1| + 2^d |splits|."""
        dim = self.geometry.dim
        return int(self.geometry.per_side**dim) + (len(self.split) << dim)

    def keys_at(self, scaled: list[float]) -> Iterator[CellKey]:
        """Cells of the present cover that hold a scaled point."""
        stack = list(self.geometry.touching(scaled, 0))
        while stack:
            key = stack.pop()
            if key in self.split:
                stack += self.geometry.touching(scaled, key[0] + 1, key)
            else:
                yield key

    @property
    def cells(self) -> int:
        """The number of cells the present cover has."""
        return self.cells_created - len(self.split)

    def cover_keys(self) -> Iterator[CellKey]:
        """Every cell of the present cover, those without data or candidates included."""
        stack = list(self.geometry.first_cells())
        while stack:
            key = stack.pop()
            if key in self.split:
                stack += [self.geometry.child(key, code) for code in range(2**self.geometry.dim)]
            else:
                yield key

    def first_fresh(self, level: int) -> FreshCell:
        """The next cell without data of a level that has such cells."""
        first = self.fresh.peek(level)
        if first is None:
            raise AssertionError(f"no cell of level {level} is without data")
        return first

    def data(self, cell: Cell) -> DataAt:
        """The points of a cell that have data.

        Candidates are numbered from 0 to m − 1, silent sites from m on.
        """
        sites, silent = cell.layout.sites, cell.layout.silent
        if len(silent):
            sites = np.concatenate([sites, silent])
        registered = np.flatnonzero(sites >= 0)
        where = registered[self.sites.count[sites[registered]] > 0]
        return DataAt(where, sites[where])

    def kernel_points(self, scaled: FloatArray) -> FloatArray:
        """Scaled coordinates to points divided by the lengthscales."""
        return scaled * self.candidates.scale

    # -- cells of a site ------------------------------------------------------------------------

    def cells_at(self, site: int) -> list[Place]:
        """Each cell that holds a site, made if needed."""
        places = self._where.get(site)
        if places is None:
            places = []
            for key in self.keys_at(self.sites.scaled[site].tolist()):
                cell = self.leaves.get(key)
                if cell is None:
                    cell = self._build(key, self.candidates.take_fresh(key, _NO_SITES))
                    self.altered.append(cell)
                places.append(Place(cell, self._number(cell, site)))
            if all(j >= 0 for _, j in places):
                self._where[site] = places
        return places

    def _number(self, cell: Cell, site: int) -> int:
        j = self.candidates.number(cell.layout, site)
        if j < 0:
            j = self.candidates.admit(cell.layout, site)
            if j >= 0:
                self._lay_out_anew(cell)
                self.altered.append(cell)
        return j

    def _lay_out_anew(self, cell: Cell, kept: IntArray | None = None) -> None:
        """Match a cell's statistics to its changed candidates, of which `kept` were there."""
        if cell.inherited is not None:
            cell.inherited = cell.inherited.matched(len(cell.layout.sites), kept)
        self._refit(cell)

    def site_of(self, cell: Cell, j: int) -> int:
        """The site of a candidate, registered if it is new."""
        site = self.candidates.site(cell.layout, j)
        if site not in self._where:
            side = 1 << cell.key[0]
            if all(c * side % 1.0 for c in self.sites.scaled[site].tolist()):
                self._where[site] = [Place(cell, j)]  # inside the cell, so in no other
        return site

    def unmake(self, cell: Cell) -> None:
        """Forget a cell that was made for an evaluation which was cancelled."""
        self._forget(cell)
        self.candidates.give_fresh(cell.key, cell.layout.sites)

    def drop_candidate(self, site: int) -> None:
        """A pending evaluation was cancelled: forget what was a candidate for its sake only."""
        for cell, _ in self.cells_at(site):
            kept = self.candidates.drop(cell.layout, site)
            if kept is not None:
                self._forget_places(cell)
                self._where.pop(site, None)
                self._lay_out_anew(cell, kept)
                self.altered.append(cell)

    def take_altered(self) -> list[Cell]:
        """Cells made, or given a new candidate, by looking up a site since the last call."""
        altered, self.altered = self.altered, []
        return [cell for cell in altered if self.leaves.get(cell.key) is cell]

    # -- observations -----------------------------------------------------------------------------

    def observe(self, site: int, value: float, weight: float = 1.0, count: int = 1) -> Changes:
        """Record a value at a site, of noise variance α/weight, or `count` of this mean."""
        places = self.cells_at(site)
        first = self.sites.add(site, value, weight, count) == count
        weight *= count
        changed: list[Cell] = []
        gone: list[Cell] = []
        for cell, j in places:
            cell.count += count
            if first:
                cell.distinct += 1
            if first and self._take_in(cell, site, j):
                self._lay_out_anew(cell)
            elif j >= 0 and absorb(cell.posterior, j, value, cell.distinct, weight):
                self._warm.use(cell.posterior)
            else:
                self._refit(cell)
            if cell.count >= cell.quota and self._due(cell):
                gone.append(cell)
                changed += self._split(cell)
            else:
                changed.append(cell)
        if self._warm.exceed:
            self._warm.trim()
        return changed, gone

    def _take_in(self, cell: Cell, site: int, j: int) -> bool:
        """Note the first value at a site; return whether the cell's layout changed."""
        before = cell.layout.sites
        if not self.candidates.take_in(cell.layout, site, j):
            return False
        if cell.layout.sites is not before:
            for other in before.tolist():
                self._where.pop(other, None)
        return True

    def observe_many(
        self,
        sites: IntArray,
        values: FloatArray,
        weights: FloatArray | None = None,
        counts: IntArray | int = 1,
    ) -> Changes:
        """Record values (n,) at sites (n,) together: each cell is fitted once, not once a value."""
        self.sites.add_many(sites, values, weights, counts)
        changed: list[Cell] = []
        gone: list[Cell] = []
        work = self._first_members(np.unique(sites))
        while work:
            key, members = work.pop()
            if key in self.split:
                work += self._child_members(key, members)
                continue
            cell = self.leaves.get(key)
            if cell is None:
                members = self.candidates.take_fresh(key, members)
            else:
                gone.append(cell)
                members = self.candidates.members(cell.layout, members)
                self._forget(cell)
            changed += self._grow([(key, members)], moments_only=True)
            self._warm.trim()
        return changed, gone

    def _due(self, cell: Cell) -> bool:
        """Whether a cell must split now."""
        level, count = cell.key[0], cell.count
        if self.rule.due(level, count, cell.posterior.gain, cell.distinct):
            return True
        if self.lattice is None or not self.rule.fineness or not self.rule.count_due(level, count):
            return False
        return float(cell.posterior.std[: len(self.lattice.offsets)].min()) < self._least_std(level)

    def _least_std(self, level: int) -> float:
        """A cell of a box whose lattice is known better than this somewhere needs a finer one."""
        while len(self._fine) <= level:
            assert self.lattice is not None
            side = self.geometry.side(len(self._fine))
            self._fine.append(self.rule.fineness * self.lattice.slack(self.kernel, 1.0, side))
        return self._fine[level]

    def _split(self, cell: Cell) -> list[Cell]:
        """Replace a cell by its children, and those by theirs while they are due."""
        self._forget(cell)
        return self._grow(self._divide(cell.key, self.candidates.members(cell.layout)))

    def _divide(self, key: CellKey, members: IntArray) -> list[tuple[CellKey, IntArray]]:
        self.split.add(key)
        self.candidates.note_split(key)
        children = self._child_members(key, members)
        if self.explicit and self.lattice is not None:
            filled = {child for child, _ in children}
            keys = (self.geometry.child(key, code) for code in range(2**self.geometry.dim))
            children += [(child, _NO_SITES) for child in keys if child not in filled]
        return children

    def _grow(self, work: list[tuple[CellKey, IntArray]], moments_only: bool = False) -> list[Cell]:
        """Make cells from (key, members), or split them at once where they are due.

        With `moments_only` their covariances are left until they are evaluated.
        """
        made: list[Cell] = []
        while work:
            key, members = work.pop()
            counts = self.sites.count[members]
            total = int(counts.sum())
            if total == 0:
                if self.explicit:
                    made.append(self._build(key, members, moments_only=True))
                else:
                    self.candidates.give_fresh(key, members)
                continue
            distinct = int(np.count_nonzero(counts))
            if self.rule.count_due(key[0], total) and distinct >= self.rule.point_limit:
                work += self._divide(key, members)
                continue
            cell = self._build(key, members, moments_only)
            if self._due(cell):
                self._forget(cell)
                work += self._divide(key, members)
            else:
                made.append(cell)
        return made

    def _forget(self, cell: Cell) -> None:
        del self.leaves[cell.key]
        self._forget_places(cell)
        self._warm.cool(cell.posterior)

    def _forget_places(self, cell: Cell) -> None:
        """Look the places of a cell's sites up again when they are next needed."""
        for site in (*cell.layout.sites.tolist(), *cell.layout.silent.tolist()):
            self._where.pop(site, None)

    # -- members and posteriors -------------------------------------------------------------------

    def _first_members(self, sites: IntArray) -> list[tuple[CellKey, IntArray]]:
        """Cells of the first cover with the sites of `sites` that they hold."""
        scaled = self.sites.scaled[sites]
        floor = np.floor(scaled)
        on_face = (scaled == floor).any(axis=1)
        inner = np.flatnonzero(~on_face)
        groups: dict[CellKey, list[int]] = {}
        for i, corner in zip(inner.tolist(), floor[inner].astype(int).tolist(), strict=True):
            groups.setdefault((0, *corner), []).append(i)
        for i in np.flatnonzero(on_face).tolist():
            for key in self.geometry.touching(scaled[i].tolist(), 0):
                groups.setdefault(key, []).append(i)
        return [(key, np.sort(sites[rows])) for key, rows in groups.items()]

    def _child_members(self, key: CellKey, members: IntArray) -> list[tuple[CellKey, IntArray]]:
        """Children of a cell with the members that they hold, where they hold any."""
        children = self.geometry.scatter(key, self.sites.scaled[members])
        return [(child, members[rows]) for child, rows in children]

    def _build(self, key: CellKey, members: IntArray, moments_only: bool = False) -> Cell:
        """Make a leaf cell and fit it."""
        layout = self.candidates.lay_out(key, members)
        whole = len(layout.sites) == len(self.sites.count)
        shape = self.candidates.grid_shape if whole else None
        posterior = new_posterior(len(layout.sites), self.alpha, shape)
        cell = Cell(layout, posterior, self.rule.quota(key[0]))
        self.leaves[key] = cell
        held = self._refit(cell, moments_only)
        cell.count = int(self.sites.count[held].sum())
        cell.distinct = len(held)
        return cell

    def _refit(self, cell: Cell, moments_only: bool = False) -> IntArray:
        """Compute a cell's posterior afresh from its data; the sites that have any."""
        where, held = self.data(cell)
        weights = self.sites.weight_of(held)
        means = self.sites.total[held] / weights
        prior = self.candidates.prior(cell.layout)
        cell.posterior.refit(prior, where, means, weights, moments_only)
        self._warm.note(cell.posterior)
        return held

    def warm(self, cell: Cell) -> None:
        """Make sure that a cell's covariance is there."""
        if cell.posterior.is_cold:
            self._refit(cell)

    def plan(self, cell: Cell) -> Plan:
        """A plan of a cell's posterior, with no pending evaluations yet."""
        self.warm(cell)
        return cell.posterior.plan()

    # -- saved state ------------------------------------------------------------------------------

    def state(self) -> State:
        """Sites, cover and cells as plain data; places of sites and the like are found again."""
        if self.altered or self.fresh.changed:
            raise BadState("a partition is saved between steps, not within one")
        cells = list(self.leaves.values())
        return {
            "sites": self.sites.state(),
            "split": self.geometry.rows(sorted(self.split)),
            "leaves": self.geometry.rows(self.leaves),
            "fresh_levels": wholes(self.fresh.levels()),
            "layouts": self.candidates.state([cell.layout for cell in cells]),
            "cells": cells_state(cells),
            "warm": wholes(self._warm.order([cell.posterior for cell in cells])),
        }

    def restore(self, saved: Saved) -> None:
        """Restore a saved state of a partition with the same settings."""
        self.sites.restore(saved.part("sites"))
        width = self.geometry.dim + 1
        split, leaves = (
            [tuple(row) for row in saved.wholes(name, (None, width)).tolist()]
            for name in ("split", "leaves")
        )
        check_cover(saved, self.geometry, split, leaves)
        if self.explicit and self.lattice is not None:
            saved.require(not levels_left(self.geometry, split, leaves), "all cells")
        self.split, self.leaves, self.altered = set(split), {}, []
        self._where.clear()
        levels = saved.numbers("fresh_levels", DEEPEST + 2)
        cells = saved.part("cells")
        dense = cells.flags("is_dense", (len(leaves),)).tolist()
        if isinstance(self.candidates, BoxCandidates):
            layouts = self.candidates.restored(saved.part("layouts"), leaves)
        else:
            layouts = self._arm_layouts(saved, leaves, levels)
        for layout, is_dense in zip(layouts, dense, strict=True):
            m = len(layout.sites)
            shape = self.candidates.grid_shape if m == len(self.sites) else None
            posterior = new_posterior(m, self.alpha, shape)
            if self.lattice is not None and is_dense:
                posterior = DensePosterior(self.alpha)  # it may have grown
            saved.require(is_dense == isinstance(posterior, DensePosterior), "small covariances")
            self.leaves[layout.key] = Cell(layout, posterior, self.rule.quota(layout.key[0]))
        restore_cells(cells, list(self.leaves.values()), lambda c: self.candidates.prior(c.layout))
        for cell in self.leaves.values():
            held = self.data(cell).sites
            cell.count, cell.distinct = int(self.sites.count[held].sum()), len(held)
        self._warm.restore(saved, "warm", [cell.posterior for cell in self.leaves.values()])
        if isinstance(self.fresh, FreshBox):
            self.fresh.restore(levels, split)

    def _arm_layouts(self, saved: Saved, leaves: list[CellKey], levels: list[int]) -> list[Layout]:
        """The arms of cells; the other cells with arms have no data."""
        members: dict[CellKey, IntArray] = {}
        work = self._first_members(np.arange(len(self.sites)))
        while work:
            key, arms = work.pop()
            if key in self.split:
                work += self._child_members(key, arms)
            else:
                members[key] = arms
        saved.require(set(leaves) <= set(members), "arms in each cell")
        layouts = [self.candidates.lay_out(key, members.pop(key)) for key in leaves]
        data = any(self.sites.count[arms].any() for arms in members.values())
        saved.require(not (data or (self.explicit and members)), "a cell for all data")
        if isinstance(self.fresh, FreshArms) and isinstance(self.sites, ArmSites):
            priority = self.sites.priority
            lowest = {key: (arms, int(priority[arms].min())) for key, arms in members.items()}
            self.fresh.restore(levels, lowest)
        return layouts

    def fresh_levels(self) -> set[int]:
        """Levels that have cells without data, by count: nothing is looked for."""
        if isinstance(self.fresh, FreshArms):
            return {key[0] for key in self.fresh.arms}
        if isinstance(self.fresh, FreshBox):
            return levels_left(self.geometry, self.split, self.leaves)
        return set()

    def inherit(self, cell: Cell, bounds: Inherited) -> None:
        """Keep bounds on f at a cell's candidates beside those that it inherited already."""
        cell.inherited = bounds.sharpened(cell.inherited)


def one_cell(
    domain: Grid | Arms | Box,
    kernel: Matern,
    alpha: float,
    seed: int,
    lattice: Lattice | None = None,
) -> Partition:
    """The whole domain as one cell that never splits; a box needs its candidates."""
    rule = SplitRule(1, domain.dim, kernel.nu, never=True)
    return Partition(domain, Geometry(domain.dim, 1), rule, kernel, alpha, seed, lattice)
