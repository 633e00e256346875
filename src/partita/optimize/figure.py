"""The data of a result's figure: progress, and the function around the recommended point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from partita._text import bounded, params_text
from partita._types import BoolArray, FloatArray
from partita.figures.data import ArmBars, ArmMap, Band, Curve, Map, Place, Progress, RunFigure
from partita.figures.style import evenly
from partita.model.domains import Arms, Grid
from partita.policies import optional
from partita.space import Categorical

from .dimensions import Dimension, dimensions_of, evaluated, places_of, predicted
from .wording import certificate_says

if TYPE_CHECKING:
    from .result import Result

#: A side of a map, in points.
MAP_SIDE = 72
#: Covers with more cells are not drawn: nothing but their borders would be visible.
MOST_CELLS = 4000
#: The largest number of arms that are drawn, and the number of best arms shown as bars.
MOST_ARMS, BEST_ARMS = 10_000, 20


def figure_of(result: Result) -> RunFigure:
    """The data of the figure of a result."""
    history = result.history
    band = Band(history.best_mean, history.lower, history.upper)
    says = certificate_says(0.0, result.guarantee)
    progress = Progress(
        history.values, history.evaluations, band, history.certificate, says, _broken(result)
    )
    return RunFigure(title_of(result), text_of(result), progress, _view(result))


def text_of(result: Result) -> str:
    """Where the answer is, by how many evaluations, and what stands behind its bounds."""
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    if result.get("npruned"):
        failed += f", {result.npruned:,} pruned"
    bounds = "" if result.guarantee == "none" else f", bounds {result.guarantee}"
    for each in result.get("constraints", {}).values():
        bounds += f", {each.constraint} with probability {each.probability:.2g}"
    answer = params_text(result.params)
    at = answer if isinstance(result.params, dict) else f"x = {answer}"
    return f"at {at}   ({result.nfev:,} evaluations{failed}{bounds})"


def _broken(result: Result) -> BoolArray | None:
    """Whether each value breaks a constraint, (n,); None without constraints."""
    constraints = result.optimizer.constraints
    return ~constraints.met(result.history.trials.measured) if constraints.names else None


def title_of(result: Result) -> str:
    """The value and its bounds, rounded to the digits that the bounds justify."""
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
    dimensions = dimensions_of(space, result.params)
    if len(dimensions) == 2 and not any(isinstance(d.parameter, Categorical) for d in dimensions):
        return _map(result, dimensions)
    curves = curves_of(result, dimensions)
    return curves[0] if len(curves) == 1 else curves


def _cells(result: Result) -> list[tuple[FloatArray, FloatArray]]:
    """Lower and upper corners of the policy's cells in the unit cube; none if there is only one."""
    cells = [(cell.lower, cell.upper) for cell in optional.cells(result.optimizer.policy)]
    return cells if 1 < len(cells) <= MOST_CELLS else []


def curves_of(result: Result, dimensions: Sequence[Dimension]) -> tuple[Curve, ...]:
    """The function along each dimension through the recommended point; in 1-D also the cells."""
    params, values = evaluated(result)
    dots = places_of(params, dimensions)
    failed = places_of(result.history.failed_params, dimensions)
    edges: list[float] = []
    if len(dimensions) == 1 and dimensions[0].space.conditions is None:
        ends = sorted({float(corner[0]) for cell in _cells(result) for corner in cell})
        edges = [dimensions[0].place_of(end) for end in ends[1:-1]]
    best = np.argsort(values if result.direction == "minimize" else -values, kind="stable")
    others = [params[i] for i in best]
    return tuple(
        Curve(
            axis=d.axis,
            at=d.places(d.values),
            band=predicted(result, [d.put(result.params, value, others) for value in d.values]),
            separate=d.separate,
            answer=Place(d.place(result.params[d.key]), result.fun),
            dots=np.stack([dots[:, i], values], axis=1)[~np.isnan(dots[:, i])],
            failed=failed[~np.isnan(failed[:, i]), i],
            edges=edges,
        )
        for i, d in enumerate(dimensions)
    )


def _map(result: Result, dimensions: Sequence[Dimension]) -> Map:
    """The function over two dimensions, with all others as in the recommended point."""
    across, up = dimensions
    xs, ys = ([d.values[i] for i in evenly(len(d.values), MAP_SIDE)] for d in dimensions)
    points = [up.put(across.put(result.params, x), y) for y in ys for x in xs]
    mean = predicted(result, points).mean.reshape(len(ys), len(xs))
    cells = [
        [[d.place_of(c) for d, c in zip(dimensions, corner, strict=True)] for corner in cell]
        for cell in _cells(result)
    ]
    broken = _broken(result)
    return Map(
        across=across.axis,
        up=up.axis,
        x=across.places(xs),
        y=up.places(ys),
        mean=mean,
        smooth=bool(np.isfinite(mean).all()) and not (across.separate or up.separate),
        low_is_good=result.direction == "minimize",
        answer=Place(*(d.place(result.params[d.key]) for d in dimensions)),
        dots=places_of(evaluated(result)[0], dimensions),
        failed=places_of(result.history.failed_params, dimensions),
        cells=np.array(cells, dtype=float).reshape(len(cells), 2, 2),
        broken=None if broken is None else broken[evenly(len(broken))],
    )


def _arms(result: Result, arms: Grid | Arms) -> ArmMap | ArmBars:
    """The mean at every arm: as a map if arms have two coordinates, else as bars."""
    points = arms.points[evenly(arms.size, MOST_ARMS)]
    band, what = predicted(result, list(points)), "posterior mean"
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
