"""What an exponent is, and the formulas.

Notation: d the dimension, ν the smoothness of the Matérn kernel, T the horizon, γ_T the largest
information gain of T points. "Up to logarithms" is Janz et al. 2020's Õ: f(t) = Õ(t^a) if
f(t) = O(t^(a+ε)) for every ε > 0.

Formulas take ν as a `Fraction`, and are exact; or infinite, and are the limit. They are written so
that infinity never meets infinity.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, overload

import numpy as np

from partita._checks import as_floats, as_number
from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.partition import cover
from partita.partition.widths import PaperWidth

#: d and ν → the exponent; ν and the value are fractions, or floats where ν is infinite.
Rule = Callable[[int, Any], Any]

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Exponent:
    """An exponent e(d, ν) of T, with its source: something grows as T^e, up to logarithms.

    Call it with a dimension and a smoothness, one number or an array of them.

    Attributes
    ----------
    name
        How the registry knows it.
    title
        What it bounds, in a few words.
    formula
        The formula in d and ν, as plain text.
    citation
        Who proved it.
    kind
        What it is an exponent of: one of `KINDS`.
    note
        What else a reader should know.
    setting
        What is assumed of f; nothing for what f has no part in.
    proven_above
        The proof needs ν larger than this. The formula has a value for smaller ν all the same.
    """

    name: str
    title: str
    formula: str
    citation: str
    kind: str
    note: str = ""
    setting: str = ""
    proven_above: float = 0.0
    rule: Rule = field(kw_only=True, repr=False, compare=False)

    @overload
    def __call__(self, dim: int, nu: float | Fraction) -> float: ...

    @overload
    def __call__(self, dim: int, nu: FloatArray | list[float]) -> FloatArray: ...

    def __call__(self, dim: int, nu: Any) -> float | FloatArray:
        """The exponent for dimension `dim` and smoothness `nu` > 0, a number or an array.

        Correctly rounded. At nu = inf it is the limit.
        """
        if isinstance(nu, Real) or np.ndim(nu) == 0:
            return float(self.exact(dim, nu))
        values = as_floats(nu, "nu")
        each = [float(self.exact(dim, value)) for value in values.ravel().tolist()]
        return np.array(each, dtype=np.float64).reshape(values.shape)

    def exact(self, dim: int, nu: float | Fraction) -> Fraction:
        """The exponent as a fraction; `nu` may be one too, such as Fraction(1, 3)."""
        return Fraction(self.rule(as_dim(dim), as_smoothness(nu)))

    def holds(self, nu: float | Fraction) -> bool:
        """Whether the proof covers this smoothness."""
        return as_smoothness(nu) > self.proven_above


def as_dim(dim: object) -> int:
    """A dimension of at least 1."""
    try:
        if isinstance(dim, bool):
            raise TypeError
        number = operator.index(dim)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidInput(f"dim={dim!r}: give the dimension, a whole number of at least 1.")
    return number


def as_smoothness(nu: object) -> Fraction | float:
    """A smoothness ν > 0 as a fraction, exactly, or as infinity."""
    if isinstance(nu, np.ndarray) and nu.ndim == 0:
        nu = nu.item()
    number = as_number(nu)
    if not number > 0:
        raise InvalidInput(f"nu={nu!r}: give the smoothness of the kernel, a positive number.")
    if math.isinf(number):
        return math.inf
    if isinstance(nu, Integral):
        return Fraction(int(nu))
    return Fraction(nu) if isinstance(nu, Rational) else Fraction(number)


# -- the cover of Janz et al. 2020 -------------------------------------------------------------


def cell_exponent(dim: int, nu: float | Fraction) -> float:
    """b = (d+1)/(d+2ν): a cell of side ρ splits at about ρ^(−1/b) points.

    Janz et al. 2020, "Main contribution".
    """
    return float(cell_rule(as_dim(dim), as_smoothness(nu)))


def cover_exponent(dim: int, nu: float | Fraction) -> float:
    """q = d(d+1)/(d(d+2)+2ν): at most O(T^q) cells are ever made. Janz et al. 2020, Lemma 2."""
    return float(janz_gain(as_dim(dim), as_smoothness(nu)))


def cell_count_bound(t: int, dim: int, nu: float | Fraction) -> float:
    """Ñ_t = 4(t+1)^(bd), the paper's bound on the cells that could exist by step t.

    Janz et al. 2020, "Point selection". It is not a bound in every case: two observations at the
    centre of the cube make 73 cells for d = 3, ν = 3/2, where Ñ_2 = 36.
    """
    steps = as_number(t)
    if not (0 <= steps < math.inf and steps == int(steps)):
        raise InvalidInput(f"t={t!r}: give a step, a whole number of at least 0.")
    width = PaperWidth(1.0, 1.0, 0.5, as_dim(dim), float(as_smoothness(nu)))
    return width.cell_count_bound(int(steps))


def cell_rule(d: int, nu: Any) -> Any:
    """b."""
    return cover.cell_exponent(d, nu)


# -- information gain --------------------------------------------------------------------------


def srinivas_gain(d: int, nu: Any) -> Any:
    """d(d+1)/(d(d+1)+2ν). Srinivas et al. 2010, Theorem 5."""
    return d * (d + 1) / (d * (d + 1) + 2 * nu)


def janz_gain(d: int, nu: Any) -> Any:
    """q. Janz et al. 2020, Theorem 2: the gain grows no faster than the cover."""
    return cover.cover_exponent(d, nu)


def vakili_gain(d: int, nu: Any) -> Any:
    """d/(d+2ν). Vakili et al. 2021; also the lower bound that Janz et al. 2020 deduce."""
    return d / (d + 2 * nu)


def printed_gain(d: int, nu: Any) -> Any:
    """d²/(d²+2ν): the gain that γ_T√T would need to give IGP-UCB's exponent as printed."""
    return d * d / (d * d + 2 * nu)


