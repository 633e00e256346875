"""Problems of 20 to 100 dimensions, with the optimum off the centre, scaled as the others are.

Seeds draw where the optimum is, and where obstacles and controllers begin. f is divided by half its
range over uniform points, so that "tenth" and "whole" mean the same noise as elsewhere.

The rover follows Wang et al. 2018, "Batched large-scale Bayesian optimization in high-dimensional
spaces": way-points in the plane make a spline from a start to a goal, and the cost is what lies
along it, obstacles above all. The obstacles are our own, drawn by the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from partita.experiments.specs import Problem

from .cube import on_cube

Function = Callable[[np.ndarray], np.ndarray]

DIMENSIONS = (20, 50, 100)
#: Those of the rover of Wang et al. 2018: 30 way-points.
ROVER = 60
FUNCTIONS = ("sphere", "ackley", "rosenbrock", "four", "michalewicz", "rover", "policy")
DIMS = {f"{title}-{dim}": dim for dim in (*DIMENSIONS, ROVER) for title in FUNCTIONS}
#: In which noise they are played: without any as well.
NONE = "none"
TITLES = {name: name.replace("-", " ").capitalize() for name in DIMS}
#: Uniform points whose mean is the unit of regret, and whose range that of noise.
UNIFORM_POINTS = 2_000
#: Points of a way that the rover's cost is summed over, obstacles, and the radius of each.
WAY, OBSTACLES, RADIUS = 200, 15, 0.08
#: Steps of the controlled system, and starts that a policy is judged by.
HORIZON, STARTS = 30, 4


@cache
def build(name: str, seed: int) -> Problem:
    """The problem of a name; the seed draws its optimum."""
    title, dim = name.rpartition("-")[0], DIMS[name]
    random = np.random.default_rng([seed, dim, FUNCTIONS.index(title)])
    cost = _COSTS[title](dim, random)
    spread = cost(random.random((UNIFORM_POINTS, dim)))
    half = 0.5 * float(np.ptp(spread))

    def function(U: np.ndarray) -> np.ndarray:
        return -cost(np.asarray(U, dtype=float)) / half

    return on_cube(Problem, dim, function, 0.0, -float(spread.mean()) / half, half_width=0.1)


def _optimum(dim: int, random: np.random.Generator) -> np.ndarray:
    """A point off the centre, by 0.1 to 0.35 of each side."""
    away = random.uniform(0.1, 0.35, dim)
    return 0.5 + away * random.choice([-1.0, 1.0], dim)


def sphere(dim: int, random: np.random.Generator) -> Function:
    """The squared distance from the optimum."""
    optimum = _optimum(dim, random)
    return lambda U: ((U - optimum) ** 2).sum(axis=1)


def ackley(dim: int, random: np.random.Generator) -> Function:
    """Ackley's function on a box of width 20: a narrow hole in a plain of ripples."""
    optimum = _optimum(dim, random)

    def cost(U: np.ndarray) -> np.ndarray:
        Z = 20.0 * (U - optimum)
        root = np.sqrt((Z**2).mean(axis=1))
        ripples = np.cos(2.0 * np.pi * Z).mean(axis=1)
        return np.asarray(20.0 - 20.0 * np.exp(-0.2 * root) + np.e - np.exp(ripples))

    return cost


def rosenbrock(dim: int, random: np.random.Generator) -> Function:
    """Rosenbrock's bent valley, its optimum moved off the centre."""
    optimum = _optimum(dim, random)

    def cost(U: np.ndarray) -> np.ndarray:
        Z = 1.0 + 3.0 * (U - optimum)
        bent = Z[:, 1:] - Z[:, :-1] ** 2
        return np.asarray((100.0 * bent**2 + (1.0 - Z[:, :-1]) ** 2).sum(axis=1))

    return cost


def four(dim: int, random: np.random.Generator) -> Function:
    """A round hill of which only four coordinates, drawn by the seed, matter."""
    optimum, which = _optimum(dim, random), random.choice(dim, 4, replace=False)
    return lambda U: 1.0 - np.exp(-4.0 * ((U - optimum)[:, which] ** 2).sum(axis=1))


