"""Twelve functions that nothing in Partita was designed on, six of them spiky.

A *spiky* function has a broad peak and a narrow one that is higher. The narrow peak is at most a
tenth of a side wide at half its height ("spike"), or a twentieth ("needle"). Both places are drawn
by the seed. In five dimensions such a peak fills a part of the cube of about 10⁻⁵: a thousand
evaluations come near it by luck alone.

The other six are functions of the literature, scaled to values from −1 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from partita.experiments.specs import Problem, ProblemSpec
from partita.problems import average

from .cube import on_cube

#: Names, and their dimensions.
ORDINARY = {
    "levy-1": 1,
    "styblinski-2": 2,
    "michalewicz-2": 2,
    "levy-3": 3,
    "rosenbrock-3": 3,
    "styblinski-5": 5,
}
SPIKY = {"spike-1": 1, "needle-1": 1, "spike-2": 2, "needle-2": 2, "spike-3": 3, "spike-5": 5}
DIMS = ORDINARY | SPIKY
TITLES = {name: name.replace("-", " ").capitalize() for name in DIMS}
#: The width of the narrow peak at half its height, as a part of a side.
WIDTHS = {"spike": 0.1, "needle": 0.05}
#: The broad peak's width at half its height, and both peaks' heights above −1. The largest value is
#: 1, exactly, at the narrow peak.
BROAD, BROAD_HEIGHT, NARROW_HEIGHT = 0.7, 1.4, 2.0
#: The least distance between the peaks along some side.
APART = 0.3
#: A Gaussian's width at half its height, in standard deviations.
HALF = 2.0 * np.sqrt(2.0 * np.log(2.0))


def build(name: str, seed: int) -> Problem:
    """The problem of a name; a seed draws where the peaks of a spiky one are."""
    return _spiky(name, seed) if name in SPIKY else _ordinary(name)


@cache
def _ordinary(name: str) -> Problem:
    title, dim = name.rpartition("-")[0], DIMS[name]
    return ProblemSpec(title, dim, norm_bound=1.0, continuous=True).build(0)


@cache
def _spiky(name: str, seed: int) -> Problem:
    dim, (broad, narrow) = SPIKY[name], places(name, seed)
    function = two_peaks(broad, narrow, WIDTHS[name.rpartition("-")[0]])
    return on_cube(Problem, dim, function, 1.0, average(function, dim), half_width=1.0)


def places(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the broad and the narrow peak of a spiky function are, (d,) each."""
    dim = SPIKY[name]
    random = np.random.default_rng([seed, dim, len(name)])
    narrow = random.uniform(0.1, 0.9, dim)
    broad = random.uniform(0.2, 0.8, dim)
    while np.abs(broad - narrow).max() < APART:
        broad = random.uniform(0.2, 0.8, dim)
    return broad, narrow


def one_peak(broad: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A spiky function without its narrow peak."""
    return lambda U: -1.0 + BROAD_HEIGHT * _bump(np.asarray(U, dtype=float), broad, BROAD)


def _bump(X: np.ndarray, centre: np.ndarray, wide: float) -> np.ndarray:
    away = (X - centre) / (wide / HALF)
    return np.asarray(np.exp(-0.5 * (away**2).sum(axis=1)))


def two_peaks(
    broad: np.ndarray, narrow: np.ndarray, width: float
) -> Callable[[np.ndarray], np.ndarray]:
    """A broad peak at one place (d,) and a higher one of a given width at another."""

    def function(U: np.ndarray) -> np.ndarray:
        X = np.asarray(U, dtype=float)
        below = BROAD_HEIGHT * _bump(X, broad, BROAD)
        # The narrow peak rises to its height from what the broad one leaves there.
        return -1.0 + below + (NARROW_HEIGHT - below) * _bump(X, narrow, width)

    return function
