"""The problems of the rules: small domains, easy functions, a little noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import Uniform

Domain = Grid | Arms | Box

#: The kernel that policies are given; the smooth functions are of its space.
KERNEL = Matern(nu=1.5, lengthscale=0.3)
#: Noise is uniform between plus and minus this, for functions of norm 1.
NOISE = 0.15
DELTA = 0.1

# Odd units, of sizes far apart: a policy that takes every domain for the unit cube shows it.
_LOWER = np.array([-5.0, 100.0, 1 / 128])
_UPPER = np.array([11.0, 228.0, 1 / 64])
_CENTRE = np.array([0.31, 0.64, 0.45])
_SLOPE = np.array([0.8, -0.48, 0.36])


@dataclass(frozen=True)
class Problem:
    """A function of norm `scale` on a domain, its largest value at `peak`, with noise or without.

    With u = (x − origin)·factors it is Σu if it is linear, else the bump scale·(1 + ‖u‖)·exp(−‖u‖),
    which is scale·k(peak, ·) for the kernel above. Lists, since NumPy is slow at one point a time.
    """

    domain: Domain
    linear: bool
    peak: list[float]
    origin: list[float]
    factors: list[float]
    noise: float  # half-width, 0 for exact values
    scale: float

    @property
    def noise_model(self) -> Uniform:
        """What a policy is told of the noise; hardly any where values are exact."""
        half = self.noise or 1e-3 * self.scale
        return Uniform(-half, half)

    def noise_values(self, n: int, stream: int = 0) -> FloatArray:
        """The noise of n steps, (n,)."""
        random = np.random.default_rng([stream, 20_200_826])
        return self.noise * random.uniform(-1.0, 1.0, n)

    def f(self, x: npt.ArrayLike) -> float:
        """f at a point, without noise."""
        given: list[float] = np.ravel(x).tolist()
        u = [(a - o) * q for a, o, q in zip(given, self.origin, self.factors, strict=True)]
        if self.linear:
            return sum(u)
        z = math.hypot(*u)
        return self.scale * (1.0 + z) * math.exp(-z)

    def values(self, points: FloatArray) -> FloatArray:
        """f at points (n, d), without noise, (n,)."""
        return np.array([self.f(x) for x in points])

    def some_points(self, n: int, stream: int = 0) -> FloatArray:
        """Points of the domain (n, d), all different while there are enough arms."""
        random = np.random.default_rng([stream, 7])
        if isinstance(self.domain, Box):
            return self.domain.from_unit(random.random((n, self.domain.dim)))
        arms = [random.permutation(self.domain.size) for _ in range(1 + n // self.domain.size)]
        return np.array(self.domain.points[np.concatenate(arms)[:n]])

    def best(self) -> float:
        """The largest value on the domain."""
        if isinstance(self.domain, Box):
            return self.f(self.peak)
        return float(self.values(self.domain.points).max())

    def average(self) -> float:
        """The mean value over the domain, on a box that of a grid."""
        if not isinstance(self.domain, Box):
            return float(self.values(self.domain.points).mean())
        grid = Grid({1: 1001, 2: 41}.get(self.domain.dim, 15), self.domain.dim)
        return float(self.values(self.domain.from_unit(grid.points)).mean())


def odd_domain(kind: str, dim: int) -> Domain:
    """A small domain in odd units (a `Grid` has no units), up to three dimensions."""
    lower, upper = _LOWER[:dim], _UPPER[:dim]
    if kind == "grid":
        return Grid({1: 9, 2: 5, 3: 3}[dim], dim=dim)
    if kind == "box":
        return Box(lower, upper)
    unit = np.random.default_rng(11).random((17, dim))
    unit[:3] = np.eye(3)[:, :dim]  # arms on faces and in corners
    unit = np.unique(unit, axis=0)
    return Arms(lower + unit * (upper - lower), lower, upper)


def unit_domain(kind: str, dim: int, side: int) -> Domain:
    """A domain whose units are those of the unit cube; `side`^dim arms, everywhere about."""
    if kind == "grid":
        return Grid(side, dim=dim)
    if kind == "box":
        return Box(np.zeros(dim), np.ones(dim))
    cells = Grid(side, dim=dim).points * (side - 1)
    return Arms((cells + np.random.default_rng(12).random(cells.shape)) / side)


def problem_on(
    domain: Domain, *, linear: bool, noisy: bool, scale: float = 1.0, stream: int | None = None
) -> Problem:
    """A function of norm `scale` on a domain: one bump, or linear. At random given a stream."""
    dim, side = domain.dim, domain.upper - domain.lower
    centre, slope = _CENTRE[:dim], _SLOPE[:dim]
    if stream is not None:
        random = np.random.default_rng([stream, 5])
        centre, slope = random.random(dim), random.standard_normal(dim)
    if linear:
        origin, peak = domain.lower, np.where(slope > 0.0, domain.upper, domain.lower)
        factors = scale * slope / np.linalg.norm(slope) / side
    else:
        origin = peak = domain.lower + centre * side
        factors = math.sqrt(3.0) / (KERNEL.scales(dim) * side)
    return Problem(
        domain,
        linear,
        peak.tolist(),
        origin.tolist(),
        factors.tolist(),
        noise=scale * NOISE if noisy else 0.0,
        scale=scale,
    )
