"""Geometry of the cover: closed cubic cells, which points they hold, and when they split.

A cell is a key ``(level, c_1, …, c_d)`` over a first cover of `per_side` cells a side: it is the
cube ``Π [c_i, c_i + 1] / (per_side · 2^level)``. Points are compared with it in *scaled*
coordinates ``fl(x · per_side)``: multiplying those by 2^level is exact, so membership never depends
on rounding. The reference and the fast policies share every function here.

Where cells are closed, a point on a shared face belongs to every cell that touches it. Deviates: in
many dimensions it belongs to one of them, since 2^d cells can meet in a point: to the upper one
along every coordinate. Bounds hold for any choice of data that does not look at the values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from partita._state import Saved
from partita._types import FloatArray, IntArray

from . import _loops

CellKey = tuple[int, ...]

#: Most dimensions in which an arm on a shared face belongs to every cell that touches it: at most
#: 64 cells meet in a point then. Each takes the arm in, so the cost of an observation is bounded.
CLOSED_DIMS = 6
#: A cell of a saved state is at most this many times halved: its corner fits a float.
DEEPEST = 52


def cell_exponent(dim: int, nu: float) -> float:
    """b = (d+1)/(d+2ν): a cell of side ρ splits at about ρ^(−1/b) points.

    Janz et al. 2020, "Main contribution".
    """
    return (dim + 1) / (dim + 2 * nu)


def cover_exponent(dim: int, nu: float) -> float:
    """q = d(d+1)/(d(d+2)+2ν): at most O(T^q) cells are ever made. Janz et al. 2020, Lemma 2."""
    return dim * (dim + 1) / (dim * (dim + 2) + 2 * nu)


def paper_cells_per_side(horizon: int, dim: int, nu: float) -> int:
    """Cells a side of a first cover of about T^q cubes. Janz et al. 2020, "Empirical validation".

    Rounded to nearest, but down where rounding up would more than double T^q (from about 14
    dimensions on, where 2^d is already far more cells than the O(T^q) that Lemma 2 allows).
    """
    target = float(horizon) ** cover_exponent(dim, nu)
    per_side = int(max(1, round(target ** (1 / dim))))
    if per_side > 1 and per_side**dim > 2 * target:
        per_side -= 1
    return per_side


def split_threshold(per_side: int, level: int, dim: int, nu: float) -> float:
    """ρ^(−1/b) for side ρ = 1/(per_side · 2^level), or the integer within 1e−9 of it."""
    value = float(per_side * 2**level) ** ((dim + 2 * nu) / (dim + 1))
    nearest = round(value)
    return float(nearest) if abs(value - nearest) <= 1e-9 else value


@dataclass(frozen=True)
class Geometry:
    """A first cover of `per_side`^`dim` cells, and what can be derived from it.

    `closed` says whether a point on a shared face belongs to every cell that touches it, or to the
    upper one along every coordinate only.
    """

    dim: int
    per_side: int
    closed: bool = True

    def scale(self, unit_points: FloatArray) -> FloatArray:
        """Scaled coordinates fl(x · per_side) of points in the unit cube."""
        return np.asarray(unit_points * float(self.per_side))

    def side(self, level: int) -> float:
        """Side ρ of a cell, in the unit cube."""
        return 1.0 / float(self.per_side << level)

    def lower(self, key: CellKey) -> FloatArray:
        """Lower corner of a cell in the unit cube, (d,)."""
        return np.asarray(np.array(key[1:], dtype=float) / float(self.per_side << key[0]))

    def first_cells(self) -> Iterator[CellKey]:
        """Every cell of the first cover."""
        return ((0, *c) for c in product(range(self.per_side), repeat=self.dim))

    def holds(self, key: CellKey, scaled: FloatArray) -> npt.NDArray[np.bool_]:
        """Which of the scaled points (n, d) belong to the cell, (n,)."""
        corner = np.array(key[1:], dtype=float)
        offset = scaled * float(2 ** key[0]) - corner
        inside = (offset >= 0) & (offset <= 1)
        if not self.closed:  # an upper face is the next cell's, but for the last cell of all
            inside &= (offset < 1) | (corner + 1 == float(self.per_side << key[0]))
        return np.asarray(inside.all(axis=1))

    def touching(
        self, scaled: list[float], level: int, within: CellKey | None = None
    ) -> Iterator[CellKey]:
        """Cells of a level that a scaled point belongs to, or those of the children of `within`."""
        count = self.per_side << level
        options = []
        for i, coordinate in enumerate(scaled):
            place = coordinate * (1 << level)
            floor = math.floor(place)
            if not self.closed:
                cells: tuple[int, ...] = (min(floor, count - 1),)
            else:
                cells = (floor - 1, floor) if place == floor else (floor,)
            options.append(
                [c for c in cells if 0 <= c < count and (within is None or c >> 1 == within[i + 1])]
            )
        return ((level, *c) for c in product(*options))

    def offsets(self, key: CellKey, scaled: FloatArray) -> FloatArray:
        """Where scaled points are in a cell, in units of its children's sides: (n, d) in [0, 2]."""
        return scaled * float(2 ** (key[0] + 1)) - 2.0 * np.array(key[1:], dtype=float)

    def scatter(self, key: CellKey, scaled: FloatArray) -> list[tuple[CellKey, IntArray]]:
        """Children of a cell with the rows of its scaled points (n, d) that they hold, if any.

        The children are in the order of their codes, the rows ascending.
        """
        offsets = self.offsets(key, scaled)
        if self.closed:
            codes, rows = _loops.scatter_children(offsets)
            order = np.argsort(codes, kind="stable")
            starts = np.flatnonzero(np.diff(codes[order])) + 1
            groups = np.split(order, starts) if len(order) else []
            return [(self.child(key, int(codes[group[0]])), rows[group]) for group in groups]
        # Each point in one child. Codes have d bits, which need not fit a machine word.
        upper = offsets >= 1.0
        words = np.packbits(upper[:, ::-1], axis=1)
        order = np.lexsort(words.T[::-1])
        starts = np.flatnonzero(np.diff(words[order], axis=0).any(axis=1)) + 1
        groups = np.split(order, starts) if len(order) else []
        return [(self.half(key, upper[group[0]].tolist()), group) for group in groups]

    def child(self, key: CellKey, code: int) -> CellKey:
        """The child whose bit c says which half of dimension c it takes."""
        return self.half(key, [code >> i & 1 for i in range(self.dim)])

    def half(self, key: CellKey, upper: Sequence[int]) -> CellKey:
        """The child that takes the upper half of each dimension where `upper` is true."""
        return (key[0] + 1, *(2 * c + int(bit) for c, bit in zip(key[1:], upper, strict=True)))

    def rows(self, keys: Iterable[CellKey]) -> IntArray:
        """Keys as rows (n, d + 1), to be saved."""
        return np.array(list(keys), dtype=np.int64).reshape(-1, self.dim + 1)


