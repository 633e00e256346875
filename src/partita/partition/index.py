"""Finding the best cell without looking at all of them.

`Table` is what the choice of the next point reads: every cell's means and standard deviations, side
by side, under a heap of bounds on their indices. `LazyHeap` is the same idea for the bounds that
users ask for now and then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, WordArray

from . import _loops
from .widths import Width

Entrant = TypeVar("Entrant", bound=Hashable)


class Choice(NamedTuple):
    """The row with the highest index, that index, and the candidate that has it."""

    row: int
    value: float
    candidate: int


class Table:
    """Cells as rows; finds the highest rounded index exactly, ties to the lowest priority.

    A row's bound is its index when it was last computed. Where the width drifts with t, all bounds
    are stored less the width of a cell without data, which grows at least as fast as any index: so
    an old bound stays an upper bound, and `best` evaluates rows from the top until no other bound
    can reach the best index found. Otherwise bounds are exact and the top is the answer.

    Candidates of all rows lie in one pair of arrays that is packed anew when it is full.
    """

    def __init__(self, width: Width, resolution: float) -> None:
        self._width = width
        self._resolution = resolution
        self._slack = 1.5 / resolution  # rounding can raise an index by this much over its bound
        self._numbers = np.zeros((64, 4))
        self._places = np.full((64, 4), -1, dtype=np.int64)
        self._ties = np.zeros(64, dtype=np.uint64)
        self._heap = np.zeros(64, dtype=np.int64)
        self._count = 0
        self._rows = 0
        self._free: list[int] = []
        self._moments = np.zeros((2, 1024))
        self._priority = np.zeros(1024, dtype=np.uint64)
        self._used = 0
        self._t = -1
        self._clock = 0.0
        self._drift = 0.0
        self._highest_drift = 0.0

    def __len__(self) -> int:
        return self._count

    def add(self, level: int, priority: WordArray, addend: float) -> int:
        """A new row for a cell of this level, to be filled by `update`; its index gets `addend`.

        `priority` (m,) is that of its candidates.
        """
        row = self._free.pop() if self._free else self._rows
        if row == self._rows:
            if row == len(self._numbers):
                self._numbers = _doubled(self._numbers)
                self._places = _doubled(self._places)
                self._ties = _doubled(self._ties)
                self._heap = _doubled(self._heap)
            self._rows += 1
        self._places[row] = (0, 0, 0, -1)
        self._numbers[row] = (0.0, self._width.constant(level), addend, 0.0)
        start = self._place(row, len(priority))
        self._priority[start : start + len(priority)] = priority
        return row

    def update(self, row: int, mean: FloatArray, std: FloatArray, gain: float, t: int) -> None:
        """Set a row's moments (m,), as many as before, and its gain; find its index at step t."""
        if t != self._t:
            self._set_clock(t)
        width = self._width
        self._count = _loops.table_enter(
            self._numbers,
            self._places,
            self._ties,
            self._heap,
            self._count,
            self._moments,
            self._priority,
            row,
            mean,
            std,
            gain if width.counts_gain else 0.0,
            width.offset,
            width.factor,
            self._clock,
            self._drift - self._slack if width.drifts else 0.0,
            self._resolution,
        )

    def _set_clock(self, t: int) -> None:
        """Compute once what all rows share at step t."""
        width = self._width
        self._t, self._clock = t, width.clock(t)
        if width.drifts:
            self._drift = width.offset + width.factor * self._clock**0.5
            self._highest_drift = max(self._highest_drift, self._drift)

    def remove(self, row: int) -> None:
        """Remove a row."""
        self._count = _loops.table_remove(
            self._numbers, self._places, self._ties, self._heap, self._count, row
        )
        self._places[row, _loops.SIZE] = 0
        self._free.append(row)

    def best(self, t: int) -> Choice:
        """The row with the highest index at step t."""
        width = self._width
        if not width.drifts:
            row = int(self._heap[0])
            bound = float(self._numbers[row, _loops.BOUND])
            return Choice(row, bound, int(self._places[row, _loops.CHOICE]))
        if t != self._t:
            self._set_clock(t)
        row, value, candidate, _ = _loops.table_best(
            self._numbers,
            self._places,
            self._ties,
            self._heap,
            self._count,
            self._moments,
            self._priority,
            width.offset,
            width.factor,
            self._clock,
            self._drift,
            self._highest_drift,
            self._slack,
            self._resolution,
        )
        return Choice(row, value, candidate)

    def _place(self, row: int, size: int) -> int:
        """Give a row room for its candidates: where it starts."""
        if self._used + size > len(self._priority):
            self._pack(size)
        self._places[row, _loops.START] = self._used
        self._places[row, _loops.SIZE] = size
        self._used += size
        return self._used - size

    def _pack(self, size: int) -> None:
        """Move all candidates together, into arrays with as much room again."""
        rows = np.flatnonzero(self._places[: self._rows, _loops.SIZE] > 0)
        starts, sizes = self._places[rows, _loops.START], self._places[rows, _loops.SIZE]
        ends = np.cumsum(sizes)
        used = int(ends[-1]) if len(rows) else 0
        source = np.repeat(starts - (ends - sizes), sizes) + np.arange(used)
        room = max(1024, 2 * (used + size))
        moments, priority = np.zeros((2, room)), np.zeros(room, dtype=np.uint64)
        moments[:, :used] = self._moments[:, source]
        priority[:used] = self._priority[source]
        self._places[rows, _loops.START] = ends - sizes
        self._moments, self._priority, self._used = moments, priority, used


