"""Coordinates that are fixed: the slice of a domain in which the next point is to be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita._types import BoolArray, FloatArray, IntArray
from partita.errors import InvalidInput
from partita.model.domains import TOLERANCE, Arms, Grid


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
