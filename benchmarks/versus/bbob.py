"""BBOB's noisy functions, f101 to f130, from `cma.bbobbenchmarks`.

"f107-5" is f107 in 5 dimensions; seed s is BBOB's instance s + 1. Functions are turned round to be
maximised, and their box, [−5, 5]^d, is the unit cube here, as for all players.

The noise multiplies the excess g = f − f*, or is added to it (Hansen et al. 2009, "Real-parameter
black-box optimization benchmarking 2009: noisy functions definitions"):

- Gauss: g exp(βZ), so that E[y] − f* = g exp(β²/2): 1.65 times g for β = 1.
- uniform: g U^β max(1, (10⁹/g)^(αU')).
- Cauchy: g + α max(0, 1000 + B C), B = 1 with probability p: it has no mean. Its median is
  g + 1000α, never g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from partita.experiments.specs import Problem

from .cube import on_cube

FUNCTIONS = tuple(range(101, 131))
#: Those whose values have no mean.
CAUCHY = tuple(range(103, 131, 3))
DIMENSIONS = (2, 3, 5, 10, 20, 40)
#: The noise is the function's own: there is no other choice.
OWN = "own"
SIDE = 5.0
#: Uniform points whose median regret is the unit of regret.
UNIFORM_POINTS = 2_000
#: Where it is zero but for this, BBOB leaves out the noise.
_TOLERANCE = 1e-8


def name(function: int, dim: int) -> str:
    """The name of a function in `dim` dimensions."""
    return f"f{function}-{dim}"


DIMS = {name(function, dim): dim for dim in DIMENSIONS for function in FUNCTIONS}
NUMBERS = {name(function, dim): function for dim in DIMENSIONS for function in FUNCTIONS}
TITLES = {label: f"f{function}" for label, function in NUMBERS.items()}


@dataclass(frozen=True, eq=False)
class NoisyFunction(Problem):
    """One instance. `mean` is the median of uniform points, `half_width` means nothing."""

    number: int
    #: BBOB's own object, whose `noise` makes noisy excesses of exact ones.
    source: Any

    def noise(self, random: np.random.Generator) -> Callable[[float], float]:
        """A function that makes noisy values of exact ones."""
        module = _benchmarks()

        def noisy(value: float) -> float:
            # BBOB draws from NumPy's global state, which players draw from as well.
            module._randn, module._rand = random.standard_normal, random.random
            return self.best - float(self.source.noise(np.array([self.best - value]))[0])

        return noisy

    def expected(self, values: np.ndarray) -> np.ndarray:
        """E[y] where the exact values are these; with Cauchy noise the median of y, (n,)."""
        excess = self.best - np.asarray(values, dtype=float)
        seen = self._expected_excess(np.maximum(excess, _TOLERANCE)) + 1.01 * _TOLERANCE
        return self.best - np.where(excess < _TOLERANCE, excess, seen)

    def _expected_excess(self, excess: np.ndarray) -> np.ndarray:
        source = self.source
        if hasattr(source, "gaussbeta"):
            return excess * np.exp(source.gaussbeta**2 / 2)
        if hasattr(source, "unifbeta"):
            # E[r^(αU)] = (r^α − 1)/(α log r)
            power = source.unifalphafac * (0.49 + 1 / self.dim) * np.log(1e9 / excess)
            grown = np.where(power > 0, np.expm1(power) / np.where(power > 0, power, 1.0), 1.0)
            return excess / (1 + source.unifbeta) * grown
        return excess + 1e3 * source.cauchyalpha


@cache
def build(label: str, seed: int) -> NoisyFunction:
    """The function of a name; the seed chooses the instance."""
    number, dim = NUMBERS[label], DIMS[label]
    source, _ = _benchmarks().instantiate(number, iinstance=seed + 1)
    exact, optimum = _benchmarks().instantiate(number, iinstance=seed + 1)
    exact.noise = np.copy  # draws nothing

    def function(U: np.ndarray) -> np.ndarray:
        return -exact._evalfull(SIDE * (2 * np.asarray(U, dtype=float) - 1))[1]

    source._evalfull(np.zeros((1, dim)))  # tells it its dimension, which the noise depends on
    points = np.random.default_rng([seed, number, dim]).random((UNIFORM_POINTS, dim))
    median = float(np.median(function(points)))
    told = {"number": number, "source": source}
    return on_cube(NoisyFunction, dim, function, -float(optimum), median, **told)


def _benchmarks() -> Any:
    """BBOB's functions; importing pycma takes a second, so late."""
    import cma.bbobbenchmarks as module

    return module
