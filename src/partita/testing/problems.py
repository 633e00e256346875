"""What the checks play: small domains, easy functions, a little noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partita._types import FloatArray
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import Uniform

Domain = Grid | Arms | Box
Function = Callable[[FloatArray], FloatArray]

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
    """A function on a domain; `noise` is the half-width of its noise, 0 for exact values."""

    domain: Domain
    #: f at points (n, d), without noise, (n,).
    values: Function
    noise: float
    scale: float
    #: Where f is largest, or would be but for the domain; in the user's units, (d,).
    peak: FloatArray

    @property
    def norm_bound(self) -> float:
        """What a policy is told of the norm of f."""
        return self.scale

    @property
    def noise_model(self) -> Uniform:
        """What a policy is told of the noise; hardly any where values are exact."""
        half = self.noise or 1e-3 * self.scale
        return Uniform(-half, half)

    def noise_values(self, n: int, stream: int = 0) -> FloatArray:
        """The noise of n steps."""
        random = np.random.default_rng([stream, 20_200_826])
        return self.noise * random.uniform(-1.0, 1.0, n)

    def f(self, x: FloatArray) -> float:
        """F at one point, without noise."""
        return float(self.values(np.reshape(x, (1, -1)))[0])

    def some_points(self, n: int, stream: int = 0) -> FloatArray:
        """Points of the domain (n, d), all different while there are enough arms."""
        random = np.random.default_rng([stream, 7])
        if isinstance(self.domain, Box):
            return self.domain.from_unit(random.random((n, self.domain.dim)))
        arms = [random.permutation(self.domain.size) for _ in range(1 + n // self.domain.size)]
        return np.array(self.domain.points[np.concatenate(arms)[:n]])

    def best_and_average(self) -> tuple[float, float]:
        """The largest value and the mean over the domain; on a box the mean is that of a grid."""
        if not isinstance(self.domain, Box):
            values = self.values(self.domain.points)
            return float(values.max()), float(values.mean())
        side = {1: 1001, 2: 41}.get(self.domain.dim, 15)
        values = self.values(self.domain.from_unit(Grid(side, self.domain.dim).points))
        return self.f(self.peak), float(values.mean())


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


def problem(
    domain: Domain,
    *,
    linear: bool = False,
    noisy: bool = True,
    scale: float = 1.0,
    stream: int | None = None,
) -> Problem:
    """A function of norm `scale` on a domain: one bump, or a slope. At random given a stream."""
    dim = domain.dim
    centre, slope = _CENTRE[:dim], _SLOPE[:dim] / np.linalg.norm(_SLOPE[:dim])
    if stream is not None:
        random = np.random.default_rng([stream, 5])
        centre, slope = random.random(dim), random.standard_normal(dim)
        slope /= np.linalg.norm(slope)
    peak = np.where(slope > 0.0, domain.upper, domain.lower)
    if not linear:
        peak = domain.lower + centre * (domain.upper - domain.lower)
    values = _slope(domain, scale * slope) if linear else _bump(domain, peak, scale)
    return Problem(domain, values, scale * NOISE if noisy else 0.0, scale, peak)


def _bump(domain: Domain, peak: FloatArray, height: float) -> Function:
    """Height · k(peak, ·), of norm `height`."""
    factor = math.sqrt(3.0) / (KERNEL.scales(1)[0] * _side(domain))

    def values(points: FloatArray) -> FloatArray:
        z = np.sqrt((((points - peak) * factor) ** 2).sum(axis=1))
        return np.asarray(height * (1.0 + z) * np.exp(-z))

    return values


def _slope(domain: Domain, slope: FloatArray) -> Function:
    lower, side = domain.lower, _side(domain)

    def values(points: FloatArray) -> FloatArray:
        return np.asarray(((points - lower) / side) @ slope)

    return values


def _side(domain: Domain) -> FloatArray:
    return np.asarray(domain.upper - domain.lower)