def check_cover(
    saved: Saved, geometry: Geometry, split: list[CellKey], leaves: list[CellKey]
) -> None:
    """Refuse saved cells that are not of a cover: each is a first one, or its parent was split."""
    inner = set(split)
    for key in (*split, *leaves):
        first = key[0] == 0 and max(key[1:]) < geometry.per_side
        parent = (key[0] - 1, *(c >> 1 for c in key[1:]))
        saved.require(first or parent in inner, "a cover")
    saved.require(max((key[0] for key in split), default=0) <= DEEPEST, "cells of some width")
    once = len({*split, *leaves}) == len(split) + len(leaves)
    saved.require(once, "each cell once")


def levels_left(
    geometry: Geometry, split: Collection[CellKey], leaves: Collection[CellKey]
) -> set[int]:
    """Levels that have cells of the cover besides `leaves`, once `split` were split."""
    cells = Counter({0: geometry.per_side**geometry.dim})
    for key in split:
        cells[key[0]] -= 1
        cells[key[0] + 1] += 2**geometry.dim
    cells.subtract(key[0] for key in leaves)
    return {level for level, number in cells.items() if number > 0}


@dataclass
class SplitRule:
    """When a cell splits.

    The paper's rule ("Splitting rule"): once ρ^(−1/b) < n + 1, n the observations in the cell. With
    a finite `gain_limit` (the information split): once that holds *and* the cell's information gain
    exceeds the limit, or it holds `point_limit` distinct points; or, on a box, once the count rule
    holds and the standard deviation at some point of its lattice is less than `fineness` times
    √(2 − 2κ), κ the kernel over half the lattice's spacing. More values there would tell little of
    what f is between. All of it only grows with the data, so that their order does not matter.
    `never` makes one cell last.
    """

    per_side: int
    dim: int
    nu: float
    gain_limit: float = -math.inf
    point_limit: float = 0.0
    fineness: float = 0.0
    #: Splits at ρ^(−power) points; 1/b if it is None.
    power: float | None = None
    never: bool = False
    _thresholds: list[float] = field(default_factory=list, repr=False)

    def threshold(self, level: int) -> float:
        """Most observations a cell of this level may hold under the count rule."""
        values = self._thresholds
        while len(values) <= level:
            at = len(values)
            values.append(
                split_threshold(self.per_side, at, self.dim, self.nu)
                if self.power is None
                else float(self.per_side * 2**at) ** self.power
            )
        return values[level]

    def quota(self, level: int) -> float:
        """A cell of this level with fewer observations is not due."""
        return math.inf if self.never else math.floor(self.threshold(level))

    def count_due(self, level: int, count: int) -> bool:
        """Whether the paper's count rule asks for a split."""
        return not self.never and self.threshold(level) < count + 1

    def due(self, level: int, count: int, gain: float, distinct: int) -> bool:
        """Whether a cell with this many observations, gain and distinct points must split now."""
        return self.count_due(level, count) and (
            gain > self.gain_limit or distinct >= self.point_limit
        )
