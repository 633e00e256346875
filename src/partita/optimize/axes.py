"""Axes of figures: the values of a parameter, where they are drawn, how they are labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partita._types import FloatArray
from partita.space import Categorical, Float, Integer, Space, Stepped
from partita.space.specs import Parameter

#: Values of a curve along a parameter, at most.
FINE = 200
#: Up to so many values are drawn one by one, not as a curve.
FEW = 12


@dataclass(frozen=True, eq=False)
class Axis:
    """A parameter as an axis of a figure.

    Attributes
    ----------
    name
    key
        Its name among the keywords, or its place in the array.
    parameter
    values
        Some of its values, or all, in order.
    labels
        Texts of the values, if they are not numbers.
    """

    name: str
    key: str | int
    parameter: Parameter
    values: list[Any]
    labels: list[str] | None

    @property
    def positions(self) -> FloatArray:
        """Where the values are drawn, (n,)."""
        return np.array([self.position(value) for value in self.values])

    @property
    def sparse(self) -> bool:
        """Whether its values are drawn one by one."""
        return not isinstance(self.parameter, Float) and len(self.values) <= FEW

    def get(self, params: Any) -> Any:
        """Its value among parameters."""
        return params[self.key]

    def put(self, params: Any, value: Any) -> Any:
        """A copy of the parameters with another value of this one."""
        changed = params.copy()
        changed[self.key] = value
        return changed

    def position(self, value: Any) -> float:
        """Where a value is drawn."""
        if isinstance(self.parameter, Categorical):
            return float(self.parameter._number(value, self.name))
        return float(value)

    def at_unit(self, coordinate: float) -> float:
        """Where a coordinate of the unit cube is drawn, between values too."""
        p = self.parameter
        if isinstance(p, Categorical):
            return coordinate * (len(p.choices) - 1)
        if getattr(p, "log", False):
            return float(np.exp((1 - coordinate) * np.log(p.low) + coordinate * np.log(p.high)))
        return float(p.low + coordinate * (p.high - p.low))

    def thinned(self, most: int) -> Axis:
        """The same with fewer values."""
        kept = np.unique(np.linspace(0, len(self.values) - 1, most).round().astype(int))
        return replace(self, values=[self.values[i] for i in kept])

    def dress(self, axis: Any, panel: Any) -> None:
        """Scale, limits and labels of a Matplotlib axis."""
        which = axis.axis_name
        if self.labels is not None:
            axis.set_ticks(range(len(self.labels)), self.labels)
            getattr(panel, f"set_{which}lim")(-0.5, len(self.labels) - 0.5)
            if which == "x" and max(map(len, self.labels)) * len(self.labels) > 24:
                axis.set_tick_params(rotation=30)
            return
        if getattr(self.parameter, "log", False):
            getattr(panel, f"set_{which}scale")("log")
        elif isinstance(self.parameter, Integer):
            axis.get_major_locator().set_params(integer=True)
        if not self.sparse:
            at = self.positions
            getattr(panel, f"set_{which}lim")(at.min(), at.max())


def axes_of(space: Space) -> list[Axis]:
    """An axis for each parameter that varies; none for a list of arms."""
    if space.arms is not None:
        return []
    axes = []
    for i, parameter in enumerate(space.parameters):
        if parameter.width == 0:
            continue
        key: str | int = i if space.names is None else space.names[i]
        name = f"x[{i}]" if space.names is None else space.names[i]
        values = _values(parameter)
        labels = None
        if isinstance(parameter, Categorical):
            labels = [text if len(text := str(v)) <= 14 else text[:13] + "…" for v in values]
        axes.append(Axis(name, key, parameter, values, labels))
    return axes


def _values(parameter: Parameter) -> list[Any]:
    if isinstance(parameter, Categorical):
        return list(parameter.choices)
    if isinstance(parameter, Integer | Stepped) and parameter.size <= FINE:
        return [parameter.decode(row.tolist()) for row in parameter.grid()]
    found = [parameter.decode([u]) for u in np.linspace(0.0, 1.0, FINE).tolist()]
    return sorted(set(found))
