"""The engine of the policies on a partition: its cells, a width, and the choice."""

from __future__ import annotations

import math

import numpy as np

from partita._types import CellView, FloatArray, IntArray, Prediction, Recommendation, WordArray
from partita.errors import warn_theory

from . import _loops
from .candidates import Cell
from .cover import CellKey
from .index import LazyHeap, Score, Table
from .inherit import SiteData, at_points, hand_down, places_among
from .partition import Partition
from .scores import Scorer, UpperBounds
from .sites import BoxSites
from .widths import Width, width_of

#: Standard deviations this close are the same: the first cell in order decides.
SAME_STD = 1e-12
#: Moments of a cell without data.
_NO_MEAN, _FULL_STD = np.zeros(1), np.ones(1)


class Engine:
    """Plays the candidate of the highest score, exactly, looking at few cells.

    The score is μ + βσ unless a `Scorer` says otherwise; bounds come from told data only.
    """

    def __init__(
        self,
        partition: Partition,
        width: Width,
        resolution: float,
        norm_bound: float,
        index_slack: bool = False,
        scorer: Scorer | None = None,
        tighten: bool = False,
    ) -> None:
        """With `tighten`, a cell keeps the bounds of the cells it came from."""
        self.partition = partition
        self._scorer = UpperBounds() if scorer is None else scorer
        self._tighten = tighten
        self._cursor = 0
        self.width = width
        self._resolution = resolution
        self._rounding = 1.5 / resolution
        self._norm_bound = norm_bound
        self._index_slack = index_slack
        self._table = Table(width, resolution)
        #: By row of the table: a cell, or a level for its cells without data.
        self._entrants: list[Cell | int] = []
        self._fresh_rows: dict[int, int] = {}
        self._uppers: LazyHeap[Cell] = LazyHeap()
        self._lowers: LazyHeap[Cell] = LazyHeap()
        self._unranked: set[Cell] = set()
        self._planned: dict[int, int] = {}
        self._unplanned: int | None = None
        self._slacks: dict[int, float] = {}
        self._t = 1
        self._ceiling = math.inf
        self._enter_fresh()
        self._update([partition.leaves[key] for key in sorted(partition.leaves)], [])

    # -- choosing -------------------------------------------------------------------------------

    def propose(self, t: int) -> tuple[int, FloatArray]:
        """Site and point of the highest index for the t-th play."""
        self._t = t
        if self._unplanned is not None:
            self._plan(self._unplanned)
        if self._scorer.redraws != 0:
            self._redraw()
        row, value, candidate = self._table.best(t)
        if (
            not self._planned
            and self._scorer.optimistic
            and (self._index_slack or self.partition.lattice is None)
        ):
            self._ceiling = min(self._ceiling, value + self._rounding)
        entrant = self._entrants[row]
        if isinstance(entrant, Cell):
            site = self.partition.site_of(entrant, candidate)
        else:
            site = self.partition.candidates.first_site(self._first_fresh(entrant)[1])
        self._unplanned = site
        return site, self.partition.sites.x(site)

    def _first_fresh(self, level: int) -> tuple[int, CellKey]:
        """Priority and key of the next cell without data of a level that has such cells."""
        found = self.partition.fresh.peek(level)
        if found is None:
            raise AssertionError(f"no cell of level {level} is without data")
        return found

    def _add_row(self, entrant: Cell | int, level: int, priority: WordArray) -> int:
        addend = self.slack(level) if self._index_slack else 0.0
        row = self._table.add(level, priority, addend)
        if row == len(self._entrants):
            self._entrants.append(entrant)
        else:
            self._entrants[row] = entrant
        return row

    def _redraw(self) -> None:
        """Score some cells anew that did not change, in turn."""
        rows = len(self._entrants)
        due = len(self._table) if self._scorer.redraws is None else self._scorer.redraws
        for _ in range(rows):
            if due <= 0:
                return
            self._cursor = (self._cursor + 1) % rows
            entrant = self._entrants[self._cursor]
            if isinstance(entrant, Cell) and entrant.row == self._cursor:
                self._enter(entrant)
                due -= 1

    def _enter(self, cell: Cell) -> None:
        """Renew a cell's row, pending plays counted."""
        mean, std, gain = self._scorer.scores(cell, self._t)
        if cell.row_size != len(std):
            self._leave(cell)
            cell.row = self._add_row(cell, cell.key[0], cell.priority)
            cell.row_size = len(std)
        self._table.update(cell.row, mean, std, gain, self._t)

    def _leave(self, cell: Cell) -> None:
        if cell.row >= 0:
            self._table.remove(cell.row)
            cell.row = -1
            cell.row_size = 0

    def _enter_fresh(self) -> None:
        """Renew the rows that stand for cells without data, one a level."""
        fresh = self.partition.fresh
        for level in sorted(fresh.changed):
            row = self._fresh_rows.pop(level, None)
            if row is not None:
                self._table.remove(row)
            found = fresh.peek(level)
            if found is not None:
                priority = np.array([found[0]], dtype=np.uint64)
                row = self._add_row(level, level, priority)
                self._fresh_rows[level] = row
                self._table.update(row, _NO_MEAN, _FULL_STD, 0.0, self._t)
        fresh.changed.clear()

    # -- data -------------------------------------------------------------------------------------

    def observe(self, site: int, value: float, asked: bool, t: int) -> None:
        """Take in one value; t is the step of the next choice."""
        changed, gone = self.partition.observe(site, value)
        self._t = t
        if asked:
            self._settle(site)
        self._update(changed, gone)

    def observe_many(
        self, sites: IntArray, values: FloatArray, pending: dict[int, int], t: int
    ) -> None:
        """Take in many values at once; `pending` are the plays of each site still pending."""
        known = self.partition.sites
        before = (known.count.copy(), known.total.copy()) if self._tighten else None
        changed, gone = self.partition.observe_many(sites, values)
        self._t = t
        concerned = {*self._planned, *pending}
        self._planned, self._unplanned = dict(pending), None
        for site in sorted(concerned):
            changed += [cell for cell, _ in self.partition.cells_at(site)]
        self._update(changed, gone, before)

    def release(self, site: int, t: int) -> None:
        """A pending play was cancelled."""
        self._t = t
        planned = self._unplanned != site
        self._settle(site)
        if planned:
            cells = [cell for cell, _ in self.partition.cells_at(site)]
            if site not in self._planned:
                self.partition.drop_candidate(site)
            self._update(cells, [])

    def _settle(self, site: int) -> None:
        """One pending play of a site is over."""
        if self._unplanned == site:
            self._unplanned = None
        else:
            self._planned[site] -= 1
            if not self._planned[site]:
                del self._planned[site]

    def _plan(self, site: int) -> None:
        """Lower the standard deviations around a pending play. Desautels et al. 2014."""
        places = self.partition.cells_at(site)
        self._planned[site] = self._planned.get(site, 0) + 1
        self._unplanned = None
        renewed = [cell for cell, _ in places if cell.plan is None] + self.partition.take_altered()
        for cell, j in places:
            if j >= 0 and cell.plan is not None and not any(cell is other for other in renewed):
                cell.plan.add(j)
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
            if partition.altered:
                changed = changed + partition.take_altered()
            for cell in changed:
                cell.plan = None
        if self._tighten and gone:
            hand_down(partition, self.width, self._t, gone, changed, before)
        for cell in changed:
            if cell.count or cell.plan is not None or partition.explicit:
                self._enter(cell)
                self._unranked.add(cell)
            elif partition.leaves.get(cell.key) is cell:
                partition.unmake(cell)
                self._drop(cell)
        if partition.fresh.changed:
            self._enter_fresh()

    def _drop(self, cell: Cell) -> None:
        self._leave(cell)
        self._scorer.forget(cell)
        self._uppers.discard(cell)
        self._lowers.discard(cell)
        self._unranked.discard(cell)

    def _renew_plan(self, cell: Cell, places: dict[int, list[tuple[Cell, int]]]) -> None:
        """Compute a cell's plan afresh from the plays pending in it."""
        cell.plan = None
        for site, plays in self._planned.items():
            for other, j in places[site]:
                if other is cell and j >= 0:
                    self.partition.warm(cell)
                    if cell.plan is None:
                        cell.plan = cell.posterior.plan()
                    for _ in range(plays):
                        cell.plan.add(j)

    # -- bounds from told data --------------------------------------------------------------------

    def slack(self, level: int) -> float:
        """How much f can exceed its values at the candidates of a cell; 0 on finite domains."""
        known = self._slacks.get(level)
        if known is None:
            partition = self.partition
            known = 0.0
            if partition.lattice is not None:
                side = partition.geometry.side(level)
                known = partition.lattice.slack(partition.kernel, self._norm_bound, side)
            self._slacks[level] = known
        return known

    def _told_best(self, cell: Cell, sign: float, t: int) -> tuple[Score, int]:
        """Highest upper bound in a cell, slack added (sign 1), or lower bound (sign −1); where."""
        posterior = cell.posterior
        width = width_of(self.width, posterior.gain, cell.key[0], t)
        mean, std, priority = posterior.mean, posterior.std, cell.priority
        if cell.ceiling is not None and cell.floor is not None:
            mean, std = mean + sign * width * std, np.zeros(len(std))
            mean = np.minimum(mean, cell.ceiling) if sign > 0 else np.maximum(mean, cell.floor)
        told = self.partition.candidates.told(cell) if cell.plan is not None else None
        if told is not None:
            mean, std, priority = mean[told], std[told], priority[told]
        value, j, tie = _loops.best_upper(mean, std, priority, sign * width, self._resolution)
        if told is not None:
            j = int(told[j])
        return Score(value + self.slack(cell.key[0]) if sign > 0 else value, tie), j

    def _rank(self, t: int) -> None:
        """Enter the cells that changed into the heaps of bounds."""
        drift = width_of(self.width, 0.0, 0, t) if self.width.drifts else 0.0
        for cell in sorted(self._unranked, key=lambda c: c.key):
            upper, _ = self._told_best(cell, 1.0, t)
            lower, _ = self._told_best(cell, -1.0, t)
            self._uppers.push(cell, upper.value - drift + self._rounding, upper.priority)
            self._lowers.push(cell, lower.value + self._rounding, lower.priority)
        self._unranked.clear()

    def ceiling(self, t: int) -> float:
        """Smallest upper bound on max f seen so far."""
        self._rank(t)
        fresh = self.partition.fresh
        highest = max(
            (
                width_of(self.width, 0.0, lv, t) + self.slack(lv)
                for lv in fresh.levels()
                if fresh.peek(lv)
            ),
            default=-math.inf,
        )
        if len(self._uppers):
            drift = width_of(self.width, 0.0, 0, t) if self.width.drifts else 0.0
            _, score = self._uppers.best(
                drift, self._rounding, lambda c: self._told_best(c, 1.0, t)[0]
            )
            highest = max(highest, score.value + self._rounding)
        self._ceiling = min(self._ceiling, highest)
        return self._ceiling

    def recommend(self, t: int) -> Recommendation:
        """The candidate with the highest lower bound."""
        self._rank(t)
        partition, sites = self.partition, self.partition.sites
        fresh = [level for level in partition.fresh.levels() if partition.fresh.peek(level)]
        level = min(fresh, key=lambda lv: width_of(self.width, 0.0, lv, t), default=None)
        best = -math.inf if level is None else -width_of(self.width, 0.0, level, t)
        found = None
        if len(self._lowers):
            cell, score = self._lowers.best(
                0.0, self._rounding, lambda c: self._told_best(c, -1.0, t)[0]
            )
            if score.value >= best:
                found = cell, self._told_best(cell, -1.0, t)[1]
        if found is not None:
            site, scaled = int(found[0].sites[found[1]]), partition.candidates.point(*found)
        elif level is not None:
            site = partition.candidates.first_site(self._first_fresh(level)[1])
            scaled = sites.scaled[site]
        else:
            raise AssertionError("a policy has cells")
        if isinstance(sites, BoxSites):
            x = sites.x(site) if site >= 0 else sites.to_user(scaled[None, :])[0]
            p = self.predict(scaled[None, :], t)
        else:
            x = sites.x(site)
            p = self.predict(scaled[None, :], t, arms=np.array([site]))
        return Recommendation(x, float(p.mean[0]), float(p.lower[0]), float(p.upper[0]))

    def predict(self, scaled: FloatArray, t: int, arms: IntArray | None = None) -> Prediction:
        """Posterior at scaled points (n, d), which are the arms `arms` (n,) on a finite domain.

        Where a point lies in several cells its lower bound is the largest, its upper the smallest;
        mean and standard deviation are those of the cell where the latter is least.
        """
        n = len(scaled)
        best = Prediction(np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf), np.full(n, np.inf))
        groups: dict[CellKey, list[int]] = {}
        for i, row in enumerate(scaled.tolist()):
            for key in self.partition.keys_at(row):
                groups.setdefault(key, []).append(i)
        for key in sorted(groups):
            rows = np.array(groups[key])
            cell = self.partition.leaves.get(key)
            gain = 0.0
            mean, std = np.zeros(len(rows)), np.ones(len(rows))
            js = None
            if cell is not None and arms is not None:
                js = np.searchsorted(cell.sites, arms[rows])
            if cell is not None and cell.count:
                gain = cell.posterior.gain
                if js is None:
                    mean, std, _ = at_points(self.partition, cell, scaled[rows])
                else:
                    mean, std = cell.posterior.mean[js], cell.posterior.std[js]
            width = width_of(self.width, gain, key[0], t)
            lower, upper = mean - width * std, mean + width * std
            if cell is not None and cell.ceiling is not None and cell.floor is not None:
                if js is None:
                    js = places_among(scaled[rows], self.partition.candidates.points(cell))
                upper = np.where(js >= 0, np.minimum(upper, cell.ceiling[js]), upper)
                lower = np.where(js >= 0, np.maximum(lower, cell.floor[js]), lower)
            best.lower[rows] = np.maximum(best.lower[rows], lower)
            best.upper[rows] = np.minimum(best.upper[rows], upper)
            sharper = std < best.std[rows] - SAME_STD
            best.mean[rows[sharper]] = mean[sharper]
            best.std[rows[sharper]] = std[sharper]
        if bool((best.lower > best.upper + self._rounding).any()):
            warn_contradiction()
        return best

    def cover(self, t: int) -> tuple[CellView, ...]:
        """Every cell of the present cover, told data only."""
        partition = self.partition
        views = []
        for key in sorted(partition.cover_keys()):
            level = key[0]
            cell = partition.leaves.get(key)
            gain, count = (cell.posterior.gain, cell.count) if cell else (0.0, 0)
            width = width_of(self.width, gain, level, t)
            if cell is not None:
                index = self._told_best(cell, 1.0, t)[0].value - self.slack(level)
            else:
                arms = getattr(partition.fresh, "arms", None)
                index = -math.inf if arms is not None and key not in arms else width
            if self._index_slack:
                index += self.slack(level)
            views.append(
                CellView(
                    partition.geometry.lower(key),
                    partition.geometry.side(level),
                    level,
                    count,
                    gain,
                    width,
                    index,
                )
            )
        return tuple(views)


def warn_contradiction() -> None:
    """Say that the data contradict the norm bound or the noise constant."""
    warn_theory(
        "a lower bound on f exceeds an upper one: norm_bound or the noise constant is too small "
        "for this function, so the bounds do not hold. Give larger ones. (With both right this "
        "happens with probability delta at most.)"
    )
