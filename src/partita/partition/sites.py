"""Sites: the points that carry data, and that data, stored once for all cells that hold it.

A site has a number, scaled coordinates (`cover.Geometry`), a count of observations, their weight
and their weighted sum. An observation weighs 1, or (L/s)² where its noise is known to be s instead
of L: several are exactly one of noise variance α over their weight, at their weighted mean. On a
finite domain the sites are the arms; on a box they are registered when first asked for or told.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from partita._state import LARGEST, Saved, State
from partita._types import FloatArray, IntArray, WordArray
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed

from . import _loops
from .cover import Geometry

#: Lattice points are multiples of 2^-SNAP_BITS in scaled coordinates down to level 28, in one
#: dimension, and Sobol' points down to level 15.
SNAP_BITS = 32
#: How far a saved point may lie from its scaled coordinates, in sides of the domain.
NEAR = 1e-8


class Sites:
    """Data of numbered points, (n,) each: the observations, their weight and weighted sum."""

    scaled: FloatArray  # (n, d)
    count: IntArray
    total: FloatArray
    #: How much values at the same sites differ: the weighted sum of squares around their means.
    scatter: float = 0.0
    #: The weight, once it is anything but the count.
    _weight: FloatArray | None = None
    _points: FloatArray  # (n, d), in the user's units

    def x(self, site: int) -> FloatArray:
        """The point of a site in the user's units, (d,)."""
        return np.asarray(self._points[site].copy())

    @property
    def points(self) -> FloatArray:
        """All points in the user's units, (n, d), not to be written to."""
        return self._points[: len(self)]

    def add(self, site: int, value: float, weight: float = 1.0, count: int = 1) -> int:
        """Add a value at a site, or `count` of this mean; return how many it has now."""
        # Python's numbers, by `item`: NumPy's scalars take three times as long.
        before, total = self.count.item(site), self.total.item(site)
        if before:
            held = before if self._weight is None else self._weight.item(site)
            away, more = value - total / held, weight * count
            self.scatter += away * away * (held * more / (held + more))
        if weight != 1.0 or self._weight is not None:
            self._own_weight()[site] += weight * count
            value *= weight
        number = before + count
        self.count[site] = number
        self.total[site] = total + value * count
        return number

    def add_many(
        self,
        sites: IntArray,
        values: FloatArray,
        weights: FloatArray | None = None,
        counts: IntArray | int = 1,
    ) -> None:
        """Add values (n,) at sites (n,), of weight 1 unless others are given.

        With `counts`, each is the mean of that number of values.
        """
        each = counts if weights is None else weights * counts
        self.scatter += self._scatter_of(sites, values, each)
        if weights is not None:
            np.add.at(self._own_weight(), sites, each)
            values = weights * values
        elif self._weight is not None:
            np.add.at(self._weight, sites, counts)
        np.add.at(self.count, sites, counts)
        np.add.at(self.total, sites, values * counts)

    def _scatter_of(
        self, sites: IntArray, values: FloatArray, weights: FloatArray | IntArray | int
    ) -> float:
        """What values (n,) at sites (n,) would add to the scatter."""
        own, place = np.unique(sites, return_inverse=True)
        weight = np.broadcast_to(np.asarray(weights, dtype=float), values.shape)
        new = np.bincount(place, weight, len(own))
        mean = np.bincount(place, weight * values, len(own)) / new
        within = weight * (values - mean[place]) ** 2
        held = self.weight_of(own)
        away = mean - self.total[own] / np.where(held > 0, held, 1.0)
        return float(within.sum() + (away**2 * (held * new / (held + new))).sum())

    @property
    def repeats(self) -> int:
        """Values told at sites that had some before."""
        return int(self.count.sum() - np.count_nonzero(self.count))

    def weight_of(self, sites: IntArray | slice) -> FloatArray:
        """The weight of the values at sites (n,), a new array."""
        weight = self.count if self._weight is None else self._weight
        return np.asarray(weight[sites].astype(float))

    def state(self) -> State:
        """What was told at the sites, as plain data."""
        n = len(self)
        weight = None if self._weight is None else self._weight[:n].copy()
        return {
            "count": self.count[:n].copy(),
            "total": self.total[:n].copy(),
            "weight": weight,
            "scatter": float(self.scatter),
        }

    def __len__(self) -> int:
        return len(self.count)

    def _restore_data(self, saved: Saved, n: int) -> None:
        """Restore what was told at n sites."""
        self.count = saved.wholes("count", (n,))
        self._weight = saved.floats("weight", (n,), 0.0, 1e30) if "weight" in saved else None
        weight, told = self.weight_of(slice(None)), self.count > 0
        saved.require(((weight > 0) == told).all(), "weights where there are values")
        self.total = saved.floats("total", (n,), -LARGEST * weight, LARGEST * weight)
        self.scatter = saved.real("scatter", 0.0, math.inf)

    def _own_weight(self) -> FloatArray:
        """The weight as an array of its own, from now on."""
        if self._weight is None:
            self._weight = self.weight_of(slice(None))
        return self._weight


class ArmSites(Sites):
    """The arms of a finite domain, in their order."""

    def __init__(self, domain: Grid | Arms, geometry: Geometry, seed: int) -> None:
        self._domain = domain
        self._points = domain.points
        self.scaled = geometry.scale(domain.unit_points)
        self.count = np.zeros(domain.size, dtype=np.int64)
        self.total = np.zeros(domain.size)
        self.priority = arm_priorities(seed, domain.size)

    def locate(self, points: FloatArray) -> IntArray:
        """Numbers of the arms at `points`."""
        return self._domain.index_of(points)

    def restore(self, saved: Saved) -> None:
        """Restore what was told at the arms."""
        self._restore_data(saved, len(self))


