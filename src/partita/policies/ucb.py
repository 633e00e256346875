"""The base class of policies that choose the highest upper confidence bound."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State
from partita._types import CellView, FloatArray, IntArray, Prediction, Recommendation
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.partition.engine import Engine
from partita.partition.sites import BoxSites

from .base import Policy
from .fixed import Slice, arms_with, box_slice
from .repeats import Counted

#: The noise of a single value is at least this fraction of L: an exact value is s-sub-Gaussian for
#: every s > 0, so the bounds hold.
LEAST_NOISE = 1e-3
#: Its variance α(s/L)² is at least this, unless α is less: variances are accurate to about 1e−15.
LEAST_VARIANCE = 1e-10
#: The smallest weight of a value: such a value has no effect, and a smaller weight could underflow.
LEAST_WEIGHT = 1e-200


class UCBPolicy(Policy):
    """A policy that consists of an `Engine` and settings; a concrete one builds its engine.

    Bounds use observed values only, never pending points. With pending points they hold if whether
    and when a value arrives does not depend on its own noise. The regret theorems are for one point
    at a time.

    With `takes_std`, a value of known noise s has the regulariser α(s/L)² instead of α, also in the
    information gain, and the bounds still hold (docs/core.md). For this, s must not depend on the
    value's own noise; the standard deviation of a few replicates would.
    """

    takes_count = True

    assumptions: Assumptions
    _engine: Engine

    def recommend(self) -> Recommendation:
        """The candidate with the highest lower bound."""
        return self._engine.recommend(self._told + 1)

    def certificate(self) -> float:
        """A bound on f(x*) − f(recommended x), at all times, with probability ≥ 1 − delta.

        This holds if `guarantee` is "proven"; else it is as reliable as the bounds. It depends on
        the data alone, and may rise a little when a cell splits: an earlier one still holds for the
        point that was recommended then. It is infinite, with a `TheoryWarning` that says what is
        wrong, if the data contradict the norm bound or the noise.
        """
        t = self._told + 1
        ceiling = self._engine.ceiling(t)
        if ceiling == math.inf:
            return ceiling
        gap = ceiling - self._engine.recommend(t).lower
        if self._engine.emptied:  # by the data around the answer: it has warned
            return math.inf
        if gap < 0:
            self._engine.warn_crossed()
            return math.inf
        return gap

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at points (n, d) of the domain."""
        checked = self.domain.check(X)
        sites, t = self._engine.partition.sites, self._told + 1
        if isinstance(sites, BoxSites):
            return self._engine.predict(sites.to_scaled(checked), t)
        arms = sites.locate(checked)
        return self._engine.predict(sites.scaled[arms], t, arms)

    def worth(self, x: npt.ArrayLike) -> float:
        """How many evaluations at a point (d,) the posterior there is worth: α/σ²."""
        std = float(self.predict(np.asarray(x, dtype=float)[None, :]).std[0])
        return self._engine.partition.alpha / std**2 if std > 0 else math.inf

    @property
    def cover(self) -> tuple[CellView, ...]:
        """The cells of the present cover, in the unit cube.

        An error if there are more than a million, which is soon the case in many dimensions.
        """
        return self._engine.cover(self._told + 1)

    @property
    def cells(self) -> int:
        """The number of cells of the present cover."""
        return self._engine.partition.cells

    @property
    def information_gain(self) -> float:
        """The sum of the information gains of all cells of the present cover."""
        return math.fsum(c.posterior.gain for c in self._engine.partition.leaves.values())

    @property
    def cells_created(self) -> int:
        """The number of cells created so far, |∪A_t|."""
        return self._engine.partition.cells_created

    def _propose(self) -> tuple[int, FloatArray]:
        step = self._step()
        if self.horizon is not None and step > self.horizon:
            self._watch_horizon(
                "the confidence bounds hold, but the regret bound is for that horizon"
            )
        return self._engine.propose(step)

    def _slice(self, fixed: Mapping[int, float]) -> Slice:
        """The points with coordinates {number: value} fixed, all of them or a lattice."""
        sites = self._engine.partition.sites
        if isinstance(sites, BoxSites):
            assert isinstance(self.domain, Box)
            assert self.assumptions.kernel is not None
            return box_slice(fixed, self.domain, self.assumptions.kernel, self.norm_bound)
        assert isinstance(self.domain, Grid | Arms)
        return Slice(sites.points[arms_with(fixed, self.domain)], 0.0)

    def _propose_fixed(self, fixed: Mapping[int, float]) -> tuple[int, FloatArray]:
        sites = self._engine.partition.sites
        if isinstance(sites, BoxSites):
            return self._engine.propose_at(self._slice(fixed).points, self._step())
        assert isinstance(self.domain, Grid | Arms)
        return self._engine.propose_among(arms_with(fixed, self.domain), self._step())

    def recommend_fixed(self, fixed: Mapping[int, float]) -> Recommendation:
        """The point with the highest lower bound among those with some coordinates fixed.

        On a box, among those of a lattice.
        """
        points = self._slice(fixed).points
        at = self.predict(points)
        best = int(np.argmax(at.lower))
        x = points[best].copy()
        return Recommendation(x, *(float(v[best]) for v in (at.mean, at.lower, at.upper)))

    def certificate_fixed(self, fixed: Mapping[int, float]) -> float:
        """A bound on how much better any other point with the same coordinates fixed can be.

        It holds with the others, for all contexts at all times, with probability ≥ 1 − delta. On a
        box it includes what f can change by between the points of the lattice. It is infinite, with
        a `TheoryWarning`, if `certificate` is: a contradiction found among some points leaves no
        bound at the others standing.
        """
        if self.certificate() == math.inf:
            return math.inf
        points, slack = self._slice(fixed)
        at = self.predict(points)
        gap = float(at.upper.max() - at.lower.max())
        if gap < 0:
            self._engine.warn_crossed()
            return math.inf
        return gap + slack

    def _locate(self, points: FloatArray) -> IntArray:
        return self._engine.partition.sites.locate(points)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        weight = 1.0 if std is None else float(self._weights(np.float64(std)))
        self._engine.observe(site, value, asked, self._step(), weight)

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        weights = None if stds is None else self._weights(stds)
        self._engine.observe_many(sites, values, self._pending_plays(), self._step(), weights)

    def _record_repeated(
        self, site: int, mean: float, count: int, std: float | None, asked: bool
    ) -> None:
        # The noise is stated: how values differ only shows whether what was stated may be true.
        within = 0.0 if std is None else (count - 1) * std**2
        self._engine.observe_repeated(site, mean, count, within, asked, self._step())

    def _record_many_repeated(self, sites: IntArray, means: FloatArray, counted: Counted) -> None:
        single = (counted.counts == 1) & ~np.isnan(counted.stds)
        weights = None
        if single.any():
            weights = np.ones(len(means))
            weights[single] = self._weights(counted.stds[single])
        within = (counted.counts - 1) * np.nan_to_num(counted.stds) ** 2
        self._engine.partition.sites.scatter += float(within.sum())
        args = self._pending_plays(), self._step(), weights, counted.counts
        self._engine.observe_many(sites, means, *args)

    def _weights(self, stds: FloatArray | np.float64) -> FloatArray:
        """Weights (L/s)² of values of known noise s, limited to a range safe from rounding."""
        constant = self.assumptions.sub_gaussian
        variance = max(LEAST_NOISE**2, min(1.0, LEAST_VARIANCE / self._engine.partition.alpha))
        ratio = constant / np.maximum(stds, constant * math.sqrt(variance))
        return np.asarray(np.maximum(ratio**2, LEAST_WEIGHT))

    def _repeated(self, site: int, more: int) -> None:
        self._engine.repeat(site, more, self._step())

    def _released(self, site: int) -> None:
        self._engine.release(site, self._step())

    def _state(self) -> State:
        return {**super()._state(), "engine": self._engine.state()}

    def _restore(self, saved: Saved) -> None:
        engine, partition = saved.part("engine"), self._engine.partition
        partition.restore(engine.part("partition"))
        self._restore_plays(saved, partition.sites.points)
        saved.require(int(partition.sites.count.sum()) == self._told, "all values")
        self._engine.restore(engine, self._pending_plays())
