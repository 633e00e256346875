"""What policies share that keep one or more models of all their candidates.

The candidates are the arms of a finite domain; a linear policy on a box has the corners. There are
few enough to look at each. Site j (`Policy`) is candidate j; points reported elsewhere in a box
follow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State
from partita._types import FloatArray, IntArray, Prediction, Recommendation
from partita.gp.posterior import Plan
from partita.model.domains import Arms, Box, Grid
from partita.partition import _loops
from partita.partition.contradiction import warn_contradiction
from partita.partition.cover import Geometry
from partita.partition.sites import BoxSites, arm_priorities, tie_resolution
from partita.policies.base import Policy


class Model(Protocol):
    """A posterior of f at the candidates, from observed values."""

    @property
    def mean(self) -> FloatArray:
        """Means, (m,)."""
        ...

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (m,)."""
        ...

    def observe(self, j: int, value: float) -> None:
        """Condition on one value at candidate j."""
        ...

    def observe_many(self, arms: IntArray, values: FloatArray) -> None:
        """Condition on values (n,) at candidates (n,)."""
        ...

    def plan(self) -> Plan:
        """A plan with no pending evaluations yet."""
        ...

    def state(self) -> State:
        """What was told, and the fit, as plain data."""
        ...

    def restore(self, saved: Saved) -> None:
        """Restore a saved state."""
        ...


class ArmsPolicy(Policy):
    """A policy that knows bounds on f at every candidate; a concrete one says which.

    Bounds come from observed values only, never from pending points. With pending points they hold
    if whether and when a value arrives does not depend on its own noise; the regret theorems are
    for one point at a time.
    """

    #: On a box: the candidates, then other points as they are told.
    _box_sites: BoxSites

    def __init__(self, domain: Grid | Arms | Box, points: FloatArray, scale: float) -> None:
        """`points` (m, d) are the candidates, `scale` bounds |f|; after `_assume`."""
        super().__init__(domain)
        self._points, self._most = points, scale
        self._priority = arm_priorities(self.seed, len(points))
        self._resolution = tie_resolution(scale, self.sub_gaussian)
        if isinstance(domain, Box):
            self._box_sites = BoxSites(domain, Geometry(domain.dim, 1))
            self._box_sites.locate(points)

    @abstractmethod
    def _bounds(self) -> Prediction:
        """Posterior and bounds at the candidates, (m,) each."""

    def _bounds_at(self, points: FloatArray) -> Prediction:
        """Posterior and bounds at checked points (n, d)."""
        arms = self._locate(points)
        return Prediction(*(field[arms] for field in self._bounds()))

    def recommend(self) -> Recommendation:
        """The candidate with the highest lower bound."""
        bounds = self._bounds()
        best = self._best(bounds.lower)
        mean, _, lower, upper = (float(field[best]) for field in self._within(bounds))
        if lower > upper + 1.5 / self._resolution:
            warn_contradiction()
        return Recommendation(np.array(self._points[best]), mean, lower, upper)

    def certificate(self) -> float:
        """A bound on f(x*) − f(recommended x), at all times, with probability ≥ 1 − delta.

        Infinite, with a `TheoryWarning`, where the bounds contradict each other: nothing is certain
        then.
        """
        bounds = self._bounds()
        lower, within = bounds.lower, self._within(bounds)
        gap = float(within.upper.max() - within.lower[self._best(lower)])
        if gap < 0:
            warn_contradiction()
            return math.inf
        return gap

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at points (n, d) of the domain."""
        bounds = self._within(self._bounds_at(self.domain.check(X)))
        if bool((bounds.lower > bounds.upper + 1.5 / self._resolution).any()):
            warn_contradiction()
        return bounds

    def _within(self, bounds: Prediction) -> Prediction:
        """Bounds that say no more than that |f| is at most `scale`."""
        lower, upper = np.maximum(bounds.lower, -self._most), np.minimum(bounds.upper, self._most)
        return bounds._replace(lower=lower, upper=upper)

    def _best(self, values: FloatArray, among: IntArray | None = None) -> int:
        """The candidate with the highest of some values (m,), or of those `among` candidates (k,).

        Values are rounded first; ties go to the lowest priority.
        """
        priority = self._priority if among is None else self._priority[among]
        best = int(_loops.best_upper(values, values, priority, 0.0, self._resolution)[1])
        return best if among is None else int(among[best])

    def _locate(self, points: FloatArray) -> IntArray:
        if isinstance(self.domain, Box):
            return self._box_sites.locate(points)
        return self.domain.index_of(points)
