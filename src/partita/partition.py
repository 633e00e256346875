"""The partition: cells with their candidates and posteriors, kept up to date as data arrives.

`Partition` follows an observation to every cell that holds its point, updates their posteriors and
splits those that are due. It knows nothing of widths or of choosing: it reports which cells
changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from . import _hot
from .cover import CellKey, Geometry, SplitRule
from .domains import Arms, Box, Grid
from .fresh import CellState, FreshArms, FreshBox
from .kernels import Matern
from .lattice import Lattice
from .posterior import DensePosterior, Plan, Posterior, Prior
from .rows import RowPosterior
from .sites import ArmSites, BoxSites, WordArray, point_priorities

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Above this many candidates a cell keeps rows instead of the full covariance.
DENSE_LIMIT = 4000
#: Told points off a box cell's lattice that are kept as candidates; with more, they are data only.
EXTRA_LIMIT = 256
#: Covariances kept at once, in numbers (8 bytes each); the coldest half is given up when there are
#: more.
WARM_NUMBERS = 2**26


class Cell:
    """A cell of the cover that has data or has been played."""

    __slots__ = (
        "count",
        "distinct",
        "key",
        "plan",
        "posterior",
        "priority",
        "row",
        "row_size",
        "silent",
        "sites",
        "touched",
    )

    def __init__(
        self,
        key: CellKey,
        sites: IntArray,
        silent: IntArray,
        priority: WordArray,
        posterior: Posterior,
    ) -> None:
        self.key = key
        self.silent = silent  # sites with data that are no candidates
        self.sites = sites  # (m,) site of each candidate, -1 where it has none yet
        self.priority = priority  # (m,)
        self.posterior = posterior
        self.count = 0
        self.distinct = 0
        self.plan: Plan | None = None
        self.row = (
            -1
        )  # where the choice keeps this cell (`index.Table`), and with how many candidates
        self.row_size = 0
        self.touched = 0

    @property
    def level(self) -> int:
        """How often the cover was split to make this cell."""
        return self.key[0]


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
    ) -> None:
        self.geometry, self.rule, self.kernel, self.alpha = geometry, rule, kernel, alpha
        self.leaves: dict[CellKey, Cell] = {}
        self.split: set[CellKey] = set()
        self.lattice = lattice
        self._seed = seed
        self._inverse_scale = 1.0 / (geometry.per_side * kernel.scales(geometry.dim))
        self._where: dict[int, list[tuple[Cell, int]]] = {}
        self.altered: list[Cell] = []
        self._grid_shape = (domain.n,) * domain.dim if isinstance(domain, Grid) else None
        self._warm = 0
        self._clock = 0
        self.sites: ArmSites | BoxSites
        self.fresh: FreshArms | FreshBox
        if isinstance(domain, Box):
            if lattice is None:
                raise AssertionError("a box needs a lattice")
            self.sites = BoxSites(domain, geometry)
            self.fresh = FreshBox(geometry, seed, self.state)
            self._nodes = {row.tobytes(): j for j, row in enumerate(lattice.offsets)}
            self._lattice_kernels: dict[int, FloatArray] = {}
        else:
            self.sites = ArmSites(domain, geometry, seed)
            self.fresh = FreshArms()
            for key, arms in self._first_members(np.arange(domain.size)):
                self.fresh.add(key, arms, int(self.sites.priority[arms].min()))

    # -- reading ------------------------------------------------------------------------------

    def state(self, key: CellKey) -> CellState:
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
        if self.lattice is not None and not self.lattice.closed:
            stack = stack[-1:]
        while stack:
            key = stack.pop()
            if key in self.split:
                inside = list(self.geometry.touching(scaled, key[0] + 1, within=key))
                stack += inside if self.lattice is None or self.lattice.closed else inside[-1:]
            else:
                yield key

    def cover_keys(self) -> Iterator[CellKey]:
        """Every cell of the present cover, those without data or candidates included."""
        stack = list(self.geometry.first_cells())
        while stack:
            key = stack.pop()
            if key in self.split:
                stack += [self.geometry.child(key, code) for code in range(2**self.geometry.dim)]
            else:
                yield key

    def points(self, cell: Cell) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        if self.lattice is None:
            return self.sites.scaled[cell.sites]
        base = self.lattice.points(cell.key)
        extras = cell.sites[len(base) :]
        return np.concatenate([base, self.sites.scaled[extras]]) if len(extras) else base

    def point(self, cell: Cell, j: int) -> FloatArray:
        """Scaled coordinates of one candidate, (d,)."""
        if cell.sites[j] >= 0:
            return np.asarray(self.sites.scaled[cell.sites[j]])
        if self.lattice is None:
            raise AssertionError("an arm is always a site")
        corner = np.array(cell.key[1:], dtype=float)
        return np.asarray((corner + self.lattice.offsets[j]) / float(2 ** cell.key[0]))

    def data(self, cell: Cell) -> tuple[IntArray, IntArray]:
        """Numbers and sites of the points of a cell that have data, (k,) each.

        Candidates are numbered from 0 to m − 1, silent sites from m on.
        """
        sites = np.concatenate([cell.sites, cell.silent]) if len(cell.silent) else cell.sites
        known = np.flatnonzero(sites >= 0)
        where = known[self.sites.count[sites[known]] > 0]
        return where, sites[where]

    def kernel_points(self, scaled: FloatArray) -> FloatArray:
        """Scaled coordinates to points divided by the lengthscales."""
        return scaled * self._inverse_scale

    # -- cells of a site ------------------------------------------------------------------------

    def cells_at(self, site: int) -> list[tuple[Cell, int]]:
        """Each cell that holds a site, made if need be, with the site's candidate number in it."""
        known = self._where.get(site)
        if known is None:
            known = []
            for key in self.keys_at(self.sites.scaled[site].tolist()):
                cell = self.leaves.get(key) or self._make(key)
                known.append((cell, self._candidate(cell, site)))
            if all(j >= 0 for _, j in known):
                self._where[site] = known
        return known

    def site_of(self, cell: Cell, j: int) -> int:
        """The site of a candidate, registered if it is new."""
        site = int(cell.sites[j])
        if site < 0:
            if not isinstance(self.sites, BoxSites):
                raise AssertionError("an arm is always a site")
            site = self.sites.register(self.point(cell, j))
            cell.sites[j] = site
        if site not in self._where:
            side = 1 << cell.key[0]
            if all(c * side % 1.0 for c in self.sites.scaled[site].tolist()):
                self._where[site] = [(cell, j)]  # inside the cell, so in no other
        return site

    def first_site(self, key: CellKey) -> int:
        """The site to play first in a cell without data: the candidate of the lowest priority."""
        if isinstance(self.fresh, FreshArms) and isinstance(self.sites, ArmSites):
            arms = self.fresh.arms[key]
            return int(arms[np.argmin(self.sites.priority[arms])])
        if self.lattice is None or not isinstance(self.sites, BoxSites):
            raise AssertionError("a box has a lattice")
        points = self.lattice.points(key)
        return self.sites.register(points[np.argmin(point_priorities(self._seed, points))])

    def _make(self, key: CellKey) -> Cell:
        """Make a cell that has no data yet."""
        cell = self._build(key, self._take_fresh(key))
        self.altered.append(cell)
        return cell

    def _take_fresh(self, key: CellKey) -> IntArray:
        """Members of a cell without data, which it is no longer to be."""
        if isinstance(self.fresh, FreshArms):
            return self.fresh.take(key)
        self.fresh.note(key)
        return np.empty(0, np.int64)

    def unmake(self, cell: Cell) -> None:
        """Forget a cell that was made for a play which was cancelled."""
        self._forget(cell)
        if isinstance(self.fresh, FreshArms) and isinstance(self.sites, ArmSites):
            self.fresh.add(cell.key, cell.sites, int(self.sites.priority[cell.sites].min()))
        elif isinstance(self.fresh, FreshBox):
            self.fresh.note(cell.key)

    def told_candidates(self, cell: Cell) -> IntArray | None:
        """Candidates other than points off the lattice that are there for a pending play only.

        None means all.
        """
        if self.lattice is None or len(cell.sites) == len(self.lattice.offsets):
            return None
        kept = np.arange(len(cell.sites)) < len(self.lattice.offsets)
        kept[~kept] = self.sites.count[cell.sites[~kept]] > 0
        return None if kept.all() else np.flatnonzero(kept)

    def drop_extra(self, site: int) -> None:
        """Forget a point off the lattice whose pending play was cancelled and that has no data."""
        if self.lattice is None or self.sites.count[site]:
            return
        for cell, j in self.cells_at(site):
            if j >= len(self.lattice.offsets):
                for other in cell.sites.tolist():
                    self._where.pop(other, None)
                cell.sites = np.delete(cell.sites, j)
                cell.priority = np.delete(cell.priority, j)
                self._refit(cell)
                self.altered.append(cell)

    def take_altered(self) -> list[Cell]:
        """Cells made, or given a new candidate, by looking up a site since the last call."""
        altered, self.altered = self.altered, []
        return [cell for cell in altered if self.leaves.get(cell.key) is cell]

    def _candidate(self, cell: Cell, site: int) -> int:
        """Candidate number of a site in a cell; a new one if the lattice has no such point."""
        if self.lattice is None:
            return int(np.searchsorted(cell.sites, site))
        known = np.flatnonzero(cell.sites == site)
        if len(known):
            return int(known[0])
        j = self._node(cell.key, site)
        if j < 0 and len(cell.silent):
            return -1
        if j < 0:
            j = len(cell.sites)
            cell.sites = np.append(cell.sites, site)
            priority = point_priorities(self._seed, self.sites.scaled[site : site + 1])
            cell.priority = np.append(cell.priority, priority)
            self._refit(cell)
            self.altered.append(cell)
        else:
            cell.sites[j] = site
        return j

    def _is_crowded(self, extras: int) -> bool:
        """Whether a cell with this many points of data off its lattice keeps them as data only."""
        return extras >= EXTRA_LIMIT and not self.rule.never

    def _mute(self, cell: Cell) -> None:
        """Make the points of data off a crowded cell's lattice data only."""
        if self.lattice is None:
            raise AssertionError("only boxes have a lattice")
        base = len(self.lattice.offsets)
        extras = cell.sites[base:]
        for site in extras.tolist():
            self._where.pop(site, None)
        cell.silent = extras[self.sites.count[extras] > 0]
        cell.sites, cell.priority = cell.sites[:base], cell.priority[:base]

    def _node(self, key: CellKey, site: int) -> int:
        """Lattice node of a cell at a site, or -1."""
        offset = self.sites.scaled[site] * float(2 ** key[0]) - np.array(key[1:], dtype=float)
        return self._nodes.get((offset + 0.0).tobytes(), -1)

    # -- observations -----------------------------------------------------------------------------

    def observe(self, site: int, value: float) -> tuple[list[Cell], list[Cell]]:
        """Record a value at a site: (cells that changed or are new, cells that were split)."""
        places = self.cells_at(site)
        self.sites.count[site] += 1
        self.sites.total[site] += value
        first = self.sites.count[site] == 1
        self._clock += 1
        changed: list[Cell] = []
        gone: list[Cell] = []
        for cell, j in places:
            cell.count += 1
            cell.touched = self._clock
            if first:
                cell.distinct += 1
            posterior = cell.posterior
            if j < 0 and first:
                cell.silent = np.append(cell.silent, site)
            if self.lattice is not None and first and j >= len(self.lattice.offsets):
                extras = cell.sites[len(self.lattice.offsets) :]
                if self._is_crowded(int(np.count_nonzero(self.sites.count[extras]))):
                    self._mute(cell)
            if j < 0 or len(cell.silent) or posterior.wants_refit(cell.distinct):
                self._refit(cell)
            else:
                posterior.observe(j, value)
            if self.rule.due(cell.key[0], cell.count, posterior.gain, cell.distinct):
                gone.append(cell)
                changed += self._split(cell)
            else:
                changed.append(cell)
        if self._warm > WARM_NUMBERS:
            self._cool()
        return changed, gone

    def observe_many(self, sites: IntArray, values: FloatArray) -> tuple[list[Cell], list[Cell]]:
        """Record values (n,) at sites (n,) together: each cell is fitted once, not once a value."""
        np.add.at(self.sites.count, sites, 1)
        np.add.at(self.sites.total, sites, values)
        self._clock += len(sites)
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
                fresh = self._take_fresh(key)
                members = members if self.lattice is not None else fresh
            else:
                gone.append(cell)
                if self.lattice is None:
                    members = cell.sites
                else:
                    members = np.union1d(members, self.data(cell)[1])
                self._forget(cell)
            changed += self._grow([(key, members)])
            if self._warm > WARM_NUMBERS:
                self._cool()
        return changed, gone

    def _split(self, cell: Cell) -> list[Cell]:
        """Replace a cell by its children, and those by theirs while they are due."""
        members = cell.sites if self.lattice is None else self.data(cell)[1]
        self._forget(cell)
        return self._grow(self._divide(cell.key, members))

    def _divide(self, key: CellKey, members: IntArray) -> list[tuple[CellKey, IntArray]]:
        self.split.add(key)
        if isinstance(self.fresh, FreshBox):
            self.fresh.add_children(key)
        return self._child_members(key, members)

    def _grow(self, work: list[tuple[CellKey, IntArray]]) -> list[Cell]:
        """Make cells from (key, members): the arms inside, or on a box the sites with data."""
        made: list[Cell] = []
        while work:
            key, members = work.pop()
            counts = self.sites.count[members]
            total = int(counts.sum())
            if total == 0:
                if isinstance(self.fresh, FreshArms) and isinstance(self.sites, ArmSites):
                    self.fresh.add(key, members, int(self.sites.priority[members].min()))
                continue
            distinct = int(np.count_nonzero(counts))
            if self.rule.count_due(key[0], total) and distinct >= self.rule.point_limit:
                work += self._divide(key, members)
                continue
            cell = self._build(key, members)
            if self.rule.due(key[0], total, cell.posterior.gain, distinct):
                self._forget(cell)
                work += self._divide(key, members)
            else:
                made.append(cell)
        return made

    def _forget(self, cell: Cell) -> None:
        del self.leaves[cell.key]
        for site in (*cell.sites.tolist(), *cell.silent.tolist()):
            self._where.pop(site, None)
        self._warm -= _numbers(cell.posterior)

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
            keys = list(self.geometry.touching(scaled[i].tolist(), 0))
            closed = self.lattice is None or self.lattice.closed
            for key in keys if closed else keys[-1:]:
                groups.setdefault(key, []).append(i)
        return [(key, np.sort(sites[rows])) for key, rows in groups.items()]

    def _child_members(self, key: CellKey, members: IntArray) -> list[tuple[CellKey, IntArray]]:
        """Children of a cell with the members that they hold, where they hold any."""
        offsets = self.geometry.offsets(key, self.sites.scaled[members])
        if self.lattice is not None and not self.lattice.closed:
            offsets[offsets == 1.0] = 1.5
        codes, rows = _hot.scatter_children(offsets)
        order = np.argsort(codes, kind="stable")
        codes, rows = codes[order], rows[order]
        cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        return [
            (self.geometry.child(key, int(codes[a])), members[rows[a:b]])
            for a, b in itertools.pairwise(cuts)
            if a < b
        ]

    def _build(self, key: CellKey, members: IntArray) -> Cell:
        """Make a leaf cell and fit it."""
        silent = np.empty(0, np.int64)
        if isinstance(self.sites, ArmSites):
            sites, priority = members, self.sites.priority[members]
        else:
            sites, silent, priority = self._lay_out(key, members)
        posterior: Posterior
        if len(sites) > DENSE_LIMIT and self.rule.never:
            posterior = RowPosterior(self.alpha, self._grid_shape)
        else:
            posterior = DensePosterior(self.alpha)
        cell = Cell(key, sites, silent, priority, posterior)
        cell.touched = self._clock
        self.leaves[key] = cell
        held = self._refit(cell, moments_only=True)
        cell.count = int(self.sites.count[held].sum())
        cell.distinct = len(held)
        return cell

    def _lay_out(self, key: CellKey, data_sites: IntArray) -> tuple[IntArray, IntArray, WordArray]:
        """Candidates of a box cell (the lattice, then data sites off it), silent sites, ties."""
        if self.lattice is None:
            raise AssertionError("only boxes have a lattice")
        base = np.full(len(self.lattice.offsets), -1, dtype=np.int64)
        extras = []
        for site in data_sites.tolist():
            j = self._node(key, site)
            if j < 0:
                extras.append(site)
            else:
                base[j] = site
        off_lattice = np.array(extras, dtype=np.int64)
        silent = off_lattice[:0]
        if self._is_crowded(len(extras)):
            silent, off_lattice = off_lattice, silent
        sites = np.concatenate([base, off_lattice])
        scaled = np.concatenate([self.lattice.points(key), self.sites.scaled[off_lattice]])
        return sites, silent, point_priorities(self._seed, scaled)

    def _refit(self, cell: Cell, moments_only: bool = False) -> IntArray:
        """Compute a cell's posterior afresh from its data; the sites that have any."""
        where, held = self.data(cell)
        counts = self.sites.count[held].astype(float)
        posterior = cell.posterior
        self._warm -= _numbers(posterior)
        means = self.sites.total[held] / counts
        posterior.refit(self._prior(cell), where, means, counts, moments_only)
        self._warm += _numbers(posterior)
        return held

    def _prior(self, cell: Cell) -> Prior:
        points = self.kernel_points(self.points(cell))
        if self.lattice is None or len(points) > len(self.lattice.offsets):
            return Prior(self.kernel, points)  # with extra candidates there are no silent sites
        known = self._lattice_kernels.get(cell.level)
        if known is None:
            known = self._lattice_kernels[cell.level] = Prior(self.kernel, points).matrix()
        silent = self.kernel_points(self.sites.scaled[cell.silent]) if len(cell.silent) else None
        return Prior(self.kernel, points, known, silent)

    def warm(self, cell: Cell) -> None:
        """Make sure that a cell's covariance is there."""
        if isinstance(cell.posterior, DensePosterior) and cell.posterior.cov is None:
            self._refit(cell)

    def _cool(self) -> None:
        """Give up the covariances of the cells that were touched longest ago."""
        holders: Iterable[tuple[Cell, DensePosterior]] = (
            (c, c.posterior)
            for c in self.leaves.values()
            if isinstance(c.posterior, DensePosterior) and c.posterior.cov is not None
        )
        for _, posterior in sorted(holders, key=lambda pair: pair[0].touched):
            if self._warm <= WARM_NUMBERS // 2 or posterior.cov is None:
                break
            self._warm -= posterior.cov.size
            posterior.cov = None


def _numbers(posterior: Posterior) -> int:
    """How many numbers a posterior's covariance keeps."""
    if isinstance(posterior, DensePosterior) and posterior.cov is not None:
        return posterior.cov.size
    return 0
