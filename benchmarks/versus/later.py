"""Ten functions of 2 to 10 dimensions that were made after the certificate, to check it on.

Nothing was chosen by looking at them. Seeds draw where things are. All go from −1 to 1, but for the
least value, which is that of many uniform points.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import partita as pt
from partita.experiments.specs import Problem
from partita.problems import RKHSFunction

from .cube import on_cube

Function = Callable[[np.ndarray], np.ndarray]

DIMS = {
    "smooth-2": 2,
    "plateau-3": 3,
    "smooth-4": 4,
    "bowl-4": 4,
    "bumps-4": 4,
    "smooth-5": 5,
    "waves-5": 5,
    "bumps-6": 6,
    "sums-6": 6,
    "sums-10": 10,
}
TITLES = {name: name.replace("-", " ").capitalize() for name in DIMS}
#: Uniform points whose least value, and mean, count as those of the function.
UNIFORM_POINTS = 20_000
#: Points a side on which a function of one coordinate is maximised.
FINE = 20_001


@cache
def build(name: str, seed: int) -> Problem:
    """The problem of a name and seed."""
    title, dim = name.rpartition("-")[0], DIMS[name]
    random = np.random.default_rng([seed, dim, 41])
    raw, most = _MAKERS[title](dim, random)
    values = raw(random.random((UNIFORM_POINTS, dim)))
    least = float(values.min())

    def function(U: np.ndarray) -> np.ndarray:
        return 2.0 * (raw(np.asarray(U, dtype=float)) - least) / (most - least) - 1.0

    mean = 2.0 * (float(values.mean()) - least) / (most - least) - 1.0
    return on_cube(Problem, dim, function, 1.0, mean, half_width=1.0)


def _smooth(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """A random function of a smooth kernel, as long as half a side."""
    f = RKHSFunction.sample(dim, pt.Matern(2.5, 0.5), seed=int(random.integers(2**31)))
    return f, f.maximum()


def _plateau(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """A steep step along a slanted direction, and a shallow bowl."""
    best = random.uniform(0.2, 0.8, dim)
    slope = random.uniform(-1.0, 1.0, dim)

    def f(U: np.ndarray) -> np.ndarray:
        away = U - best
        step = np.minimum(0.0, np.tanh(6.0 * (away @ slope + 0.25)) - np.tanh(1.5))
        return np.asarray(step - 0.5 * (away**2).sum(axis=1))

    return f, 0.0


def _bowl(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """A paraboloid whose axes differ by up to thirty times."""
    best, curves = random.uniform(0.1, 0.9, dim), 10.0 ** random.uniform(-1.0, 0.5, dim)
    return lambda U: -((U - best) ** 2) @ curves, 0.0


def _waves(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """A paraboloid with ripples, two to a side."""
    best = random.uniform(0.2, 0.8, dim)

    def f(U: np.ndarray) -> np.ndarray:
        away = U - best
        return np.asarray(-(away**2 + 0.1 * (1.0 - np.cos(4.0 * np.pi * away))).sum(axis=1))

    return f, 0.0


def _bumps(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """The highest of three broad peaks."""
    places, heights = random.uniform(0.15, 0.85, (3, dim)), np.array([1.0, 0.85, 0.7])

    def f(U: np.ndarray) -> np.ndarray:
        away = ((U[:, None, :] - places) ** 2).mean(axis=2)
        return np.asarray((heights * np.exp(-away / (2.0 * 0.2**2))).max(axis=1))

    return f, 1.0


def _sums(dim: int, random: np.random.Generator) -> tuple[Function, float]:
    """A sum of waves of one coordinate each."""
    rate, phase = random.uniform(2.0, 7.0, dim), random.uniform(0.0, 6.3, dim)
    fine = np.linspace(0.0, 1.0, FINE)[:, None]
    most = float(np.sin(rate * fine + phase).max(axis=0).sum())
    return lambda U: np.asarray(np.sin(rate * U + phase).sum(axis=1)), most


_MAKERS = {
    "smooth": _smooth,
    "plateau": _plateau,
    "bowl": _bowl,
    "waves": _waves,
    "bumps": _bumps,
    "sums": _sums,
}
