"""Finding the best cell without looking at all of them: rows under a heap of bounds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State, wholes
from partita._types import WordArray

from . import _loops
from .scores import Scores
from .widths import Width

Entrant = TypeVar("Entrant", bound=Hashable)
Number = TypeVar("Number", bound=np.generic)

#: Codes of saved entrants that are no cells are above minus this.
MOST_LEVELS = 64
#: No bound of a saved row is larger: a mean and a width.
LARGEST_BOUND = 1e300


class Choice(NamedTuple, Generic[Entrant]):
    """The entrant with the highest index, that index, and the candidate that has it."""

    entrant: Entrant
    value: float
    candidate: int


class Entry(NamedTuple, Generic[Entrant]):
    """An entrant of a saved table: its level, candidates, and their priorities (m,) as they are.

    `size` is None for one that will be entered again before it is looked at.
    """

    entrant: Entrant
    level: int
    size: int | None
    priority: WordArray | None


class Table(Generic[Entrant]):
    """Entrants with candidates; finds the highest rounded index exactly, ties to lowest priority.

    An index is the highest μ + βσ of the candidates, or μ − βσ with `sign` −1. A row's bound is its
    index when it was last computed. Where the width does not drift with t, bounds are exact and the
    top is the answer. Where it does, an index may have risen since by no more than the width of a
    cell without data has: bounds are stored less that (nothing for lower bounds, which fall), and
    `best` evaluates rows from the top until no other bound can reach the best index so far. For
    that, candidates of all rows are in one pair of arrays that is packed again when it is full.
    """

    def __init__(self, width: Width, resolution: float, sign: float = 1.0) -> None:
        self._width = width
        self._offset, self._factor = sign * width.offset, sign * width.factor
        self._rises = width.drifts and sign > 0
        self._resolution = resolution
        self._slack = 1.5 / resolution  # rounding can raise an index by this much over its bound
        #: The row of each entrant; by row, its entrant and the priorities of its candidates.
        self._row_of: dict[Entrant, int] = {}
        self._entrants: list[Entrant | None] = []
        self._priorities: list[WordArray | None] = []
        self._free: list[int] = []
        self._cursor = 0
        #: By row, and the heap of rows: see `_loops`.
        self._numbers = np.zeros((64, 4))
        self._places = np.full((64, 5), -1, dtype=np.int64)
        self._ties = np.zeros(64, dtype=np.uint64)
        self._count = 0
        #: Candidates of all rows, where the width drifts.
        self._moments = np.zeros((2, 0))
        self._priority = np.zeros(0, dtype=np.uint64)
        self._used = 0
        #: What all rows share at step t.
        self._t = -1
        self._clock = 0.0
        self._drift = 0.0
        self._highest_drift = 0.0

    def __len__(self) -> int:
        return self._count

    @property
    def entrants(self) -> list[Entrant]:
        """Those that are in the table."""
        return list(self._row_of)

    def enter(
        self,
        entrant: Entrant,
        level: int,
        priority: WordArray,
        scores: Scores,
        t: int,
        addend: float = 0.0,
    ) -> None:
        """Add an entrant or renew it, and find its index at step t, `addend` included.

        `priority` (m,) is that of its candidates, a new array when they change.
        """
        row = self._row_of.get(entrant)
        if row is None or self._priorities[row] is not priority:
            self.leave(entrant)
            row = self._add_row(entrant, level, priority, addend)
        if t != self._t:
            self._set_clock(t)
        width = self._width
        self._count = _loops.table_enter(
            self._numbers,
            self._places,
            self._ties,
            self._count,
            self._moments,
            row,
            scores.mean,
            scores.std,
            priority,
            scores.gain if width.counts_gain else 0.0,
            self._offset,
            self._factor,
            self._clock,
            self._drift - self._slack if width.drifts else 0.0,
            self._resolution,
        )

    def leave(self, entrant: Entrant) -> None:
        """Remove an entrant, if it is there."""
        row = self._row_of.get(entrant)
        if row is None:
            return
        self._count = _loops.table_remove(self._numbers, self._places, self._ties, self._count, row)
        del self._row_of[entrant]
        self._entrants[row] = self._priorities[row] = None
        self._places[row, _loops.SIZE] = 0
        self._free.append(row)

    def best(self, t: int) -> Choice[Entrant]:
        """The entrant with the highest index at step t."""
        if not self._count:
            raise LookupError("the table is empty")
        if not self._width.drifts:
            row = self._places.item(0, _loops.HEAP)
            value = self._numbers.item(row, _loops.BOUND)
            candidate = self._places.item(row, _loops.CHOICE)
        else:
            if t != self._t:
                self._set_clock(t)
            row, value, candidate, _ = _loops.table_best(
                self._numbers,
                self._places,
                self._ties,
                self._count,
                self._moments,
                self._priority,
                self._offset,
                self._factor,
                self._clock,
                self._drift,
                self._highest_drift,
                self._slack,
                self._resolution,
            )
        entrant = self._entrants[row]
        assert entrant is not None
        return Choice(entrant, value, candidate)

    def descending(self) -> Iterator[tuple[Entrant, float]]:
        """Entrants and their indices, the highest first, where the width does not drift."""
        if self._width.drifts:
            raise AssertionError("bounds are not indices where the width drifts")
        rows = self._places[: self._count, _loops.HEAP]
        bounds = self._numbers[rows, _loops.BOUND]
        for place in np.lexsort((rows, -bounds)).tolist():
            entrant = self._entrants[rows[place]]
            assert entrant is not None
            yield entrant, float(bounds[place])

    def in_turn(self, count: int) -> list[Entrant]:
        """The next `count` entrants in the order of rows, or all; the next call goes on there."""
        chosen: list[Entrant] = []
        rows = len(self._entrants)
        for _ in range(rows):
            if len(chosen) >= count:
                break
            self._cursor = (self._cursor + 1) % rows
            entrant = self._entrants[self._cursor]
            if entrant is not None:
                chosen.append(entrant)
        return chosen

    def _set_clock(self, t: int) -> None:
        """Compute once what all rows share at step t."""
        self._t, self._clock = t, self._width.clock(t)
        if self._rises:
            self._drift = self._offset + self._factor * self._clock**0.5
            self._highest_drift = max(self._highest_drift, self._drift)

    def _add_row(self, entrant: Entrant, level: int, priority: WordArray, addend: float) -> int:
        row = self._free.pop() if self._free else len(self._entrants)
        if row == len(self._entrants):
            if row == len(self._numbers):
                self._numbers = _doubled(self._numbers)
                self._places = _doubled(self._places)
                self._ties = _doubled(self._ties)
            self._entrants.append(None)
            self._priorities.append(None)
        self._row_of[entrant] = row
        self._entrants[row], self._priorities[row] = entrant, priority
        self._numbers[row] = (0.0, self._width.constant(level), addend, 0.0)
        self._places[row, : _loops.HEAP] = (-1, 0, 0, -1)
        if self._width.drifts:
            self._place(row, priority)
        return row

    def _place(self, row: int, priority: WordArray) -> None:
        """Give a row room for its candidates."""
        size = len(priority)
        if self._used + size > len(self._priority):
            self._pack(size)
        self._places[row, _loops.START] = self._used
        self._places[row, _loops.SIZE] = size
        self._priority[self._used : self._used + size] = priority
        self._used += size

    def _pack(self, size: int) -> None:
        """Move all candidates together, into arrays with as much room again."""
        rows = np.flatnonzero(self._places[: len(self._entrants), _loops.SIZE] > 0)
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

    # -- saved state ------------------------------------------------------------------------------

    def state(self, code: Callable[[Entrant], int], priority: Callable[[Entrant], object]) -> State:
        """The rows as plain data; `code` is a number that stands for an entrant, not -1.

        `priority(entrant)` is the array that `enter` is given for it, to see if it has changed.
        """
        rows = len(self._entrants)
        live = np.array([entrant is not None for entrant in self._entrants], dtype=bool)
        if self._used:
            self._pack(0)
        used = self._used
        numbers, places, ties = (
            np.where(live if array.ndim == 1 else live[:, None], array, array.dtype.type(0))
            for array in (
                self._numbers[:rows],
                self._places[:rows, : _loops.POSITION],
                self._ties[:rows],
            )
        )
        return {
            "entrants": wholes(-1 if e is None else code(e) for e in self._entrants),
            "current": np.array(
                [
                    e is not None and p is not None and p is priority(e)
                    for e, p in zip(self._entrants, self._priorities, strict=True)
                ],
                dtype=bool,
            ),
            "free": wholes(self._free),
            "cursor": self._cursor,
            "numbers": numbers,
            "places": places,
            "ties": ties,
            "moments": self._moments[:, :used].copy(),
            "priority": self._priority[:used].copy(),
            "highest_drift": float(self._highest_drift),
        }

    def restore(self, saved: Saved, entry: Callable[[int], Entry[Entrant] | None]) -> None:
        """Restore saved rows; `entry` gives the entrant of a code, None if there is none.

        The heap is made again: the order of rows in it is the same however it came about.
        """
        codes = saved.wholes("entrants", (None,), -MOST_LEVELS)
        rows, live = len(codes), np.flatnonzero(codes != -1)
        saved.require(len(np.unique(codes[live])) == len(live), "each entrant once")
        free = saved.numbers("free", rows)
        saved.require({*free, *live.tolist()} == set(range(rows)), "all rows")
        saved.require(len(free) + len(live) == rows, "each row once")
        current = saved.flags("current", (rows,)).tolist()
        numbers = saved.floats("numbers", (rows, 4), -LARGEST_BOUND, LARGEST_BOUND)
        saved.require((numbers[:, _loops.GAIN] >= -1e-6).all(), "gains of 0 or more")
        places = saved.wholes("places", (rows, _loops.POSITION), -1)
        moments = saved.floats("moments", (2, None))
        self._used = moments.shape[1]
        self._moments, self._priority = moments, saved.words("priority", (self._used,))
        saved.require(self._width.drifts or not self._used, "no moments without drift")
        self._cursor = saved.integer("cursor", 0, max(rows - 1, 0))
        self._highest_drift = saved.real("highest_drift", 0.0)
        self._row_of, self._free = {}, free
        self._entrants, self._priorities = [None] * rows, [None] * rows
        room = max(64, rows)
        self._numbers, self._ties = np.zeros((room, 4)), np.zeros(room, dtype=np.uint64)
        self._places = np.full((room, 5), -1, dtype=np.int64)
        self._numbers[:rows], self._ties[:rows] = numbers, saved.words("ties", (rows,))
        self._places[:rows, _loops.SIZE] = 0
        for row in live.tolist():
            one = entry(int(codes[row]))
            if one is None:
                saved.refuse("an entrant is unknown")
            self._row_of[one.entrant], self._entrants[row] = row, one.entrant
            self._priorities[row] = one.priority if current[row] else None
            self._numbers[row, _loops.CONSTANT] = self._width.constant(one.level)
            self._places[row, : _loops.POSITION] = self._checked(saved, places[row], one)
        order = np.lexsort((live, self._ties[live], -self._numbers[live, _loops.BOUND]))
        self._count = len(live)
        self._places[: len(live), _loops.HEAP] = live[order]
        self._places[live[order], _loops.POSITION] = np.arange(len(live))
        self._t = -1

    def _checked(
        self, saved: Saved, place: npt.NDArray[np.int64], one: Entry[Entrant]
    ) -> tuple[int, int, int]:
        """Start, size and choice of a row, of candidates that exist."""
        start, size, choice = place.tolist()
        if not self._width.drifts:
            start, size, most = -1, 0, one.size
        else:
            inside = start >= 0 and size >= 1 and start + size <= self._used
            saved.require(inside and (one.size is None or size == one.size), "room for candidates")
            most = size
            if self._priorities[self._row_of[one.entrant]] is not None:
                saved.require(one.priority is not None and len(one.priority) == size, "all of them")
        known = one.size is None or most is None or choice < most
        saved.require(choice >= 0 and known, "a choice that exists")
        return start, size, choice


def _doubled(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    return np.concatenate([array, np.zeros_like(array)])