# -- regret ------------------------------------------------------------------------------------


def gain_root_t(gain: Rule) -> Rule:
    """γ_T√T, and never more than T: 1/2 + g, at most 1."""
    return lambda d, nu: min(Fraction(1), HALF + gain(d, nu))


def root_gain_t(gain: Rule) -> Rule:
    """√(γ_T·T): (1 + g)/2."""
    return lambda d, nu: (1 + gain(d, nu)) / 2


def whitehouse_regret(d: int, nu: Any) -> Any:
    """(2d+ν)/(2d+2ν): γ_T√T with a regulariser T^r, r = d/(2d+2ν).

    Whitehouse et al. 2023. The width is of order √γ + √α·B with α = T^r, the variances sum to
    α·γ, so R_T = Õ(√T (γ + √(αγ))); and γ = Õ((T/α)^(d/(d+2ν))). The two terms are equal, and
    their larger least, where γ = α.
    """
    return HALF + d / (2 * (nu + d))


def simple_lower_bound(d: int, nu: Any) -> Any:
    """−ν/(d+2ν). Scarlett et al. 2017."""
    return -(1 - vakili_gain(d, nu)) / 2


def constant(value: Fraction | int) -> Rule:
    """The same for every d and ν."""
    return lambda d, nu: value


# -- trees -------------------------------------------------------------------------------------


def hoelder(nu: Any, most: int) -> Any:
    """min(ν, most): a power of the distance that bounds how f changes."""
    return min(nu, Fraction(most))


def hoo_regret(most: int) -> Rule:
    """(D+1)/(D+2) with D = d/a, a = min(ν, most): (d+a)/(d+2a)."""
    return lambda d, nu: (d + hoelder(nu, most)) / (d + 2 * hoelder(nu, most))


def doo_loss(d: int, nu: Any) -> Any:
    """−1/D with D = d/min(ν, 1)."""
    return -hoelder(nu, 1) / d