def michalewicz(dim: int, random: np.random.Generator) -> Function:
    """Michalewicz's function: a steep valley along every side. Its optimum is off the centre.

    The seed says which coordinate has which valley. The least of a coordinate is found on a fine
    grid.
    """
    order = random.permutation(dim)
    numbers = np.arange(1, dim + 1)

    def parts(X: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(X) * np.sin(numbers * X**2 / np.pi) ** 20)

    fine = np.linspace(0.0, np.pi, 200_001)[:, None]
    most = np.concatenate([parts(chunk) for chunk in np.array_split(fine, 100)]).max(axis=0)
    return lambda U: most.sum() - parts(np.pi * U[:, order]).sum(axis=1)


def rover(dim: int, random: np.random.Generator) -> Function:
    """The cost of a way from a corner to the other by dim/2 way-points, through obstacles.

    It is the mean along the way of 1 plus 20 within an obstacle, times the way's length, and how
    far its ends lie from start and goal. No way costs less than the straight one without obstacles,
    √2 0.8, which is taken off: what is left need not be 0 at the optimum.
    """
    from scipy.interpolate import make_interp_spline

    start, goal = np.array([0.1, 0.1]), np.array([0.9, 0.9])
    centres = random.uniform(0.2, 0.8, (OBSTACLES, 2))
    times = np.linspace(0.0, 1.0, dim // 2)
    fine = np.linspace(0.0, 1.0, WAY)
    spline = make_interp_spline(times, np.eye(dim // 2), k=3)(fine)  # (WAY, dim/2), linear

    def cost(U: np.ndarray) -> np.ndarray:
        points = U.reshape(len(U), dim // 2, 2)
        way = np.einsum("wk,nkc->nwc", spline, points)
        legs = np.sqrt((np.diff(way, axis=1) ** 2).sum(axis=2))
        middles = 0.5 * (way[:, 1:] + way[:, :-1])
        near = ((middles[:, :, None, :] - centres) ** 2).sum(axis=3).min(axis=2) < RADIUS**2
        ends = np.abs(points[:, 0] - start).sum(axis=1) + np.abs(points[:, -1] - goal).sum(axis=1)
        return np.asarray(((1.0 + 20.0 * near) * legs).sum(axis=1) + 10.0 * ends - 0.8 * 2**0.5)

    return cost


def policy(dim: int, random: np.random.Generator) -> Function:
    """The cost of a linear policy for a system of dim/2 states that two forces push.

    x' = A x + B u with u = K x, K of dim numbers: the mean of |x|²/n + 0.1 |u|² over a run, in the
    logarithm of 1 plus it, for some starts. It is at least 0. K = 0 lies off the centre.
    """
    states = dim // 2
    turn = np.linalg.qr(random.standard_normal((states, states)))[0]
    system = 1.02 * turn
    push = random.standard_normal((states, 2)) / states**0.5
    nothing = _optimum(dim, random)
    begins = random.standard_normal((STARTS, states))

    def cost(U: np.ndarray) -> np.ndarray:
        gains = (2.0 * (U - nothing)).reshape(len(U), 2, states)
        at = np.tile(begins, (len(U), 1, 1))
        total = np.zeros(len(U))
        for _ in range(HORIZON):
            force = np.einsum("nfs,nbs->nbf", gains, at)
            total += (at**2).mean(axis=(1, 2)) + 0.1 * (force**2).mean(axis=(1, 2))
            at = at @ system.T + force @ push.T
        return np.log1p(total / HORIZON)

    return cost


_COSTS: dict[str, Callable[[int, np.random.Generator], Function]] = {
    "sphere": sphere,
    "ackley": ackley,
    "rosenbrock": rosenbrock,
    "four": four,
    "michalewicz": michalewicz,
    "rover": rover,
    "policy": policy,
}
