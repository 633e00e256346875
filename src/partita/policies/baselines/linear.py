"""What OFUL and ConfidenceBall share: one linear model, and the highest upper bound."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray, IntArray, Prediction
from partita.errors import InvalidInput
from partita.gp.linear import LinearPosterior, check_intercept, largest_norm, linear_features
from partita.gp.planning import Planner, planners_state, restore_planners
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.noise import Noise
from partita.partition import _loops
from partita.policies.checks import check_domain

from .arms import ArmsPolicy

#: Boxes of more dimensions are refused: their 2^d corners are looked at one by one.
MAX_BOX_DIM = 12


def corners(box: Box) -> FloatArray:
    """The corners of a box, (2^d, d); bit i of a corner's number is 1 at the upper end of side i.

    The index of a linear policy is convex in x (a linear function plus a norm of an affine one), so
    over a box it is greatest at a corner, and so is f.
    """
    if box.dim > MAX_BOX_DIM:
        raise InvalidInput(
            f"the box has {box.dim} dimensions, so 2^{box.dim} corners: a linear policy looks at "
            f"each, and takes boxes of at most {MAX_BOX_DIM} dimensions. Give the points that "
            "matter as Arms(points, lower=..., upper=...)."
        )
    bits = np.arange(2**box.dim)[:, None] >> np.arange(box.dim) & 1
    return box.from_unit(bits.astype(float))


class LinearUCB(ArmsPolicy):
    """Chooses the highest φᵀθ̂ + width·σ; a concrete policy gives the features and the width.

    Pending evaluations lower σ as if they had been observed and leave the rest (Desautels et al.
    2014).
    """

    _model: LinearPosterior

    def __init__(
        self,
        domain: Grid | Arms | Box,
        norm_bound: float,
        noise: Noise,
        delta: float,
        seed: int,
        intercept: float,
    ) -> None:
        check_domain(domain)
        self._assume(Assumptions(None, norm_bound, noise, delta), seed)
        self.intercept = check_intercept(intercept)
        points = corners(domain) if isinstance(domain, Box) else domain.points
        self._largest = largest_norm(linear_features(points, self.intercept), points)
        #: Bound on |f|: |⟨θ, φ⟩| ≤ ‖θ‖‖φ‖.
        self._range = self.norm_bound * self._largest
        self._planner = Planner()
        super().__init__(domain, points, self._range)

    @abstractmethod
    def _features(self, points: FloatArray) -> FloatArray:
        """The model's features (n, p) of points (n, d)."""

    @abstractmethod
    def _width(self, t: int) -> float:
        """The half-width of the bounds in units of σ when the t-th point is chosen."""

    def _propose(self) -> tuple[int, FloatArray]:
        width = self._width(self._step())
        mean, std = self._model.mean, self._planner.std(self._model.std, self._model.plan)
        j = int(_loops.best_upper(mean, std, self._priority, width, self._resolution)[1])
        self._planner.add(j)
        return j, np.array(self._points[j])

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        if site < len(self._points):
            self._model.observe(site, value)
        else:
            self._model.observe_at(self._features(self._at([site]))[0], value)
        if asked:
            self._planner.remove(site)
        self._planner.renew()

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        self._model.observe_many_at(self._features(self._at(sites.tolist())), values)
        self._planner.reset(self._pending_plays())

    def _released(self, site: int) -> None:
        self._planner.remove(site)

    def _at(self, sites: list[int]) -> FloatArray:
        """Points (n, d) of sites."""
        if isinstance(self.domain, Box):
            return np.stack([self._box_sites.x(site) for site in sites])
        return self._points[sites]

    def _state(self) -> State:
        return {
            **super()._state(),
            "sites": self._box_sites.state() if isinstance(self.domain, Box) else None,
            "model": self._model.state(),
            "planner": planners_state([self._planner]),
        }

    def _restore(self, saved: Saved) -> None:
        points = self._points
        if isinstance(self.domain, Box):
            self._box_sites.restore(saved.part("sites"))
            points = self._box_sites.points
            first = np.array_equal(points[: len(self._points)], self._points)
            saved.require(first, "the corners first")
        self._restore_plays(saved, points)
        self._model.restore(saved.part("model"))
        planner = saved.part("planner")
        restore_planners(planner, [self._planner], [len(self._points)])
        saved.require(self._planner.pending == self._pending_plays(), "the pending evaluations")

    # -- bounds from observed values --------------------------------------------------------------

    def _bounds(self) -> Prediction:
        return self._prediction(self._points, self._model.mean.copy(), self._model.std.copy())

    def _bounds_at(self, points: FloatArray) -> Prediction:
        if isinstance(self.domain, Box):
            return self._prediction(points, *self._model.at(self._features(points)))
        return super()._bounds_at(points)

    def _prediction(self, points: FloatArray, mean: FloatArray, std: FloatArray) -> Prediction:
        """Bounds of mean ± width·σ, and of |f| ≤ B‖φ‖."""
        features = linear_features(points, self.intercept)
        most = self.norm_bound * np.sqrt(np.einsum("ij,ij->i", features, features))
        width = self._width(self._told + 1)
        return Prediction(
            mean, std, np.maximum(mean - width * std, -most), np.minimum(mean + width * std, most)
        )
