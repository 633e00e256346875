"""A result as the plain data of its figure: progress, and the function around the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._text import bounded, params_text
from partita._types import FloatArray
from partita.figures.data import ArmBars, ArmMap, Axis, Band, Curve, Map, Place, Progress, RunFigure
from partita.figures.style import Limits, evenly
from partita.model.domains import Arms, Grid
from partita.policies import optional
from partita.space import Categorical, Float, Integer, Space, Stepped
from partita.space.specs import Parameter

if TYPE_CHECKING:
    from .result import Result

#: Values of a curve along a parameter, at most; of a parameter drawn one by one; a side of a map.
MOST_VALUES, MOST_SEPARATE, MAP_SIDE = 200, 12, 72
#: A cover of more cells would be all lines.
MOST_CELLS = 4000
#: Arms that are drawn at most, and how many, the best, where they have no picture.
MOST_ARMS, BEST_ARMS = 10_000, 20


def figure_of(result: Result) -> RunFigure:
    """What the figure of a result shows."""
    history = result.history
    band = Band(history.best_mean, history.lower, history.upper)
    progress = Progress(history.values, history.evaluations, band, history.certificate)
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    if result.get("npruned"):
        failed += f", {result.npruned:,} pruned"
    bounds = "" if result.guarantee == "none" else f", bounds {result.guarantee}"
    answer = params_text(result.params)
    at = answer if isinstance(result.params, dict) else f"x = {answer}"
    text = f"at {at}   ({result.nfev:,} evaluations{failed}{bounds})"
    return RunFigure(_title(result), text, progress, _view(result))


def _title(result: Result) -> str:
    """The value and its bounds, to the digits that they know."""
    digits, span = 6, result.upper - result.lower
    if math.isfinite(span) and span > 0.0:
        largest = max(abs(result.lower), abs(result.upper))
        digits = min(max(math.ceil(math.log10(largest / span)) + 2, 2), 10)
    what = "Minimum" if result.direction == "minimize" else "Maximum"
    return f"{what} {bounded(result.fun, result.lower, result.upper, digits)}"


def _view(result: Result) -> Curve | tuple[Curve, ...] | Map | ArmMap | ArmBars:
    space = result.optimizer.space
    if space.arms is not None:
        return _arms(result, space.arms)
    dimensions = _dimensions(space)
    if len(dimensions) == 2 and not any(isinstance(d.parameter, Categorical) for d in dimensions):
        return _map(result, dimensions)
    curves = _curves(result, dimensions)
    return curves[0] if len(curves) == 1 else curves


# -- dimensions of a picture -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Dimension:
    """A parameter that varies: its values, and where they are drawn.

    `key` is its name among the keywords, or its place in the array; `values` are some of its
    values, or all, in order.
    """

    name: str
    key: str | int
    parameter: Parameter
    values: list[Any]

    @property
    def separate(self) -> bool:
        """Whether its values are drawn one by one."""
        return not isinstance(self.parameter, Float) and len(self.values) <= MOST_SEPARATE

    @property
    def axis(self) -> Axis:
        """How its axis looks."""
        if isinstance(self.parameter, Categorical):
            words = [text if len(text := str(v)) <= 14 else text[:13] + "…" for v in self.values]
            return Axis(self.name, words=tuple(words))
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

    def places(self, values: Sequence[Any]) -> FloatArray:
        """Where values are drawn, (n,)."""
        return np.array([self.place(value) for value in values], dtype=float)

    def place_of(self, coordinate: float) -> float:
        """Where a coordinate of the unit cube is drawn, between values too."""
        p = self.parameter
        if isinstance(p, Categorical):
            return coordinate * (len(p.choices) - 1)
        if getattr(p, "log", False):
            return float(np.exp((1 - coordinate) * np.log(p.low) + coordinate * np.log(p.high)))
        return float(p.low + coordinate * (p.high - p.low))

    def put(self, params: Any, value: Any) -> Any:
        """A copy of the parameters with another value of this one."""
        changed = params.copy()
        changed[self.key] = value
        return changed


def _dimensions(space: Space) -> list[_Dimension]:
    """The parameters of a space that vary."""
    names = space.names or [f"x[{i}]" for i in range(len(space.parameters))]
    keys: Sequence[str | int] = space.names or range(len(names))
    return [
        _Dimension(name, key, parameter, _values(parameter))
        for name, key, parameter in zip(names, keys, space.parameters, strict=True)
        if parameter.width
    ]


def _values(parameter: Parameter) -> list[Any]:
    if isinstance(parameter, Categorical):
        return list(parameter.choices)
    if isinstance(parameter, Integer | Stepped) and parameter.size <= MOST_VALUES:
        return [parameter.decode(row.tolist()) for row in parameter.grid()]
    return sorted({parameter.decode([u]) for u in np.linspace(0.0, 1.0, MOST_VALUES).tolist()})


# -- what was evaluated and predicted --------------------------------------------------------------


def _predicted(result: Result, points: Sequence[Any]) -> Band:
    """Mean and bounds at points as the function is given them; NaN where they are not allowed."""
    optimizer = result.optimizer
    columns = np.full((3, len(points)), np.nan)
    allowed = [i for i, point in enumerate(points) if optimizer.space.allows(point)]
    if allowed and optional.has_posterior(optimizer.policy):
        prediction = optimizer.predict([points[i] for i in allowed])
        columns[:, allowed] = prediction.mean, prediction.lower, prediction.upper
    return Band(*columns)


def _places(params: Sequence[Any], dimensions: Sequence[_Dimension]) -> FloatArray:
    """Where n points are drawn, (n, dimensions)."""
    rows = [[d.place(p[d.key]) for d in dimensions] for p in params]
    return np.array(rows, dtype=float).reshape(len(rows), len(dimensions))


def _evaluated(result: Result) -> tuple[list[Any], FloatArray]:
    """Parameters and values (n,) of evaluations, not all if there are many."""
    trials = result.history.trials
    shown = evenly(len(trials))
    return [trials.space.decode(unit) for unit in trials.units[shown]], trials.values[shown]


def _cells(result: Result) -> list[tuple[FloatArray, FloatArray]]:
    """Lower and upper corners of the policy's cells in the unit cube; none if there is only one."""
    cells = [(cell.lower, cell.upper) for cell in optional.cells(result.optimizer.policy)]
    return cells if 1 < len(cells) <= MOST_CELLS else []


