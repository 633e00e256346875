"""Read what users' functions return: a value, and its noise if that is known."""

from __future__ import annotations

import inspect
import math
from typing import Any, NamedTuple

import numpy as np

from partita.errors import InvalidInput
from partita.policies.checks import LARGEST_VALUE

#: Types that are not accepted as numbers, although some of them have a `__float__`.
_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)
#: Characters of an object that a message shows, at most.
LONGEST_SHOWN = 200
#: The alternative to a single number that a function may return, for messages.
_PAIR = ", or a tuple (value, std) where the noise of the value is known"


class Observation(NamedTuple):
    """A value, and the standard deviation of its noise: 0 if it is exact, None if not known.

    `values` are those of the constrained quantities, in their order; None without constraints. With
    a `count` above 1, the value is the mean of as many, and `std` their sample deviation.
    """

    value: float
    std: float | None = None
    values: tuple[float, ...] | None = None
    count: int = 1  # type: ignore[assignment]


class WrongKind(InvalidInput):
    """What a function returned is of a kind that no evaluation can return on purpose."""


def as_observation(result: Any) -> Observation:
    """The observation that a function returned: a number, or a tuple (value, std)."""
    if isinstance(result, Observation):
        return result._replace(value=as_value(result.value), std=as_std(result.std))
    if isinstance(result, tuple) and len(result) == 2:
        value, std = result
        return Observation(as_value(value), as_std(std))
    return Observation(as_value(result, also=_PAIR))


def as_std(std: Any) -> float | None:
    """The standard deviation of a value's noise as a float, or None if it is not known."""
    if std is None:
        return None
    try:
        number = std if type(std) is float else _as_float(std)
    except InvalidInput:
        number = math.nan
    if not 0.0 <= number <= LARGEST_VALUE or isinstance(std, bool | np.bool_):
        raise InvalidInput(
            f"std={std!r}: give the standard deviation of the value's noise, a finite number of at "
            "least 0 (0 means exact), or leave it out if it is not known"
        )
    return number


def as_reading(value: Any) -> float:
    """What an evaluation reports on its way, as a float: NaN for all that is not finite."""
    try:
        number = value if type(value) is float else _as_float(value)
    except InvalidInput:
        raise InvalidInput(
            f"report({value!r:.100}, ...): give one number, in the units of the value to come"
        ) from None
    return number if abs(number) <= LARGEST_VALUE else math.nan


def as_value(value: Any, also: str = "") -> float:
    """A value as a float; an array that holds a single number is accepted.

    `also` names another accepted form, for the error message.
    """
    number = value if type(value) is float else _as_float(value, also)
    if not math.isfinite(number):
        raise InvalidInput(
            f"the value is {number}: give a finite number, or cancel the trial if its evaluation "
            "failed"
        )
    if abs(number) > LARGEST_VALUE:
        raise InvalidInput(
            f"the value is {number}: give one of at most {LARGEST_VALUE:g} in magnitude, for "
            "example in other units, or cancel the trial"
        )
    return number


def _as_float(value: Any, also: str = "") -> float:
    if isinstance(value, np.ndarray):
        if value.size != 1 or value.dtype.kind not in "biuf" or np.ma.is_masked(value):
            raise WrongKind(
                f"the value is an array of shape {value.shape} and type {value.dtype}: give one "
                f"number{also}"
            )
        return float(value.item())
    if hasattr(value, "__float__") and not isinstance(value, _NO_NUMBERS):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except Exception:  # a user's object, such as a tensor of several numbers
            pass
    raise WrongKind(
        f"the value is {shown(value)}: give one number{also}{_advice(value)}; if the evaluation "
        "failed, cancel the trial, or let the function raise"
    )


def _advice(value: Any) -> str:
    """What may have been meant by something that is not a number."""
    if value is None:
        return "; a function without a return statement returns None"
    if inspect.iscoroutine(value):
        value.close()  # it will not be awaited
        return "; for an async function give one that runs it, such as lambda x: asyncio.run(f(x))"
    if isinstance(value, dict):
        return '; a dict of numbers needs constraints, such as constraints=["cost <= 10"]'
    return ""


def shown(value: Any) -> str:
    """An object as Python shows it, shortened if it is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an object of the user's own
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
