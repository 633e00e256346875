"""The model over two parameters and along each one, and importance, as JSON for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.errors import InvalidInput
from partita.optimize.dimensions import Dimension, dimensions_of
from partita.optimize.trials import FINISHED
from partita.policies import optional
from partita.space import Categorical

from .views import middle

if TYPE_CHECKING:
    from partita._types import FloatArray
    from partita.space import Space
    from partita.study import Study

#: Places along a side of a map, points of a slice, evaluations that are placed, cells drawn.
SIDE, SLICED, PLACED, MOST_CELLS = 36, 60, 5000, 2000
#: Trials from which importance is computed: of more, every second, third and so on is taken.
WEIGHED = 20_000
#: Parameters whose slices are drawn.
MOST_SLICES = 24


def centre(study: Study, at: Any = None) -> Any:
    """The point that maps and slices go through: the one given, or the answer."""
    if at is not None:
        study.space.encode(at)  # refused with the message of Python
        return at if study.space.named else np.array(at, dtype=float)
    if study.n_told and not study.contexts.names:
        return study.recommend().params
    return middle(study.space)


def check_parameters(study: Study) -> None:
    """Refuse a study without parameters to look along, or without a posterior."""
    if study.space.arms is not None:
        raise InvalidInput("the space is a list of arms, which has no parameters to look along")
    if not optional.has_posterior(study.policy):
        raise InvalidInput(f"{type(study.policy).__name__} has no posterior to look at")


# -- the map ---------------------------------------------------------------------------------------


def field(study: Study, x: str | None, y: str | None, at: Any = None) -> dict[str, Any]:
    """Mean and bounds over two parameters, evaluations there, and the cells that the map cuts."""
    check_parameters(study)
    point = centre(study, at)
    dimensions = dimensions_of(study.space, point)
    if len(dimensions) < 2:
        raise InvalidInput("one parameter varies, so there is no map: see the slices")
    across, up = _chosen(dimensions, x, 0), _chosen(dimensions, y, 1)
    if across.name == up.name:
        raise InvalidInput(f"x={x!r}, y={y!r}: give two different parameters")
    columns, rows = _some(across.values, SIDE), _some(up.values, SIDE)
    points = [up.put(across.put(point, a), b) for b in rows for a in columns]
    known = _predicted(study, points)
    shape = (len(rows), len(columns))
    return {
        "x": _axis(across, columns),
        "y": _axis(up, rows),
        "at": point,
        "place": [_place(across, point), _place(up, point)],
        "mean": known[0].reshape(shape),
        "lower": known[1].reshape(shape),
        "upper": known[2].reshape(shape),
        "evaluated": _evaluated(study, across, up, shape),
        "cells": _cells(study, across, up, point),
    }


def _chosen(dimensions: Sequence[Dimension], name: str | None, usual: int) -> Dimension:
    if name is None:
        return dimensions[usual]
    for dimension in dimensions:
        if dimension.name == name:
            return dimension
    names = ", ".join(dimension.name for dimension in dimensions)
    raise InvalidInput(f"there is no parameter {name!r:.100} here: give one of {names}")


def _some(values: list[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return values
    return [values[i] for i in np.linspace(0, len(values) - 1, most).round().astype(int)]


def _axis(dimension: Dimension, values: list[Any]) -> dict[str, Any]:
    """An axis: its values, and where they lie from 0 to 1."""
    return {
        "name": dimension.name,
        "kind": "choice" if isinstance(dimension.parameter, Categorical) else "number",
        "log": bool(getattr(dimension.parameter, "log", False)),
        "values": values,
        "u": [_u(dimension, value) for value in values],
    }


def _u(dimension: Dimension, value: Any) -> float:
    """Where a value lies on its axis, from 0 to 1."""
    parameter = dimension.parameter
    if isinstance(parameter, Categorical):
        return (parameter.number(value, dimension.name) + 0.5) / len(parameter.choices)
    low, high = float(parameter.low), float(parameter.high)
    if getattr(parameter, "log", False):
        return float(np.log(float(value) / low) / np.log(high / low))
    return (float(value) - low) / (high - low)


def _place(dimension: Dimension, params: Any) -> float:
    return _u(dimension, params[dimension.key])


def _predicted(study: Study, points: list[Any]) -> FloatArray:
    """Mean, lower and upper bounds (3, n); NaN where `feasible` does not allow a point."""
    known = np.full((3, len(points)), np.nan)
    there = [i for i, point in enumerate(points) if study.space.allows(point)]
    if there:
        chosen: Any = [points[i] for i in there]
        prediction = study.predict(chosen if study.space.named else np.array(chosen))
        known[:, there] = prediction.mean, prediction.lower, prediction.upper
    return known


def _columns(space: Space) -> list[int]:
    """The first coordinate of each parameter."""
    widths = [parameter.width for parameter in space.parameters]
    return [sum(widths[:i]) for i in range(len(widths))]


def _evaluated(study: Study, across: Dimension, up: Dimension, shape: Any) -> list[list[int]]:
    """How many evaluations lie in each part of the map, whatever their other parameters."""
    trials = study.trials
    finished = np.flatnonzero(trials.codes == FINISHED)
    if len(finished) > PLACED:
        finished = finished[np.linspace(0, len(finished) - 1, PLACED).astype(int)]
    units, firsts = trials.units[finished], _columns(study.space)
    places = [_places(units, dimension, firsts) for dimension in (up, across)]
    there = ~(np.isnan(places[0]) | np.isnan(places[1]))
    counts, _, _ = np.histogram2d(
        places[0][there], places[1][there], bins=shape, range=((0, 1), (0, 1))
    )
    evaluated: list[list[int]] = counts.astype(int).tolist()
    return evaluated


def _places(units: FloatArray, dimension: Dimension, firsts: list[int]) -> FloatArray:
    """Where evaluations (n, D) lie on an axis, from 0 to 1; NaN where it is not active."""
    first, parameter = firsts[dimension.number], dimension.parameter
    part = units[:, first : first + parameter.width]
    decoded = [parameter.decode(row) for row in part.tolist()]
    return np.array([_u(dimension, value) for value in decoded])


def _cells(study: Study, across: Dimension, up: Dimension, point: Any) -> list[dict[str, Any]]:
    """The cells that the map cuts: sides from 0 to 1, evaluations, and which has the top index.

    Only where both parameters have one coordinate each: others have no place for a rectangle.
    """
    space = study.space
    if across.parameter.width != 1 or up.parameter.width != 1:
        return []
    if isinstance(across.parameter, Categorical) or isinstance(up.parameter, Categorical):
        return []
    firsts = _columns(space)
    i, j = firsts[across.number], firsts[up.number]
    rest = [k for k in range(space.dim) if k not in (i, j)]
    unit = space.encode(point)
    cells = optional.cells(study.policy)
    top = max(range(len(cells)), key=lambda k: cells[k].index, default=-1)
    drawn: list[dict[str, Any]] = []
    for number, cell in enumerate(cells):
        lower, upper = np.asarray(cell.lower), np.asarray(cell.upper)
        if (lower[rest] <= unit[rest]).all() and (unit[rest] <= upper[rest]).all():
            box = [lower[i], upper[i], lower[j], upper[j]]
            drawn.append(
                {"box": [float(v) for v in box], "count": int(cell.count), "top": number == top}
            )
    return sorted(drawn, key=lambda cell: -cell["count"])[:MOST_CELLS]


# -- slices and importance -------------------------------------------------------------------------


def slices(study: Study, at: Any = None) -> dict[str, Any]:
    """The model along each parameter through a point."""
    check_parameters(study)
    point = centre(study, at)
    curves = []
    for dimension in dimensions_of(study.space, point)[:MOST_SLICES]:
        values = _some(dimension.values, SLICED)
        mean, lower, upper = _predicted(study, [dimension.put(point, v) for v in values])
        curves.append(
            {
                "axis": _axis(dimension, values),
                "at": _place(dimension, point),
                "value": point[dimension.key],
                "mean": mean,
                "lower": lower,
                "upper": upper,
            }
        )
    return {"at": point, "curves": curves}


def importance(study: Study) -> dict[str, Any]:
    """How much each parameter matters, from the values alone, or from 20,000 to 40,000 of them."""
    if study.space.arms is not None:
        raise InvalidInput("the space is a list of arms: there are no parameters to compare")
    trials = study.trials
    some = trials[:: max(1, len(trials) // WEIGHED)]
    rows = [row._asdict() for row in some.importance()]
    return {"parameters": rows, "told": study.n_told}
