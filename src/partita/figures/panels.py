"""Panels that show a function: a curve, slices, a map, or arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._optional import require
from partita._types import FloatArray

from .data import ArmBars, ArmMap, Axis, Curve, Map, Place
from .style import BLUE, GREY, INK, ORANGE, RED, Limits, limits_of, write_heading
from .ticks import (
    STEPS,
    fitted,
    inches_of,
    set_linear_axis,
    set_log_axis,
    set_words,
    words_fit,
)

TITLE = "What is known"
#: Slices at most, those along which the mean varies most, and slices in a row.
MOST_SLICES, SLICES_A_ROW = 12, 3
#: Characters of a line under a map's heading that have room.
LONG = 95
#: The size of the font of a line under a heading, in points, of letters that are narrow.
SMALL = 7.5


# -- curves ----------------------------------------------------------------------------------------


def draw_line(panel: Any, curve: Curve) -> None:
    """One curve with the values, the evaluations that failed, and the cells."""
    band, values = curve.band, curve.dots[:, 1]
    panel.scatter(curve.dots[:, 0], values, s=7, color=GREY, alpha=0.4, linewidth=0, zorder=1)
    for edge in curve.edges:
        panel.axvline(edge, color=INK, linewidth=0.6, alpha=0.45, zorder=0)
    draw_curve(panel, curve)
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


class Chosen(NamedTuple):
    """The curves that are drawn, and the names of those that are not."""

    curves: list[Curve]
    left_out: list[str]


def chosen_slices(curves: Sequence[Curve]) -> Chosen:
    """The curves that vary most, in their order, if there are many."""
    if len(curves) <= MOST_SLICES:
        return Chosen(list(curves), [])
    spans = [
        np.nanmax(curve.band.mean, initial=-np.inf) - np.nanmin(curve.band.mean, initial=np.inf)
        for curve in curves
    ]
    order = np.argsort(spans, kind="stable")[::-1].tolist()
    return Chosen(
        [curves[i] for i in sorted(order[:MOST_SLICES])],
        [curves[i].axis.name for i in sorted(order[MOST_SLICES:])],
    )


def turned_words(curves: Sequence[Curve], inches: float) -> bool:
    """Whether a panel of a width has words at its ticks that must be turned."""
    words = [curve.axis.words for curve in curves if curve.axis.words is not None]
    return any(not words_fit(each, inches) for each in words)


def draw_slices(panels: Sequence[Any], curves: Sequence[Curve], values: FloatArray) -> None:
    """Slices through the answer, each on its own scale; `values` (n,) are those of the run."""
    means = any(curve.band.has_mean for curve in curves)
    for panel, curve in zip(panels, curves, strict=True):
        if not means:
            panel.scatter(*curve.dots.T, s=5, color=GREY, alpha=0.4, linewidth=0)
        draw_curve(panel, curve)
        panel.set_ylim(*(slice_limits(curve, values) if means else limits_of(values)))
        panel.yaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(4, steps=STEPS))
    text = _slices_text(panels[0]) if means else "values, along each parameter"
    write_heading(panels[0], TITLE, text)


def _slices_text(panel: Any) -> str:
    """What slices show, as much of it as there is room for from a panel to the figure's edge."""
    dpi = panel.figure.dpi
    room = float(panel.figure.get_size_inches()[0] - panel.get_window_extent().x0 / dpi) - 0.1
    short = "mean and bounds along each parameter, the others as in the answer"
    whole = short + "; each has its own scale"
    return whole if "\n" not in fitted(whole, room, SMALL) else fitted(short, room, SMALL)


def slice_limits(curve: Curve, values: FloatArray) -> Limits:
    """Limits that hold the mean, and its bounds as far as values (n,) and half as much again go."""
    low, high = limits_of(values, curve.band.mean)
    room = (high - low) / 2
    bounds = [bound.clip(low - room, high + room) for bound in curve.band[1:]]
    return limits_of(np.empty(0), curve.band.mean, *bounds)


