"""Many parameters at once, as points of the unit cube.

The points are those of `Space.encode`, to the last bit; values that repeat are encoded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput

from .decimals import TOLERANCE
from .parameters import Float
from .space import Space

#: Types of values that are equal only if they are the same parameter.
_PLAIN = (str, int, bool)


def encode_rows(rows: Sequence[Any], space: Space) -> FloatArray | None:
    """The points (n, D) of n rows of parameters, each a dict or an array.

    None if they must be encoded one by one: some row cannot be, or the space has branches, a
    constraint or arms.
    """
    if space.conditions is not None or space.constraint is not None or space.arms is not None:
        return None
    columns = _columns(rows, space)
    if columns is None:
        return None
    units = np.empty((len(rows), space.dim))
    names = space.names or [""] * len(columns)
    for name, parameter, (start, end), column in zip(
        names, space.parameters, space.places, columns, strict=True
    ):
        try:
            units[:, start:end] = _encoded(parameter, name, column)
        except InvalidInput:  # encoding them one by one says which row it is
            return None
    return units + 0.0


def _columns(rows: Sequence[Any], space: Space) -> list[list[Any]] | None:
    """The values of each parameter; None if some row has others than those of the space."""
    if space.names is None:
        try:
            table = np.array(rows)
        except ValueError:  # rows of different lengths
            return None
        if table.dtype.kind not in "iuf" or table.shape != (len(rows), len(space.parameters)):
            return None
        columns: list[list[Any]] = table.astype(float).T.tolist()
        return columns
    names = set(space.names)
    if not all(isinstance(row, dict) and row.keys() == names for row in rows):
        return None
    return [[row[name] for row in rows] for name in space.names]


def _encoded(parameter: Any, name: str, column: list[Any]) -> FloatArray:
    """The coordinates (n, w) of the values of a parameter; an error if one has none."""
    if isinstance(parameter, Float) and all(type(value) is float for value in column):
        return _floats(parameter, name, column)
    known: dict[Any, list[float]] = {}
    rows = []
    for value in column:
        if type(value) not in _PLAIN:
            rows.append(parameter.encode(value, name))
            continue
        key = type(value), value
        if key not in known:
            known[key] = parameter.encode(value, name)
        rows.append(known[key])
    return np.array(rows, dtype=float).reshape(len(rows), parameter.width)


def _floats(parameter: Float, name: str, column: list[float]) -> FloatArray:
    """As `Float.encode`, for many real numbers."""
    values = np.array(column)
    usable = np.isfinite(values) & ~(parameter.log & (values <= 0.0))
    if usable.all():
        low, high = parameter.low, parameter.high
        if parameter.log:  # not NumPy's logarithm, whose last bit may differ
            low, high = math.log(low), math.log(high)
            values = np.array([math.log(value) for value in column])
        coordinates = (values - low) / (high - low)
        if ((coordinates >= -TOLERANCE) & (coordinates <= 1.0 + TOLERANCE)).all():
            return np.clip(coordinates, 0.0, 1.0)[:, None]
    raise InvalidInput(f"{name}: some value is not from {parameter.low!r} to {parameter.high!r}")
