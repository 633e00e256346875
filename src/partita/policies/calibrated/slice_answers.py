"""Answers with some coordinates fixed: the best point of a slice, and the highest bound in it.

A point's posterior is that of its region, as in `answers`. It does not depend on the slice, and
slices share it: thousands of contexts need as many posteriors as there are regions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partita._types import FloatArray, IntArray, Recommendation
from partita.gp.settings import Settings
from partita.policies.feasible import unique
from partita.policies.fixed import Fixing

from .candidates import BEST
from .factors import kernel_at
from .model import Conditioned, Model
from .regions import Regions
from .search import Search
from .slice_points import SliceProposals, looked

#: How wide the bounds of shaped values are: see `answers`.
SHAPED = 1.2
#: Searches for the best point of a slice and for its highest bound.
LOOKS = 3
#: Posteriors that are kept while many slices are answered for.
MOST_SHARED = 64


class _Known(NamedTuple):
    """The posterior of a region, its sites, and their means in units of what was told."""

    posterior: Conditioned
    points: FloatArray  # (s, d), of its own sites
    near: FloatArray  # (p, d), of all sites that inform it
    means: FloatArray  # (p,), in amplitudes


class _Searched(NamedTuple):
    """A point of a slice with the highest index, its region, and the index in units."""

    point: FloatArray
    region: int
    highest: float


class _Shared:
    """The posteriors of regions, each made when it is needed first."""

    def __init__(
        self,
        regions: Regions,
        points: FloatArray,
        settings: Settings,
        condition: Callable[[IntArray, Settings], Conditioned],
    ) -> None:
        self._regions, self._points = regions, points
        self._settings, self._condition = settings, condition
        self._made: dict[int, _Known] = {}

    def __getitem__(self, number: int) -> _Known:
        known = self._made.pop(number, None)
        if known is None:
            sites = self._regions[number].informed_by
            posterior = self._condition(sites, self._settings)
            own = self._points[self._regions[number].own]
            means = posterior.means()[: len(sites)]
            known = _Known(posterior, own, self._points[sites], means)
            if len(self._made) >= MOST_SHARED:
                del self._made[next(iter(self._made))]
        self._made[number] = known
        return known


@dataclass(eq=False)
class SliceAnswers:
    """Answers for slices."""

    _search: Search
    _regions: Regions
    _model: Model
    _proposals: SliceProposals

    def recommend(self, slices: Sequence[Fixing], settings: Settings) -> list[Recommendation]:
        """For each slice, its point with the highest mean less one standard deviation."""
        shared = self._shared(settings, self._model.answering)
        return [self._recommended(where, settings, shared) for where in slices]

    def ceiling(self, where: Fixing, settings: Settings) -> float:
        """The highest upper bound on f that was found in the slice."""
        shared = self._shared(settings, self._model.doubting)
        return self._searched(where, self._reach(settings), shared).highest

    def _recommended(self, where: Fixing, settings: Settings, shared: _Shared) -> Recommendation:
        best = self._searched(where, -1.0, shared)
        posterior = shared[best.region].posterior
        at, units = posterior.moments_at(best.point[None, :]), posterior.settings.in_units
        mean = float(at.mean[0])
        wide = self._reach(settings) * math.sqrt(float(at.variance[0]))
        return Recommendation(best.point, units(mean), units(mean - wide), units(mean + wide))

    def _reach(self, settings: Settings) -> float:
        return self._model.reach(settings) * (1.0 if settings.shape.identity else SHAPED)

    def _shared(
        self, settings: Settings, condition: Callable[[IntArray, Settings], Conditioned]
    ) -> _Shared:
        return _Shared(self._regions, self._search.points, settings, condition)

    def _searched(self, where: Fixing, width: float, shared: _Shared) -> _Searched:
        """The point of the slice with the highest mean plus `width` standard deviations found.

        Around the best points, others are looked at, several times.
        """
        random = np.random.default_rng(LOOKS)
        met = self._regions.met(where)
        regions = looked(random, self._search.outlooks, met)
        side = self._regions[regions[0]].side
        few = self._proposals.all_arms(where) is not None
        centres = None if few else self._likely(where, [shared[n] for n in regions])
        held = [
            known.points[where.holds(known.points)] for known in map(shared.__getitem__, regions)
        ]
        points = unique(np.concatenate([*held, self._proposals.draw(random, where, centres, side)]))
        index = np.empty(0)
        homes = np.empty(0, dtype=np.int64)
        for look in range(1 if few else LOOKS):
            if look:
                centres = points[np.argsort(-index, kind="stable")[:BEST]]
                fresh = self._proposals.draw(random, where, centres, side)
                points = unique(np.concatenate([points, fresh]))
            new = points[len(index) :]
            where_new = self._homes(new, regions, whole=len(regions) == len(met))
            homes = np.append(homes, where_new)
            index = np.append(index, self._index(new, where_new, width, shared))
        if not np.isfinite(index).any():  # no point was in the regions
            homes[0] = self._regions.number_at(points[0])
            index[0] = self._index(points[:1], homes[:1], width, shared)[0]
        best = int(np.argmax(index))
        return _Searched(points[best], int(homes[best]), float(index[best]))

    def _likely(self, where: Fixing, known: list[_Known]) -> FloatArray:
        """The best evaluated points (b, d) near the slice: see `Kept.hopeful`."""
        hopes, numbers = [], where.numbers
        for one in known:
            settings = one.posterior.settings
            apart = one.near[:, numbers] / settings.scales[numbers]
            apart -= where.values / settings.scales[numbers]
            likeness = kernel_at(np.sqrt((apart * apart).sum(axis=1)), settings.form)
            away = np.sqrt(np.maximum(2.0 - 2.0 * likeness, 0.0))
            hopes.append(settings.in_units(one.means - away))
        best = np.argsort(-np.concatenate(hopes), kind="stable")[:BEST]
        return np.asarray(np.concatenate([one.near for one in known])[best])

    def _homes(self, points: FloatArray, regions: list[int], whole: bool) -> IntArray:
        """The number (n,) of the region of each point (n, d), -1 if it is none of `regions`."""
        if whole and len(regions) == 1:
            return np.full(len(points), regions[0], dtype=np.int64)
        homes = np.full(len(points), -1, dtype=np.int64)
        for number in regions:
            homes[self._regions[number].holds(points)] = number
        return homes

    def _index(
        self, points: FloatArray, homes: IntArray, width: float, shared: _Shared
    ) -> FloatArray:
        """Means plus `width` standard deviations (n,), in units; -inf where there is no region."""
        index = np.full(len(points), -math.inf)
        for number in np.unique(homes[homes >= 0]).tolist():
            here, posterior = homes == number, shared[number].posterior
            at = posterior.moments_at(points[here])
            index[here] = posterior.settings.in_units(at.mean + width * np.sqrt(at.variance))
        return index