def draw_curve(panel: Any, curve: Curve) -> None:
    """Mean and bounds along an axis, and the answer."""
    at, (mean, lower, upper) = curve.at, curve.band
    if curve.band.has_mean and curve.separate:
        panel.vlines(at, lower, upper, color=BLUE, alpha=0.25, linewidth=5, zorder=2)
        panel.scatter(at, mean, s=20, color=BLUE, zorder=3)
    elif curve.band.has_mean:
        panel.fill_between(at, lower, upper, color=BLUE, alpha=0.2, linewidth=0, zorder=2)
        panel.plot(at, mean, color=BLUE, linewidth=1.9, zorder=3)
    panel.axvline(curve.answer.x, color=ORANGE, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    draw_star(panel, curve.answer, 150)
    set_axis(panel, "x", curve.axis)


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
            cmap=colour_map(shown.low_is_good),
            shading="gouraud" if shown.smooth else "nearest",
            rasterized=True,
        )
        _draw_colour_bar(figure, panel, mesh, "posterior mean")
    corners = [[a, (b[0], a[1]), b, (a[0], b[1]), a] for a, b in shown.cells.tolist()]
    lines = require("matplotlib.collections").LineCollection
    panel.add_collection(lines(corners, colors="white", linewidths=0.8, alpha=0.75, zorder=3))
    dots = {"s": 8, "color": "white", "alpha": 0.8, "linewidth": 0.35, "edgecolor": INK}
    broken = np.zeros(len(shown.dots), bool) if shown.broken is None else shown.broken
    panel.scatter(*shown.dots[~broken].T, **dots, zorder=4)
    if broken.any():
        red = {"s": 13, "color": RED, "linewidth": 0.6, "edgecolor": "white"}
        panel.scatter(*shown.dots[broken].T, **red, zorder=4)
    if len(shown.failed):
        panel.scatter(*shown.failed.T, s=14, marker="x", color=RED, linewidth=0.9, zorder=4)
    draw_star(panel, shown.answer, 280)
    set_axis(panel, "x", shown.across)
    set_axis(panel, "y", shown.up)
    what = "posterior mean" if has_mean else "where it was evaluated"
    crosses = ", crosses failed" if len(shown.failed) else ""
    cells = ", lines divide cells" if len(shown.cells) else ""
    reds = ", red ones break a constraint" if broken.any() else ""
    text = f"{what}; dots were evaluated{reds}{crosses}{cells}, the star is the answer"
    if len(text) > LONG:
        text = f"{what}; dots were evaluated{reds}{crosses}"
    write_heading(panel, TITLE, text)


def draw_arm_map(figure: Any, panel: Any, arms: ArmMap) -> None:
    """Arms of two coordinates in colours: a picture if they fill a grid, else dots."""
    points, colours = arms.points, colour_map(arms.low_is_good)
    panel.grid(False)
    sides = [np.unique(column) for column in points.T]
    if len(sides[0]) * len(sides[1]) == len(points):
        table = arms.numbers[np.lexsort(points.T)].reshape(len(sides[1]), len(sides[0]))
        drawn = panel.pcolormesh(*sides, table, cmap=colours, rasterized=True)
    else:
        size = min(max(9000 / len(points), 3.0), 160.0)
        drawn = panel.scatter(*points.T, c=arms.numbers, s=size, cmap=colours, linewidth=0)
    _draw_colour_bar(figure, panel, drawn, arms.what)
    draw_star(panel, arms.answer, 280)
    panel.set_xlabel("x[0]")
    panel.set_ylabel("x[1]")
    write_heading(panel, TITLE, f"{arms.what} at every arm; the star is the answer")


def draw_arm_bars(panel: Any, arms: ArmBars) -> None:
    """Arms beside each other, with their bounds."""
    if arms.answer is not None:
        draw_star(panel, arms.answer, 150)
    panel.vlines(arms.at, *arms.band[1:], color=BLUE, alpha=0.25, linewidth=4)
    panel.scatter(arms.at, arms.band.mean, s=14, color=BLUE, zorder=3)
    panel.set_xlabel(arms.label)
    write_heading(panel, TITLE, arms.text)


def colour_map(low_is_good: bool) -> str:
    """The colour map in which what is good is bright."""
    return "viridis_r" if low_is_good else "viridis"


def _draw_colour_bar(figure: Any, panel: Any, drawn: Any, text: str) -> None:
    bar = figure.colorbar(drawn, ax=panel, pad=0.025, fraction=0.05)
    bar.outline.set_visible(False)
    bar.set_label(text)


# -- both ------------------------------------------------------------------------------------------


def draw_star(panel: Any, at: Place, size: float) -> None:
    """Mark the answer."""
    panel.scatter(
        *([v] for v in at), marker="*", s=size, color=ORANGE, edgecolor="white", zorder=6,
        clip_on=False,
    )  # fmt: skip


def set_axis(panel: Any, which: str, axis: Axis) -> None:
    """Set scale, limits, ticks and label of a panel's x or y axis."""
    getattr(panel, f"set_{which}label")(fitted(axis.name, inches_of(panel, which)))
    if axis.words is not None:
        set_words(panel, which, axis.words)
    elif axis.scale == "log":
        set_log_axis(panel, which, axis.limits)
    else:
        set_linear_axis(panel, which, whole=axis.scale == "whole")
        if axis.limits is not None:
            getattr(panel, f"set_{which}lim")(*axis.limits)
