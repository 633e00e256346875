"""Fresh candidates: some anywhere in a region, most around its best points at many scales."""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray, IntArray
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.partition.sites import SNAP_BITS
from partita.policies.feasible import FeasiblePoints, between, unique

__all__ = ["BEST", "Proposals", "between"]


#: Fresh candidates of a region, and the part of them that lies anywhere in it.
FRESH, ANYWHERE = 300, 1 / 3
#: Around so many of the best points, moved by so much, in sides of the region.
BEST, FINEST, COARSEST = 6, 0.004, 0.3
#: Finite domains up to this size are candidates as a whole.
ALL_ARMS = 300


class Proposals:
    """Draws candidates that are points of the domain, in coordinates of the unit cube."""

    def __init__(self, domain: Grid | Arms | Box | Mixed) -> None:
        self._domain = domain
        self._dim = domain.dim
        self._arms: FloatArray | None = None
        self._numbers: dict[bytes, int] | None = None
        self._feasible: FeasiblePoints | None = None
        if isinstance(domain, Mixed):
            self._feasible = FeasiblePoints(domain)
        elif not isinstance(domain, Box):
            self._arms = domain.unit_points

    def arm(self, unit: FloatArray) -> int:
        """The number of an arm, given its point in the unit cube exactly."""
        if isinstance(self._domain, Grid):
            return int(self._grid_numbers(unit[None, :])[0])
        if self._numbers is None:
            assert self._arms is not None
            self._numbers = {row.tobytes(): i for i, row in enumerate(self._arms)}
        return self._numbers[unit.tobytes()]

    def _grid_numbers(self, points: FloatArray) -> IntArray:
        """Numbers (k,) of a grid's arms nearest to points (k, d) of the unit cube."""
        assert isinstance(self._domain, Grid)
        places = np.rint(points * max(self._domain.n - 1, 1)).astype(np.int64)
        flat = np.ravel_multi_index(tuple(places.T), (self._domain.n,) * self._dim)
        return np.asarray(flat, dtype=np.int64)

    def draw(
        self, random: np.random.Generator, lower: FloatArray, upper: FloatArray, best: FloatArray
    ) -> FloatArray:
        """Candidates (m, d) in the box between two corners, most around the `best` (b, d)."""
        if self._arms is not None and len(self._arms) <= ALL_ARMS:
            return np.asarray(self._arms[between(self._arms, lower, upper)])
        if self._feasible is not None:
            return self._draw_feasible(random, lower, upper, best)
        anywhere = lower + random.random((int(FRESH * ANYWHERE), self._dim)) * (upper - lower)
        number = FRESH - len(anywhere)
        centres = best[random.integers(len(best), size=number)]
        scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), number))[:, None]
        moved = (
            random.random((number, self._dim))
            < np.maximum(1 / self._dim, random.random(number))[:, None]
        )
        still = ~moved.any(axis=1)
        moved[still, random.integers(self._dim, size=int(still.sum()))] = True
        step = moved * scale * random.standard_normal((number, self._dim)) * (upper - lower)
        near = np.clip(centres + step, lower, upper)
        return self.snap(np.concatenate([anywhere, near]), lower, upper)

    def _draw_feasible(
        self, random: np.random.Generator, lower: FloatArray, upper: FloatArray, best: FloatArray
    ) -> FloatArray:
        assert self._feasible is not None
        assert isinstance(self._domain, Mixed)
        anywhere = self._feasible.inside(random, lower, upper, int(FRESH * ANYWHERE))
        number = FRESH - len(anywhere)
        centres = self._domain.snap(best)[random.integers(len(best), size=number)]
        scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), number))
        near = self._feasible.near(random, lower, upper, centres, scale)
        return unique(np.concatenate([anywhere, near]))

    def first(self, random: np.random.Generator, points: FloatArray) -> FloatArray:
        """Points of the domain to begin with, for uniform ones (n, d): at least one, at most n."""
        if self._feasible is not None:
            return self._feasible.first(random, points)
        return self.snap(points, np.zeros(self._dim), np.ones(self._dim))

    def anywhere(self, random: np.random.Generator) -> FloatArray:
        """Any point (d,) of the domain."""
        if self._feasible is not None:
            return self._feasible.anywhere(random)
        rows = random.random((1, self._dim))
        return np.asarray(self.snap(rows, np.zeros(self._dim), np.ones(self._dim))[0])

    def snap(self, points: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The points of the domain nearest to given ones, each once, as far as they lie inside."""
        if isinstance(self._domain, Box):
            steps = float(2**SNAP_BITS)
            top = np.where(upper >= 1.0, upper, upper - 1.0 / steps)
            return np.clip(np.rint(points * steps) / steps, lower, top) + 0.0
        if isinstance(self._domain, Mixed):
            raise AssertionError("points of a mixed domain are drawn, not snapped")
        if isinstance(self._domain, Grid):
            flat = self._grid_numbers(points)
        else:
            from scipy.spatial import cKDTree

            if not hasattr(self, "_tree"):
                self._tree = cKDTree(self._domain.unit_points)
            flat = self._tree.query(points)[1]
        assert self._arms is not None
        arms = self._arms[np.unique(flat)]
        return np.asarray(arms[between(arms, lower, upper)])
