"""How much each parameter matters: its share of the variance of the function.

Sobol's indices (Sobol' 1993, Saltelli et al. 2008) of a Gaussian process that is fitted to the
values, with intervals over functions drawn from its posterior (Marrel et al. 2009, "Calculations of
Sobol indices for the Gaussian process metamodel"). Parameters vary over their whole ranges, as the
space has them, each independently of the others; a constraint is left aside.

Notation: p parameters, N base points, A and B two samples (N, D) of the unit cube.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.gp.data import Data, farthest
from partita.gp.fitting import Fit, fit
from partita.gp.paths import Paths, draw_paths
from partita.gp.settings import Fixed, Settings, first_settings

if TYPE_CHECKING:
    from partita.space import Space

    from .trials import Trials

#: Points that the process is fitted to and draws are conditioned on, at most.
MOST_POINTS = 250
#: Draws of the settings, and of functions for each.
SETTINGS, FUNCTIONS = 8, 8
#: Points at which all draws are evaluated, about; from these follows N, within limits.
BUDGET, FEWEST, MOST = 24_000, 512, 2048
#: Values that there must be at least.
FEWEST_VALUES = 5
#: The intervals hold this part of the draws.
INSIDE = 0.9
#: Values that vary by less, as a part of their size, do not vary.
CONSTANT = 1e-12


class Importance(NamedTuple):
    """How much one parameter matters, as shares of the variance, from 0 to 1.

    Attributes
    ----------
    name
        Of the parameter, or its place in the array, such as "x[0]".
    total
        The share that vanishes if it is known: by itself and together with others.
    lower, upper
        Between them lie nine of ten draws of `total`.
    first
        The share that it explains by itself.
    first_lower, first_upper
        The same for `first`.
    """

    name: str
    total: float
    lower: float
    upper: float
    first: float
    first_lower: float
    first_upper: float


class Indices(NamedTuple):
    """First and total indices (p, draws) of several functions."""

    first: FloatArray
    total: FloatArray


def importance_of(trials: Trials, seed: int = 0) -> list[Importance]:
    """The importance of each parameter that varies, the most important first.

    Refused while there are fewer than five values.
    """
    told = trials.finished
    if len(told) < FEWEST_VALUES:
        raise InvalidInput(
            f"importance: there are {len(told)} values. It needs {FEWEST_VALUES} or more"
        )
    names, groups = parameters_of(trials.space)
    random = np.random.default_rng(seed)
    data = _data(told)
    if not varies(data.means):
        return [Importance(name, *(0.0,) * 6) for name in names]
    paths = list(_draws(data, random))

    def drawn(points: FloatArray) -> FloatArray:
        return np.concatenate([path.at(points) for path in paths], axis=1)

    number = int(np.clip(BUDGET // (len(names) + 2), FEWEST, MOST))
    found = indices(drawn, trials.space.spread, trials.space.dim, groups, number, seed)
    rows = [
        Importance(name, *_summary(total), *_summary(first))
        for name, total, first in zip(names, found.total, found.first, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.total)


def varies(values: FloatArray) -> bool:
    """Whether values (n,) differ by more than rounding."""
    return bool(np.ptp(values) > CONSTANT * np.abs(values).max())


def parameters_of(space: Space) -> tuple[list[str], list[slice]]:
    """Names of the parameters that vary, and the coordinates of the unit cube that each has."""
    if space.arms is not None:
        return [f"x[{i}]" for i in range(space.dim)], [slice(i, i + 1) for i in range(space.dim)]
    names = space.names or [f"x[{i}]" for i in range(len(space.parameters))]
    ends = np.cumsum([0, *(parameter.width for parameter in space.parameters)]).tolist()
    pairs = zip(names, map(slice, ends[:-1], ends[1:]), strict=True)
    varying = [(name, part) for name, part in pairs if part.stop > part.start]
    return [name for name, _ in varying], [part for _, part in varying]


def _summary(draws: FloatArray) -> tuple[float, float, float]:
    """The mean of an index over draws (n,), and its interval, within [0, 1]."""
    kept = np.clip(draws, 0.0, 1.0)
    low, high = np.quantile(kept, [(1 - INSIDE) / 2, (1 + INSIDE) / 2])
    return float(kept.mean()), float(low), float(high)


# -- the model -------------------------------------------------------------------------------------


def _data(told: Trials) -> Data:
    """Replicate means at some of the points, each as far from those before as can be."""
    known = ~np.isnan(told.stds)
    keys = np.column_stack([told.units, known * (1 + np.arange(len(told)))])
    rows, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    means = np.bincount(which, weights=told.values) / counts
    within = np.bincount(which, weights=(told.values - means[which]) ** 2)
    noise = np.where(known, told.stds, 0.0) ** 2 / told.counts  # of a mean, if it is one
    variances = np.bincount(which, weights=noise)
    points = np.ascontiguousarray(rows[:, :-1])
    noise = np.where(rows[:, -1] > 0, variances, np.nan)
    data = Data(
        points, counts.astype(float), means, within.astype(float), np.ones(len(means)), noise
    )
    return data.take(farthest(points, MOST_POINTS)) if len(points) > MOST_POINTS else data


def _draws(data: Data, random: np.random.Generator) -> Iterator[Paths]:
    """Functions drawn from the posterior, under the most likely settings and others near them."""
    given = Fixed()
    fitted = fit(data, first_settings(data.points.shape[1], given), given, restart=True)
    yield draw_paths(data, fitted.best, random, FUNCTIONS)
    for _ in range(SETTINGS - 1):
        yield draw_paths(data, _near(fitted, random), random, FUNCTIONS)


def _near(fitted: Fit, random: np.random.Generator) -> Settings:
    """Settings drawn around the most likely ones."""
    vector = fitted.best.vector + fitted.spread @ random.standard_normal(len(fitted.spread))
    values = np.exp(np.clip(vector, fitted.best.vector - 3.0, fitted.best.vector + 3.0))
    return replace(fitted.best, scales=values[:-1], noise=float(values[-1]))


# -- indices ---------------------------------------------------------------------------------------


def indices(
    f: Callable[[FloatArray], FloatArray],
    spread: Callable[[FloatArray], FloatArray],
    dim: int,
    groups: Sequence[slice],
    number: int,
    seed: int = 0,
) -> Indices:
    """Sobol's indices of functions over the unit cube, by N(p + 2) evaluations.

    First: mean of f(B)(f(AB_i) − f(A)) over the variance (Saltelli et al. 2010); total: half the
    mean of (f(A) − f(AB_i))² over it (Jansen 1999). AB_i is A with the coordinates of parameter i
    from B.

    Parameters
    ----------
    f
        The values (n, draws) at points (n, D).
    spread
        Valid points for uniform rows.
    dim, groups
        D, and the coordinates of each parameter.
    number
        N.
    """
    from scipy.stats import qmc

    # A power of 2 of Sobol's points has the least error.
    power = max(int(np.log2(number)), 1)
    uniform = qmc.Sobol(2 * dim, seed=np.random.default_rng([seed, dim])).random_base2(power)
    a, b = spread(uniform[:, :dim]), spread(uniform[:, dim:])
    at_a, at_b = f(a), f(b)
    both = np.concatenate([at_a, at_b])
    middle, variance = both.mean(axis=0), both.var(axis=0)
    variance = np.where(variance > 0.0, variance, np.inf)
    first, total = [], []
    for group in groups:
        mixed = a.copy()
        mixed[:, group] = b[:, group]
        at_mixed = f(mixed)
        first.append(((at_b - middle) * (at_mixed - at_a)).mean(axis=0) / variance)
        total.append(((at_a - at_mixed) ** 2).mean(axis=0) / (2 * variance))
    return Indices(np.array(first), np.array(total))
