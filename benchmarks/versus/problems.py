"""The problems that every player meets: functions on the unit cube, to be maximised, and noise.

Synthetic functions are those of Janz et al. 2020, drawn by the seed; the others have values from
−1 to 1. Noise is uniform. "tenth": a tenth of the range, [−0.1, 0.1], and the paper's [−1, 1] for
the synthetic ones. "whole": as wide as the function's range.

BBOB's noisy functions (`bbob`) are here as well, with noise of their own, and twelve functions that
nothing was designed on (`unseen`), for benchmarks of the certificate, with ten more that check it
(`later`); and those of many dimensions (`wide`).

Players that are told a norm are told 1 where nobody knows it. Janz et al. 2020, figure 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from partita import problems
from partita.experiments.play import added
from partita.experiments.specs import Problem, ProblemSpec
from partita.experiments.trace import NOISE_STREAM
from partita.problems import RKHSFunction

from . import bbob, later, unseen, wide
from .cube import on_cube

NOISES = ("tenth", "whole")
#: The half-width of the noise of functions with values from −1 to 1.
WIDTHS = {"tenth": 0.1, "whole": 1.0, wide.NONE: 0.0}
#: Where Ackley's optimum lies in the unit cube: off the centre, and on nobody's lattice.
ACKLEY_OPTIMUM = (0.31, 0.62, 0.23, 0.57, 0.38)

SYNTHETIC = {f"rkhs-{dim}": dim for dim in (1, 2, 3, 6)}
LITERATURE = {"branin": 2, "camel": 2, "eggholder": 2, "hartmann3": 3, "hartmann6": 6}
ACKLEY = {"ackley-2": 2, "ackley-5": 5}
DIMS = SYNTHETIC | LITERATURE | ACKLEY
NAMES = tuple(DIMS)
#: The same in other dimensions, to check certificates on.
MORE_SYNTHETIC, MORE_ACKLEY = {"rkhs-4": 4, "rkhs-5": 5}, {"ackley-3": 3, "ackley-4": 4}
MORE = MORE_SYNTHETIC | MORE_ACKLEY
TITLES = (
    {
        "rkhs-1": "RKHS 1",
        "rkhs-2": "RKHS 2",
        "rkhs-3": "RKHS 3",
        "rkhs-6": "RKHS 6",
        "branin": "Branin",
        "camel": "camel",
        "eggholder": "Eggholder",
        "hartmann3": "Hartmann 3",
        "hartmann6": "Hartmann 6",
        "ackley-2": "Ackley 2",
        "ackley-5": "Ackley 5",
    }
    | {name: name.replace("rkhs", "RKHS").replace("a", "A").replace("-", " ") for name in MORE}
    | bbob.TITLES
    | unseen.TITLES
    | later.TITLES
    | wide.TITLES
)
#: With BBOB's and the unseen ones.
EVERY = (
    {name: (dim, NOISES) for name, dim in (DIMS | MORE | unseen.DIMS | later.DIMS).items()}
    | {name: (dim, (*NOISES, wide.NONE)) for name, dim in wide.DIMS.items()}
    | {name: (dim, (bbob.OWN,)) for name, dim in bbob.DIMS.items()}
)


def build(name: str, noise: str, seed: int) -> Problem:
    """The problem of a name, noise and seed."""
    if name not in EVERY:
        raise ValueError(f"problem {name!r} is unknown: give some of {', '.join(NAMES)}")
    _, noises = EVERY[name]
    if noise not in noises:
        raise ValueError(f"noise {noise!r} is unknown: give some of {', '.join(noises)}")
    if name in bbob.DIMS:
        return bbob.build(name, seed)
    if name in unseen.DIMS:
        return replace(unseen.build(name, seed), half_width=WIDTHS[noise])
    if name in later.DIMS:
        return replace(later.build(name, seed), half_width=WIDTHS[noise])
    if name in wide.DIMS:
        return replace(wide.build(name, seed), half_width=WIDTHS[noise])
    if name not in SYNTHETIC | MORE_SYNTHETIC:
        return replace(_fixed(name), half_width=WIDTHS[noise])
    problem = _synthetic((DIMS | MORE)[name], seed)
    return problem if noise == "tenth" else replace(problem, half_width=_half_range(problem))


def any_of(dim: int) -> Problem:
    """Some problem in `dim` dimensions."""
    name, noises = next((n, noises) for n, (d, noises) in EVERY.items() if d == dim)
    return build(name, noises[0], 0)


def noise(problem: Problem, seed: int, count: int) -> Callable[[float], float]:
    """A function that makes noisy values of the exact values of `count` steps."""
    if isinstance(problem, bbob.NoisyFunction):
        return problem.noise(np.random.default_rng([seed, problem.number]))
    random, half_width = np.random.default_rng([seed, NOISE_STREAM]), problem.half_width
    return added(random.uniform(-half_width, half_width, count).tolist())


def expected(problem: Problem, values: np.ndarray) -> np.ndarray:
    """What noisy values are on average where the exact ones are these, (n,)."""
    return problem.expected(values) if isinstance(problem, bbob.NoisyFunction) else values


@cache
def _synthetic(dim: int, seed: int) -> Problem:
    return ProblemSpec("synthetic", dim, continuous=True).build(seed)


@cache
def _half_range(problem: Problem) -> float:
    """Half of max f − min f of a synthetic function."""
    f = problem.function
    return (problem.best + RKHSFunction(f.kernel, f.centres, -f.weights).maximum()) / 2


@cache
def _fixed(name: str) -> Problem:
    """A problem that no seed changes."""
    if name not in ACKLEY | MORE_ACKLEY:
        return ProblemSpec(name, DIMS[name], norm_bound=1.0, continuous=True).build(0)
    dim = (ACKLEY | MORE_ACKLEY)[name]
    function = shifted_ackley(dim)
    return on_cube(Problem, dim, function, 1.0, problems.average(function, dim), half_width=1.0)


def shifted_ackley(dim: int) -> Callable[[np.ndarray], np.ndarray]:
    """Ackley from −1 to 1 on the unit cube, largest at `ACKLEY_OPTIMUM`.

    One end of each side of the usual box is moved towards the optimum, the other stays: the
    farthest corner is still in it, so the least value is the usual one, and the scale is exact.
    """
    ackley = problems.get("ackley", dim)
    optimum = np.array(ACKLEY_OPTIMUM[:dim])
    radius = ackley.domain.upper
    # Ackley is even in every coordinate, so a side may be turned round to have its far end at 1.
    turned = optimum > 0.5
    near = np.where(turned, 1.0 - optimum, optimum)
    short = near / (1.0 - near)  # the side that was moved, as a part of the radius

    def function(U: np.ndarray) -> np.ndarray:
        along = np.where(turned, 1.0 - np.asarray(U), U)
        return ackley.scaled(np.clip(radius * ((1.0 + short) * along - short), -radius, radius))

    return function
