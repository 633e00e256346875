"""Numbers as users write them: decimals, integers, and bounds of a range."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np

from partita._checks import as_number
from partita.errors import InvalidInput

#: The rounding error allowed in a value, relative to the range, and in a range, relative to a step.
TOLERANCE = 1e-9
#: Powers of ten that floats represent exactly.
TENS = [float(10**n) for n in range(23)]


def decimal_span(low: float, high: float) -> Decimal:
    """The exact difference of two numbers, as the decimals that Python writes for them."""
    return Decimal(repr(high)) - Decimal(repr(low))


def steps_between(low: float, high: float, step: float) -> int:
    """The number of steps that fit between two bounds, in decimals; 0 if the step is not positive.

    A rounding error of 1e−9 steps is allowed, since bounds may be results of floating-point
    arithmetic.
    """
    if not 0.0 < step < math.inf:
        return 0
    return int(decimal_span(low, high) / Decimal(repr(step)) + Decimal(TOLERANCE))


def rounded(value: float, digits: int) -> float:
    """The decimal number nearest to a value, with `digits` after the point.

    The same as `round` for numbers of at most 15 digits, but several times faster where powers of
    ten are exact.
    """
    if 0 <= digits < len(TENS):
        return round(value * TENS[digits]) / TENS[digits]
    try:
        return round(value, digits)
    except OverflowError:  # rounded up beyond the largest float
        return value


def plain(value: Any) -> Any:
    """The value itself, or the only number in an array."""
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value


def check_range(parameter: object, low: float, high: float) -> None:
    """Refuse bounds that are not finite, reversed, or too far apart."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidInput(f"{parameter!r}: give finite numbers as bounds")
    if low > high:
        raise InvalidInput(f"{parameter!r}: the bounds are reversed. Swap them")
    if not math.isfinite(high - low):
        raise InvalidInput(f"{parameter!r}: the range overflows. Give bounds closer together")


def check_log(parameter: object, low: float) -> None:
    """Refuse a logarithmic range whose lower bound is not positive."""
    if low <= 0:
        raise InvalidInput(
            f"{parameter!r}: a logarithmic range must begin above 0. Give a positive lower bound, "
            "or leave log out"
        )


def as_whole(parameter: object, value: Any) -> int:
    """A bound or step as an integer."""
    number = as_number(plain(value))
    if not math.isfinite(number) or number != int(number):
        raise InvalidInput(f"{parameter!r}: {value!r} is not a whole number")
    return int(plain(value))
