"""Points of a slice: the domain with some coordinates fixed."""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.partition.sites import SNAP_BITS
from partita.policies.feasible import FIRST_TRIES, unique
from partita.policies.fixed import Fixing

from .candidates import ALL_ARMS, COARSEST, FINEST, Proposals


class SliceProposals:
    """Draws points of the domain with some coordinates fixed, in the unit cube."""

    def __init__(self, proposals: Proposals) -> None:
        self._proposals = proposals

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
        scale = np.exp(random.uniform(math.log(FINEST), math.log(COARSEST), k))[:, None] * side
        arms = self._proposals.arms
        if arms is None and self._proposals.rules is not None:
            rows = self._proposals.rules.stir(random, centres, scale)
            return self.valid(rows, where)
        open_ = np.ones(dim, dtype=np.bool_)
        open_[where.numbers] = False
        free = np.flatnonzero(open_)
        if not len(free):
            return centres
        moved = random.random((k, dim)) < np.maximum(1 / len(free), random.random(k))[:, None]
        still = ~moved[:, free].any(axis=1)
        moved[still, free[random.integers(len(free), size=int(still.sum()))]] = True
        rows = centres + moved * scale * random.standard_normal((k, dim))
        return self.valid(np.clip(rows, 0.0, 1.0), where)

    def all_arms(self, where: Fixing) -> FloatArray | None:
        """All points of the slice of a finite domain, unless there are many."""
        arms = self._proposals.arms
        if arms is None:
            return None
        inside = np.flatnonzero(where.holds(arms))
        return np.asarray(arms[inside]) if len(inside) <= ALL_ARMS // 2 else None

    def valid(self, rows: FloatArray, where: Fixing) -> FloatArray:
        """The points of the slice at rows (k, d) or nearest to them, each once."""
        steps = float(2**SNAP_BITS)
        rows = where.moved(np.rint(rows * steps) / steps)
        if self._proposals.arms is None and self._proposals.rules is None:
            return unique(rows)
        rows = self._proposals.valid(rows)
        return unique(rows[where.holds(rows)])
