"""Panels that show a function: a curve, slices, a map, or arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita._optional import require
from partita._types import FloatArray

from .data import ArmBars, ArmMap, Axis, Curve, Map, Place
from .style import BLUE, GREY, INK, ORANGE, RED, Limits, limits_of, write_heading

TITLE = "What is known"
#: Slices at most, those along which the mean varies most, and slices in a row.
MOST_SLICES, SLICES_A_ROW = 12, 3


# -- curves ----------------------------------------------------------------------------------------


def draw_line(panel: Any, curve: Curve) -> None:
    """One curve with the values, the evaluations that failed, and the cells."""
    band, values = curve.band, curve.dots[:, 1]
    panel.scatter(curve.dots[:, 0], values, s=7, color=GREY, alpha=0.4, linewidth=0, zorder=1)
    for edge in curve.edges:
        panel.axvline(edge, color=INK, linewidth=0.6, alpha=0.45, zorder=0)
    _draw_curve(panel, curve)
    # All of the mean, and as much of the band again.
    low, high = limits_of(values, band.mean)
    room = (high - low) / 2
    lower, upper = band.lower.clip(low - room), band.upper.clip(None, high + room)
    panel.set_ylim(*limits_of(values, band.mean, lower, upper))
    if len(curve.failed):
        bottom = {"transform": panel.get_xaxis_transform(), "linewidth": 0.9, "zorder": 4}
        heights = np.full(len(curve.failed), 0.02)
        panel.scatter(curve.failed, heights, s=14, marker="x", color=RED, **bottom)
    text = "mean and bounds; dots are values" if band.has_mean else "values"
    text += ", crosses failed" if len(curve.failed) else ""
    write_heading(panel, TITLE, text + ("; thin lines divide cells" if curve.edges else ""))


def chosen_slices(curves: Sequence[Curve]) -> list[Curve]:
    """The curves that vary most, in their order, if there are many."""
    if len(curves) <= MOST_SLICES:
        return list(curves)
    spans = [
        np.nanmax(curve.band.mean, initial=-np.inf) - np.nanmin(curve.band.mean, initial=np.inf)
        for curve in curves
    ]
    chosen = np.argsort(spans, kind="stable")[::-1][:MOST_SLICES]
    return [curves[i] for i in sorted(chosen.tolist())]


def draw_slices(panels: Sequence[Any], curves: Sequence[Curve], values: FloatArray) -> None:
    """Slices through the answer on one scale; `values` (n,) set it if there are no means."""
    means = any(curve.band.has_mean for curve in curves)
    limits = _slice_limits(curves) if means else limits_of(values)
    for i, (panel, curve) in enumerate(zip(panels, curves, strict=True)):
        if not means:
            panel.scatter(*curve.dots.T, s=5, color=GREY, alpha=0.4, linewidth=0)
        _draw_curve(panel, curve)
        panel.set_ylim(*limits)
        if i % SLICES_A_ROW:
            panel.tick_params(labelleft=False)
    text = "mean and bounds along each parameter, the others as in the answer"
    write_heading(panels[0], TITLE, text if means else "values, along each parameter")


def _slice_limits(curves: Sequence[Curve]) -> Limits:
    """Limits that hold all means, and of their bounds a quarter of that range beyond."""
    nothing, means = np.empty(0), np.concatenate([curve.band.mean for curve in curves])
    low, high = limits_of(nothing, means)
    room = (high - low) / 4
    bounds = [b.clip(low - room, high + room) for curve in curves for b in curve.band[1:]]
    return limits_of(nothing, means, *bounds)


def _draw_curve(panel: Any, curve: Curve) -> None:
    """Mean and bounds along an axis, and the answer."""
    at, (mean, lower, upper) = curve.at, curve.band
    if curve.band.has_mean and curve.separate:
        panel.vlines(at, lower, upper, color=BLUE, alpha=0.25, linewidth=5, zorder=2)
        panel.scatter(at, mean, s=20, color=BLUE, zorder=3)
    elif curve.band.has_mean:
        panel.fill_between(at, lower, upper, color=BLUE, alpha=0.2, linewidth=0, zorder=2)
        panel.plot(at, mean, color=BLUE, linewidth=1.9, zorder=3)
    panel.axvline(curve.answer.x, color=ORANGE, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    _draw_star(panel, curve.answer, 150)
    _set_axis(panel, "x", curve.axis)


# -- maps ------------------------------------------------------------------------------------------


def draw_map(figure: Any, panel: Any, shown: Map) -> None:
    """The mean over two axes, the cells, the evaluations, and the answer."""
    has_mean = bool(np.isfinite(shown.mean).any())
    panel.grid(False)
    panel.set_facecolor("#F4F4F4")
    if has_mean:
        mesh = panel.pcolormesh(
            shown.x,
            shown.y,
            np.ma.masked_invalid(shown.mean),
            cmap=_colour_map(shown.low_is_good),
            shading="gouraud" if shown.smooth else "nearest",
            rasterized=True,
        )
        _draw_colour_bar(figure, panel, mesh, "posterior mean")
    corners = [[a, (b[0], a[1]), b, (a[0], b[1]), a] for a, b in shown.cells.tolist()]
    lines = require("matplotlib.collections").LineCollection
    panel.add_collection(lines(corners, colors="white", linewidths=0.8, alpha=0.75, zorder=3))
    dots = {"s": 8, "color": "white", "alpha": 0.8, "linewidth": 0.35, "edgecolor": INK}
    panel.scatter(*shown.dots.T, **dots, zorder=4)
    if len(shown.failed):
        panel.scatter(*shown.failed.T, s=14, marker="x", color=RED, linewidth=0.9, zorder=4)
    _draw_star(panel, shown.answer, 280)
    _set_axis(panel, "x", shown.across)
    _set_axis(panel, "y", shown.up)
    what = "posterior mean" if has_mean else "where it was evaluated"
    crosses = ", crosses failed" if len(shown.failed) else ""
    cells = ", lines divide cells" if len(shown.cells) else ""
    text = f"{what}; dots were evaluated{crosses}{cells}, the star is the answer"
    write_heading(panel, TITLE, text)


def draw_arm_map(figure: Any, panel: Any, arms: ArmMap) -> None:
    """Arms of two coordinates in colours: a picture if they fill a grid, else dots."""
    points, colours = arms.points, _colour_map(arms.low_is_good)
    panel.grid(False)
    sides = [np.unique(column) for column in points.T]
    if len(sides[0]) * len(sides[1]) == len(points):
        table = arms.numbers[np.lexsort(points.T)].reshape(len(sides[1]), len(sides[0]))
        drawn = panel.pcolormesh(*sides, table, cmap=colours, rasterized=True)
    else:
        size = min(max(9000 / len(points), 3.0), 160.0)
        drawn = panel.scatter(*points.T, c=arms.numbers, s=size, cmap=colours, linewidth=0)
    _draw_colour_bar(figure, panel, drawn, arms.what)
    _draw_star(panel, arms.answer, 280)
    panel.set_xlabel("x[0]")
    panel.set_ylabel("x[1]")
    write_heading(panel, TITLE, f"{arms.what} at every arm; the star is the answer")


def draw_arm_bars(panel: Any, arms: ArmBars) -> None:
    """Arms beside each other, with their bounds."""
    if arms.answer is not None:
        _draw_star(panel, arms.answer, 150)
    panel.vlines(arms.at, *arms.band[1:], color=BLUE, alpha=0.25, linewidth=4)
    panel.scatter(arms.at, arms.band.mean, s=14, color=BLUE, zorder=3)
    panel.set_xlabel(arms.label)
    write_heading(panel, TITLE, arms.text)


def _colour_map(low_is_good: bool) -> str:
    """The colour map in which what is good is bright."""
    return "viridis_r" if low_is_good else "viridis"


def _draw_colour_bar(figure: Any, panel: Any, drawn: Any, text: str) -> None:
    bar = figure.colorbar(drawn, ax=panel, pad=0.025, fraction=0.05)
    bar.outline.set_visible(False)
    bar.set_label(text)


# -- both ------------------------------------------------------------------------------------------


def _draw_star(panel: Any, at: Place, size: float) -> None:
    panel.scatter(
        *([v] for v in at), marker="*", s=size, color=ORANGE, edgecolor="white", zorder=6,
        clip_on=False,
    )  # fmt: skip


def _set_axis(panel: Any, which: str, axis: Axis) -> None:
    """Set scale, limits, ticks and label of a panel's x or y axis."""
    mine, set_limits = getattr(panel, f"{which}axis"), getattr(panel, f"set_{which}lim")
    getattr(panel, f"set_{which}label")(axis.name)
    if axis.words is not None:
        mine.set_ticks(range(len(axis.words)), axis.words)
        set_limits(-0.5, len(axis.words) - 0.5)
        if which == "x" and max(map(len, axis.words)) * len(axis.words) > 24:
            mine.set_tick_params(rotation=30)
        return
    if axis.scale == "log":
        getattr(panel, f"set_{which}scale")("log")
    elif axis.scale == "whole":
        mine.get_major_locator().set_params(integer=True)
    if axis.limits is not None:
        set_limits(*axis.limits)
