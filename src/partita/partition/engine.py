"""The engine of the policies on a partition: cells, width, pending evaluations, choice."""

from __future__ import annotations

import math

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import CellView, FloatArray, IntArray, Prediction, Recommendation
from partita.gp.planning import Planner, planners_state, restore_planners
from partita.model.assumptions import Assumptions

from . import _loops
from .bounds import Bounds
from .cell import Cell
from .cover import CellKey
from .index import Entry, Table
from .inherit import SiteData, hand_down
from .partition import Partition, Place
from .repeats import values_until_split
from .scores import Scorer, Scores, UpperBounds
from .sites import ArmSites, BoxSites, point_priorities, tie_resolution
from .widths import Width, width_of

#: A point becomes a candidate where this part of what f can differ by from the nearest candidate is
#: more than the latter's bound is wide.
FINE = 0.25
#: Moments of a cell without data.
_FRESH = Scores(np.zeros(1), np.ones(1), 0.0)


class Engine:
    """Chooses the candidate of the highest score, exactly, looking at few cells.

    The score is μ + βσ unless a `Scorer` says otherwise; bounds come from observed values only.
    """

    def __init__(
        self,
        partition: Partition,
        width: Width,
        assumptions: Assumptions,
        index_slack: bool = False,
        scorer: Scorer | None = None,
        tighten: bool = False,
        ceiling_every: int = 0,
        bounded: bool = True,
    ) -> None:
        """With `tighten`, a cell keeps the bounds of the cells it came from.

        On a box, every `ceiling_every`-th choice is in the cell that has the highest bound, slack
        included (0: none is); if it never splits, at the highest bound between candidates.
        `bounded` says that |f| ≤ B.
        """
        norm_bound, sub_gaussian, delta = assumptions.constants
        resolution = self._resolution = tie_resolution(norm_bound, sub_gaussian)
        self.partition = partition
        self.width = width
        self._index_slack = index_slack
        self._scorer = UpperBounds() if scorer is None else scorer
        self._tighten = tighten
        self._ceiling_every = ceiling_every if partition.lattice is not None else 0
        self._bounds = Bounds(
            partition,
            width,
            resolution,
            norm_bound,
            sub_gaussian,
            delta,
            norm_bound if bounded else math.inf,
        )
        #: Cells by their scores, and levels for their cells without data.
        self._table: Table[Cell | int] = Table(width, resolution)
        #: Pending evaluations by site, but for the last one asked: it counts when another is asked
        #: for.
        self._planned: dict[int, int] = {}
        self._unplanned: int | None = None
        #: The same evaluations by cell.
        self._planners: dict[Cell, Planner] = {}
        self._t = 1
        self._enter_fresh()
        self._update([partition.leaves[key] for key in sorted(partition.leaves)], [])

    # -- choosing -------------------------------------------------------------------------------

    def propose(self, t: int) -> tuple[int, FloatArray]:
        """Site and point of the highest index for evaluation t."""
        self._t = t
        if self._unplanned is not None:
            self._plan(self._unplanned)
        if self._scorer.redraws != 0:
            self._redraw()
        at_ceiling = self._ceiling_every and t % self._ceiling_every == 0
        entrant, candidate = self._at_ceiling() if at_ceiling else self._table.best(t)[::2]
        if not isinstance(entrant, Cell):
            site = self.partition.candidates.first_site(self.partition.first_fresh(entrant).key)
        elif candidate < 0:
            site = self._peak(entrant)
        else:
            site = self.partition.site_of(entrant, candidate)
        self._unplanned = site
        return site, self.partition.sites.x(site)

    def propose_among(self, arms: IntArray, t: int) -> tuple[int, FloatArray]:
        """Site and point of the highest index among some arms (m,) of a finite domain.

        The index of an arm is its highest upper bound in a cell, pending evaluations counted.
        """
        self._t = t
        if self._unplanned is not None:
            self._plan(self._unplanned)
        sites = self.partition.sites
        assert isinstance(sites, ArmSites)
        index = np.full(len(arms), -np.inf)
        groups: dict[CellKey, list[int]] = {}
        for i, row in enumerate(sites.scaled[arms].tolist()):
            for key in self.partition.keys_at(row):
                groups.setdefault(key, []).append(i)
        for key, rows in groups.items():
            index[rows] = np.maximum(index[rows], self._upper(key, arms[rows]))
        rounded = np.rint(index * self._resolution)
        ties = arms[rounded == rounded.max()]
        site = int(ties[np.argmin(sites.priority[ties])])
        self._unplanned = site
        return site, sites.x(site)

    def propose_at(self, points: FloatArray, t: int) -> tuple[int, FloatArray]:
        """Site and point of the highest upper bound among points (m, d) of a box, by the values.

        They need not be candidates: bounds hold at every point. What is pending does not count.
        """
        sites = self.partition.sites
        assert isinstance(sites, BoxSites)
        scaled = sites.to_scaled(points)
        self._t = t
        if self._unplanned is not None:
            self._plan(self._unplanned)
        rounded = np.rint(self._bounds.predict(scaled, t).upper * self._resolution)
        ties = np.flatnonzero(rounded == rounded.max())
        best = ties[np.argmin(point_priorities(0, scaled[ties]))]
        site = self._unplanned = sites.register(scaled[best], points[best])
        return site, points[best].copy()

    def _upper(self, key: CellKey, arms: IntArray) -> FloatArray:
        """Upper bounds (m,) at arms (m,) of a cell, pending evaluations counted."""
        cell, level = self.partition.leaves.get(key), key[0]
        if cell is None:
            return np.full(len(arms), width_of(self.width, 0.0, level, self._t))
        j = np.searchsorted(cell.layout.sites, arms)
        width = width_of(self.width, cell.posterior.gain, level, self._t)
        return np.asarray(cell.posterior.mean[j] + width * self.planned_std(cell)[j])

    def _at_ceiling(self) -> tuple[Cell | int, int]:
        """The cell whose bound on f is the highest, and the candidate to evaluate in it.

        The cell by what was told, the candidate by what is pending, too: −1 for a cell that never
        splits, where other points become candidates.
        """
        entrant = self._bounds.highest(self._t)
        if not isinstance(entrant, Cell):
            return entrant, 0
        if self.partition.rule.never:
            return entrant, -1
        return entrant, self._best_in(entrant, self.planned_std(entrant))

    def _peak(self, cell: Cell) -> int:
        """The site of the point with the highest upper bound, or of a candidate if one is near.

        Near is where f cannot differ by more than the candidate's own bound is wide.
        """
        partition, std = self.partition, self.planned_std(cell)
        scaled = self._bounds.peak(cell, self._t)
        if scaled is None:
            return partition.site_of(cell, self._best_in(cell, std))
        away = (partition.candidates.points(cell.layout) - scaled) * partition.candidates.scale
        nearest = int(np.argmin((away**2).sum(axis=1)))
        width = width_of(self.width, cell.posterior.gain, cell.key[0], self._t)
        if FINE * self._bounds.variation(away[nearest]) > width * float(std[nearest]):
            return partition.candidates.site_at(scaled)
        return partition.site_of(cell, nearest)

    def _best_in(self, cell: Cell, std: FloatArray) -> int:
        """The candidate of a cell with the highest upper bound, for given deviations (m,)."""
        posterior = cell.posterior
        width = width_of(self.width, posterior.gain, cell.key[0], self._t)
        mean, priority = posterior.mean, cell.layout.priority
        return int(_loops.best_upper(mean, std, priority, width, self._resolution)[1])

    def _redraw(self) -> None:
        """Score some cells again that did not change, in turn."""
        redraws = self._scorer.redraws
        for entrant in self._table.in_turn(len(self._table) if redraws is None else redraws):
            if isinstance(entrant, Cell):
                self._enter(entrant)

    def planned_std(self, cell: Cell) -> FloatArray:
        """Standard deviations (m,) at a cell's candidates, pending evaluations counted."""
        planner = self._planners.get(cell)
        if planner is None:
            return cell.posterior.std
        return planner.std(cell.posterior.std, lambda: self.partition.plan(cell))

    def _enter(self, cell: Cell) -> None:
        """Renew a cell's row, pending evaluations counted."""
        std = self.planned_std(cell) if self._planners else cell.posterior.std
        scores = self._scorer.scores(cell, std, self._t)
        level = cell.key[0]
        addend = self._bounds.slack(level) if self._index_slack else 0.0
        self._table.enter(cell, level, cell.layout.priority, scores, self._t, addend)

    def _enter_fresh(self) -> None:
        """Renew the rows that stand for cells without data, one a level."""
        fresh = self.partition.fresh
        for level in sorted(fresh.changed):
            first = fresh.peek(level)
            if first is None:
                self._table.leave(level)
            else:
                priority = np.array([first.priority], dtype=np.uint64)
                addend = self._bounds.slack(level) if self._index_slack else 0.0
                self._table.enter(level, level, priority, _FRESH, self._t, addend)
        fresh.changed.clear()

    # -- data -------------------------------------------------------------------------------------

    def observe(
        self, site: int, value: float, asked: bool, t: int, weight: float = 1.0, count: int = 1
    ) -> None:
        """Record one value of noise variance α/weight, or `count` of this mean.

        t is the step of the next choice.
        """
        changed, gone = self.partition.observe(site, value, weight, count)
        self._t = t
        if asked:
            self._settle(site)
        self._update(changed, gone)

    def observe_repeated(
        self, site: int, mean: float, count: int, within: float, asked: bool, t: int
    ) -> None:
        """Record `count` values of this mean as if one by one, at the cost of a few.

        `within` is the sum of their squares about the mean, 0 if that is not known, and t is the
        step of the next choice. There are as many parts as there are moments at which a cell
        splits: each split is made with the values that there were by then.
        """
        self.partition.sites.scatter += within
        left = count
        while left:
            part = values_until_split(self.partition, site, left)
            left -= part
            self.observe(site, mean, asked, t - left, 1.0, part)
            asked = False

    def observe_many(
        self,
        sites: IntArray,
        values: FloatArray,
        pending: dict[int, int],
        t: int,
        weights: FloatArray | None = None,
        counts: IntArray | int = 1,
    ) -> None:
        """Record many values at once; `pending` are the evaluations of each site still pending."""
        data = self.partition.sites
        before = None
        if self._tighten:
            before = SiteData(data.weight_of(slice(None)), data.total.copy())
        changed, gone = self.partition.observe_many(sites, values, weights, counts)
        self._t = t
        concerned = {*self._planned, *pending}
        self._planned, self._unplanned = dict(pending), None
        for site in sorted(concerned):
            changed += [cell for cell, _ in self.partition.cells_at(site)]
        self._update(changed, gone, before)

    def repeat(self, site: int, more: int, t: int) -> None:
        """Count `more` further pending evaluations of a site, or fewer; one stays at least."""
        self._t = t
        if self._unplanned == site:
            self._plan(site)
        self._planned[site] += more
        self._update([cell for cell, _ in self.partition.cells_at(site)], [])

    def release(self, site: int, t: int) -> None:
        """Give up one pending evaluation of a site."""
        self._t = t
        planned = self._unplanned != site
        self._settle(site)
        if planned:
            cells = [cell for cell, _ in self.partition.cells_at(site)]
            if site not in self._planned:
                self.partition.drop_candidate(site)
            self._update(cells, [])

    def _settle(self, site: int) -> None:
        """End one pending evaluation of a site."""
        if self._unplanned == site:
            self._unplanned = None
        else:
            self._planned[site] -= 1
            if not self._planned[site]:
                del self._planned[site]

    def _plan(self, site: int) -> None:
        """Count a pending evaluation in the cells around it. Desautels et al. 2014."""
        places = self.partition.cells_at(site)
        self._planned[site] = self._planned.get(site, 0) + 1
        self._unplanned = None
        renewed = [cell for cell, _ in places if cell not in self._planners]
        renewed += self.partition.take_altered()
        for cell, j in places:
            if j >= 0 and cell in self._planners and cell not in renewed:
                self._planners[cell].add(j)
                self._enter(cell)
        self._update(renewed, [])

    def _update(
        self, changed: list[Cell], gone: list[Cell], before: SiteData | None = None
    ) -> None:
        """Renew plans, bounds and rows of cells that changed, and of those looked up meanwhile.

        `before` is the data that the cells which are gone had last, if not all there is now.
        """
        partition = self.partition
        for cell in gone:
            self._drop(cell)
        if self._planned:
            places = {site: partition.cells_at(site) for site in self._planned}
            changed = changed + partition.take_altered()
            for cell in changed:
                self._renew_plan(cell, places)
        else:
            if self._planners:
                self._planners.clear()
            if partition.altered:
                changed = changed + partition.take_altered()
        if self._tighten and gone:
            hand_down(partition, self.width, self._t, gone, changed, before)
        for cell in changed:
            if cell.count or cell in self._planners or partition.explicit:
                self._enter(cell)
                self._bounds.renew(cell)
            elif partition.leaves.get(cell.key) is cell:
                partition.unmake(cell)
                self._drop(cell)
        if partition.fresh.changed:
            self._enter_fresh()

    def _drop(self, cell: Cell) -> None:
        """Forget a cell that is gone."""
        self._planners.pop(cell, None)
        self._table.leave(cell)
        self._scorer.forget(cell)
        self._bounds.forget(cell)

    def _renew_plan(self, cell: Cell, places: dict[int, list[Place]]) -> None:
        """Find the evaluations pending in a cell afresh."""
        pending = {
            j: plays
            for site, plays in self._planned.items()
            for other, j in places[site]
            if other is cell and j >= 0
        }
        if pending:
            self._planners.setdefault(cell, Planner()).reset(pending)
        else:
            self._planners.pop(cell, None)

    # -- saved state ------------------------------------------------------------------------------

    def state(self) -> State:
        """All that changes, as plain data; cells are numbered in the order of the partition."""
        numbers = {cell: i for i, cell in enumerate(self.partition.leaves.values())}

        def code(entrant: Cell | int) -> int:
            return numbers[entrant] if isinstance(entrant, Cell) else -2 - entrant

        return {
            "partition": self.partition.state(),
            "width": self.width.state(),
            "scorer": self._scorer.state(),
            "table": self._table.state(
                code, lambda e: e.layout.priority if isinstance(e, Cell) else None
            ),
            "bounds": self._bounds.state(numbers),
            "t": self._t,
            "planned": wholes(self._planned),
            "plays": wholes(self._planned.values()),
            "unplanned": -1 if self._unplanned is None else self._unplanned,
            "planners": planners_state(
                list(self._planners.values()), [cell.posterior for cell in self._planners]
            ),
            "planned_cells": wholes(numbers[cell] for cell in self._planners),
        }

    def restore(self, saved: Saved, pending: dict[int, int]) -> None:
        """Restore a saved state, once that of the partition is restored.

        `pending` are the pending evaluations of each site.
        """
        self.width.restore(saved.part("width"))
        self._scorer.restore(saved.part("scorer"))
        cells = list(self.partition.leaves.values())
        self._bounds.restore(saved.part("bounds"), cells)
        self._restore_table(saved, cells)
        self._t = saved.integer("t", 1)
        sites = saved.numbers("planned", len(self.partition.sites))
        plays = saved.wholes("plays", (len(sites),), 1).tolist()
        self._planned = dict(zip(sites, plays, strict=True))
        unplanned = saved.integer("unplanned", -1, len(self.partition.sites) - 1)
        self._unplanned = None if unplanned < 0 else unplanned
        counted = dict(self._planned)
        if self._unplanned is not None:
            counted[self._unplanned] = counted.get(self._unplanned, 0) + 1
        saved.require(counted == pending, "the pending evaluations")
        busy = [cells[number] for number in saved.numbers("planned_cells", len(cells))]
        self._planners = {cell: Planner() for cell in busy}
        sizes = [len(cell.layout.sites) for cell in busy]
        restore_planners(saved.part("planners"), list(self._planners.values()), sizes)
        spent = sum(pending.values())
        saved.require(
            all(sum(p.pending.values()) <= spent for p in self._planners.values()),
            "no more evaluations",
        )

    def _restore_table(self, saved: Saved, cells: list[Cell]) -> None:
        fresh = self.partition.fresh_levels()

        def entry(code: int) -> Entry[Cell | int] | None:
            if 0 <= code < len(cells):
                cell = cells[code]
                return Entry(cell, cell.key[0], len(cell.layout.sites), cell.layout.priority)
            return Entry(-2 - code, -2 - code, 1, None) if -2 - code in fresh else None

        self._table.restore(saved.part("table"), entry)
        saved.require(set(self._table.entrants) == {*cells, *fresh}, "a row for every cell")

    # -- answers, from observed values -------------------------------------------------------------

    def ceiling(self, t: int) -> float:
        """An upper bound on max f."""
        return self._bounds.ceiling(t)

    @property
    def emptied(self) -> bool:
        """Whether no function of norm B fits the data that the last answer looked at."""
        return self._bounds.emptied

    def warn_crossed(self) -> None:
        """Warn of a lower bound above an upper one: see `Bounds.warn_crossed`."""
        self._bounds.warn_crossed()

    def recommend(self, t: int) -> Recommendation:
        """The candidate with the highest lower bound."""
        return self._bounds.recommend(t)

    def predict(self, scaled: FloatArray, t: int, arms: IntArray | None = None) -> Prediction:
        """Posterior and bounds at scaled points (n, d): see `Bounds.predict`."""
        return self._bounds.predict(scaled, t, arms)

    def cover(self, t: int) -> tuple[CellView, ...]:
        """Every cell of the present cover."""
        return self._bounds.cover(t, self._index_slack)
