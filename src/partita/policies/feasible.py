"""Points of a `Mixed` domain: valid, allowed by its constraint, without duplicates.

The constraint is a user's function that is called for one point at a time. It is the expensive
part, so it is checked last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State
from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.mixed import Mixed
from partita.partition.sites import SNAP_BITS

#: Points tried before a constraint is said to allow none.
FIRST_TRIES = 20_000
#: Points tried for each that is wanted, in the first EARLY_DRAWS draws and in later ones.
MOST_TRIES, LATER_TRIES, EARLY_DRAWS = 50, 10, 20
#: Feasible points that are remembered.
POOL = 512
#: Attempts at finding feasible points around others, each at this part of the last one's distance.
ROUNDS, CLOSER = 4, 0.3


class FeasiblePoints:
    """Draws feasible points, and remembers some for when they are hard to find."""

    def __init__(self, domain: Mixed) -> None:
        self._domain = domain
        self._pool = np.empty((0, domain.dim))
        self._draws = 0
        #: How many points anywhere the constraint was asked about, and how many it allowed.
        self._asked = self._allowed = 1.0

    def first(self, random: np.random.Generator, points: FloatArray) -> FloatArray:
        """As many feasible points as uniform ones (n, D) are given, if there are: at least one.

        Those of the given ones that are feasible come first.
        """
        number, tried = len(points), len(points)
        feasible = unique(self._kept(self._domain.spread(_rounded(points))))
        while len(feasible) < number and tried < FIRST_TRIES:
            rows = random.random((min(tried, FIRST_TRIES - tried), self._domain.dim))
            tried += len(rows)
            kept = self._kept(self._domain.spread(_rounded(rows)))
            feasible = unique(np.concatenate([feasible, kept]))
        if not len(feasible):
            raise InvalidInput(
                f"feasible allows none of {FIRST_TRIES:,} random points of the space: check its "
                "conditions, or give bounds closer to the feasible part"
            )
        self._remember(feasible)
        return feasible[:number]

    def anywhere(self, random: np.random.Generator) -> FloatArray:
        """A feasible point (D,), any with the same probability."""
        batch, tried = 1, 0
        while tried < FIRST_TRIES:
            rows = self._domain.spread(_rounded(random.random((batch, self._domain.dim))))
            allowed = np.flatnonzero(self._domain.mask(rows))
            if len(allowed):
                return np.array(rows[allowed[0]])
            tried, batch = tried + batch, min(2 * batch, 1024)
        if not len(self._pool):
            raise InvalidInput(f"feasible allows none of {tried:,} random points: check it")
        return np.array(self._pool[random.integers(len(self._pool))])

    def inside(
        self, random: np.random.Generator, lower: FloatArray, upper: FloatArray, number: int
    ) -> FloatArray:
        """Up to `number` feasible points between two corners, or none if it finds none.

        Where few are feasible more are tried, up to a limit; then come remembered ones, and others
        around them.
        """
        self._draws += 1
        most = number * (MOST_TRIES if self._draws <= EARLY_DRAWS else LATER_TRIES)
        feasible, seen = np.empty((0, self._domain.dim)), np.empty((0, self._domain.dim))
        tried = 0
        while len(feasible) < number and tried < most:
            batch = min(most - tried, int(1.1 * (number - len(feasible)) / self._rate) + 8)
            tried += batch
            rows = lower + random.random((batch, self._domain.dim)) * (upper - lower)
            rows = self._domain.snap(_rounded(rows))
            rows = unique(rows[between(rows, lower, upper)])
            fresh = unique(np.concatenate([seen, rows]))[len(seen) :]
            if len(rows) and not len(fresh):  # all there are, it seems
                break
            seen = np.concatenate([seen, fresh])
            feasible = np.concatenate([feasible, self._kept(fresh)])
        if len(feasible) < number:
            remembered = self._pool[between(self._pool, lower, upper)]
            feasible = np.concatenate([feasible, remembered])
            if len(remembered) and self._rate < 0.5:
                centres = remembered[random.integers(len(remembered), size=number)]
                scale = random.uniform(0.0, 0.3, size=number)
                feasible = np.concatenate(
                    [feasible, self.near(random, lower, upper, centres, scale)]
                )
        feasible = unique(feasible)[:number]
        self._remember(feasible[::2])
        return feasible

    def near(
        self,
        random: np.random.Generator,
        lower: FloatArray,
        upper: FloatArray,
        centres: FloatArray,
        scale: FloatArray,
    ) -> FloatArray:
        """Feasible points around valid ones (k, D), at distances of about `scale` (k,) of a side.

        Closer ones where the constraint leaves too few.
        """
        feasible = np.empty((0, self._domain.dim))
        side = upper - lower
        for _ in range(ROUNDS):
            moved = self._domain.rules.stir(random, centres, scale[:, None] * side)
            snapped = self._domain.snap(_rounded(_inward(moved, lower, upper)))
            snapped = unique(snapped[between(snapped, lower, upper)])
            feasible = unique(np.concatenate([feasible, snapped[self._domain.mask(snapped)]]))
            if len(feasible) >= len(centres) // 2:
                break
            scale = scale * CLOSER
        return feasible

    def state(self) -> State:
        """What is remembered, as plain data."""
        return {
            "pool": self._pool.copy(),
            "draws": self._draws,
            "asked": float(self._asked),
            "allowed": float(self._allowed),
        }

    def restore(self, saved: Saved) -> None:
        """Remember what was saved, if the constraint allows it."""
        self._pool = saved.floats("pool", (None, self._domain.dim), 0.0, 1.0)
        saved.require(len(self._pool) <= POOL, "a pool of some points")
        self._domain.check(self._pool)
        saved.require(self._domain.mask(self._pool).all(), "a pool that the constraint allows")
        self._draws = saved.integer("draws")
        self._asked = saved.real("asked", 1.0)
        self._allowed = saved.real("allowed", 1.0, self._asked)

    def _kept(self, rows: FloatArray) -> FloatArray:
        """Those of the valid rows (k, D) that are feasible, which tells how rare they are."""
        if not len(rows):
            return rows
        kept = rows[self._domain.mask(rows)]
        self._asked += len(rows)
        self._allowed += len(kept)
        return kept

    @property
    def _rate(self) -> float:
        """The part of valid points that is feasible, as far as is known, but not too small."""
        return max(self._allowed / self._asked, 1 / MOST_TRIES)

    def _remember(self, rows: FloatArray) -> None:
        self._pool = unique(np.concatenate([rows, self._pool]))[:POOL]


def between(points: FloatArray, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
    """Which of the points (n, d) are in a box; a face belongs to the box above it."""
    below = np.where(upper >= 1.0, points <= upper, points < upper)
    return np.asarray(((points >= lower) & below).all(axis=1))


def _rounded(rows: FloatArray) -> FloatArray:
    """So that a point reported again is the same site."""
    steps = float(2**SNAP_BITS)
    return np.rint(rows * steps) / steps


def _inward(rows: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Rows moved into a box, whose upper faces belong to the next one."""
    top = np.where(upper >= 1.0, upper, upper - 1.0 / 2**SNAP_BITS)
    return np.clip(rows, lower, top)


def unique(rows: FloatArray) -> FloatArray:
    """Each row once, in their order."""
    width = rows.shape[1]
    size, whole = width * rows.itemsize, rows.tobytes()  # slices of bytes are quicker than rows
    seen = dict.fromkeys([whole[i : i + size] for i in range(0, len(whole), size)])
    return np.frombuffer(b"".join(seen), dtype=np.float64).reshape(-1, width).copy()
