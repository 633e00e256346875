"""Numeric parameters of a search space: their values ↔ coordinates in [0, 1].

Notation: a parameter has w coordinates (`width`), and k points are rows (k, w). `snap` moves rows
to the nearest valid ones; `spread` maps uniform rows to valid ones, each value with the same
probability; `stir` moves valid rows by about `scale` (k, w), at least to the next value; `gaps`
says how far that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from partita._checks import as_number
from partita._types import FloatArray
from partita.errors import InvalidInput

from .decimals import (
    TOLERANCE,
    as_whole,
    check_log,
    check_range,
    decimal_span,
    plain,
    rounded,
    steps_between,
)

Generator = np.random.Generator

#: Integers up to this are exact as floats.
MOST_VALUES = 2**53
#: Values are rounded to this relative precision, so that a value that is encoded and decoded comes
#: back unchanged. It is twice the rounding error of a linear range, and of a logarithmic one.
FINENESS = 2.0**-48
#: A range must contain at least this many floating-point numbers.
LEAST_FLOATS = 2.0**24


@dataclass(frozen=True)
class Float:
    """A real number from `low` to `high`, on a linear scale or, if `log`, on a log scale."""

    low: float
    high: float
    log: bool = False

    width = 1
    size = None

    def __post_init__(self) -> None:
        """Refuse bounds that do not form a range."""
        low, high = as_number(self.low), as_number(self.high)
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "high", high + 0.0)
        check_range(self, low, high)
        if low == high:
            raise InvalidInput(
                f"{self!r}: the bounds are equal. Leave the parameter out, or give [{low!r}], a "
                "list of one choice"
            )
        if self.log:
            check_log(self, low)
        if high - low < LEAST_FLOATS * math.ulp(max(-low, high)):
            raise InvalidInput(
                f"{self!r}: the bounds are too close together for floating point. Give bounds "
                "relative to their centre, and add the centre in the function"
            )

    def decode(self, coordinates: list[float]) -> float:
        """The value at a coordinate: exactly `low` at 0 and `high` at 1, rounded in between.

        `encode` followed by `decode` gives the same value again.
        """
        u = coordinates[0]
        if u <= 0.0:
            return self.low
        if u >= 1.0:
            return self.high
        if self.log:
            low, high = self._logs
            value = math.exp((1.0 - u) * low + u * high)
            value = rounded(value, self._digits - 1 - math.floor(math.log10(value)))
        else:
            value = rounded(self.low + u * (self.high - self.low), self._digits)
        return min(max(value, self.low), self.high)

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return math.log(self.low), math.log(self.high)

    @cached_property
    def _digits(self) -> int:
        """The digits to round to: significant ones if `log`, else those after the point."""
        largest = max(abs(self.low), abs(self.high))
        if self.log:
            largest = max(*map(abs, self._logs), 1.0)
        return math.floor(-math.log10(FINENESS) - math.log10(largest))

    def encode(self, value: Any, name: str) -> list[float]:
        """The coordinate of a value; it may exceed a bound by a rounding error of 1e−9."""
        number = as_number(plain(value))
        u = math.nan
        if math.isfinite(number) and not (self.log and number <= 0.0):
            u = self._coordinate(number)
        if not -TOLERANCE <= u <= 1.0 + TOLERANCE:
            raise InvalidInput(
                f"{name}={value!r}: give a number from {self.low!r} to {self.high!r}"
            )
        return [min(max(u, 0.0), 1.0)]

    def _coordinate(self, number: float) -> float:
        if self.log:
            low, high = self._logs
            return (math.log(number) - low) / (high - low)
        return (number - self.low) / (self.high - self.low)

    def snap(self, rows: FloatArray) -> FloatArray:
        """Move each row to the nearest one in [0, 1]."""
        return np.clip(rows, 0.0, 1.0)

    spread = snap

    def stir(self, random: Generator, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """Move rows at random."""
        return rows + scale * random.standard_normal(rows.shape)

    def gaps(self, rows: FloatArray) -> FloatArray:
        """Zeros: the next real number is as near as can be."""
        return np.zeros_like(rows)

    def grid(self) -> FloatArray:
        """Refuse: a range of real numbers has no list of values."""
        raise AssertionError("a float has no list of values")

    def spec(self) -> Any:
        """The specification of this parameter, as JSON data that `specs` reads."""
        return [self.low, self.high, *(["log"] if self.log else [])]

    def describe(self) -> str:
        """A description of the range for users."""
        return f"{self.low:g} to {self.high:g}" + ", log" * self.log


@dataclass(frozen=True)
class Integer:
    """An integer from `low` to `high` in steps of `step`, or, if `log`, on a log scale.

    The last value is the largest one that the steps reach.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        """Refuse bounds that do not form a range."""
        numbers = [as_whole(self, value) for value in (self.low, self.high, self.step)]
        low, high, step = numbers
        if low > high:
            raise InvalidInput(f"{self!r}: the bounds are reversed. Swap them")
        if step < 1:
            raise InvalidInput(f"{self!r}: give a step of at least 1")
        if self.log:
            check_log(self, low)
            if step != 1:
                raise InvalidInput(f"{self!r}: give a step or log, not both")
        if max(-low, high) > MOST_VALUES:
            raise InvalidInput(f"{self!r}: give bounds of at most 2**53 in magnitude")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", low + (high - low) // step * step)
        object.__setattr__(self, "step", step)

    @property
    def size(self) -> int:
        """The number of values."""
        return (self.high - self.low) // self.step + 1

    @property
    def width(self) -> int:
        """The number of coordinates: 1, or 0 for a single value."""
        return 1 if self.high > self.low else 0

    def decode(self, coordinates: list[float]) -> int:
        """The value nearest to a coordinate."""
        if not coordinates:
            return self.low
        if self.log:
            return self._log_value(min(max(coordinates[0], 0.0), 1.0))
        return self.low + self.step * round(min(max(coordinates[0], 0.0), 1.0) * (self.size - 1))

    def encode(self, value: Any, name: str) -> list[float]:
        """The coordinate of a value."""
        number = as_number(plain(value))
        if not (self.low <= number <= self.high and (number - self.low) % self.step == 0):
            by = f" in steps of {self.step}" if self.step > 1 else ""
            raise InvalidInput(
                f"{name}={value!r}: give a whole number from {self.low} to {self.high}{by}"
            )
        if not self.width:
            return []
        if self.log:
            return [float(self._log_coordinates(np.array([number]))[0])]
        return [(int(number) - self.low) // self.step / (self.size - 1)]

    def snap(self, rows: FloatArray) -> FloatArray:
        """Move each row to its nearest value."""
        if not self.width:
            return rows
        if self.log:
            return self._log_coordinates(self._log_values(rows))
        return _nearest_step(rows, self.size)

    def spread(self, rows: FloatArray) -> FloatArray:
        """Map uniform rows to values, all with the same probability, or evenly on a log scale."""
        if not self.width:
            return rows
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            values = np.rint(np.exp(low + np.clip(rows, 0.0, 1.0) * (high - low)))
            return self._log_coordinates(np.clip(values, self.low, self.high))
        return _even_step(rows, self.size)

    def stir(self, random: Generator, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """Move rows at random, at least to the next value."""
        if not self.log:
            return _stirred(random, rows, scale, self.size)
        values = self._log_values(rows)
        move = scale * random.standard_normal(rows.shape)
        moved = np.rint(values * np.exp(move * math.log(self.high / self.low)))
        moved = np.where(moved == values, values + np.where(move < 0.0, -1.0, 1.0), moved)
        return self._log_coordinates(np.clip(moved, self.low, self.high))

    def gaps(self, rows: FloatArray) -> FloatArray:
        """How far the next value is from each row, the one above unless there is none."""
        if not self.log:
            return np.full_like(rows, 1.0 / max(self.size - 1, 1))
        values = self._log_values(rows)
        others = np.where(values < self.high, values + 1.0, values - 1.0)
        return np.abs(self._log_coordinates(others) - self._log_coordinates(values))

    def _log_coordinates(self, values: FloatArray) -> FloatArray:
        low, high = math.log(self.low), math.log(self.high)
        return np.clip((np.log(values) - low) / (high - low), 0.0, 1.0)

    def _log_value(self, u: float) -> int:
        """The value whose coordinate is nearest to u: `_log_values` for one number, but faster."""
        low, span = math.log(self.low), math.log(self.high) - math.log(self.low)
        below = min(max(math.floor(math.exp(low + u * span)), self.low), self.high)
        above = min(below + 1, self.high)
        return above if math.log(above) + math.log(below) < 2 * (low + u * span) else below

    def _log_values(self, rows: FloatArray) -> FloatArray:
        """The values whose coordinates are nearest to the rows."""
        low, high = math.log(self.low), math.log(self.high)
        rows = np.clip(rows, 0.0, 1.0)
        below = np.clip(np.floor(np.exp(low + rows * (high - low))), self.low, self.high)
        above = np.minimum(below + 1.0, self.high)
        nearer = self._log_coordinates(above) - rows < rows - self._log_coordinates(below)
        return np.where(nearer, above, below)

    def grid(self) -> FloatArray:
        """Coordinates of all values, (size, width)."""
        if not self.width:
            return np.empty((1, 0))
        if self.log:
            return self._log_coordinates(np.arange(self.low, self.high + 1.0))[:, None]
        return np.arange(self.size)[:, None] / (self.size - 1)

    def spec(self) -> Any:
        """The specification of this parameter, as JSON data that `specs` reads."""
        words = ["int"] + ["log"] * self.log
        return [self.low, self.high, *([self.step] if self.step > 1 else []), *words]

    def describe(self) -> str:
        """A description of the range for users."""
        by = f" by {self.step}" if self.step > 1 else ""
        return f"{self.low} to {self.high}{by}, int" + ", log" * self.log


@dataclass(frozen=True)
class Stepped:
    """A number from `low` in steps of `step`, up to `high` at most.

    Values are computed in decimal arithmetic, so 0.1 in steps of 0.1 gives exactly 0.3, and no
    value exceeds `high` as it was written.
    """

    low: float
    high: float
    step: float

    width = 1

    def __post_init__(self) -> None:
        """Refuse bounds and steps that do not give a list of values."""
        low, high, step = as_number(self.low), as_number(self.high), as_number(self.step)
        check_range(self, low, high)
        if step > 0.0 and (high - low) / step >= MOST_VALUES:
            raise InvalidInput(f"{self!r}: the step is too small. Give a larger one, or none")
        if steps_between(low, high, step) < 1:
            most = float(decimal_span(low, high))
            raise InvalidInput(f"{self!r}: give a positive step of at most the range, {most:g}")
        object.__setattr__(self, "low", low + 0.0)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "high", high)
        last = self._value(self.size - 1)
        object.__setattr__(self, "high", last)

    @cached_property
    def size(self) -> int:
        """The number of values."""
        return steps_between(self.low, self.high, self.step) + 1

    @cached_property
    def _decimals(self) -> tuple[Decimal, Decimal]:
        return Decimal(repr(self.low)), Decimal(repr(self.step))

    def _value(self, number: int) -> float:
        low, step = self._decimals
        return min(float(low + number * step), self.high)

    def decode(self, coordinates: list[float]) -> float:
        """The value nearest to a coordinate."""
        return self._value(round(min(max(coordinates[0], 0.0), 1.0) * (self.size - 1)))

    def encode(self, value: Any, name: str) -> list[float]:
        """The coordinate of a value; a rounding error of 1e−9 of the range is allowed."""
        number = as_number(plain(value))
        length = self.high - self.low
        if self.low - TOLERANCE * length <= number <= self.high + TOLERANCE * length:
            which = round((number - self.low) / length * (self.size - 1))
            if abs(number - self._value(which)) <= TOLERANCE * length:
                return [which / (self.size - 1)]
        raise InvalidInput(
            f"{name}={value!r}: give a number from {self.low!r} to {self.high!r} in steps of "
            f"{self.step!r}"
        )

    def snap(self, rows: FloatArray) -> FloatArray:
        """Move each row to its nearest value."""
        return _nearest_step(rows, self.size)

    def spread(self, rows: FloatArray) -> FloatArray:
        """Map uniform rows to values, all with the same probability."""
        return _even_step(rows, self.size)

    def stir(self, random: Generator, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """Move rows at random, at least to the next value."""
        return _stirred(random, rows, scale, self.size)

    def gaps(self, rows: FloatArray) -> FloatArray:
        """How far the next value is from each row."""
        return np.full_like(rows, 1.0 / (self.size - 1))

    def grid(self) -> FloatArray:
        """Coordinates of all values, (size, 1)."""
        return np.arange(self.size)[:, None] / (self.size - 1)

    def spec(self) -> Any:
        """The specification of this parameter, as JSON data that `specs` reads."""
        return [self.low, self.high, self.step]

    def describe(self) -> str:
        """A description of the range for users."""
        return f"{self.low:g} to {self.high:g} by {self.step:g}"


# -- shared ----------------------------------------------------------------------------------------


def _nearest_step(rows: FloatArray, size: int) -> FloatArray:
    return np.rint(np.clip(rows, 0.0, 1.0) * (size - 1)) / (size - 1)


def _stirred(random: Generator, rows: FloatArray, scale: FloatArray, size: int) -> FloatArray:
    move = scale * random.standard_normal(rows.shape) * (size - 1)
    return rows + np.where(move < 0.0, -1.0, 1.0) * np.maximum(np.rint(np.abs(move)), 1.0) / (
        size - 1
    )


def _even_step(rows: FloatArray, size: int) -> FloatArray:
    return np.minimum(np.floor(np.clip(rows, 0.0, 1.0) * size), size - 1) / (size - 1)
