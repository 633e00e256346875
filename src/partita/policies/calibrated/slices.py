"""The choice and the answers with some coordinates fixed: the slice of a context.

Nothing is kept between two calls but the floors of the regions, so an ask costs the same whatever
was asked before: the posterior of a slice is made from the most relevant sites of a few regions
that it meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray, Recommendation
from partita.errors import InvalidInput
from partita.gp import _loops
from partita.gp.settings import Settings
from partita.partition.sites import SNAP_BITS
from partita.policies.feasible import FIRST_TRIES, unique
from partita.policies.fixed import Fixing

from .candidates import (
    ALL_ARMS,
    BEST,
    COARSEST,
    FINEST,
    Candidates,
    Plan,
    Proposals,
)
from .model import Conditioned, Model
from .regions import Regions
from .search import Search
from .values import Sums

#: The regions of the highest floors in which an ask looks, and one more by chance.
LOOKED = 3
#: Sites that inform the posterior of a slice, at most.
MOST_INFORMING = 304
#: Fresh candidates of a slice: anywhere in it, and around the best points.
ANYWHERE, AROUND = 40, 60
#: Evaluated points of the slice itself that are candidates, and pending points that are planned
#: for, at most: those of the highest mean, and the latest.
MOST_HELD, MOST_AWAITED = 48, 48
#: Standard deviations in the index. Contexts differ from ask to ask, which explores by itself.
EXPLORATION = 1.0
#: How wide the bounds of shaped values are: see `answers`.
SHAPED = 1.2
#: Searches for the best point of a slice and for its highest bound.
LOOKS = 3


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
        free = np.delete(np.arange(dim), where.numbers)
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
        rows = self._proposals.valid(rows)
        return unique(rows[where.holds(rows)])


class _View(NamedTuple):
    """The posterior of a slice, with the sites that it is by and the regions that it is of."""

    posterior: Conditioned
    sites: IntArray  # (P,), those in the slice first
    held: int  # the number of those
    means: FloatArray  # (P,), at the sites
    regions: list[int]
    whole: bool  # whether the slice meets no other regions


@dataclass(eq=False)
class Slices:
    """Chooses in a slice, and answers for it."""

    _search: Search
    _sums: Sums
    _regions: Regions
    _model: Model
    _proposals: SliceProposals

    @property
    def arms(self) -> FloatArray | None:
        """The points (n, d) of a finite domain, in the unit cube."""
        return self._proposals.arms

    # -- the choice ----------------------------------------------------------------------------

    def first(self, random: np.random.Generator, where: Fixing, unit: FloatArray) -> FloatArray:
        """A point (d,) of the slice to begin with: that next to a given one, if it is valid."""
        near = self._proposals.valid(unit[None, :], where)
        return np.asarray((near if len(near) else self._proposals.anywhere(random, where, 1))[0])

    def choose(
        self, random: np.random.Generator, where: Fixing, probe: bool, plan: Plan
    ) -> FloatArray:
        """The point (d,) of the slice with the highest index, for a probe the highest bound."""
        settings = self._model.fit.best
        view = self._view(random, where, settings, self._model.choosing)
        scaled, held = self._search.points, view.sites[: view.held]
        best = np.argsort(-view.means[: view.held], kind="stable")[:MOST_HELD]
        sites = held[np.sort(best)]
        fresh = self._draw(random, where, view, view.posterior.settings)
        words = {row.tobytes() for row in scaled[sites]}
        rows = [row for row in fresh if row.tobytes() not in words]
        awaited = np.concatenate([plan.new_in(self._regions[n]) for n in view.regions])
        points = unique(np.array([*scaled[sites], *rows, *awaited[-MOST_AWAITED:]]))
        at = view.posterior.moments_at(points)
        candidates = Candidates(
            settings=view.posterior.settings,
            points=points,
            scaled=points / settings.scales,
            sites=sites,
            mean=at.mean,
            variance=at.variance,
            rows=at.rows,
            used=len(at.rows),
            ceiling=math.inf,
            played=np.arange(len(points)) < len(sites),
        )
        width = self._model.reach(self._model.fit.best) if probe else EXPLORATION
        self._note_floors(candidates, view.regions)
        return self._search.best_in_slice(candidates, where.holds(points), width, plan)

    def _note_floors(self, candidates: Candidates, regions: list[int]) -> None:
        """Note how good the best point of each region is, to look in the best ones next time."""
        lower = candidates.mean - np.sqrt(candidates.variance)
        for number in regions:
            outlook = self._search.outlooks[number]
            if outlook.candidates is None:  # else it says so itself
                inside = lower[outlook.region.holds(candidates.points)]
                if len(inside):
                    outlook.floor = candidates.settings.in_units(float(inside.max()))

    # -- what is looked at ---------------------------------------------------------------------

    def _view(
        self,
        random: np.random.Generator,
        where: Fixing,
        settings: Settings,
        condition: Callable[[IntArray, Settings], Conditioned],
    ) -> _View:
        """The posterior of a slice, by the sites of a few regions that it meets."""
        meets = np.flatnonzero(self._regions.meet(where.numbers, where.values)).tolist()
        regions = self._looked(random, meets)
        informed = [self._regions[number].informed_by for number in regions]
        sites = _each_once(np.concatenate(informed))
        points = self._search.points[sites]
        likeness = _likeness(points, where, settings)
        if len(sites) > MOST_INFORMING:
            # The squared correlation of a site's mean with f at its actions in the slice.
            counts = self._sums.data(sites).counts[: len(sites)]
            told = likeness**2 / (1.0 + settings.noise / np.maximum(counts, 1.0))
            kept = np.sort(np.argsort(-told, kind="stable")[:MOST_INFORMING])
            sites, points, likeness = sites[kept], points[kept], likeness[kept]
        inside = where.holds(points)
        order = np.argsort(~inside, kind="stable")
        sites = sites[order]
        posterior = condition(sites, settings)
        means = posterior.means()[: len(sites)]
        return _View(
            posterior, sites, int(inside.sum()), means, regions, len(regions) == len(meets)
        )

    def _looked(self, random: np.random.Generator, meets: list[int]) -> list[int]:
        """Those of the highest floors, or that were never looked at, and one by chance."""
        if len(meets) <= LOOKED + 1:
            return meets

        def hope(number: int) -> float:
            floor = self._search.outlooks[number].floor
            return math.inf if floor == -math.inf else floor

        best = sorted(meets, key=hope, reverse=True)
        return [*best[:LOOKED], best[LOOKED + int(random.integers(len(best) - LOOKED))]]

    def _draw(
        self,
        random: np.random.Generator,
        where: Fixing,
        view: _View,
        settings: Settings,
        centres: FloatArray | None = None,
    ) -> FloatArray:
        """Fresh points (m, d) of the slice: anywhere, and around the best, in its regions."""
        points = self._proposals.all_arms(where)
        if points is None:
            if centres is None:
                centres = self._centres(random, where, view, settings)
            region = self._regions[view.regions[0]]
            chosen = random.integers(len(centres), size=AROUND)
            points = np.concatenate(
                [
                    centres,
                    self._proposals.anywhere(random, where, ANYWHERE),
                    self._proposals.around(
                        random, where, centres[chosen], region.upper - region.lower
                    ),
                ]
            )
        if view.whole:
            return points
        inside = np.zeros(len(points), dtype=np.bool_)
        for number in view.regions:
            inside |= self._regions[number].holds(points)
        return points[inside] if inside.any() else points

    def _centres(
        self, random: np.random.Generator, where: Fixing, view: _View, settings: Settings
    ) -> FloatArray:
        """Points (b, d) of the slice at the best evaluated ones near it.

        f in the slice differs from f at a site by √(2 − 2k) amplitudes, k the kernel between them.
        """
        points = self._search.points[view.sites]
        away = np.sqrt(np.maximum(2.0 - 2.0 * _likeness(points, where, settings), 0.0))
        best = points[np.argsort(away - view.means, kind="stable")[:BEST]]
        centres = self._proposals.valid(best, where)
        return centres if len(centres) else self._proposals.anywhere(random, where, 1)

    # -- answers -------------------------------------------------------------------------------

    def recommend(self, where: Fixing, settings: Settings) -> Recommendation:
        """The point of the slice with the highest mean less one standard deviation."""
        view, points, index = self._searched(where, settings, -1.0, self._model.answering)
        point = points[int(np.argmax(index))]
        at = view.posterior.moments_at(point[None, :])
        reach, units = self._reach(settings), view.posterior.settings.in_units
        mean, away = float(at.mean[0]), reach * math.sqrt(float(at.variance[0]))
        return Recommendation(point, units(mean), units(mean - away), units(mean + away))

    def ceiling(self, where: Fixing, settings: Settings) -> float:
        """The highest upper bound on f that was found in the slice."""
        reach = self._reach(settings)
        view, _, index = self._searched(where, settings, reach, self._model.doubting)
        return view.posterior.settings.in_units(float(index.max()))

    def _reach(self, settings: Settings) -> float:
        return self._model.reach(settings) * (1.0 if settings.shape.identity else SHAPED)

    def _searched(
        self,
        where: Fixing,
        settings: Settings,
        width: float,
        condition: Callable[[IntArray, Settings], Conditioned],
    ) -> tuple[_View, FloatArray, FloatArray]:
        """Points of the slice (m, d), and their means plus `width` standard deviations (m,)."""
        random = np.random.default_rng(LOOKS)
        view = self._view(random, where, settings, condition)
        points = self._search.points[view.sites[: view.held]]
        index = np.empty(0)
        centres = None
        for _ in range(LOOKS):
            fresh = self._draw(random, where, view, view.posterior.settings, centres)
            points = unique(np.concatenate([points, fresh]))
            new = view.posterior.moments_at(points[len(index) :])
            index = np.append(index, new.mean + width * np.sqrt(new.variance))
            centres = points[np.argsort(-index, kind="stable")[:BEST]]
        return view, points, index


def _each_once(sites: IntArray) -> IntArray:
    """Sites in their order, each once."""
    first = np.unique(sites, return_index=True)[1]
    return np.asarray(sites[np.sort(first)])


def _likeness(points: FloatArray, where: Fixing, settings: Settings) -> npt.NDArray[np.float64]:
    """The kernel (n,) between points (n, d) and the same points moved into the slice."""
    scales = settings.scales[where.numbers]
    scaled = np.ascontiguousarray(points[:, where.numbers] / scales)
    row = np.ascontiguousarray(where.values / scales)[None, :]
    return np.asarray(_loops.matern(row, scaled, settings.form)[0])
