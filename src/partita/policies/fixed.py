"""Coordinates that are fixed: the slice of a domain in which the next point is to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partita._types import BoolArray, FloatArray, IntArray
from partita.errors import InvalidInput
from partita.model.domains import TOLERANCE, Arms, Box, Grid
from partita.model.kernels import Matern
from partita.partition.lattice import variation, whole

#: Points of the slice of a box that a proven policy looks at, about.
SLICE_POINTS = 300


@dataclass(frozen=True, eq=False)
class Fixing:
    """Numbers (k,) of the coordinates that are fixed, in order, and their values (k,)."""

    numbers: IntArray
    values: FloatArray

    @classmethod
    def of(cls, fixed: Mapping[Any, Any], dim: int) -> Fixing:
        """The coordinates {number: value} that are fixed, of `dim`."""
        for number, value in fixed.items():
            if (
                isinstance(number, bool)
                or not isinstance(number, int | np.integer)
                or not 0 <= number < dim
                or not math.isfinite(value)
            ):
                raise InvalidInput(
                    f"fixed={dict(fixed)!r}: give a dict of numbers of coordinates, from 0 to "
                    f"{dim - 1}, with a finite value for each"
                )
        numbers = sorted(fixed)
        values = np.array([float(fixed[number]) for number in numbers])
        return cls(np.array(numbers, dtype=np.int64), values)

    def free(self, dim: int) -> IntArray:
        """The numbers of the other coordinates, of `dim`, in order."""
        fixed = set(self.numbers.tolist())
        others = [number for number in range(dim) if number not in fixed]
        return np.array(others, dtype=np.int64)

    def holds(self, points: FloatArray) -> BoolArray:
        """Which of the points (n, d) have these values."""
        return np.asarray((points[:, self.numbers] == self.values).all(axis=1))

    def moved(self, points: FloatArray) -> FloatArray:
        """Copies of points (n, d) with these values."""
        out = points.copy()
        out[:, self.numbers] = self.values
        return out


def arms_with(fixed: Mapping[int, float], domain: Grid | Arms) -> IntArray:
    """Numbers (m,) of the points of a finite domain whose coordinates have the given values."""
    given = Fixing.of(fixed, domain.dim)
    side = (domain.upper - domain.lower)[given.numbers]
    away = np.abs(domain.points[:, given.numbers] - given.values)
    arms = np.flatnonzero((away <= TOLERANCE * np.maximum(side, 1.0)).all(axis=1))
    if not len(arms):
        raise InvalidInput(
            f"fixed={dict(fixed)!r}: no point of the domain has these values. Fix values that "
            "points have"
        )
    return arms


class Slice(NamedTuple):
    """Points (m, d) with some coordinates fixed, and how much f can exceed its values at them."""

    points: FloatArray
    slack: float


def box_slice(fixed: Mapping[int, float], domain: Box, kernel: Matern, norm_bound: float) -> Slice:
    """A lattice of the slice of a box, and its slack for functions of at most this norm.

    The context stays as it is: only the coordinates that are not fixed are on a lattice. So f at
    the best point of the slice exceeds f at a point of the lattice by B√(2 − 2κ) at most, with κ
    the kernel at half a step of those coordinates.
    """
    given = Fixing.of(fixed, domain.dim)
    values, low, high = given.values, domain.lower[given.numbers], domain.upper[given.numbers]
    if not ((values >= low) & (values <= high)).all():
        raise InvalidInput(
            f"fixed={dict(fixed)!r}: outside the domain, which goes from {domain.lower} to "
            f"{domain.upper}"
        )
    free = given.free(domain.dim)
    if not len(free):
        return Slice(given.moved(domain.lower[None, :]), 0.0)
    lattice = whole(len(free), SLICE_POINTS)
    unit = np.zeros((len(lattice.offsets), domain.dim))
    unit[:, free] = lattice.offsets
    scales = kernel.scales(domain.dim)[free]
    slack = variation(kernel, norm_bound, np.full(len(free), lattice.reach) / scales)
    return Slice(given.moved(domain.from_unit(unit)), slack)
