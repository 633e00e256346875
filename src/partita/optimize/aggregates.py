"""Means of several values at the same parameters: what users give, checked, and merged."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from partita._checks import NotGiven
from partita.errors import InvalidInput
from partita.policies.repeats import MOST_VALUES

from .values import as_std, as_value


class Aggregate(NamedTuple):
    """The mean of `count` values, and their sample deviation (ddof = 1) if it is known.

    A function that replicates may return it instead of an array. Of a single value, `std` is the
    known noise.

    Attributes
    ----------
    mean
    std
        None if it is not known.
    count
    """

    mean: float
    std: float | None
    count: int  # type: ignore[assignment]

    def merged(self, other: Aggregate) -> Aggregate:
        """What both give together. Chan, Golub & LeVeque 1983."""
        count = self.count + other.count
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.count / count)
        inside = [part.within for part in (self, other)]
        if inside[0] is None or inside[1] is None:
            return Aggregate(mean, None, count)
        squares = inside[0] + inside[1] + apart**2 * (self.count * (other.count / count))
        return Aggregate(mean, math.sqrt(squares / (count - 1)), count)

    @property
    def within(self) -> float | None:
        """The sum of squares around the mean; None if it is not known."""
        if self.count == 1:
            return 0.0
        return None if self.std is None else (self.count - 1) * self.std**2


def as_count(count: Any, verb: str) -> int:
    """The number of values of which one is the mean; `verb` is for the error."""
    kinds = int | float | np.integer | np.floating
    good = isinstance(count, kinds) and not isinstance(count, bool)
    if not good or not 1 <= count <= MOST_VALUES or count != int(count):
        raise InvalidInput(
            f"{verb}(..., count={count!r:.60}): give the number of values of which this is the "
            f"mean, a whole number from 1 to {MOST_VALUES:.0e}, or cancel the trial if its "
            "evaluation failed"
        )
    return int(count)


def as_aggregate(value: Any, std: Any, count: Any, verb: str) -> Aggregate:
    """The mean of `count` values and their sample deviation, checked."""
    return Aggregate(as_value(value), as_std(std), as_count(count, verb))


def aggregate_of(values: Any, verb: str) -> Aggregate:
    """The mean, sample deviation and count of values (n,), each of which must be finite."""
    if isinstance(values, str | bytes | dict) or not np.iterable(values):
        raise InvalidInput(
            f"{verb}(..., values={values!r:.60}): give a list or array of numbers; one value is "
            f"{verb}(trial, value)"
        )
    rows: Any = values if isinstance(values, np.ndarray) else list(values)
    if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iufb":
        numbers = rows.astype(float)
    else:
        numbers = np.array([_number(row, i, verb) for i, row in enumerate(rows)])
    if not len(numbers):
        raise InvalidInput(
            f"{verb}(..., values=[]): give at least one value, or cancel the trial if its "
            "evaluation failed"
        )
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        _number(float(numbers[wrong[0]]), int(wrong[0]), verb)
    mean = as_value(float(numbers.mean()))
    if len(numbers) == 1:
        return Aggregate(mean, None, 1)
    return Aggregate(mean, as_std(float(numbers.std(ddof=1))), len(numbers))


def _number(value: Any, place: int, verb: str) -> float:
    try:
        return as_value(value)
    except InvalidInput as error:
        raise InvalidInput(f"{verb}: values[{place}] cannot be used: {error}") from error


def given_aggregate(
    value: Any, std: Any, count: Any, values: Any, verb: str
) -> tuple[Any, Any, Any]:
    """The arguments of `tell` as (value, std, count); count is None for a single value."""
    if values is None:
        if value is NotGiven.NOT_GIVEN:
            raise InvalidInput(f"{verb}(trial): give a value, or values=[...] for several")
        return value, std, count
    if value is not NotGiven.NOT_GIVEN or std is not None or count is not None:
        raise InvalidInput(
            f"{verb}(..., values=...): the mean, deviation and count come from the values. Leave "
            "out value, std and count"
        )
    return aggregate_of(values, verb)
