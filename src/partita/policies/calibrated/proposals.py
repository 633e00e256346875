"""Fresh candidates: some anywhere in a region, most around its best points at many scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita._types import FloatArray, IntArray
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.partition.sites import SNAP_BITS
from partita.policies.feasible import FeasiblePoints, between, unique

#: Fresh candidates of a region, and the part of them that lies anywhere in it.
FRESH, ANYWHERE = 300, 1 / 3
#: The others lie this far from its best points, in sides of the region.
FINEST, COARSEST = 0.004, 0.3
#: Finite domains up to this size are candidates as a whole.
ALL_ARMS = 300


class Proposals:
    """Draws candidates that are points of the domain, in coordinates of the unit cube."""

    _domain: Grid | Arms | Box | Mixed
    #: The arms of a finite domain (n, d); their numbers by the bytes of their points, and a tree to
    #: find the nearest by, once they are needed.
    _arms: FloatArray | None
    _numbers: dict[bytes, int] | None
    _tree: Any
    _feasible: FeasiblePoints | None

    def __init__(self, domain: Grid | Arms | Box | Mixed) -> None:
        self._domain = domain
        self._arms = None if isinstance(domain, Box | Mixed) else domain.unit_points
        self._feasible = FeasiblePoints(domain) if isinstance(domain, Mixed) else None
        self._numbers = self._tree = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the tree, which can be built again."""
        return {**self.__dict__, "_tree": None}

    def arm(self, unit: FloatArray) -> int:
        """The number of an arm, given its point in the unit cube exactly."""
        assert self._arms is not None
        if isinstance(self._domain, Grid):
            return int(self._nearest(unit[None, :])[0])
        if self._numbers is None:
            self._numbers = {row.tobytes(): i for i, row in enumerate(self._arms)}
        return self._numbers[unit.tobytes()]

    def first(self, random: np.random.Generator, points: FloatArray) -> FloatArray:
        """Points of the domain to begin with, for uniform ones (n, d): at least one, at most n."""
        if self._feasible is not None:
            return self._feasible.first(random, points)
        return self._snap(points, np.zeros(self._domain.dim), np.ones(self._domain.dim))

    def anywhere(self, random: np.random.Generator) -> FloatArray:
        """Any point (d,) of the domain."""
        if self._feasible is not None:
            return self._feasible.anywhere(random)
        return np.asarray(self.first(random, random.random((1, self._domain.dim)))[0])

    def draw(
        self, random: np.random.Generator, lower: FloatArray, upper: FloatArray, best: FloatArray
    ) -> FloatArray:
        """Candidates (m, d) in the box between two corners, most around the `best` (b, d)."""
        if self._arms is not None and len(self._arms) <= ALL_ARMS:
            return np.asarray(self._arms[between(self._arms, lower, upper)])
        number, dim = int(FRESH * ANYWHERE), self._domain.dim
        if self._feasible is not None:
            assert isinstance(self._domain, Mixed)
            anywhere = self._feasible.inside(random, lower, upper, number)
            best = self._domain.snap(best)
        else:
            anywhere = lower + random.random((number, dim)) * (upper - lower)
        number = FRESH - len(anywhere)
        centres = best[random.integers(len(best), size=number)]
        scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), number))
        if self._feasible is not None:
            near = self._feasible.near(random, lower, upper, centres, scale)
            return unique(np.concatenate([anywhere, near]))
        moved = random.random((number, dim)) < np.maximum(1 / dim, random.random(number))[:, None]
        still = ~moved.any(axis=1)
        moved[still, random.integers(dim, size=int(still.sum()))] = True
        step = moved * scale[:, None] * random.standard_normal((number, dim)) * (upper - lower)
        near = np.clip(centres + step, lower, upper)
        return self._snap(np.concatenate([anywhere, near]), lower, upper)

    def _snap(self, points: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """The points of a box, grid or arms nearest to given ones, as far as they lie inside.

        Of arms, each once.
        """
        if self._arms is None:
            steps = float(2**SNAP_BITS)
            top = np.where(upper >= 1.0, upper, upper - 1.0 / steps)
            return np.clip(np.rint(points * steps) / steps, lower, top) + 0.0
        arms = self._arms[np.unique(self._nearest(points))]
        return np.asarray(arms[between(arms, lower, upper)])

    def _nearest(self, points: FloatArray) -> IntArray:
        """Numbers (k,) of the arms nearest to points (k, d) of the unit cube."""
        if isinstance(self._domain, Grid):
            places = np.rint(points * max(self._domain.n - 1, 1)).astype(np.int64)
            flat = np.ravel_multi_index(tuple(places.T), (self._domain.n,) * self._domain.dim)
            return np.asarray(flat, dtype=np.int64)
        from scipy.spatial import cKDTree

        if self._tree is None:
            self._tree = cKDTree(self._arms)
        return np.asarray(self._tree.query(points)[1])
