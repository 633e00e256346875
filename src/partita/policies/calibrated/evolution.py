"""A search distribution that learns its directions from ranks: CMA-ES.

After Hansen 2016, "The CMA evolution strategy: a tutorial" (equations by its numbers), with
negative weights. Notation: m the mean, σ the step, C the covariance with C = B diag(D²) Bᵀ, λ the
points of a generation, y = (x − m)/σ a step. Only the order of the values counts, so they may have
any size, and f any shape that a model would get wrong.

Deviates: points outside the unit cube are reflected at its sides, and steps that are too long to be
drawn from the distribution are shortened, since others than it propose points too (Hansen 2011,
"Injecting external solutions into CMA-ES").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray

#: The step at first, in sides of the cube, the least and the most.
FIRST_STEP, LEAST_STEP, MOST_STEP = 0.2, 1e-12, 0.5
#: The least variance along an axis of C, and the most, each relative to σ².
LEAST_AXIS, MOST_AXIS = 1e-14, 1e14
#: How much longer than σ an axis may be where coordinates have a least deviation.
FAR_APART = 1e3
#: Points of a generation, at most.
MOST_POINTS = 4096


class Rates(NamedTuple):
    """Weights (λ,) of the points by rank, and how fast paths, step and covariance follow."""

    weights: FloatArray
    parents: int  # μ, the number of positive weights
    effective: float  # μ_eff
    path: float  # c_σ
    damping: float  # d_σ
    covariance_path: float  # c_c
    rank_one: float  # c_1
    rank_many: float  # c_μ


def usual_points(dim: int) -> int:
    """The usual λ in this number of dimensions, eq. 48."""
    return 4 + int(3 * math.log(dim))


def rates_of(dim: int, points: int) -> Rates:
    """The rates for λ points in this number of dimensions, eqs. 49 to 58."""
    parents = points // 2
    raw = math.log((points + 1) / 2) - np.log(np.arange(1, points + 1))
    positive, negative = raw[:parents] / raw[:parents].sum(), raw[parents:]
    effective = 1.0 / float((positive**2).sum())
    opposed = float(negative.sum()) ** 2 / float((negative**2).sum())
    path = (effective + 2) / (dim + effective + 5)
    damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (dim + 1)) - 1) + path
    rank_one = 2 / ((dim + 1.3) ** 2 + effective)
    rank_many = 2 * (effective - 2 + 1 / effective) / ((dim + 2) ** 2 + effective)
    rank_many = max(min(1 - rank_one, rank_many), 1e-12)
    share = min(
        1 + rank_one / rank_many,
        1 + 2 * opposed / (effective + 2),
        (1 - rank_one - rank_many) / (dim * rank_many),
    )
    weights = np.concatenate([positive, share * negative / np.abs(negative).sum()])
    along = (4 + effective / dim) / (dim + 4 + 2 * effective / dim)
    return Rates(weights, parents, effective, path, damping, along, rank_one, rank_many)


@dataclass(eq=False)
class Evolution:
    """The distribution N(m, σ²C) over the unit cube, cut off at its sides."""

    mean: FloatArray  # (d,)
    points: int  # λ
    step: float = FIRST_STEP
    generation: int = 0
    covariance: FloatArray = field(init=False)  # (d, d)
    #: B (d, d) and D (d,), by the covariance as it was after `_turned` generations.
    basis: FloatArray = field(init=False)
    axes: FloatArray = field(init=False)
    _turned: int = 0
    _step_path: FloatArray = field(init=False)  # p_σ, (d,)
    _path: FloatArray = field(init=False)  # p_c, (d,)
    _rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        dim = len(self.mean)
        self._rates = rates_of(dim, self.points)
        self.covariance, self.basis, self.axes = np.eye(dim), np.eye(dim), np.ones(dim)
        self._step_path, self._path = np.zeros(dim), np.zeros(dim)

    @property
    def scale(self) -> FloatArray:
        """The standard deviation of each coordinate, (d,)."""
        return np.asarray(self.step * np.sqrt(np.diagonal(self.covariance)))

    def draw(self, random: np.random.Generator) -> FloatArray:
        """A point (d,) of the distribution, reflected at the sides of the cube."""
        white = random.standard_normal(len(self.mean))
        point = np.abs(self.mean + self.step * (self.basis @ (self.axes * white)))
        return np.clip(np.where(point > 1.0, 2.0 - point, point), 0.0, 1.0)

    def moved(self, mean: FloatArray, step: float) -> Evolution:
        """A distribution of the same shape around another mean, which has not moved yet."""
        step = min(max(step, LEAST_STEP), MOST_STEP)
        made = Evolution(mean.copy(), self.points, step)
        made.covariance, made.basis, made.axes = self.covariance, self.basis, self.axes
        return made

    def widen(self, step: float) -> None:
        """Set the step, as far as the cube allows."""
        self.step = min(step, MOST_STEP)

    def keep_wide(self, least: FloatArray) -> None:
        """Widen coordinates whose standard deviation is below the least (d,)."""
        short = (least / self.step) ** 2 - np.diagonal(self.covariance)
        if (short > 0.0).any():
            self.covariance = self.covariance + np.diag(np.maximum(short, 0.0))
            self._turn()
        longest = float(self.axes.max())
        if longest > FAR_APART:  # σ has shrunk for coordinates that may not: C takes the scale on
            self.step, self._path = min(self.step * longest, MOST_STEP), self._path / longest
            self.covariance, self.axes = self.covariance / longest**2, self.axes / longest

    @property
    def parents(self) -> FloatArray:
        """The weights (μ,) of the best points of a generation, which add up to 1."""
        return self._rates.weights[: self._rates.parents]

    def update(self, points: FloatArray, values: FloatArray) -> None:
        """Learn from the values (λ,) at points (λ, d); higher is better."""
        rates, dim = self._rates, len(self.mean)
        with one_thread():
            steps = (points[np.argsort(-values, kind="stable")] - self.mean) / self.step
            white = (steps @ self.basis) / self.axes
            longest = math.sqrt(dim) + 2 * dim / (dim + 2)
            cut = np.minimum(1.0, longest / np.maximum(np.sqrt((white**2).sum(axis=1)), 1e-300))
            steps, white = steps * cut[:, None], white * cut[:, None]
            best = slice(0, rates.parents)
            mover, turned = rates.weights[best] @ steps[best], rates.weights[best] @ white[best]
            self.generation += 1
            self.mean = np.clip(self.mean + self.step * mover, 0.0, 1.0)  # eq. 42
            calm = self._follow(mover, self.basis @ turned)
            self._learn(steps, (white**2).sum(axis=1), calm)
            if self.generation - self._turned > 0.1 / dim / (rates.rank_one + rates.rank_many):
                self._turn()

    def _follow(self, mover: FloatArray, whitened: FloatArray) -> bool:
        """Follow the mean with both paths and adapt the step; return whether that was small."""
        rates, dim = self._rates, len(self.mean)
        keep = 1.0 - rates.path
        gain = math.sqrt(rates.path * (2 - rates.path) * rates.effective)
        self._step_path = keep * self._step_path + gain * whitened  # eq. 43
        length, usual = float(np.linalg.norm(self._step_path)), _usual_length(dim)
        begun = math.sqrt(1 - keep ** (2 * self.generation))
        calm = length / begun < (1.4 + 2 / (dim + 1)) * usual
        grown = math.exp(min(1.0, rates.path / rates.damping * (length / usual - 1)))  # eq. 44
        self.step = min(max(self.step * grown, LEAST_STEP), MOST_STEP)
        along = rates.covariance_path
        gain = math.sqrt(along * (2 - along) * rates.effective)
        self._path = (1 - along) * self._path + (gain * mover if calm else 0.0)  # eq. 45
        return calm

    def _learn(self, steps: FloatArray, squares: FloatArray, calm: bool) -> None:
        """Move C towards the path and the weighted steps (λ, d), eqs. 46 and 47."""
        rates, dim = self._rates, len(self.mean)
        weights = np.where(
            rates.weights < 0, rates.weights * dim / np.maximum(squares, 1e-12), rates.weights
        )
        lost = 0.0 if calm else rates.covariance_path * (2 - rates.covariance_path)
        kept = 1 - rates.rank_one * (1 - lost) - rates.rank_many * float(rates.weights.sum())
        self.covariance = (
            kept * self.covariance
            + rates.rank_one * np.outer(self._path, self._path)
            + rates.rank_many * (steps.T * weights) @ steps
        )

    def _turn(self) -> None:
        """Compute B and D again; axes that are too short or long are cut."""
        self._turned = self.generation
        even = 0.5 * (self.covariance + self.covariance.T)
        squares, self.basis = np.linalg.eigh(even)
        squares = np.clip(squares, LEAST_AXIS, MOST_AXIS)
        self.axes = np.sqrt(squares)
        self.covariance = (self.basis * squares) @ self.basis.T

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The distribution as plain data."""
        return {
            "mean": self.mean,
            "points": self.points,
            "step": float(self.step),
            "generation": self.generation,
            "covariance": self.covariance,
            "basis": self.basis,
            "axes": self.axes,
            "turned": self._turned,
            "step_path": self._step_path,
            "path": self._path,
        }

    @staticmethod
    def restored(saved: Saved, dim: int) -> Evolution:
        """The distribution that was saved."""
        mean, points = saved.floats("mean", (dim,), 0.0, 1.0), saved.integer("points", 4)
        saved.require(points <= MOST_POINTS, "few points of a generation")
        step = saved.real("step", LEAST_STEP, MOST_STEP)
        made = Evolution(mean, points, step, saved.integer("generation"))
        made.covariance = saved.floats("covariance", (dim, dim))
        saved.require((np.diagonal(made.covariance) > 0).all(), "a covariance")
        made.basis = saved.floats("basis", (dim, dim), -1.0 - 1e-9, 1.0 + 1e-9)
        least, most = math.sqrt(LEAST_AXIS), math.sqrt(MOST_AXIS)
        made.axes = saved.floats("axes", (dim,), 0.99 * least, 1.01 * most)
        made._turned = saved.integer("turned", 0, made.generation)
        made._step_path = saved.floats("step_path", (dim,))
        made._path = saved.floats("path", (dim,))
        return made


def _usual_length(dim: int) -> float:
    """About the mean length of white noise (d,)."""
    return math.sqrt(dim) * (1 - 1 / (4 * dim) + 1 / (21 * dim**2))
