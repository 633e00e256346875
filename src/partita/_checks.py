"""Checks of numbers and arrays that users give, shared by everything that takes them."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import numpy.typing as npt

from .errors import InvalidInput

FloatArray = npt.NDArray[np.float64]


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
    """Real numbers as a C-contiguous float64 array, which shares memory with `values` if it can."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(f"{name} is a masked array: give a plain one, without what is masked")
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
    """Finite points as rows, (k, d) float64 and C-contiguous; shares memory if it can.

    Refused unless it has `dim` columns, if that is given. `name` is what messages call it.
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
            f"give an array of shape (k, {dim or 'd'}), one point a row{hint}"
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
    return f"{dim} dimension" + ("" if dim == 1 else "s")