Number = TypeVar("Number", bound=np.generic)


def _doubled(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    return np.concatenate([array, np.zeros_like(array)])


class Score(NamedTuple):
    """A rounded value and the priority that decides between equals; the smaller priority wins."""

    value: float
    priority: int


class LazyHeap(Generic[Entrant]):
    """Entrants with an upper bound each on their score; the best is found exactly.

    As in `Table`, `best` evaluates entrants from the top until no other bound can reach the best
    value found. Entries that were replaced stay in the heap until they surface or outnumber the
    live ones.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Entrant]] = []
        self._live: dict[Entrant, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._live)

    def push(self, entrant: Entrant, bound: float, priority: int) -> None:
        """Add an entrant or replace its bound."""
        self._serial = serial = self._serial + 1
        self._live[entrant] = serial
        heapq.heappush(self._heap, (-bound, priority, serial, entrant))
        if len(self._heap) > 2 * len(self._live) + 64:
            live = self._live
            self._heap = [e for e in self._heap if live.get(e[3]) == e[2]]
            heapq.heapify(self._heap)

    def discard(self, entrant: Entrant) -> None:
        """Remove an entrant, if it is there."""
        self._live.pop(entrant, None)

    def best(
        self, drift: float, slack: float, evaluate: Callable[[Entrant], Score]
    ) -> tuple[Entrant, Score]:
        """The entrant with the best score now, its value being at most its bound plus `drift`.

        `drift` may only grow. `slack` covers what rounding adds to a value: the bounds that are
        stored back have it added.
        """
        heap, live = self._heap, self._live
        examined: list[tuple[Entrant, Score]] = []
        winner: tuple[Entrant, Score] | None = None
        while heap:
            bound, _, serial, entrant = heap[0]
            if winner is not None and drift - bound < winner[1].value:
                break
            heapq.heappop(heap)
            if live.get(entrant) != serial:
                continue
            score = evaluate(entrant)
            examined.append((entrant, score))
            if winner is None or (-score.value, score.priority) < (
                -winner[1].value,
                winner[1].priority,
            ):
                winner = (entrant, score)
        for entrant, score in examined:
            self.push(entrant, score.value - drift + slack, score.priority)
        if winner is None:
            raise LookupError("the heap is empty")
        return winner
