"""Checks of numbers and arrays that users give, shared by everything that takes them."""

from __future__ import annotations

import math
import secrets
from enum import Enum
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from partita._text import listed
from partita._types import FloatArray
from partita.errors import InvalidInput

#: Norm bounds and noise constants below this, or above its inverse, are refused.
SMALLEST_SCALE = 1e-50


def as_number(value: object) -> float:
    """A real number as a float, infinite if it is too large, NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_positive(name: str, value: object) -> float:
    """A positive finite number as a float."""
    number = as_number(value)
    if not 0.0 < number < math.inf:
        raise InvalidInput(f"{name}={value!r}: give a positive finite number")
    return number


def as_floats(values: npt.ArrayLike, name: str) -> FloatArray:
    """Real numbers as a C-contiguous float64 array; it shares memory with `values` if possible."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(f"{name} is a masked array: give a plain one without masked entries")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name} is not a regular array ({error}): give rows of equal length"
        ) from error
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"{name} has entries of type {array.dtype}: give real numbers")
    with np.errstate(over="ignore"):  # a longdouble out of range is refused as infinite
        return np.asarray(array, dtype=np.float64, order="C")


def as_rows(values: npt.ArrayLike, name: str, dim: int | None = None) -> FloatArray:
    """Finite points as rows: a C-contiguous float64 array (k, d); shares memory if possible.

    If `dim` is given, the array must have `dim` columns. `name` is for error messages.
    """
    rows = as_floats(values, name)
    if rows.ndim != 2 or (dim is not None and rows.shape[1] != dim):
        but = "" if dim is None else f", but the domain has {dimensions(dim)}"
        hint = ""
        if rows.ndim == 1 and dim in {None, 1, len(rows)}:
            as_column = dim is None or dim == 1
            hint = f", e.g. {name}.reshape({'-1, 1' if as_column else '1, -1'})"
        raise InvalidInput(
            f"{name} has shape {rows.shape}{but}: "
            f"give an array of shape (k, {dim or 'd'}), one point per row{hint}"
        )
    finite = np.isfinite(rows)
    if not finite.all():
        i = int(np.flatnonzero(~finite.all(axis=1))[0])
        raise InvalidInput(f"{row_text(rows, i, name)}: every coordinate must be finite")
    return rows


def row_text(rows: FloatArray, i: int, name: str = "X") -> str:
    """Row i of the (k, d) array `name`, for a message."""
    which = "x" if name == "X" and len(rows) == 1 else f"{name}[{i}]"
    return f"{which}={point_text(rows[i])}"


def point_text(point: FloatArray) -> str:
    """A point (d,) as it would be typed, the first ten coordinates of a long one."""
    text = ", ".join(map(repr, point[:10].tolist()))
    return f"[{text}]" if len(point) <= 10 else f"[{text}, … {len(point)} coordinates]"


def dimensions(dim: int) -> str:
    """A number of dimensions for a message: "1 dimension", "3 dimensions"."""
    return f"{dim} dimension" + ("" if dim == 1 else "s")


class NotGiven(Enum):
    """The default of an argument for which None means something."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return "<not given>"


def seed_or_drawn(seed: object) -> int:
    """A seed as a non-negative integer; for None one that is drawn, short enough to be typed."""
    return secrets.randbits(32) if seed is None else check_seed(seed)


def check_seed(seed: object) -> int:
    """A seed as a non-negative integer."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise InvalidInput(f"seed={seed!r}: give a whole number of at least 0.")
    return int(seed)


def check_scale(name: str, value: object) -> float:
    """A positive number whose square, and ratios of such squares, floats can represent."""
    number = as_positive(name, value)
    if not SMALLEST_SCALE <= number <= 1 / SMALLEST_SCALE:
        raise InvalidInput(
            f"{name}={value!r}: give a number from {SMALLEST_SCALE:g} to {1 / SMALLEST_SCALE:g}, "
            "for example in other units."
        )
    return number


def check_horizon(horizon: object) -> int:
    """A horizon as an integer of at least 1."""
    steps = as_number(horizon)
    if not 1 <= steps < math.inf or steps != int(steps):
        raise InvalidInput(
            f"horizon={horizon!r}: give the planned evaluations, a whole number of at least 1."
        )
    return int(steps)


def check_delta(delta: object) -> float:
    """A probability strictly between 0 and 1."""
    number = as_number(delta)
    if not 0 < number < 1:
        raise InvalidInput(
            f"delta={delta!r}: give the probability with which a bound may fail, between 0 and 1."
        )
    return number


def check_choice(name: str, value: object, options: tuple[str, ...]) -> str:
    """The value, if it is one of the options; an error otherwise."""
    if not isinstance(value, str) or value not in options:
        words = [f'"{option}"' for option in options]
        raise InvalidInput(f"{name}={value!r}: give {listed(words, 'or')}.")
    return value


def check_count(count: object) -> int:
    """The number of points or trials to ask for, at least 1."""
    if isinstance(count, bool) or not isinstance(count, Integral) or int(count) < 1:
        raise InvalidInput(f"ask(count={count!r}): give a whole number of at least 1.")
    return int(count)


def check_flag(name: str, value: object) -> bool:
    """The value, if it is True or False; an error otherwise."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}={value!r}: give True or False.")
    return value
