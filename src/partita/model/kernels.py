"""The Matérn kernel.

k(x, x') = κ(r), r = ‖(x − x')/ℓ‖, κ(r) = 2^(1−ν)/Γ(ν) · z^ν K_ν(z), z = √(2ν) r, so k(x, x) = 1.

That is the usual form, as in scikit-learn and GPyTorch. Deviates: the spectral density of Janz et
al. 2020, eq. 2, "Matérn kernel family", has no √(2ν): its z is r itself. But the numbers of its
experiments are reproduced with the usual form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt

from partita._checks import as_floats, as_positive, as_rows
from partita._types import FloatArray
from partita.errors import InvalidInput

#: The uniform expansion is used from this smoothness; its first omitted term is below 2e-16.
UNIFORM_FROM = 20.0
UNIFORM_TERMS = 13
#: Scaled distances under which κ needs more than a Bessel function (it overflows), or is 1.
TINY, SMALL = 1e-290, 1e-9
#: z at which every κ with ν < UNIFORM_FROM has long underflowed to 0.
HUGE = 1e4


@final
@dataclass(frozen=True, init=False)
class Matern:
    """The Matérn kernel of smoothness `nu`, k(x, x) = 1.

    Parameters
    ----------
    nu
        The smoothness, a positive number: functions are about nu times differentiable. 1/2, 3/2 and
        5/2 have closed forms and are the fastest.
    lengthscale
        The distance over which functions vary, relative to the domain's sides: a positive number,
        or one per dimension. Stored as a float or a tuple of floats.
    """

    nu: float
    lengthscale: float | tuple[float, ...]

    def __init__(
        self, nu: float = 1.5, lengthscale: float | Sequence[float] | FloatArray = 0.2
    ) -> None:
        self.__dict__.update(nu=as_positive("nu", nu), lengthscale=_lengthscale(lengthscale))

    @property
    def closed_form(self) -> int:
        """The closed form for compiled loops: 0, 1 or 2 for nu = 1/2, 3/2 or 5/2, else −1."""
        return {0.5: 0, 1.5: 1, 2.5: 2}.get(self.nu, -1)

    def scales(self, dim: int) -> FloatArray:
        """The lengthscale of each of `dim` dimensions, (dim,)."""
        if isinstance(self.lengthscale, float):
            return np.full(dim, self.lengthscale)
        if len(self.lengthscale) != dim:
            raise InvalidInput(
                f"{self!r} has {len(self.lengthscale)} lengthscales, but the points have dimension "
                f"{dim}: give {dim} lengthscales, or one number for all"
            )
        return np.array(self.lengthscale)

    def radial(self, r: npt.ArrayLike) -> FloatArray:
        """κ at scaled distances r ≥ 0 of any shape, r = ‖(x − x')/ℓ‖; 0 at infinity."""
        distance = as_floats(r, "r")
        bad = ~(distance >= 0.0)
        if bad.any():
            raise InvalidInput(f"r contains {distance[bad][0]}: give distances of at least 0")
        return matern(self.nu, distance)

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None) -> FloatArray:
        """The matrix (n, m) of k between the rows of `X` (n, d) and `Y` (m, d), by default `X`."""
        left = as_rows(X, "X")
        right = left if Y is None else as_rows(Y, "Y")
        if left.shape[1] != right.shape[1]:
            raise InvalidInput(
                f"X has shape {left.shape} and Y {right.shape}: "
                "give points of the same dimension, one per row"
            )
        return matern(self.nu, _distances(left, right, self.scales(left.shape[1])))


