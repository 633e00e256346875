"""Noise models and their sub-Gaussian constants.

Noise ε of mean zero is L-sub-Gaussian if E exp(sε) ≤ exp(s²L²/2) for every real s. The confidence
widths depend on the noise only through L and grow with it: the smallest valid constant gives the
tightest bounds. No valid constant is below the standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, final, runtime_checkable

from partita._checks import as_number
from partita.errors import InvalidInput

#: How far from zero the centre of `Uniform` may be, relative to its width: a rounding error.
CENTRE_TOLERANCE = 1e-12


@runtime_checkable
class Noise(Protocol):
    """The interface of noise models: any object with this property is one."""

    @property
    def sub_gaussian(self) -> float:
        """The constant L, positive and finite."""
        ...


@final
@dataclass(frozen=True)
class Uniform:
    """Noise drawn uniformly between `low` and `high`, which must be centred at 0.

    Parameters
    ----------
    low, high
        The ends, high = −low.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = _interval(self)
        centre = 0.5 * low + 0.5 * high
        if abs(centre) > CENTRE_TOLERANCE * _half_width(low, high):
            half = _half_width(low, high)
            raise InvalidInput(
                f"Uniform({low:g}, {high:g}) has mean {centre:g}, but noise must be centred at 0: "
                f"give Uniform({-half:g}, {half:g}), and count the mean as part of the function"
            )

    @property
    def sub_gaussian(self) -> float:
        """L = a/√3, where a is the half-width: the standard deviation, so the smallest possible.

        E exp(sε) = sinh(sa)/(sa) = Σ (sa)^(2k)/(2k+1)! ≤ Σ (sa)^(2k)/(6^k k!) = exp(s²a²/6),
        because (2k+1)! ≥ 6^k k!.
        """
        return _half_width(self.low, self.high) / math.sqrt(3.0)


@final
@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of mean zero.

    Parameters
    ----------
    std
        Its standard deviation, or the largest one if it varies.
    """

    std: float

    def __post_init__(self) -> None:
        self.__dict__["std"] = _positive(self, "std")

    @property
    def sub_gaussian(self) -> float:
        """L = std: E exp(sε) = exp(s² std²/2), with equality."""
        return self.std


@final
@dataclass(frozen=True)
class Bounded:
    """Observations between `low` and `high`, with any distribution.

    Parameters
    ----------
    low, high
        The ends of an interval that contains every observation, such as 0 and 1 for rates, or every
        error.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _interval(self)

    @property
    def sub_gaussian(self) -> float:
        """L = (high − low)/2, by Hoeffding's lemma; attained by a fair coin between the ends."""
        return _half_width(self.low, self.high)


@final
@dataclass(frozen=True)
class Bernoulli:
    """Observations that are 0 or 1, with mean f(x)."""

    @property
    def sub_gaussian(self) -> float:
        """L = 1/2, by Hoeffding's lemma on [0, 1]; attained at f(x) = 1/2."""
        return 0.5


@final
@dataclass(frozen=True)
class SubGaussian:
    """Noise of mean zero of which only the sub-Gaussian constant is known.

    Parameters
    ----------
    constant
        L in E exp(sε) ≤ exp(s²L²/2).
    """

    constant: float

    def __post_init__(self) -> None:
        self.__dict__["constant"] = _positive(self, "constant")

    @property
    def sub_gaussian(self) -> float:
        """The constant L that was given."""
        return self.constant


def sub_gaussian_constant(noise: object) -> float:
    """The constant L of a noise model; an error for anything else, such as a number.

    Parameters
    ----------
    noise
        A noise model, or any object whose `sub_gaussian` is a positive finite number.
    """
    given: Any = noise
    models = "Uniform, Gaussian, Bounded, Bernoulli or SubGaussian"
    if isinstance(given, type):
        raise InvalidInput(f"noise={given.__name__} is a class: give an instance of it")
    if isinstance(given, Real):
        usable = 0.0 < as_number(given) < math.inf
        example = f"SubGaussian({as_number(given)!r})" if usable else "SubGaussian(0.1)"
        raise InvalidInput(
            f"noise={given!r}: give a noise model, e.g. {example}. A number alone could be a "
            "standard deviation, a range or a sub-Gaussian constant"
        )
    if not isinstance(given, Noise):
        raise InvalidInput(f"noise={given!r}: give a noise model, {models}")
    constant = as_number(given.sub_gaussian)
    if not 0.0 < constant < math.inf:
        raise InvalidInput(
            f"noise={given!r} has sub_gaussian={given.sub_gaussian!r}: "
            "it must be a positive finite number"
        )
    return constant


def reach(noise: Noise) -> float:
    """The largest magnitude of bounded noise; infinite for any other noise."""
    if isinstance(noise, Uniform):
        return noise.high
    if isinstance(noise, Bounded):
        return noise.high - noise.low
    return 1.0 if isinstance(noise, Bernoulli) else math.inf


def _positive(model: Any, name: str) -> float:
    """The field `name` of a noise model as a float, if it is a positive finite number."""
    given = getattr(model, name)
    number = as_number(given)
    if not 0.0 < number < math.inf:
        advice = "give a positive finite number"
        if number == 0.0:
            advice += "; for values without noise, give a small one, such as 1e-3 of their range"
        raise InvalidInput(f"{type(model).__name__}({name}={given!r}): {advice}")
    return number


def _interval(model: Uniform | Bounded) -> tuple[float, float]:
    """Both ends of a noise model's interval, checked and stored as floats."""
    low, high = as_number(model.low), as_number(model.high)
    if not (math.isfinite(low) and math.isfinite(high)):
        problem = "give two finite numbers"
    elif low > high:
        problem = "the ends are reversed. Swap them"
    elif _half_width(low, high) == 0.0:
        problem = "the interval has no width. Give low < high"
    else:
        model.__dict__.update(low=low, high=high)
        return low, high
    raise InvalidInput(f"{type(model).__name__}({model.low!r}, {model.high!r}): {problem}")


def _half_width(low: float, high: float) -> float:
    """(high − low)/2, which never overflows."""
    return 0.5 * high - 0.5 * low