class BoxSites(Sites):
    """Points of a box, numbered as they come."""

    def __init__(self, domain: Box | Mixed, geometry: Geometry) -> None:
        self._domain = domain
        self._geometry = geometry
        self._numbers: dict[bytes, int] = {}
        self._points = np.empty((0, domain.dim))
        self.scaled = np.empty((0, domain.dim))
        self.count = np.empty(0, dtype=np.int64)
        self.total = np.empty(0)

    def to_user(self, scaled: FloatArray) -> FloatArray:
        """Points (n, d) in the user's units, of scaled coordinates."""
        return self._domain.from_unit(scaled / self._geometry.per_side)

    def to_scaled(self, points: FloatArray) -> FloatArray:
        """Scaled coordinates of points in the user's units; exact for what `x` gave."""
        scaled = self._geometry.scale(self._domain.to_unit(points))
        steps = float(2**SNAP_BITS)
        snapped = np.rint(scaled * steps) / steps
        same = (self.to_user(snapped) == points).all(axis=1, keepdims=True)
        return np.where(same, snapped, scaled) + 0.0

    def locate(self, points: FloatArray) -> IntArray:
        """Numbers of the sites at `points`, registering those not seen before."""
        scaled = self.to_scaled(points)
        return np.array(
            [self.register(row, x) for row, x in zip(scaled, points, strict=True)], dtype=np.int64
        )

    def register(self, scaled: FloatArray, x: FloatArray | None = None) -> int:
        """Number of the site at scaled coordinates (d,), whose point in user's units is `x`."""
        word = scaled.tobytes()
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._numbers)
            if number == len(self.count):
                room = max(64, number)
                self._points = _extended(self._points, room)
                self.scaled = _extended(self.scaled, room)
                self.count = _extended(self.count, room)
                self.total = _extended(self.total, room)
                if self._weight is not None:
                    self._weight = _extended(self._weight, room)
            self.scaled[number] = scaled
            self._points[number] = self.to_user(scaled[None, :])[0] if x is None else x
        return number

    def holds(self, scaled: FloatArray) -> bool:
        """Whether there is a site at scaled coordinates (d,)."""
        return scaled.tobytes() in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def state(self) -> State:
        """The points, and what was told at them, as plain data."""
        n = len(self)
        points = {"points": self._points[:n].copy(), "scaled": self.scaled[:n].copy()}
        return {**super().state(), **points}

    def restore(self, saved: Saved, in_units: bool = False) -> None:
        """Restore saved points; their scaled coordinates are the user's units if `in_units`.

        The points are of the domain, constraint and all: they may be asked for again.
        """
        domain = self._domain
        points = saved.floats("points", (None, domain.dim), domain.lower, domain.upper)
        domain.check(points)
        if isinstance(domain, Mixed):
            saved.require(domain.mask(points).all(), "points that the constraint allows")
        n = len(points)
        scaled = saved.floats("scaled", (n, domain.dim))
        if in_units:
            same = scaled == points
        else:
            inside = (scaled >= 0.0) & (scaled <= self._geometry.per_side)
            saved.require(inside.all(), "coordinates inside the cover")
            same = np.abs(self.to_user(scaled) - points) <= NEAR * (domain.upper - domain.lower)
        saved.require(same.all(), "points at their coordinates")
        data, width = scaled.tobytes(), 8 * domain.dim
        self._numbers = {data[width * i : width * (i + 1)]: i for i in range(n)}
        saved.require(len(self._numbers) == n, "each point once")
        self._points, self.scaled = points, scaled
        self._restore_data(saved, n)


Number = TypeVar("Number", bound=np.generic)


def _extended(array: npt.NDArray[Number], room: int) -> npt.NDArray[Number]:
    return np.concatenate([array, np.zeros((room, *array.shape[1:]), dtype=array.dtype)])


def arm_priorities(seed: int, size: int) -> WordArray:
    """Tie-breaking priority of each arm of a finite domain: a hash of (seed, arm)."""
    return hashed(seed, np.arange(size, dtype=np.uint64)[:, None])


def point_priorities(seed: int, scaled: FloatArray) -> WordArray:
    """Tie-breaking priority of lattice points: a hash of (seed, scaled coordinates)."""
    return hashed(seed, np.ascontiguousarray(scaled + 0.0).view(np.uint64))


def hashed(seed: int, words: WordArray) -> WordArray:
    """Hash of each row of `words` (n, w) under a seed of any size."""
    state = np.uint64(0)
    rest = seed
    while True:
        state = _loops.hash_rows(state, np.array([[rest & (2**64 - 1)]], dtype=np.uint64))[0]
        rest >>= 64
        if rest == 0:
            return np.asarray(_loops.hash_rows(state, words))


def tie_resolution(norm_bound: float, sub_gaussian: float) -> float:
    """Indices are compared as multiples of 1 over this: 9 decimals at ordinary scales.

    Deviates: where B and L are both under 0.01, or either is over 1,000, the decimals follow the
    scale, since nine decimals would tie everything or nothing.
    """
    scale = max(norm_bound, sub_gaussian)
    if 1e-2 <= scale <= 1e3:
        return 1e9
    return float(10.0 ** (9 - np.floor(np.log10(scale))))
