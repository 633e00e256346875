"""What an exponent is, and the constants of the cover.

Notation: d the dimension, ν the smoothness of the Matérn kernel, T the horizon, γ_T the largest
information gain of T points. "Up to logarithms" is Janz et al. 2020's Õ: f(t) = Õ(t^a) if
f(t) = O(t^(a+ε)) for every ε > 0.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from numbers import Integral, Rational, Real
from types import CodeType
from typing import Any, overload

import numpy as np

from partita._checks import as_floats, as_number
from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.partition import cover

#: A formula is a quotient of polynomials in ν, or the least of two. So its limit is the only
#: fraction of a denominator up to `_LARGEST_DENOMINATOR` near its value at `_HUGE`.
_HUGE, _LARGEST_DENOMINATOR = Fraction(10**60), 10**15


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
        The formula in d and ν, as plain text; values are computed from this text.
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
        d, smoothness = Fraction(as_dim(dim)), as_smoothness(nu)
        if isinstance(smoothness, Fraction):
            return _evaluated(self.formula, d, smoothness)
        return _evaluated(self.formula, d, _HUGE).limit_denominator(_LARGEST_DENOMINATOR)

    def holds(self, nu: float | Fraction) -> bool:
        """Whether the proof covers this smoothness."""
        return as_smoothness(nu) > self.proven_above


def _evaluated(formula: str, d: Fraction, nu: Fraction) -> Fraction:
    names = {"__builtins__": {}, "F": Fraction, "min": min, "d": d, "v": nu}
    return Fraction(eval(_compiled(formula), names))


@cache
def _compiled(formula: str) -> CodeType:
    """A formula as it is printed, such as min{1, (3d²+2ν)/(2d²+4ν)}, as Python over fractions."""
    text = formula
    for sign, word in (("−", "-"), ("²", "**2"), ("{", "("), ("}", ")"), ("ν", "v")):
        text = text.replace(sign, word)
    text = re.sub(r"(?<=[0-9dv)])(?=[dvm(])", "*", text)
    text = re.sub(r"\d+(?=/)", r"F(\g<0>)", text)  # 1/2 without a d or ν, which are fractions
    return compile(text, formula, "eval")


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


def cell_exponent(dim: int, nu: float | Fraction) -> float:
    """b = (d+1)/(d+2ν): a cell of side ρ splits at about ρ^(−1/b) points.

    Janz et al. 2020, "Main contribution".
    """
    return float(cover.cell_exponent(as_dim(dim), float(as_smoothness(nu))))


def cover_exponent(dim: int, nu: float | Fraction) -> float:
    """q = d(d+1)/(d(d+2)+2ν): at most O(T^q) cells are ever made. Janz et al. 2020, Lemma 2."""
    return float(cover.cover_exponent(as_dim(dim), float(as_smoothness(nu))))


def cell_count_bound(t: int, dim: int, nu: float | Fraction) -> float:
    """Ñ_t = 4(t+1)^(bd), the paper's bound on the cells that could exist by step t.

    Janz et al. 2020, "Point selection". It is not a bound in every case: two observations at the
    centre of the cube make 73 cells for d = 3, ν = 3/2, where Ñ_2 = 36.
    """
    steps = as_number(t)
    if not (0 <= steps < math.inf and steps == int(steps)):
        raise InvalidInput(f"t={t!r}: give a step, a whole number of at least 0.")
    return 4.0 * math.pow(int(steps) + 1, cell_exponent(dim, nu) * dim)