def _curves(result: Result, dimensions: Sequence[_Dimension]) -> tuple[Curve, ...]:
    """The function along each dimension through the answer; with cells if there is only one."""
    params, values = _evaluated(result)
    dots = _places(params, dimensions)
    failed = _places(result.history.failed_params, dimensions)
    edges: list[float] = []
    if len(dimensions) == 1:
        ends = sorted({float(corner[0]) for cell in _cells(result) for corner in cell})
        edges = [dimensions[0].place_of(end) for end in ends[1:-1]]
    return tuple(
        Curve(
            axis=d.axis,
            at=d.places(d.values),
            band=_predicted(result, [d.put(result.params, value) for value in d.values]),
            separate=d.separate,
            answer=Place(d.place(result.params[d.key]), result.fun),
            dots=np.stack([dots[:, i], values], axis=1),
            failed=failed[:, i],
            edges=edges,
        )
        for i, d in enumerate(dimensions)
    )


def _map(result: Result, dimensions: Sequence[_Dimension]) -> Map:
    """The function over two dimensions, all others as in the answer."""
    across, up = dimensions
    xs, ys = ([d.values[i] for i in evenly(len(d.values), MAP_SIDE)] for d in dimensions)
    points = [up.put(across.put(result.params, x), y) for y in ys for x in xs]
    mean = _predicted(result, points).mean.reshape(len(ys), len(xs))
    cells = [
        [[d.place_of(c) for d, c in zip(dimensions, corner, strict=True)] for corner in cell]
        for cell in _cells(result)
    ]
    return Map(
        across=across.axis,
        up=up.axis,
        x=across.places(xs),
        y=up.places(ys),
        mean=mean,
        smooth=bool(np.isfinite(mean).all()) and not (across.separate or up.separate),
        low_is_good=result.direction == "minimize",
        answer=Place(*(d.place(result.params[d.key]) for d in dimensions)),
        dots=_places(_evaluated(result)[0], dimensions),
        failed=_places(result.history.failed_params, dimensions),
        cells=np.array(cells, dtype=float).reshape(len(cells), 2, 2),
    )


def _arms(result: Result, arms: Grid | Arms) -> ArmMap | ArmBars:
    """The mean at every arm: a picture of two coordinates, else beside each other."""
    points = arms.points[evenly(arms.size, MOST_ARMS)]
    band, what = _predicted(result, list(points)), "posterior mean"
    if not band.has_mean:
        band, what = band._replace(mean=_averages(result, points)), "average value"
    low_is_good, x = result.direction == "minimize", [float(c) for c in result.params]
    if arms.dim == 2:
        return ArmMap(points, band.mean, what, low_is_good, Place(*x))
    if arms.dim == 1:
        order, text = np.argsort(points[:, 0], kind="stable"), f"{what} and bounds at every arm"
        shown, at = Band(*(part[order] for part in band)), points[order, 0]
        return ArmBars("x[0]", at, shown, text, Place(x[0], result.fun))
    order = np.argsort(band.mean if low_is_good else -band.mean, kind="stable")[:BEST_ARMS]
    shown, ranks = Band(*(part[order] for part in band)), np.arange(1.0, len(order) + 1)
    return ArmBars("rank", ranks, shown, f"{what} and bounds of the {len(order)} best")


def _averages(result: Result, points: FloatArray) -> FloatArray:
    """Averages of the values at arms (n, d), for a policy without a posterior."""
    trials = result.history.trials
    values: dict[bytes, list[float]] = {}
    for unit, value in zip(trials.units, trials.values, strict=True):
        values.setdefault(trials.space.decode(unit).tobytes(), []).append(float(value))
    return np.array([np.mean(values.get(point.tobytes(), np.nan)) for point in points])
