"""Cells without data. They look all alike, so each level needs only its next cell to evaluate.

Both classes answer the same questions: `peek(level)` is that next cell with its priority,
`take(key)` removes a cell that is about to get data, and `changed` collects the levels whose answer
may differ from before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np

from partita._types import IntArray, WordArray

from .cover import CellKey, Geometry
from .sites import hashed


class FreshCell(NamedTuple):
    """A cell without data that is the next of its level, and its priority."""

    priority: int
    key: CellKey


class CellState(Enum):
    """What has become of a cell."""

    FRESH = "it has not been used yet"
    EMPTY = "made for a pending evaluation, without data"
    DATA = "it has data, or had and was split"


class FreshArms:
    """Cells with arms but no data; the one with the lowest arm priority is next."""

    def __init__(self) -> None:
        self.arms: dict[CellKey, IntArray] = {}
        self.changed: set[int] = set()
        self._heaps: dict[int, list[tuple[int, CellKey]]] = {}

    def add(self, key: CellKey, arms: IntArray, priority: int) -> None:
        """Add a cell with its arms and the lowest of their priorities."""
        self.arms[key] = arms
        heapq.heappush(self._heaps.setdefault(key[0], []), (priority, key))
        self.changed.add(key[0])

    def take(self, key: CellKey) -> IntArray:
        """Remove a cell; its arms."""
        self.changed.add(key[0])
        return self.arms.pop(key)

    def has(self, key: CellKey) -> bool:
        """Whether a cell without data holds any arms."""
        return key in self.arms

    def restore(self, levels: Iterable[int], cells: dict[CellKey, tuple[IntArray, int]]) -> None:
        """Begin again with cells, their arms and priorities, and levels in a saved order."""
        self.arms.clear()
        self._heaps = {level: [] for level in levels}
        for key, (arms, priority) in cells.items():
            self.add(key, arms, priority)
        self.changed.clear()

    def levels(self) -> Iterable[int]:
        """Levels that may have such cells."""
        return list(self._heaps)

    def peek(self, level: int) -> FreshCell | None:
        """The next cell of a level, or None."""
        heap = self._heaps.get(level, [])
        while heap and heap[0][1] not in self.arms:
            heapq.heappop(heap)
        if not heap:
            self._heaps.pop(level, None)
            return None
        return FreshCell(*heap[0])


class NoFresh:
    """For a partition that makes every cell at once: none is ever without data and implicit."""

    def __init__(self) -> None:
        self.changed: set[int] = set()

    def add_children(self, parent: CellKey) -> None:
        """Nothing: the children are made."""

    def note(self, key: CellKey) -> None:
        """Nothing."""

    def has(self, key: CellKey) -> bool:
        """No cell is without data."""
        return False

    def levels(self) -> Iterable[int]:
        """No level has such cells."""
        return ()

    def peek(self, level: int) -> FreshCell | None:
        """There is no such cell."""
        return None


@dataclass
class _Family:
    """The cells of the first cover, or the children of one cell, in a seeded order."""

    parent: CellKey | None
    size: int
    start: int
    stride: int
    cursor: int = 0
    #: Cells passed over while an evaluation in them was pending: fresh again if it is cancelled.
    waiting: list[CellKey] = field(default_factory=list)

    def number(self) -> int:
        return (self.start + self.cursor * self.stride) % self.size


class FreshBox:
    """Cells of a box without data, never listed: siblings are a seeded permutation and a cursor."""

    def __init__(
        self, geometry: Geometry, seed: int, state: Callable[[CellKey], CellState]
    ) -> None:
        """`state(key)` says what has become of a cell."""
        self._geometry = geometry
        self._seed = seed
        self._state = state
        self._heaps: dict[int, list[tuple[int, int]]] = {}
        self._families: dict[int, _Family] = {}
        self._made = 0
        self.changed: set[int] = set()
        self._add(None, geometry.per_side**geometry.dim, 0)

    def add_children(self, parent: CellKey) -> None:
        """The children of a cell that has just split; those with data are passed over in turn."""
        self._add(parent, 2**self._geometry.dim, parent[0] + 1)

    def _add(self, parent: CellKey | None, size: int, level: int) -> None:
        words = [(c >> (64 * w)) & (2**64 - 1) for c in parent or (0,) for w in (0, 1)]
        word, other = _two_hashes(self._seed, words)
        stride = 1 + other % max(1, size - 1)
        while math.gcd(stride, size) != 1:
            stride += 1
        self._families[self._made] = _Family(parent, size, word % size, stride)
        heapq.heappush(self._heaps.setdefault(level, []), (word, self._made))
        self._made += 1
        self.changed.add(level)

    def _key(self, family: _Family) -> CellKey:
        number = family.number()
        if family.parent is not None:
            return self._geometry.child(family.parent, number)
        coordinates = []
        for _ in range(self._geometry.dim):
            number, c = divmod(number, self._geometry.per_side)
            coordinates.append(c)
        return (0, *coordinates)

    def restore(self, levels: Iterable[int], parents: Iterable[CellKey]) -> None:
        """Begin again with the children of cells that split, and levels in a saved order.

        Families begin at their first cell: those that are not fresh any more are passed over again,
        to the same next one.
        """
        self._heaps, self._families, self._made = {level: [] for level in levels}, {}, 0
        if 0 in self._heaps:
            self._add(None, self._geometry.per_side**self._geometry.dim, 0)
        for parent in parents:
            if parent[0] + 1 in self._heaps:  # else all of them have data
                self.add_children(parent)
        self.changed.clear()

    def note(self, key: CellKey) -> None:
        """Note that a cell was made, or is fresh again."""
        self.changed.add(key[0])

    def has(self, key: CellKey) -> bool:
        """Whether a cell without data holds any points: always."""
        return True

    def levels(self) -> Iterable[int]:
        """Levels that may have such cells."""
        return list(self._heaps)

    def peek(self, level: int) -> FreshCell | None:
        """The next cell of a level, or None."""
        heap = self._heaps.get(level, [])
        idle = []  # families with nothing but cells where an evaluation is pending
        first = None
        while heap and first is None:
            word, number = heap[0]
            family = self._families[number]
            key = self._next(family)
            if key is not None:
                first = FreshCell(word, key)
            else:
                heapq.heappop(heap)
                if family.waiting:
                    idle.append((word, number))
                else:
                    del self._families[number]
        for entry in idle:
            heapq.heappush(heap, entry)
        if not heap:
            self._heaps.pop(level, None)
        return first

    def _next(self, family: _Family) -> CellKey | None:
        """The next cell of a family, in its order."""
        family.waiting = [k for k in family.waiting if self._state(k) is not CellState.DATA]
        for key in family.waiting:
            if self._state(key) is CellState.FRESH:
                return key
        while family.cursor < family.size:
            key = self._key(family)
            state = self._state(key)
            if state is CellState.FRESH:
                return key
            if state is CellState.EMPTY:
                family.waiting.append(key)
            family.cursor += 1
        return None


def _two_hashes(seed: int, words: list[int]) -> tuple[int, int]:
    row: WordArray = np.array([[*words, 0], [*words, 1]], dtype=np.uint64)
    first, second = hashed(seed, row)
    return int(first), int(second)