def _lengthscale(value: Any) -> float | tuple[float, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return as_positive("lengthscale", value)
    if not value:
        raise InvalidInput(
            f"lengthscale={value!r} is empty: give a positive number, or one per dimension"
        )
    return tuple(as_positive(f"lengthscale[{i}]", each) for i, each in enumerate(value))


def _distances(left: FloatArray, right: FloatArray, scales: FloatArray) -> FloatArray:
    """‖(x − y)/ℓ‖ between rows, (n, d) and (m, d) → (n, m).

    Computed from differences: the faster ‖x‖² + ‖y‖² − 2xᵀy loses small distances to cancellation.
    """
    with np.errstate(over="ignore", under="ignore"):
        if len(scales) == 1:
            return np.abs(left - right.T) / float(scales[0])
        square = np.zeros((len(left), len(right)))
        for x, y, scale in zip(left.T, right.T, scales, strict=True):
            difference = (x[:, np.newaxis] - y) / scale
            difference *= difference
            square += difference
        distance = np.sqrt(square)
        # For the few squares that underflow or overflow, `hypot` is exact.
        i, j = np.nonzero((square < 1e-280) | (square > 1e280))
        distance[i, j] = np.hypot.reduce((left[i] - right[j]) / scales, axis=1)
    return distance


def matern(nu: float, r: FloatArray) -> FloatArray:
    """κ at scaled distances r ≥ 0 of any shape; ν > 0. Never nan, never above 1, exactly 1 at 0."""
    with np.errstate(over="ignore", under="ignore"):
        if nu in {0.5, 1.5, 2.5}:
            value = _closed(nu, r)
        elif nu < UNIFORM_FROM:
            value = matern_bessel(nu, r)
        else:
            value = matern_uniform(nu, r)
        return np.minimum(value, 1.0)


def _closed(nu: float, r: FloatArray) -> FloatArray:
    """κ for ν = 1/2, 3/2, 5/2: e^(−z) times 1, 1 + z, 1 + z + z²/3."""
    z = np.minimum(math.sqrt(2.0 * nu) * r, HUGE)
    if nu == 0.5:
        return np.exp(-z)
    polynomial = 1.0 + z if nu == 1.5 else 1.0 + z * (1.0 + z / 3.0)
    half = np.exp(-0.5 * z)  # e^(−z) underflows before the product does
    return polynomial * half * half


def matern_bessel(nu: float, r: FloatArray) -> FloatArray:
    """κ by the Bessel function K_ν, for 0 < ν < 20.

    Near 0, where K_ν overflows, it is not used. For ν ≥ 1, κ = 1 + O(z² log z) rounds to 1 below
    z = 1e−9. For ν < 1, below z = 1e−290, the first two terms of the series at 0 are enough (DLMF
    10.27.4, 10.25.2): κ = 1 − Γ(1−ν)/Γ(1+ν) (z/2)^(2ν), still only 0.999999 for ν = 0.01 there.
    """
    from scipy.special import kve

    z = np.minimum(math.sqrt(2.0) * math.sqrt(nu) * r, HUGE)
    value = np.ones_like(z)
    body = z >= (SMALL if nu >= 1.0 else TINY)
    half = 0.5 * z[body]
    # Two halves of e^(−z) for the reason above; 2/Γ(ν) = 2ν/Γ(1+ν) stays finite for tiny ν.
    decay = np.exp(-half)
    bessel = kve(max(nu, 1e-300), z[body])  # SciPy's is infinite or nan for a denormal order
    value[body] = 2.0 * nu / math.gamma(1.0 + nu) * (half**nu * bessel) * decay * decay
    if nu < 1.0:
        end = ~body & (r > 0.0)
        # z itself may be denormal or 0 by now.
        log_half = np.log(r[end]) + 0.5 * (math.log(nu) - math.log(2.0))
        value[end] = -np.expm1(2.0 * nu * log_half + _log_gamma_ratio(nu))
    return value


def _log_gamma_ratio(nu: float) -> float:
    """log Γ(1−ν)/Γ(1+ν), 0 < ν < 1, to full relative accuracy: 2(γν + ζ(3)ν³/3 + ζ(5)ν⁵/5 + …)."""
    if nu > 1e-3:
        return math.lgamma(1.0 - nu) - math.lgamma(1.0 + nu)
    gamma, zeta3, zeta5 = 0.5772156649015329, 1.2020569031595942, 1.0369277551433699
    return 2.0 * nu * (gamma + nu**2 * (zeta3 / 3.0 + nu**2 * zeta5 / 5.0))


def matern_uniform(nu: float, r: FloatArray) -> FloatArray:
    """κ for ν ≥ 20 and any r, by Debye's uniform expansion of K_ν(νt) (DLMF 10.41.4), t = r√(2/ν).

    With w = √(1+t²) and S the expansion's sum, Stirling's series for Γ(ν) is S at w = 1, and the
    large factors cancel: κ = exp(ν(log(1 + u/2) − u)) / √w · S(1/w)/S(1), u = w − 1.
    """
    t = np.minimum(r, 1e300) * (math.sqrt(2.0) / math.sqrt(nu))
    w = np.hypot(1.0, t)
    u = t * (t / (1.0 + w))
    coefficients = _uniform_coefficients(nu)
    ratio = np.polynomial.polynomial.polyval(1.0 / w, coefficients) / math.fsum(coefficients)
    value: FloatArray = np.exp(nu * (np.log1p(0.5 * u) - u)) / np.sqrt(w) * ratio
    return value


@lru_cache(maxsize=64)
def _uniform_coefficients(nu: float) -> tuple[float, ...]:
    """Coefficients of S(p) = Σ_k (−1)^k u_k(p)/ν^k as one polynomial in p, lowest first."""
    total = [0.0] * (3 * UNIFORM_TERMS + 1)
    for k, polynomial in enumerate(_debye_polynomials()):
        for power, coefficient in polynomial.items():
            total[power] += coefficient * (-1.0 / nu) ** k
    return tuple(total)


@lru_cache(maxsize=1)
def _debye_polynomials() -> tuple[dict[int, float], ...]:
    """u_0 … u_13 of DLMF 10.41.9, power → coefficient.

    u_{k+1}(p) = ½p²(1−p²) u_k'(p) + ⅛∫₀^p (1−5s²) u_k(s) ds.
    """
    exact: list[dict[int, Fraction]] = [{0: Fraction(1)}]
    for _ in range(UNIFORM_TERMS):
        following: dict[int, Fraction] = {}
        for e, c in exact[-1].items():
            up, on = c * (Fraction(e, 2) + Fraction(1, 8 * (e + 1))), e + 1
            following[on] = following.get(on, Fraction(0)) + up
            up, on = c * (Fraction(-e, 2) - Fraction(5, 8 * (e + 3))), e + 3
            following[on] = following.get(on, Fraction(0)) + up
        exact.append(following)
    return tuple({e: float(c) for e, c in polynomial.items()} for polynomial in exact)
