"""Functions of the global optimisation literature: their boxes, optima and scaled values.

Formulas and boxes are those of Surjanovic & Bingham 2013, "Virtual Library of Simulation
Experiments". The literature minimises; `scaled` and `unit` turn the sign, since policies maximise.

Notation: X holds n points of the box as rows, (n, d); x and y are its columns where d = 2.

How the maxima are known. Bukin, camel, Levy, Michalewicz, Rastrigin, Schwefel and Styblinski–Tang
are sums of terms that are all largest at one point; Schaffer has its maximum on an axis, Rosenbrock
at a corner (no term gains from leaving it). Ackley is concave in the means of x² and of cos 2πx, so
its maximum has all coordinates equal. Branin, Eggholder, Goldstein–Price and Hartmann 3 were
settled by branch and bound in interval arithmetic, Griewank by dynamic programming over coordinates
and a local search in every lobe of its cosines, to 1e−6 of their range. Hartmann 6 is negative
everywhere, and above −2.9e−8 at the point given.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.domains import Box, Grid

from . import formulas

#: A grid on which a function varies by less than this part of its range cannot be scaled.
FLAT = 1e-12


@final
@dataclass(frozen=True, eq=False, repr=False)
class GlobalFunction:
    """A function of the literature, to be minimised over a box, about which all is known.

    Parameters
    ----------
    name, title
        What `get` calls it, and what the literature does.
    domain
        The literature's usual box.
    minimum, minimisers
        The least value, and every point that takes it, (k, d), read-only.
    maximum, worst
        The largest value over the box, and a point that takes it, (d,), read-only.
    citation
        Where it comes from.
    formula
        Values (n,) at points (n, d), unchecked.
    """

    name: str
    title: str
    domain: Box
    minimum: float
    minimisers: FloatArray
    maximum: float
    worst: FloatArray
    citation: str
    formula: Callable[[FloatArray], FloatArray]

    def __post_init__(self) -> None:
        for name in ("minimisers", "worst"):
            points = np.array(getattr(self, name), dtype=np.float64)
            points.flags.writeable = False
            object.__setattr__(self, name, points)

    @property
    def dim(self) -> int:
        """Dimension of the domain."""
        return self.domain.dim

    def __call__(self, X: npt.ArrayLike) -> FloatArray:
        """The literature's values at points of the box, (n, d) → (n,); to be minimised.

        Points outside are refused: what is known of the function holds inside.
        """
        return self.formula(self.domain.check(X))

    def scaled(self, X: npt.ArrayLike) -> FloatArray:
        """Values from −1, at `worst`, to 1, at the minimisers, (n, d) → (n,); to be maximised."""
        # Rounding may take a value past the optimum by some 1e−16 of the range.
        return np.clip(_turned(self(X), self.minimum, self.maximum), -1.0, 1.0)

    def unit(self, U: npt.ArrayLike) -> FloatArray:
        """`scaled` at the points of the box that U stands for, U in [0, 1]^d, (n, d) → (n,)."""
        return self.scaled(self.domain.from_unit(U))

    def on_grid(self, n: int) -> FloatArray:
        """Values on `Grid(n, dim)`, in the order of its points, (n^d,); to be maximised.

        Scaled so that the *grid's* best point has 1 and its worst −1: Janz et al. 2020, "Global
        optimisation baselines".
        """
        values = self(self.domain.from_unit(Grid(n, self.dim).points))
        low, high = float(values.min()), float(values.max())
        if high - low <= FLAT * (self.maximum - self.minimum):
            raise InvalidInput(
                f"on_grid({n}): {self.name} takes the same value, {low:g}, at all {len(values)} "
                "points, and cannot be scaled: give more points a side"
            )
        return _turned(values, low, high)

    def __repr__(self) -> str:
        return f"GlobalFunction({self.name!r}, dim={self.dim})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


def _turned(values: FloatArray, low: float, high: float) -> FloatArray:
    """Values from low to high as values from 1 to −1."""
    return 1.0 - 2.0 * ((values - low) / (high - low))


def get(name: str, dim: int | None = None) -> GlobalFunction:
    """The function called `name`, one of `names()`.

    Parameters
    ----------
    name
        Such as "branin".
    dim
        The dimension, for functions that have a choice: 2 if not given.
    """
    entry = _entry(name)
    d = _dimension(name, entry, dim)
    (lower, upper), (minimum, minimisers), (maximum, worst) = entry.facts(d)
    best = np.asarray(minimisers)
    return GlobalFunction(
        name=name,
        title=entry.title,
        domain=Box(np.broadcast_to(lower, d), np.broadcast_to(upper, d)),
        minimum=minimum,
        minimisers=np.broadcast_to(best, (len(best) if best.ndim == 2 else 1, d)),
        maximum=maximum,
        worst=np.broadcast_to(worst, d),
        citation=entry.citation,
        formula=entry.formula,
    )


def names() -> tuple[str, ...]:
    """The names that `get` knows, in alphabetical order."""
    return tuple(_CATALOGUE)


def describe(name: str) -> str:
    """One line about the function called `name`: its title, dimension and character."""
    entry = _entry(name)
    return f"{entry.title}, {_dimensions(entry)}: {entry.about}"


def _entry(name: str) -> _Entry:
    if name not in names():
        raise InvalidInput(f"{name!r} is not in the catalogue: give one of {', '.join(names())}")
    return _CATALOGUE[name]


def _dimension(name: str, entry: _Entry, dim: int | None) -> int:
    least, most = entry.dims
    if dim is None:
        return max(least, 2)
    try:
        d = operator.index(dim)
    except TypeError:
        d = 0
    if isinstance(dim, bool) or not least <= d <= (most or d):
        raise InvalidInput(
            f"get({name!r}, dim={dim!r}): {entry.title} has {_dimensions(entry)}. "
            "Give an integer that fits, or leave dim out"
        )
    return d


def _dimensions(entry: _Entry) -> str:
    least, most = entry.dims
    if most is not None:
        return f"{least} dimensions"
    return "any number of dimensions" if least == 1 else f"{least} or more dimensions"


class _Facts(NamedTuple):
    """What is known in one dimension d; one number stands for a point with equal coordinates."""

    box: tuple[npt.ArrayLike, npt.ArrayLike]
    best: tuple[float, npt.ArrayLike]
    worst: tuple[float, npt.ArrayLike]


def _griewank_facts(dim: int) -> _Facts:
    # Only few dimensions repay a step from the corner, for a product of cosines nearer −1.
    worst = {
        2: [597.20934481482758, 600.0],
        3: [597.27704789495303, 600.0, 599.59204112014748],
        4: [600.0, 600.0, 600.0, 599.15861606625009],
    }.get(dim, [600.0] * dim)
    return _Facts(
        (-600.0, 600.0), (0.0, 0.0), (float(formulas.griewank(np.array([worst]))[0]), worst)
    )


def _michalewicz_facts(dim: int) -> _Facts:
    """Coordinate i minimises −sin x · sin²⁰ θ, θ = i x²/π, on its own.

    The best lobe is one of the two whose peaks, θ = (k + ½)π, enclose x = π/2; its minimum, a zero
    of the logarithm's derivative cot x + 20 θ' cot θ, is near the peak.
    """
    i = np.arange(1.0, dim + 1.0)
    below = np.maximum(np.floor(i / 4.0 - 0.5), 0.0)
    x = np.pi * np.sqrt((np.stack([below, np.minimum(below + 1.0, i - 1.0)]) + 0.5) / i)
    for _ in range(10):  # Newton
        theta, slope = i * x**2 / np.pi, 2.0 * i * x / np.pi
        cot = 1.0 / np.tan(theta)
        first = 1.0 / np.tan(x) + 20.0 * slope * cot
        second = -1.0 / np.sin(x) ** 2 + 20.0 * (slope / x * cot - (slope / np.sin(theta)) ** 2)
        x = x - first / second
    depth = np.sin(x) * np.sin(i * x**2 / np.pi) ** 20
    best = np.where(depth[0] >= depth[1], x[0], x[1])
    return _Facts((0.0, np.pi), (-float(depth.max(axis=0).sum()), best), (0.0, 0.0))


class _Entry(NamedTuple):
    """A line of the catalogue; dims: the least and the largest dimension, None for no limit."""

    title: str
    about: str
    citation: str
    formula: Callable[[FloatArray], FloatArray]
    dims: tuple[int, int | None]
    facts: Callable[[int], _Facts]


_DIXON_SZEGO = "Dixon & Szegő 1978, Towards Global Optimisation 2"

_CATALOGUE: dict[str, _Entry] = {
    "ackley": _Entry(
        "Ackley",
        "a rippled plain with one deep hole in the middle",
        "Ackley 1987, A Connectionist Machine for Genetic Hillclimbing",
        formulas.ackley,
        (1, None),
        lambda d: _Facts(
            box=(-32.768, 32.768),
            best=(0.0, 0.0),
            worst=(22.320334848401284, 32.500414041297836),
        ),
    ),
    "branin": _Entry(
        "Branin",
        "three equal minima along a smooth valley",
        _DIXON_SZEGO,
        formulas.branin,
        (2, 2),
        lambda d: _Facts(
            box=([-5.0, 0.0], [10.0, 15.0]),
            best=(1.25 / np.pi, [[-np.pi, 12.275], [np.pi, 2.275], [3.0 * np.pi, 2.475]]),
            worst=(308.12909601160666, [-5.0, 0.0]),
        ),
    ),
    "bukin6": _Entry(
        "Bukin N.6",
        "a gently sloping curved valley, as sharp as a knife",
        "Bukin 1997, New minimization strategy for non-smooth functions",
        formulas.bukin6,
        (2, 2),
        lambda d: _Facts(
            box=([-15.0, -3.0], [-5.0, 3.0]),
            best=(0.0, [-10.0, 1.0]),
            worst=(100.0 * math.sqrt(5.25) + 0.05, [-15.0, -3.0]),
        ),
    ),
    "camel": _Entry(
        "Six-hump camel",
        "six minima, two of them global, between steep walls",
        _DIXON_SZEGO,
        formulas.camel,
        (2, 2),
        lambda d: _Facts(
            box=([-3.0, -2.0], [3.0, 2.0]),
            best=(
                -1.0316284534898774,
                np.outer([1.0, -1.0], [0.089842013100318062, -0.71265640302073963]),
            ),
            worst=(162.9, [3.0, 2.0]),
        ),
    ),
    "eggholder": _Entry(
        "Eggholder",
        "many minima of all depths, the best on the edge",
        "Whitley, Rana, Dzubera & Mathias 1996, Evaluating evolutionary algorithms",
        formulas.eggholder,
        (2, 2),
        lambda d: _Facts(
            box=(-512.0, 512.0),
            best=(-959.64066272085080, [512.0, 404.23180511375781]),
            worst=(1049.1316235044932, [-512.0, 512.0]),
        ),
    ),
    "goldstein": _Entry(
        "Goldstein–Price",
        "four minima in a flat cross, values over six orders of magnitude",
        "Goldstein & Price 1971, On descent from local minima",
        formulas.goldstein,
        (2, 2),
        lambda d: _Facts(
            box=(-2.0, 2.0),
            best=(3.0, [0.0, -1.0]),
            worst=(1015690.2717980589, [-1.7373725377583070, 2.0]),
        ),
    ),
    "griewank": _Entry(
        "Griewank",
        "a wide bowl with fine regular ripples",
        "Griewank 1981, Generalized descent for global optimization",
        formulas.griewank,
        (1, None),
        _griewank_facts,
    ),
    "hartmann3": _Entry(
        "Hartmann 3",
        "four wells",
        _DIXON_SZEGO,
        formulas.hartmann3,
        (3, 3),
        lambda d: _Facts(
            box=(0.0, 1.0),
            best=(
                -3.8627797873326625,
                [0.11458887665506897, 0.55564889461693004, 0.85254698468667744],
            ),
            worst=(-3.7727185141626746e-05, [1.0, 1.0, 0.0]),
        ),
    ),
    "hartmann6": _Entry(
        "Hartmann 6",
        "four wells that overlap",
        _DIXON_SZEGO,
        formulas.hartmann6,
        (6, 6),
        lambda d: _Facts(
            box=(0.0, 1.0),
            best=(
                -3.3223680114155148,
                [0.201689511, 0.150010692, 0.476873974, 0.275332430, 0.311651617, 0.657300534],
            ),
            worst=(-2.8124505439686545e-08, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        ),
    ),
    "levy": _Entry(
        "Levy",
        "a bowl with long ripples",
        "Levy & Montalvo 1985, The tunneling algorithm for the global minimization of functions",
        formulas.levy,
        (1, None),
        lambda d: _Facts(
            box=(-10.0, 10.0),
            best=(0.0, 1.0),
            worst=(15.625 + 79.757808951846089 * (d - 1), -10.0),
        ),
    ),
    "michalewicz": _Entry(
        "Michalewicz",
        "flat, with steep narrow valleys that cross",
        "Michalewicz 1992, Genetic Algorithms + Data Structures = Evolution Programs",
        formulas.michalewicz,
        (1, None),
        _michalewicz_facts,
    ),
    "rastrigin": _Entry(
        "Rastrigin",
        "a bowl with a deep minimum near every integer point",
        "Mühlenbein, Schomisch & Born 1991, The parallel genetic algorithm as function optimizer",
        formulas.rastrigin,
        (1, None),
        lambda d: _Facts(
            box=(-5.12, 5.12),
            best=(0.0, 0.0),
            worst=(40.353290193838956 * d, 4.5229936595845188),
        ),
    ),
    "rosenbrock": _Entry(
        "Rosenbrock",
        "a long curved valley with a flat floor",
        "Rosenbrock 1960, An automatic method for finding the greatest or least value",
        formulas.rosenbrock,
        (2, None),
        lambda d: _Facts(
            box=(-5.0, 10.0),
            best=(0.0, 1.0),
            worst=(1102581.0 + 810081.0 * (d - 2), [10.0] * (d - 1) + [-5.0]),
        ),
    ),
    "schaffer2": _Entry(
        "Schaffer N.2",
        "ripples that grow finer and fainter away from the middle",
        "Mishra 2006, Some new test functions for global optimization",
        formulas.schaffer2,
        (2, 2),
        lambda d: _Facts(
            box=(-100.0, 100.0),
            best=(0.0, 0.0),
            worst=(0.99843314547397519, [1.2531149631531628, 0.0]),
        ),
    ),
    "schwefel": _Entry(
        "Schwefel",
        "deep minima far apart, the best near a corner",
        "Schwefel 1981, Numerical Optimization of Computer Models",
        formulas.schwefel,
        (1, None),
        lambda d: _Facts(
            box=(-500.0, 500.0),
            best=(0.0, formulas.SCHWEFEL_X),
            worst=(2.0 * formulas.SCHWEFEL_SHIFT * d, -formulas.SCHWEFEL_X),
        ),
    ),
    "styblinski": _Entry(
        "Styblinski–Tang",
        "a minimum in each orthant, one of them global",
        "Styblinski & Tang 1990, Experiments in nonconvex optimization",
        formulas.styblinski,
        (1, None),
        lambda d: _Facts(
            box=(-5.0, 5.0),
            best=(-39.166165703771416 * d, -2.9035340277711771),
            worst=(125.0 * d, 5.0),
        ),
    ),
}
