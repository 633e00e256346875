"""Candidates of a region: how they are drawn, which are kept, their posterior, pending evaluations.

Notation: m candidates, those with data first, then fresh ones; V = L⁻¹K(data, candidates) as in
`model`. Points are in the unit cube, means and variances in units of the amplitude, from the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.fitting import JITTER
from partita.gp.settings import Settings
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed, Rules
from partita.partition.sites import SNAP_BITS, ArmSites, BoxSites
from partita.policies.feasible import FeasiblePoints, between, unique

from .model import Conditioned, Moments
from .regions import Region

#: Fresh candidates of a region, and the part of them that lies anywhere in it.
FRESH, ANYWHERE = 300, 1 / 3
#: The others lie around this many of its best points, this far away, in sides of the region.
BEST, FINEST, COARSEST = 6, 0.004, 0.3
#: Finite domains up to this size are candidates as a whole.
ALL_ARMS = 300
#: Standard deviations in the index. Fewer at the beginning gain nothing, nor do more in long runs:
#: probes look further up.
EXPLORATION = 2.0
#: Candidates that are kept until the next renewal: those of the highest index and upper bound.
KEPT, KEPT_OPEN = 160, 16
#: Pending points that are planned for, in a region.
MOST_PLANNED = 128


#: Makes another index (m,) of one at points (m, d), in units of the settings.
Weigh = Callable[[FloatArray, FloatArray, Settings], FloatArray]


class Proposals:
    """Draws candidates that are points of the domain, in coordinates of the unit cube."""

    _arms: FloatArray | None  # of a finite domain, (n, d)
    _numbers: dict[bytes, int] | None  # of the arms by their bytes, once they are needed
    _tree: Any  # finds the nearest arm, once that is needed
    _feasible: FeasiblePoints | None  # of a mixed domain

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

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return self._domain.dim

    @property
    def arms(self) -> FloatArray | None:
        """The points (n, d) of a finite domain, in the unit cube."""
        return self._arms

    @property
    def rules(self) -> Rules | None:
        """The rules of a mixed domain."""
        return self._domain.rules if isinstance(self._domain, Mixed) else None

    def spread(self, rows: FloatArray) -> FloatArray:
        """Points of a box or mixed domain for uniform rows (k, d), the constraint aside."""
        return self._domain.spread(rows) if isinstance(self._domain, Mixed) else rows

    def valid(self, rows: FloatArray) -> FloatArray:
        """The points of the domain nearest to rows (k, d), without those it does not allow."""
        if self._arms is not None:
            return np.asarray(self._arms[self._nearest(rows)])
        if not isinstance(self._domain, Mixed):
            return rows
        rows = self._domain.snap(rows)
        return np.asarray(rows[self._domain.mask(rows)])

    def settled(self, points: FloatArray) -> FloatArray:
        """The points of a box or mixed domain nearest to points (k, d), without those not allowed.

        Coordinates are rounded, so that they are saved and told exactly.
        """
        steps = float(2**SNAP_BITS)
        return self.valid(np.rint(points * steps) / steps) + 0.0

    def first(self, random: np.random.Generator, points: FloatArray) -> FloatArray:
        """Points of the domain to begin with, for uniform ones (n, d): at least one, at most n."""
        if self._feasible is not None:
            return self._feasible.first(random, points)
        return self.snap(points, np.zeros(self._domain.dim), np.ones(self._domain.dim))

    def anywhere(self, random: np.random.Generator) -> FloatArray:
        """Any point (d,) of the domain."""
        if self._feasible is not None:
            return self._feasible.anywhere(random)
        return np.asarray(self.first(random, random.random((1, self._domain.dim)))[0])

    def state(self) -> State:
        """What changes, as plain data: feasible points that are remembered."""
        return {"feasible": None if self._feasible is None else self._feasible.state()}

    def restore(self, saved: Saved) -> None:
        """Restore what was saved."""
        if self._feasible is not None:
            self._feasible.restore(saved.part("feasible"))

    def checked(self, saved: Saved, points: FloatArray) -> FloatArray:
        """Saved points (k, d) of the unit cube, if they are points of the domain."""
        if self._arms is not None:
            arms = self._arms[self._nearest(points)] if len(points) else points
            saved.require(np.array_equal(arms, points), "candidates that are arms")
            return np.asarray(arms)
        if isinstance(self._domain, Mixed):
            valid = np.array_equal(self._domain.snap(points), points)
            saved.require(valid and self._domain.mask(points).all(), "candidates that are valid")
        return points

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
        return self.snap(np.concatenate([anywhere, near]), lower, upper)

    def snap(self, points: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
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


def best_of(points: FloatArray, values: FloatArray, region: Region) -> FloatArray:
    """The points (b, d) of the highest values, the middle of the region if there are none."""
    if not len(points):
        return 0.5 * (region.lower + region.upper)[None, :]
    return points[np.argsort(-values, kind="stable")[:BEST]]


@dataclass
class Candidates:
    """Candidates of a region and their posterior under one draw of the settings.

    Each observation at one of them is a rank-one update, until the room for those is used up.
    """

    settings: Settings
    points: FloatArray  # (m, d) in the unit cube, the region's sites first
    scaled: FloatArray  # (m, d), divided by the lengthscales
    sites: IntArray  # (s,) sites of the first s candidates
    mean: FloatArray  # (m,)
    variance: FloatArray  # (m,)
    rows: FloatArray  # (r, m): V and room for more
    used: int
    ceiling: float  # the highest upper bound when they were drawn, those not kept included
    played: npt.NDArray[np.bool_]  # (m,)

    @property
    def full(self) -> bool:
        """Whether there is no room for another observation."""
        return self.used >= len(self.rows)

    @property
    def best_played(self) -> float:
        """The highest mean of those that were evaluated, in amplitudes from the mean."""
        return float(self.mean[self.played].max(initial=-math.inf))

    def state(self) -> State:
        """The candidates as plain data."""
        return {
            "settings": self.settings.state(),
            "points": self.points,
            "sites": self.sites,
            "mean": self.mean,
            "variance": self.variance,
            "rows": self.rows[: self.used],
            "room": len(self.rows) - self.used,
            "ceiling": float(self.ceiling),
            "played": self.played,
        }

    @staticmethod
    def restored(
        saved: Saved, sites: ArmSites | BoxSites, proposals: Proposals, most_room: int
    ) -> Candidates:
        """The saved candidates, with room for a limited number of observations."""
        dim = sites.scaled.shape[1]
        settings = Settings.restored(saved.part("settings"), dim)
        points = saved.floats("points", (None, dim), 0.0, 1.0)
        m = len(points)
        held = saved.wholes("sites", (None,), 0, len(sites) - 1)
        saved.require(len(held) <= m, "a candidate for each site")
        same = np.array_equal(sites.scaled[held], points[: len(held)])
        saved.require(same, "candidates at their sites")
        points = np.concatenate(
            [points[: len(held)], proposals.checked(saved, points[len(held) :])]
        )
        used = saved.floats("rows", (None, m), -2.0, 2.0)
        room = saved.integer("room", 0, most_room)
        return Candidates(
            settings=settings,
            points=points,
            scaled=points / settings.scales,
            sites=held,
            mean=saved.floats("mean", (m,)),
            variance=saved.floats("variance", (m,), 0.0, 2.0),
            rows=np.concatenate([used, np.zeros((room, m))]),
            used=len(used),
            ceiling=saved.real("ceiling", -math.inf),
            played=saved.flags("played", (m,)),
        )

    @cached_property
    def numbers(self) -> dict[bytes, int]:
        """The numbers of the candidates by the bytes of their points."""
        size = self.points.shape[1] * self.points.itemsize
        data = self.points.tobytes()
        return {data[i * size : (i + 1) * size]: i for i in range(len(self.points))}

    def number_of(self, site: int, point: FloatArray) -> int | None:
        """The number of the candidate at a site, which is at a point (d,), or None."""
        same = np.flatnonzero(self.sites == site)
        if not len(same):
            same = np.flatnonzero((self.points == point).all(axis=1))
        return int(same[0]) if len(same) else None

    def observe(self, j: int, shaped: float, variance: float) -> None:
        """Condition on a shaped value at candidate j whose noise has this variance."""
        settings, column = self.settings, self._column(j)
        value = (shaped - settings.mean) / settings.amplitude
        noise = max(variance / settings.amplitude**2, JITTER)
        _loops.observe_rows(self.rows, self.used, self.mean, self.variance, column, j, value, noise)
        self.used += 1
        self.played[j] = True

    def planned(self, plays: dict[int, int]) -> Candidates:
        """Candidates as if some had been observed as often as `plays` says, at their means.

        So the means stay, and only the variances are lowered (Desautels et al. 2014).
        """
        if not plays:
            return self
        variance, mean, played = self.variance.copy(), self.mean.copy(), self.played.copy()
        rows = self.rows  # what is beyond `used` is room, which the next observation overwrites
        if self.used + len(plays) > len(rows):
            rows = np.concatenate([rows[: self.used], np.empty((len(plays), len(mean)))])
        for k, (j, times) in enumerate(plays.items()):
            noise, column = self.settings.noise / times, self._column(j)
            _loops.observe_rows(rows, self.used + k, mean, variance, column, j, mean[j], noise)
            played[j] = True
        return replace(self, variance=variance, played=played)

    def _column(self, j: int) -> FloatArray:
        """Kernel between candidate j and all, a new (m,)."""
        row = self.scaled[j : j + 1]
        return np.asarray(_loops.matern(row, self.scaled, self.settings.form)[0])


def keep_best(
    posterior: Conditioned,
    held: FloatArray,
    at_held: Moments,
    sites: IntArray,
    fresh: FloatArray,
    *,
    room: int,
    reach: float,
    awaited: int = 0,
    uncertain: bool = False,
    weigh: Weigh | None = None,
) -> Candidates:
    """The best candidates of those `held` (s, d), at `sites` (s,), and `fresh` ones (f, d).

    Those of the highest index are kept: the others would have to overtake them within the `room`
    for more observations. So are those of the highest bound, `reach` standard deviations up, the
    last `awaited` of the fresh ones, which are pending, and the most `uncertain` if asked for.
    With `weigh`, the index is what that makes of it.
    """
    at_fresh = posterior.moments_at(fresh)
    mean = np.concatenate([at_held.mean, at_fresh.mean])
    variance = np.concatenate([at_held.variance, at_fresh.variance])
    std = np.sqrt(variance)
    index = mean + EXPLORATION * std
    if weigh is not None and len(mean) > KEPT:
        index = weigh(np.concatenate([held, fresh]), index, posterior.settings)
    kept = _highest(index, mean, std, reach, awaited, uncertain)
    s = int(np.searchsorted(kept, len(held)))
    of_held, of_fresh = kept[:s], kept[s:] - len(held)
    points = np.concatenate([held[of_held], fresh[of_fresh]])
    used = len(at_held.rows)
    rows = np.empty((used + room, len(points)))
    rows[:used, :s], rows[:used, s:] = at_held.rows[:, of_held], at_fresh.rows[:, of_fresh]
    return Candidates(
        settings=posterior.settings,
        points=points,
        scaled=points / posterior.settings.scales,
        sites=sites[of_held],
        mean=mean[kept],
        variance=variance[kept],
        rows=rows,
        used=used,
        ceiling=max(at_held.highest(reach), at_fresh.highest(reach)),
        played=np.arange(len(points)) < s,
    )


def _highest(
    index: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    reach: float,
    awaited: int,
    uncertain: bool,
) -> IntArray:
    """Numbers of the candidates to keep, in order."""
    if len(mean) <= KEPT:
        return np.arange(len(mean))
    best = np.argpartition(-index, KEPT)[:KEPT]
    open_ = np.argpartition(-mean - reach * std, KEPT_OPEN)[:KEPT_OPEN]
    last = np.arange(len(mean) - awaited, len(mean))
    most = np.argpartition(-std, KEPT_OPEN)[:KEPT_OPEN] if uncertain else last
    return np.unique(np.concatenate([best, open_, last, most]))


class Plan:
    """Running evaluations, which count as observed at the model's means.

    Variances are lowered by them, means are untouched (`Candidates.planned`). They are planned for
    where they are candidates, so renewals keep them among those. `plays` says how often each site
    is awaited, `home` which sites have values.
    """

    def __init__(
        self, plays: dict[int, int], sites: ArmSites | BoxSites, home: dict[int, int]
    ) -> None:
        self._plays, self._scaled, self._home = plays, sites.scaled, home

    def __bool__(self) -> bool:
        """Whether anything is awaited."""
        return bool(self._plays)

    def new_in(self, region: Region) -> FloatArray:
        """Points (n, d) of a region that are awaited and have no value yet, the latest."""
        new = [site for site in self._plays if site not in self._home]
        points = self._scaled[np.array(new, dtype=np.int64)]
        return np.asarray(points[region.holds(points)][-MOST_PLANNED:])

    def plays_of(self, candidates: Candidates) -> dict[int, int]:
        """How many times candidates are awaited, by number; of many, those of the highest index."""
        if not self._plays:
            return {}
        numbers = candidates.numbers
        plays: dict[int, int] = {}
        for site, times in self._plays.items():
            j = numbers.get(self._scaled[site].tobytes())
            if j is not None:
                plays[j] = plays.get(j, 0) + times
        if len(plays) > MOST_PLANNED:
            index = candidates.mean + EXPLORATION * np.sqrt(candidates.variance)
            plays = {j: plays[j] for j in sorted(plays, key=lambda j: -index[j])[:MOST_PLANNED]}
        return plays
