"""Panels that show what is known of the function: a line, a map, slices, or arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._optional import require
from partita._types import FloatArray
from partita.figures.drawing import BLUE, GREY, INK, ORANGE, RED, head, reach, some
from partita.model.domains import Arms, Grid

from .axes import Axis
from .optimizer import Optimizer
from .result import Result

#: Slices drawn at most, those along which the mean varies most, and so many a row.
MOST_SLICES, SLICES_A_ROW = 12, 3
#: Points along each side of a map.
MAP_SIDE = 72
#: A cover of more cells would be all lines.
MOST_CELLS = 4000
#: Arms that are drawn at most, and how many where they have no picture, the best.
MOST_ARMS, BEST_ARMS = 10_000, 20


class Along(NamedTuple):
    """What is known at points: mean and bounds, (n,), NaN where nothing is."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray


# -- what is known ---------------------------------------------------------------------------------


def _known(result: Result, points: Sequence[Any]) -> Along:
    """Mean and bounds at points as the function is given them; NaN where they are not allowed."""
    optimizer: Optimizer = result.optimizer
    columns = np.full((3, len(points)), np.nan)
    allowed = [i for i, point in enumerate(points) if optimizer.space.allows(point)]
    if allowed and hasattr(optimizer.policy, "predict"):
        found = optimizer.predict([points[i] for i in allowed])
        columns[:, allowed] = found.mean, found.lower, found.upper
    return Along(*columns)


def _along(result: Result, axis: Axis) -> Along:
    """What is known along an axis through the answer."""
    return _known(result, [axis.put(result.params, value) for value in axis.values])


def _evaluated(result: Result, axes: Sequence[Axis]) -> tuple[FloatArray, FloatArray]:
    """Where points that were evaluated are drawn, (n, axes), and their values, (n,)."""
    trials = result.history.trials
    shown = some(len(trials))
    params = [trials.space.decode(unit) for unit in trials.units[shown]]
    rows = [[axis.position(axis.get(p)) for axis in axes] for p in params]
    return np.array(rows, dtype=float).reshape(len(rows), len(axes)), trials.values[shown]


def _failed(result: Result, axes: Sequence[Axis]) -> FloatArray:
    """Where points that failed are drawn, (n, axes)."""
    failed = result.history.failed_params
    rows = [[axis.position(axis.get(p)) for axis in axes] for p in failed]
    return np.array(rows, dtype=float).reshape(len(rows), len(axes))


def _cells(optimizer: Optimizer) -> list[tuple[FloatArray, FloatArray]]:
    """Lower and upper corners of the policy's cells in the unit cube; none if there is only one."""
    cover = getattr(optimizer.policy, "cover", ())
    cells = [(cell.lower, cell.upper) for cell in cover]
    return cells if 1 < len(cells) <= MOST_CELLS else []


# -- one dimension ---------------------------------------------------------------------------------


def draw_line(panel: Any, result: Result, axis: Axis) -> None:
    """The posterior of a function of one parameter, the values, and the cells."""
    along = _along(result, axis)
    at, values = _evaluated(result, [axis])
    panel.scatter(at[:, 0], values, s=7, color=GREY, alpha=0.4, linewidth=0, zorder=1)
    cells = _cells(result.optimizer)
    for edge in sorted({float(x) for cell in cells for x in (cell[0][0], cell[1][0])})[1:-1]:
        panel.axvline(axis.at_unit(edge), color=INK, linewidth=0.6, alpha=0.45, zorder=0)
    _draw_curve(panel, result, axis, along)
    # All of the mean, and as much of the band again.
    low, high = reach(values, along.mean)
    wide = (high - low) / 2
    panel.set_ylim(
        *reach(
            values, along.mean, along.lower.clip(low - wide), along.upper.clip(None, high + wide)
        )
    )
    failed = _failed(result, [axis])[:, 0]
    if len(failed):
        bottom = {"transform": panel.get_xaxis_transform(), "linewidth": 0.9, "zorder": 4}
        panel.scatter(failed, np.full(len(failed), 0.02), s=14, marker="x", color=RED, **bottom)
    what = "mean and bounds; dots are values" if np.isfinite(along.mean).any() else "values"
    what += ", crosses failed" if len(failed) else ""
    head(panel, "What is known", what + ("; thin lines divide cells" if cells else ""))


