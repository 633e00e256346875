"""Points of a slice: the domain with some coordinates fixed."""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.partition.sites import SNAP_BITS
from partita.policies.feasible import FIRST_TRIES, unique
from partita.policies.fixed import Fixing

from . import _loops
from .candidates import ALL_ARMS, COARSEST, FINEST, Proposals
from .outlook import Outlook

#: The regions of the highest floors in which an ask looks, and one more by chance.
LOOKED = 3
#: Fresh points of a slice: anywhere in it, and around the best points, for each coordinate that is
#: not fixed, one more than there are, up to five.
ANYWHERE, AROUND, MOST_COUNTED = 8, 12, 5
#: Points are multiples of one over this, so that a point reported again is the same site.
STEPS = float(2**SNAP_BITS)


def looked(random: np.random.Generator, outlooks: list[Outlook], meets: list[int]) -> list[int]:
    """Of regions `meets`, those of the highest floors or never looked at, and one by chance."""
    if len(meets) <= LOOKED + 1:
        return meets

    def hope(number: int) -> float:
        floor = outlooks[number].floor
        return math.inf if floor == -math.inf else floor

    best = sorted(meets, key=hope, reverse=True)
    return [*best[:LOOKED], best[LOOKED + int(random.integers(len(best) - LOOKED))]]


class SliceProposals:
    """Draws points of the domain with some coordinates fixed, in the unit cube."""

    def __init__(self, proposals: Proposals) -> None:
        self._proposals = proposals

    @property
    def _plain(self) -> bool:
        """Whether the domain is a box, of which any point is valid."""
        return self._proposals.arms is None and self._proposals.rules is None

    @property
    def arms(self) -> FloatArray | None:
        """The points (n, d) of a finite domain."""
        return self._proposals.arms

    def anywhere(
        self, random: np.random.Generator, where: Fixing, number: int, tries: int = FIRST_TRIES
    ) -> FloatArray:
        """Up to `number` points anywhere in the slice, at least one."""
        arms = self._proposals.arms
        if arms is not None:
            inside = np.flatnonzero(where.holds(arms))
            if len(inside) > number:
                inside = np.sort(random.choice(inside, number, replace=False))
            return np.asarray(arms[inside])
        tried, batch = 0, number
        points = np.empty((0, self._proposals.dim))
        while True:
            rows = where.moved(random.random((batch, self._proposals.dim)))
            points = np.concatenate([points, self.valid(self._proposals.spread(rows), where)])
            tried += batch
            if len(points) or tried >= tries:
                break
            batch = min(2 * batch, 1024)
        if not len(points):
            raise InvalidInput(
                f"feasible allows none of {tried:,} random points with the values that are fixed: "
                "fix other values, or check its conditions"
            )
        return points[:number]

    def around(
        self, random: np.random.Generator, where: Fixing, centres: FloatArray, side: FloatArray
    ) -> FloatArray:
        """Points of the slice near given points (k, d) of it, which may be none."""
        k, dim = centres.shape
        arms = self._proposals.arms
        if arms is None and self._proposals.rules is not None:
            scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), k))[:, None] * side
            rows = self._proposals.rules.stir(random, centres, scale)
            return self.valid(rows, where)
        free = where.free(dim)
        if not len(free):
            return centres
        rows = centres.copy()
        rows[:, free] += self._steps(random, (k, len(free)), side[free])
        return self.valid(np.clip(rows, 0.0, 1.0), where)

    def draw(
        self,
        random: np.random.Generator,
        where: Fixing,
        points: FloatArray | None,
        side: FloatArray,
        compiled: bool = False,
    ) -> FloatArray:
        """Fresh points (m, d) of the slice: centres (b, d), anywhere, and around the centres.

        The centres are `points` (b, d) moved into the slice. All points of the slice if there are
        none, because they are few. `side` (d,) is the size of the region that points around a
        centre are drawn in. With `compiled` loops the same is done in a box, with other numbers.
        """
        if points is None:
            arms = self.all_arms(where)
            assert arms is not None, "there are few"
            return arms
        dim = points.shape[1]
        many = min(dim - len(where.numbers) + 1, MOST_COUNTED)
        if compiled and self._plain:
            uniform = random.random(((ANYWHERE + AROUND) * many, dim + 4))
            normal = random.standard_normal((AROUND * many, dim))
            slice_ = where.numbers, where.values
            drawn = _loops.draw(
                points, *slice_, side, uniform, normal, ANYWHERE * many, FINEST, COARSEST, STEPS
            )
            return np.asarray(drawn)
        centres = self.valid(points, where)
        if not len(centres):
            centres = self.anywhere(random, where, 1)
        chosen = centres[random.integers(len(centres), size=AROUND * many)]
        anywhere = self.anywhere(random, where, ANYWHERE * many)
        return np.concatenate([centres, anywhere, self.around(random, where, chosen, side)])

    @staticmethod
    def _steps(random: np.random.Generator, shape: tuple[int, ...], side: FloatArray) -> FloatArray:
        """Steps (k, f) at many scales, each of some coordinates, of at least one."""
        k, f = shape
        scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), k))[:, None]
        steps = scale * side * random.standard_normal(shape)
        if f > 1:
            moved = random.random(shape) < np.maximum(1 / f, random.random(k))[:, None]
            still = ~moved.any(axis=1)
            moved[still, random.integers(f, size=int(still.sum()))] = True
            steps *= moved
        return np.asarray(steps)

    def all_arms(self, where: Fixing) -> FloatArray | None:
        """All points of the slice of a finite domain, unless there are many."""
        arms = self._proposals.arms
        if arms is None:
            return None
        inside = np.flatnonzero(where.holds(arms))
        return np.asarray(arms[inside]) if len(inside) <= ALL_ARMS // 2 else None

    def valid(self, rows: FloatArray, where: Fixing) -> FloatArray:
        """The points of the slice at rows (k, d) or nearest to them, each once."""
        rows = where.moved(np.rint(rows * STEPS) / STEPS)
        if self._plain:
            return unique(rows)
        rows = self._proposals.valid(rows)
        return unique(rows[where.holds(rows)])
