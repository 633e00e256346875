"""Uniform sampling, the baseline for regret."""

from __future__ import annotations

import math

import numpy as np

from partita._checks import check_seed
from partita._state import Saved, State, generator_state
from partita._types import FloatArray, IntArray, Recommendation
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.partition.cover import Geometry
from partita.partition.sites import SNAP_BITS, ArmSites, BoxSites

from .base import Policy
from .feasible import FeasiblePoints

#: Keeps the choices independent of a test function or noise drawn under the same seed.
STREAM = 2


class UniformSampling(Policy):
    """Uniform sampling: all arms, or points of a box, are equally likely, whatever their values.

    It has no model: `recommend` is the point with the highest average value, with infinite
    bounds.
    """

    plays_mixed = True
    takes_count = True
    state_version = 1

    def __init__(self, domain: Grid | Arms | Box | Mixed, *, seed: int = 0) -> None:
        super().__init__(domain)
        self.seed = check_seed(seed)
        self._random = np.random.default_rng([self.seed, STREAM])
        geometry = Geometry(domain.dim, 1)
        self._sites: ArmSites | BoxSites = (
            BoxSites(domain, geometry)
            if isinstance(domain, Box | Mixed)
            else ArmSites(domain, geometry, self.seed)
        )
        self._size = 0 if isinstance(domain, Box | Mixed) else domain.size
        self._feasible: FeasiblePoints | None = None
        if isinstance(domain, Mixed):
            self._feasible = FeasiblePoints(domain)
            start = np.random.default_rng([self.seed, STREAM, 1])
            self._first = self._feasible.first(start, start.random((1, domain.dim)))[0]

    def recommend(self) -> Recommendation:
        """The point with the highest average value; an arbitrary one if there are no values yet."""
        sites = self._sites
        played = np.flatnonzero(sites.count > 0)
        if not len(played):
            x = self._arbitrary()
            return Recommendation(x, 0.0, -math.inf, math.inf)
        means = sites.total[played] / sites.count[played]
        best = int(np.argmax(means))
        return Recommendation(sites.x(int(played[best])), float(means[best]), -math.inf, math.inf)

    def _arbitrary(self) -> FloatArray:
        if self._feasible is not None:
            return np.array(self._first)
        if isinstance(self.domain, Box):
            return np.asarray((self.domain.lower + self.domain.upper) / 2)
        return np.array(self.domain.points[0])

    def _propose(self) -> tuple[int, FloatArray]:
        sites = self._sites
        if self._feasible is not None:
            assert isinstance(sites, BoxSites)
            site = sites.register(self._feasible.anywhere(self._random))
        elif isinstance(sites, BoxSites):
            steps = float(2**SNAP_BITS)  # rounded, so that a repeated point is the same site
            site = sites.register(np.rint(self._random.random(self.domain.dim) * steps) / steps)
        else:
            site = int(self._random.integers(self._size))
        return site, sites.x(site)

    def _locate(self, points: FloatArray) -> IntArray:
        return self._sites.locate(points)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        self._sites.add(site, value)

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        self._sites.add_many(sites, values)

    def _record_repeated(
        self, site: int, mean: float, count: int, std: float | None, asked: bool
    ) -> None:
        self._sites.add(site, mean, count=count)

    def _released(self, site: int) -> None:
        pass

    def _state(self) -> State:
        return {
            **super()._state(),
            "sites": self._sites.state(),
            "random": generator_state(self._random),
            "feasible": None if self._feasible is None else self._feasible.state(),
        }

    def _restore(self, saved: Saved) -> None:
        self._sites.restore(saved.part("sites"))
        self._restore_plays(saved, self._sites.points)
        saved.require(int(self._sites.count.sum()) == self._told, "all values")
        saved.generator("random", self._random)
        if self._feasible is not None:
            self._feasible.restore(saved.part("feasible"))