def _draw_curve(panel: Any, result: Result, axis: Axis, along: Along) -> None:
    """Mean and bounds along an axis, and the answer."""
    known = np.isfinite(along.mean).any()
    if known and axis.sparse:
        panel.vlines(
            axis.positions, along.lower, along.upper, color=BLUE, alpha=0.25, linewidth=5, zorder=2
        )
        panel.scatter(axis.positions, along.mean, s=20, color=BLUE, zorder=3)
    elif known:
        panel.fill_between(
            axis.positions, along.lower, along.upper, color=BLUE, alpha=0.2, linewidth=0, zorder=2
        )
        panel.plot(axis.positions, along.mean, color=BLUE, linewidth=1.9, zorder=3)
    here = axis.position(axis.get(result.params))
    panel.axvline(here, color=ORANGE, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    _star(panel, here, result.fun, 150)
    axis.dress(panel.xaxis, panel)
    panel.set_xlabel(axis.name)


def _star(panel: Any, x: float, y: float, size: float) -> None:
    panel.scatter(
        [x], [y], marker="*", s=size, color=ORANGE, edgecolor="white", zorder=6, clip_on=False
    )


# -- two dimensions --------------------------------------------------------------------------------


def is_map(axes: Sequence[Axis]) -> bool:
    """Whether the space has two parameters, both numbers."""
    return len(axes) == 2 and not any(axis.labels for axis in axes)


def draw_map(figure: Any, panel: Any, result: Result, axes: Sequence[Axis]) -> None:
    """The mean over two parameters, the cells, the points that were evaluated, and the answer."""
    across, up = (axis.thinned(MAP_SIDE) for axis in axes)
    points = [up.put(across.put(result.params, a), b) for b in up.values for a in across.values]
    mean = _known(result, points).mean.reshape(len(up.values), len(across.values))
    panel.grid(False)
    panel.set_facecolor("#F4F4F4")
    whole = np.isfinite(mean).all() and not (across.sparse or up.sparse)
    if np.isfinite(mean).any():
        mesh = panel.pcolormesh(
            across.positions,
            up.positions,
            np.ma.masked_invalid(mean),
            cmap=_colours(result),
            shading="gouraud" if whole else "nearest",
            rasterized=True,
        )
        _colour_bar(figure, panel, mesh)
    drawn = _draw_cells(panel, result.optimizer, axes)
    at, _ = _evaluated(result, axes)
    panel.scatter(*at.T, s=8, color="white", alpha=0.8, linewidth=0.35, edgecolor=INK, zorder=4)
    failed = _failed(result, axes)
    if len(failed):
        panel.scatter(*failed.T, s=14, marker="x", color=RED, linewidth=0.9, zorder=4)
    x, y = (axis.position(axis.get(result.params)) for axis in axes)
    _star(panel, x, y, 280)
    for axis, mine in zip(axes, (panel.xaxis, panel.yaxis), strict=True):
        axis.dress(mine, panel)
    panel.set_xlabel(axes[0].name)
    panel.set_ylabel(axes[1].name)
    what = "posterior mean" if np.isfinite(mean).any() else "where it was evaluated"
    cells = ", lines divide cells" if drawn else ""
    crosses = ", crosses failed" if len(failed) else ""
    text = f"{what}; dots were evaluated{crosses}{cells}, the star is the answer"
    head(panel, "What is known", text)


def _draw_cells(panel: Any, optimizer: Optimizer, axes: Sequence[Axis]) -> bool:
    cells = _cells(optimizer)
    across, up = axes
    corners = [
        [
            (across.at_unit(x), up.at_unit(y))
            for x, y in ((a[0], a[1]), (b[0], a[1]), (b[0], b[1]), (a[0], b[1]), (a[0], a[1]))
        ]
        for a, b in cells
    ]
    lines = require("matplotlib.collections").LineCollection
    panel.add_collection(lines(corners, colors="white", linewidths=0.8, alpha=0.75, zorder=3))
    return bool(cells)


def _colours(result: Result) -> str:
    """Bright is good."""
    return "viridis_r" if result.direction == "minimize" else "viridis"


def _colour_bar(figure: Any, panel: Any, drawn: Any, text: str = "posterior mean") -> None:
    bar = figure.colorbar(drawn, ax=panel, pad=0.025, fraction=0.05)
    bar.outline.set_visible(False)
    bar.set_label(text)


# -- slices ----------------------------------------------------------------------------------------


def worth_showing(result: Result, axes: Sequence[Axis]) -> list[tuple[Axis, Along]]:
    """Axes with what is known along them, the ones that matter most if there are many."""
    found = [(axis, _along(result, axis)) for axis in axes]
    if len(found) <= MOST_SLICES:
        return found
    spans = [
        np.nanmax(a.mean, initial=-np.inf) - np.nanmin(a.mean, initial=np.inf) for _, a in found
    ]
    kept = sorted(np.argsort(spans, kind="stable")[::-1][:MOST_SLICES].tolist())
    return [found[i] for i in kept]


def draw_slices(
    panels: Sequence[Any], result: Result, slices: Sequence[tuple[Axis, Along]]
) -> None:
    """Slices through the answer, all on one scale."""
    means = np.concatenate([along.mean for _, along in slices])
    known = bool(np.isfinite(means).any())
    low, high = reach(means[:0], means) if known else reach(result.history.values)
    wide = (high - low) / 4
    bounds = [b.clip(low - wide, high + wide) for _, a in slices for b in (a.lower, a.upper)]
    limits = reach(means[:0], means, *bounds) if known else (low, high)
    for i, (panel, (axis, along)) in enumerate(zip(panels, slices, strict=True)):
        if not known:
            at, values = _evaluated(result, [axis])
            panel.scatter(at[:, 0], values, s=5, color=GREY, alpha=0.4, linewidth=0)
        _draw_curve(panel, result, axis, along)
        panel.set_ylim(*limits)
        if i % SLICES_A_ROW:
            panel.tick_params(labelleft=False)
    text = "mean and bounds along each parameter, the others as in the answer"
    head(panels[0], "What is known", text if known else "values, along each parameter")


# -- arms ------------------------------------------------------------------------------------------


def draw_arms(figure: Any, panel: Any, result: Result, arms: Grid | Arms) -> None:
    """The mean at every arm, in a picture if they have one or two coordinates."""
    points = arms.points[some(arms.size, MOST_ARMS)]
    along = _known(result, list(points))
    what = "posterior mean"
    if not np.isfinite(along.mean).any():
        along, what = along._replace(mean=_averages(result, points)), "average value"
    if arms.dim == 2:
        _draw_arm_map(figure, panel, result, points, along.mean, what)
        return
    if arms.dim == 1:
        order = np.argsort(points[:, 0], kind="stable")
        at, text = points[order, 0], f"{what} and bounds at every arm"
        panel.set_xlabel("x[0]")
        _star(panel, float(result.params[0]), result.fun, 150)
    else:
        sign = 1.0 if result.direction == "minimize" else -1.0
        order = np.argsort(sign * along.mean, kind="stable")[:BEST_ARMS]
        at, text = np.arange(1.0, len(order) + 1), f"{what} and bounds of the {len(order)} best"
        panel.set_xlabel("rank")
    panel.vlines(at, along.lower[order], along.upper[order], color=BLUE, alpha=0.25, linewidth=4)
    panel.scatter(at, along.mean[order], s=14, color=BLUE, zorder=3)
    head(panel, "What is known", text)


def _averages(result: Result, points: FloatArray) -> FloatArray:
    """Averages of the values at arms (n, d), for a policy without a posterior."""
    trials = result.history.trials
    total: dict[bytes, list[float]] = {}
    for unit, value in zip(trials.units, trials.values, strict=True):
        total.setdefault(trials.space.decode(unit).tobytes(), []).append(float(value))
    return np.array([np.mean(total.get(point.tobytes(), np.nan)) for point in points])


def _draw_arm_map(
    figure: Any, panel: Any, result: Result, points: FloatArray, mean: FloatArray, what: str
) -> None:
    panel.grid(False)
    sides = [np.unique(column) for column in points.T]
    if len(sides[0]) * len(sides[1]) == len(points):  # they fill a grid
        table = mean[np.lexsort(points.T)].reshape(len(sides[1]), len(sides[0]))
        drawn = panel.pcolormesh(*sides, table, cmap=_colours(result), rasterized=True)
    else:
        size = min(max(9000 / len(points), 3.0), 160.0)
        drawn = panel.scatter(*points.T, c=mean, s=size, cmap=_colours(result), linewidth=0)
    _colour_bar(figure, panel, drawn, what)
    _star(panel, float(result.params[0]), float(result.params[1]), 280)
    panel.set_xlabel("x[0]")
    panel.set_ylabel("x[1]")
    head(panel, "What is known", f"{what} at every arm; the star is the answer")
