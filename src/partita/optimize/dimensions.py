"""The parameters of a space as axes of a figure, and what is known along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.figures.data import Axis, Band
from partita.figures.style import Limits, evenly
from partita.policies import optional
from partita.space import Categorical, Float, Integer, Space, Stepped
from partita.space.conditions import Parameter

if TYPE_CHECKING:
    from .result import Result

#: Largest numbers of points: of a curve, of a parameter drawn value by value.
MOST_VALUES, MOST_SEPARATE = 200, 12


# -- dimensions of a picture -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dimension:
    """A parameter that varies: its values, and their positions on an axis.

    `key` is the parameter's name, or its index in the array; `values` are some or all of its
    values, in order; `number` is its index among the parameters of the space.
    """

    space: Space
    number: int
    name: str
    key: str | int
    parameter: Parameter
    values: list[Any]

    @property
    def separate(self) -> bool:
        """Whether its values are drawn as separate points instead of a range."""
        return not isinstance(self.parameter, Float) and len(self.values) <= MOST_SEPARATE

    @property
    def axis(self) -> Axis:
        """How its axis looks."""
        if isinstance(self.parameter, Categorical):
            return Axis(self.name, words=tuple(str(value) for value in self.values))
        at = self.places(self.values)
        limits = None if self.separate else Limits(float(at.min()), float(at.max()))
        if getattr(self.parameter, "log", False):
            return Axis(self.name, "log", limits)
        return Axis(self.name, "whole" if isinstance(self.parameter, Integer) else "linear", limits)

    def place(self, value: Any) -> float:
        """Where a value is drawn."""
        if isinstance(self.parameter, Categorical):
            return float(self.parameter.number(value, self.name))
        return float(value)

    def place_in(self, params: Any) -> float:
        """Where parameters are drawn; NaN if they do not have this one.

        In another branch the name may stand for another parameter.
        """
        return (
            self.place(params[self.key]) if _active(self.space, params)[self.number] else math.nan
        )

    def places(self, values: Sequence[Any]) -> FloatArray:
        """Where values are drawn, (n,)."""
        return np.array([self.place(value) for value in values], dtype=float)

    def place_of(self, coordinate: float) -> float:
        """Where a coordinate of the unit cube is drawn; it may be between two values."""
        p = self.parameter
        if isinstance(p, Categorical):
            return coordinate * (len(p.choices) - 1)
        if getattr(p, "log", False):
            return float(np.exp((1 - coordinate) * np.log(p.low) + coordinate * np.log(p.high)))
        return float(p.low + coordinate * (p.high - p.low))

    def put(self, params: Any, value: Any, others: Sequence[Any] = ()) -> Any:
        """A copy of the parameters with another value of this one.

        Parameters that this makes active are as in the first of `others` that has them.
        """
        if self.space.conditions is not None:
            return self.space.conditions.changed(params, self.name, value, others)
        changed = params.copy()
        changed[self.key] = value
        return changed


def dimensions_of(space: Space, params: Any = None) -> list[Dimension]:
    """The parameters of a space that vary; of those, the ones that `params` has, if given."""
    names = space.names or [f"x[{i}]" for i in range(len(space.parameters))]
    keys: Sequence[str | int] = space.names or range(len(names))
    active = [True] * len(names) if params is None else _active(space, params)
    return [
        Dimension(space, i, name, key, parameter, _values(parameter))
        for i, (name, key, parameter) in enumerate(zip(names, keys, space.parameters, strict=True))
        if parameter.width and active[i]
    ]


def _active(space: Space, params: Any) -> list[bool]:
    """Which parameters are active."""
    if space.conditions is None:
        return [True] * len(space.parameters)
    return list(map(bool, space.conditions.active_in(params)))


def _values(parameter: Parameter) -> list[Any]:
    if isinstance(parameter, Categorical):
        return list(parameter.choices)
    if isinstance(parameter, Integer | Stepped) and parameter.size <= MOST_VALUES:
        return [parameter.decode(row.tolist()) for row in parameter.grid()]
    return sorted({parameter.decode([u]) for u in np.linspace(0.0, 1.0, MOST_VALUES).tolist()})


# -- what was evaluated and predicted --------------------------------------------------------------


def predicted(result: Result, points: Sequence[Any]) -> Band:
    """Mean and bounds at points in the user's units; NaN where `feasible` does not allow them."""
    optimizer = result.optimizer
    columns = np.full((3, len(points)), np.nan)
    allowed = [i for i, point in enumerate(points) if _allows(optimizer.space, point)]
    if allowed and optional.has_posterior(optimizer.policy):
        prediction = optimizer.predict([points[i] for i in allowed])
        columns[:, allowed] = prediction.mean, prediction.lower, prediction.upper
    return Band(*columns)


def _allows(space: Space, point: Any) -> bool:
    """Whether a point is one of the space, and allowed by the constraint."""
    try:
        space.encode(point)
    except InvalidInput:  # a parameter that other values of another one do not have
        return False
    return space.allows(point)


def places_of(params: Sequence[Any], dimensions: Sequence[Dimension]) -> FloatArray:
    """Where n points are drawn, (n, dimensions); NaN for a parameter that one does not have."""
    rows = [[d.place_in(p) for d in dimensions] for p in params]
    return np.array(rows, dtype=float).reshape(len(rows), len(dimensions))


def evaluated(result: Result) -> tuple[list[Any], FloatArray]:
    """Parameters and values (n,) of the evaluations, or of a part of them if there are many."""
    trials = result.history.trials
    shown = evenly(len(trials))
    return [trials.space.decode(unit) for unit in trials.units[shown]], trials.values[shown]
