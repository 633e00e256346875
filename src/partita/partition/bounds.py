"""Bounds on f from observed values, never from pending evaluations: what every answer reads."""

from __future__ import annotations

import math

import numpy as np

from partita._state import Saved, State, wholes
from partita._threads import one_thread
from partita._types import CellView, FloatArray, IntArray, Prediction, Recommendation
from partita.errors import InvalidInput

from . import _loops
from .cell import Cell
from .contradiction import least_noise, noise_reason, norm_reason, warn_contradiction
from .cover import CellKey
from .index import Entry, Table
from .inherit import at_points, places_among
from .lattice import variation
from .partition import Partition
from .scores import Scores
from .sets import Sets
from .sites import BoxSites
from .widths import Width, width_of

#: Standard deviations this close are the same: the first cell in order decides.
SAME_STD = 1e-12
#: Cells that `cover` lists, at most: a million take about ten seconds and a gigabyte.
MOST_LISTED = 1_000_000


class Bounds:
    """Upper and lower bounds on f, the highest of each found without looking at all cells.

    t is always the number of observations told, plus one.
    """

    def __init__(
        self,
        partition: Partition,
        width: Width,
        resolution: float,
        norm_bound: float,
        sub_gaussian: float,
        delta: float,
        most: float,
    ) -> None:
        """`most` bounds |f|: the norm bound, or infinity where that is the scale of a prior."""
        self._partition = partition
        self._most, self._delta = most, delta
        self._sets = (
            Sets(partition, width, norm_bound, sub_gaussian)
            if width.log_inverse_delta(0) is not None
            else None
        )
        self._width = width
        self._resolution = resolution
        self._norm_bound = norm_bound
        #: What rounding can take from a bound, or add to it.
        self.rounding = 1.5 / resolution
        self._uppers: Table[Cell] = Table(width, resolution)
        self._lowers: Table[Cell] = Table(width, resolution, -1.0)
        #: Cells that changed since they were entered into the tables.
        self._changed: set[Cell] = set()
        self._slacks: dict[int, float] = {}

    # -- cells that come, change and go ---------------------------------------------------------

    def renew(self, cell: Cell) -> None:
        """Count a cell as changed."""
        self._changed.add(cell)

    def forget(self, cell: Cell) -> None:
        """Forget a cell that is gone."""
        self._changed.discard(cell)
        if self._sets is not None:
            self._sets.forget(cell)
        self._uppers.leave(cell)
        self._lowers.leave(cell)

    def state(self, numbers: dict[Cell, int]) -> State:
        """The tables, and cells to enter, by their numbers, as plain data."""
        tables = {"uppers": self._uppers, "lowers": self._lowers}
        saved = {
            name: table.state(numbers.__getitem__, lambda cell: cell.layout.priority)
            for name, table in tables.items()
        }
        changed = sorted(numbers[cell] for cell in self._changed)
        return {**saved, "changed": wholes(changed)}

    def restore(self, saved: Saved, cells: list[Cell]) -> None:
        """Restore saved tables of numbered cells."""
        changed = set(saved.numbers("changed", len(cells)))
        self._changed = {cells[number] for number in changed}

        def entry(code: int) -> Entry[Cell] | None:
            if not 0 <= code < len(cells):
                return None
            cell = cells[code]
            told = self._partition.candidates.told(cell.layout)
            size = len(cell.layout.sites) if told is None else len(told)
            return Entry(cell, cell.key[0], None if code in changed else size, cell.layout.priority)

        for name, table in (("uppers", self._uppers), ("lowers", self._lowers)):
            table.restore(saved.part(name), entry)
            saved.require({*table.entrants, *self._changed} == set(cells), "bounds of every cell")

    def _enter_changed(self, t: int) -> None:
        for cell in sorted(self._changed, key=lambda c: c.key):
            level = cell.key[0]
            told = self._partition.candidates.told(cell.layout)
            priority = cell.layout.priority if told is None else cell.layout.priority[told]
            upper, lower = (self._told_scores(cell, sign, told, t) for sign in (1.0, -1.0))
            self._uppers.enter(cell, level, priority, upper, t, self.slack(level))
            self._lowers.enter(cell, level, priority, lower, t)
        self._changed.clear()

    def _told_scores(self, cell: Cell, sign: float, told: IntArray | None, t: int) -> Scores:
        """Scores whose index is the highest upper (sign 1) or lower bound (sign −1) in a cell."""
        posterior, inherited = cell.posterior, cell.inherited
        mean, std, gain = posterior.mean, posterior.std, posterior.gain
        if inherited is not None:
            mean = mean + sign * width_of(self._width, gain, cell.key[0], t) * std
            mean = (
                np.minimum(mean, inherited.ceiling)
                if sign > 0
                else np.maximum(mean, inherited.floor)
            )
            std = np.zeros(len(std))
        return Scores(mean, std, gain) if told is None else Scores(mean[told], std[told], gain)

    # -- answers ----------------------------------------------------------------------------------

    def slack(self, level: int) -> float:
        """How much f can exceed its values at the candidates of a cell; 0 on finite domains."""
        slack = self._slacks.get(level)
        if slack is None:
            partition = self._partition
            slack = 0.0
            if partition.lattice is not None:
                side = partition.geometry.side(level)
                slack = partition.lattice.slack(partition.kernel, self._norm_bound, side)
            self._slacks[level] = slack
        return slack

    def variation(self, away: FloatArray) -> float:
        """How much f can vary between points that differ by `away` (d,), in lengthscales."""
        return variation(self._partition.kernel, self._norm_bound, away)

    def _fresh_levels(self) -> list[int]:
        """Levels that have cells without data."""
        fresh = self._partition.fresh
        return [level for level in fresh.levels() if fresh.peek(level)]

    def highest(self, t: int) -> Cell | int:
        """The cell with the highest upper bound, or the level of one without data."""
        return self._highest(t)[0]

    def _highest(self, t: int) -> tuple[Cell | int, float]:
        """The same with that bound, slack included."""
        self._enter_changed(t)
        bounds: dict[Cell | int, float] = {
            lv: width_of(self._width, 0.0, lv, t) + self.slack(lv) for lv in self._fresh_levels()
        }
        if len(self._uppers):
            best = self._uppers.best(t)
            bounds[best.entrant] = best.value + self.rounding
        top = max(bounds, key=bounds.__getitem__)
        return top, bounds[top]

    def ceiling(self, t: int) -> float:
        """An upper bound on max f. It depends on the data alone, not on what was asked before."""
        highest = min(self._most, self._highest(t)[1])
        if self._sets is None:
            return highest
        self._sets.least_norm = 0.0
        sharpest = min(highest, self._sharpest(self._sets, t))
        return math.inf if self._contradicted(by_noise=True) else sharpest

    def _contradicted(self, by_noise: bool = False) -> bool:
        """Whether no function of norm B fits the data looked at; warns, and says what it takes.

        With `by_noise`, whether values at the same points differ too much for the noise, too.
        """
        if self._sets is None:
            return False
        empty = self.emptied
        if not (empty or by_noise):
            return False
        noise = self._noise_reason(self._sets)
        if noise:
            warn_contradiction(noise)
        elif empty:
            warn_contradiction(norm_reason(self._norm_bound, self._sets.least_norm))
        return empty or noise != ""

    @property
    def emptied(self) -> bool:
        """Whether no function of norm B fits the data that the last answer looked at."""
        return self._sets is not None and self._sets.least_norm > self._norm_bound

    def warn_crossed(self) -> None:
        """Warn of a lower bound above an upper one, and say what is too small if that is clear."""
        if self._sets is None:
            return warn_contradiction()
        noise = self._noise_reason(self._sets)
        if noise:
            return warn_contradiction(noise)
        needed = self._sets.needed()
        return warn_contradiction(
            norm_reason(self._norm_bound, needed) if needed > self._norm_bound else ""
        )

    def _noise_reason(self, sets: Sets) -> str:
        """That values at the same points differ too much for the noise, or nothing."""
        sites = self._partition.sites
        least = least_noise(sites.scatter, sites.repeats, self._delta)
        return noise_reason(sets.noise, least) if least > sets.noise else ""

    def peak(self, cell: Cell, t: int) -> FloatArray | None:
        """The scaled point of a cell of a box where its upper bound is highest, if it is found."""
        width = width_of(self._width, cell.posterior.gain, cell.key[0], t)
        return None if self._sets is None else self._sets.peak(cell, width)

    def _sharpest(self, sets: Sets, t: int) -> float:
        """The upper bound on max f by the confidence sets of as many cells as it takes."""
        fresh = [width_of(self._width, 0.0, lv, t) + self.slack(lv) for lv in self._fresh_levels()]
        sharpest = max(fresh, default=-math.inf)
        with one_thread():
            for cell, bound in self._uppers.descending():
                if min(bound + self.rounding, self._most) <= sharpest:
                    break
                sharpest = max(sharpest, min(bound, sets.highest(cell)) + self.rounding)
        return sharpest

    def recommend(self, t: int) -> Recommendation:
        """The candidate with the highest lower bound."""
        self._enter_changed(t)
        partition, sites = self._partition, self._partition.sites
        widths = {level: width_of(self._width, 0.0, level, t) for level in self._fresh_levels()}
        level = min(widths, key=lambda lv: widths[lv], default=None)
        best = self._lowers.best(t) if len(self._lowers) else None
        if best is not None and (level is None or best.value >= -widths[level]):
            layout, j = best.entrant.layout, best.candidate
            told = partition.candidates.told(layout)
            j = j if told is None else int(told[j])
            site, scaled = int(layout.sites[j]), partition.candidates.point(layout, j)
        elif level is not None:
            site = partition.candidates.first_site(partition.first_fresh(level).key)
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

        Where a point is in several cells its lower bound is the largest, its upper the smallest;
        mean and standard deviation are those of the cell where the latter is least.
        """
        n = len(scaled)
        if self._sets is not None:
            self._sets.least_norm = 0.0
        best = Prediction(np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf), np.full(n, np.inf))
        groups: dict[CellKey, list[int]] = {}
        for i, row in enumerate(scaled.tolist()):
            for key in self._partition.keys_at(row):
                groups.setdefault(key, []).append(i)
        with one_thread():  # once: to limit the threads takes longer than a small cell
            for key in sorted(groups):
                rows = np.array(groups[key])
                mean, std, lower, upper = self._predict_in(
                    key, scaled[rows], t, None if arms is None else arms[rows]
                )
                best.lower[rows] = np.maximum(best.lower[rows], lower)
                best.upper[rows] = np.minimum(best.upper[rows], upper)
                sharper = std < best.std[rows] - SAME_STD
                best.mean[rows[sharper]] = mean[sharper]
                best.std[rows[sharper]] = std[sharper]
        np.clip(best.upper, None, self._most, out=best.upper)
        np.clip(best.lower, -self._most, None, out=best.lower)
        if not self._contradicted() and bool((best.lower > best.upper + self.rounding).any()):
            self.warn_crossed()
        return best

    def _predict_in(
        self, key: CellKey, scaled: FloatArray, t: int, arms: IntArray | None
    ) -> Prediction:
        """Posterior and bounds of one cell at scaled points (n, d) inside it."""
        cell = self._partition.leaves.get(key)
        gain, mean, std = 0.0, np.zeros(len(scaled)), np.ones(len(scaled))
        numbers = None
        if cell is not None and arms is not None:
            numbers = np.searchsorted(cell.layout.sites, arms)
        if cell is not None and cell.count:
            gain = cell.posterior.gain
            if numbers is None:
                mean, std, _ = at_points(self._partition, cell, scaled)
            else:
                mean, std = cell.posterior.mean[numbers], cell.posterior.std[numbers]
        reach = width_of(self._width, gain, key[0], t) * std
        lower, upper = mean - reach, mean + reach
        own = self._sets.of(cell) if self._sets is not None and cell is not None else None
        if own is not None:
            sharper = own.at(scaled)
            lower, upper = np.maximum(lower, sharper.lower), np.minimum(upper, sharper.upper)
        if cell is not None and cell.inherited is not None:
            ceiling, floor = cell.inherited
            if numbers is None:
                numbers = places_among(scaled, self._partition.candidates.points(cell.layout))
            upper = np.where(numbers >= 0, np.minimum(upper, ceiling[numbers]), upper)
            lower = np.where(numbers >= 0, np.maximum(lower, floor[numbers]), lower)
        return Prediction(mean, std, lower, upper)

    def cover(self, t: int, index_slack: bool) -> tuple[CellView, ...]:
        """Every cell of the present cover; with `index_slack` the slack is part of its index."""
        cells = self._partition.cells
        if cells > MOST_LISTED:
            raise InvalidInput(
                f"cover: the present cover has {cells:,} cells, most of them without data, but at "
                f"most {MOST_LISTED:,} can be listed. predict(X) gives the bounds at points X."
            )
        return tuple(
            self._view(key, t, index_slack) for key in sorted(self._partition.cover_keys())
        )

    def _view(self, key: CellKey, t: int, index_slack: bool) -> CellView:
        partition, level = self._partition, key[0]
        cell = partition.leaves.get(key)
        gain, count = (cell.posterior.gain, cell.count) if cell else (0.0, 0)
        width = width_of(self._width, gain, level, t)
        if cell is not None:
            told = partition.candidates.told(cell.layout)
            mean, std, _ = self._told_scores(cell, 1.0, told, t)
            index = _loops.best_upper(mean, std, cell.layout.priority, width, self._resolution)[0]
        else:
            index = width if partition.fresh.has(key) else -math.inf
        if index_slack:
            index += self.slack(level)
        lower, side = partition.geometry.lower(key), partition.geometry.side(level)
        return CellView(lower, side, level, count, gain, width, index)
