"""Helpers for tests that watch real runs: functions of known norm, runs, and plain mathematics.

But for the kernel nothing here comes from the code under test: cells are read from `policy.cover`,
and membership, information gains and posteriors are computed afresh from the history of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import partita as pt
from partita._types import CellView
from partita.policies.base import Policy

FloatArray = npt.NDArray[np.float64]
Domain = pt.Grid | pt.Arms | pt.Box

#: The paper's experiments: ν = 3/2, ℓ = 1/5.
KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)


@dataclass(frozen=True)
class Synthetic:
    """f = Σ a_j k(c_j, ·), of norm √(aᵀKa) exactly. Janz et al. 2020, "Synthetic functions"."""

    kernel: pt.Matern
    centres: FloatArray  # (m, d)
    weights: FloatArray  # (m,)

    def __call__(self, unit_points: FloatArray) -> FloatArray:
        return self.kernel(unit_points, self.centres) @ self.weights

    @property
    def norm(self) -> float:
        return float(np.sqrt(self.weights @ self.kernel(self.centres) @ self.weights))


def synthetic(dim: int, rng: np.random.Generator, kernel: pt.Matern = KERNEL) -> Synthetic:
    """The paper's family: 30d centres uniform on the cube, weights uniform on [−1, 1]."""
    m = 30 * dim
    return Synthetic(kernel, rng.uniform(size=(m, dim)), rng.uniform(-1, 1, size=m))


def unit(domain: Domain, points: FloatArray) -> FloatArray:
    """Points (n, d) of a domain in the unit cube."""
    return (points - domain.lower) / (domain.upper - domain.lower)


def play(
    policy: Policy,
    f: Callable[[FloatArray], FloatArray],
    steps: int,
    rng: np.random.Generator,
    watch: Callable[[FloatArray], None] | None = None,
) -> FloatArray:
    """Let a policy play f, noise uniform on [−1, 1]; the unit points that it chose, (steps, d).

    `watch` is called after each step with the points so far.
    """
    points = np.empty((steps, policy.domain.dim))
    for i in range(steps):
        x = policy.ask()
        points[i] = unit(policy.domain, x)
        policy.tell(x, f(points[i : i + 1])[0] + rng.uniform(-1, 1))
        if watch is not None:
            watch(points[: i + 1])
    return points


# -- cells -----------------------------------------------------------------------------------------


def cells_a_side(view: CellView) -> int:
    """1/ρ of a cell, a whole number."""
    return round(1 / view.side)


def corner(view: CellView) -> tuple[int, ...]:
    """Lower corner of a cell in units of its side, whole numbers."""
    return tuple(np.rint(view.lower * cells_a_side(view)).astype(int).tolist())


def holds(view: CellView, points: FloatArray) -> npt.NDArray[np.bool_]:
    """Which unit points (n, d) lie in the closed cell, (n,); on a face up to rounding is inside."""
    offset = points * cells_a_side(view) - np.array(corner(view))
    return ((offset >= -1e-9) & (offset <= 1 + 1e-9)).all(axis=1)


# -- Gaussian processes ----------------------------------------------------------------------------


def information_gain(kernel: pt.Matern, points: FloatArray, alpha: float) -> float:
    """γ = ½ log det(I + K/α)."""
    return float(0.5 * np.linalg.slogdet(np.eye(len(points)) + kernel(points) / alpha)[1])


def variances(kernel: pt.Matern, data: FloatArray, at: FloatArray, alpha: float) -> FloatArray:
    """σ² at points (n, d) given data (m, d), (n,)."""
    k = kernel(at, data)
    return 1.0 - (k * np.linalg.solve(kernel(data) + alpha * np.eye(len(data)), k.T).T).sum(axis=1)


def variances_before(kernel: pt.Matern, points: FloatArray, alpha: float) -> FloatArray:
    """σ²_{t−1}(x_t) for each of a sequence of points (n, d), (n,).

    They are the squared pivots of the Cholesky factor of K + αI, less α.
    """
    factor = np.linalg.cholesky(kernel(points) + alpha * np.eye(len(points)))
    return np.diagonal(factor) ** 2 - alpha


# -- runs ------------------------------------------------------------------------------------------


def _irregular(dim: int) -> pt.Arms:
    """Arms in a box of unequal sides: clusters, a few on dyadic faces, corners."""
    rng = np.random.default_rng(5)
    cluster = np.clip(rng.normal(0.7, 0.05, size=(60, dim)), 0, 1)
    points = [rng.uniform(size=(60, dim)), cluster, rng.integers(0, 5, size=(30, dim)) / 4]
    lower, upper = np.arange(dim) - 1.0, np.arange(dim) * 3.0 + 1.0
    return pt.Arms(
        lower + np.unique(np.concatenate(points), axis=0) * (upper - lower), lower, upper
    )


#: The grids have arms on faces that cells share.
DOMAINS: dict[str, Callable[[], Domain]] = {
    "grid 1d": lambda: pt.Grid(33, dim=1),
    "grid 2d": lambda: pt.Grid(13, dim=2),
    "grid 3d": lambda: pt.Grid(7, dim=3),
    "arms 2d": lambda: _irregular(2),
    "box 1d": lambda: pt.Box([-2.0], [3.0]),
    "box 2d": lambda: pt.Box([0.0, -1.0], [1.0, 1.0]),
}
#: Presets: "few" is the information split with a limit on the gain that short runs reach, "cap" the
#: same with a limit on distinct points alone.
CASES = [
    *(("paper", name) for name in DOMAINS),
    *(("default", name) for name in ("grid 1d", "grid 2d", "grid 3d", "arms 2d", "box 2d")),
    *(("few", name) for name in ("grid 1d", "grid 2d", "grid 3d", "arms 2d", "box 1d")),
    ("cap", "grid 2d"),
]


def build(preset: str, domain: Domain, steps: int, norm: float, **settings: float) -> pt.PiGPUCB:
    given = {"horizon": steps, "kernel": KERNEL, "norm_bound": norm, **settings}
    if preset == "paper":
        return pt.PiGPUCB.paper(domain, noise=pt.SubGaussian(1.0), **given)
    policy = pt.PiGPUCB(domain, noise=pt.Uniform(-1, 1), **given)
    rule = policy._engine.partition.rule
    if preset == "few":
        rule.gain_limit = 1.5
    if preset == "cap":
        rule.gain_limit, rule.point_limit = math.inf, 8
    return policy


class Run(NamedTuple):
    """A policy, and the unit points (n, d) that it chose."""

    policy: pt.PiGPUCB
    points: FloatArray

    def groups(self) -> Iterator[tuple[CellView, FloatArray]]:
        """The cells of the cover that have data, each with its points in their order."""
        for view in self.policy.cover:
            inside = self.points[holds(view, self.points)]
            if len(inside):
                yield view, inside


@cache
def run(preset: str, name: str, steps: int = 300) -> Run:
    domain = DOMAINS[name]()
    rng = np.random.default_rng(3)
    f = synthetic(domain.dim, rng)
    policy = build(preset, domain, steps, f.norm)
    return Run(policy, play(policy, f, steps, rng))
