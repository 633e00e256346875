"""Figures besides that of a run: importance, slices, pairs, and a time line."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from partita._optional import require
from partita._types import FloatArray, IntArray

from .data import Curve, Map, Pairs, Shares, Slices, Timeline
from .panels import (
    SLICES_A_ROW,
    chosen_slices,
    colour_map,
    draw_curve,
    draw_slices,
    draw_star,
    set_axis,
    slice_limits,
    turned_words,
)
from .style import BLUE, GREY, INK, ORANGE, RED, drawing, limits_of, write_heading, write_title
from .ticks import BESIDE, LETTER, fitted, shortened, write_left_out

#: Parameters that the importance has bars for, at most; evaluations on a time line.
MOST_BARS, MOST_SPANS = 30, 20_000
#: Lanes of a time line that are drawn as bars with room between them.
FEW_LANES = 60
#: Sides of panels, in inches.
SLICE_WIDTH, SLICE_HEIGHT, PAIR = 3.3, 2.6, 2.35


# -- importance ------------------------------------------------------------------------------------


def draw_shares(shares: Shares) -> Any:
    """Bars of how much each parameter matters, the first index within the total one."""
    n = min(len(shares.names), MOST_BARS)
    left_out = shares.names[n:]
    names = [shortened(name, 36) for name in shares.names[:n]]
    side = 0.35 + 0.082 * max(map(len, names))
    foot = 0.3 if left_out else 0.0
    width, height = max(side + 5.2, 8.0), 0.36 * max(n, 3) + 1.95 + foot
    at = np.arange(n, dtype=float)
    with drawing() as new_figure:
        figure = new_figure((width, height))
        panel = figure.add_axes(
            (
                side / width,
                (0.62 + foot) / height,
                1 - (side + 0.7) / width,
                1 - (1.85 + foot) / height,
            )
        )
        for band, shift, opacity in ((shares.total, -0.19, 0.38), (shares.first, 0.19, 0.95)):
            mean, lower, upper = (part[:n] for part in band)
            panel.barh(at + shift, mean, height=0.34, color=BLUE, alpha=opacity, linewidth=0)
            panel.hlines(at + shift, lower, upper, color=INK, linewidth=1.3, zorder=3)
        panel.set_ylim(n - 0.4, -0.6)
        panel.set_xlim(0, min(max(1.02 * float(np.max(shares.total.upper, initial=0.1)), 0.1), 1.0))
        panel.set_yticks(at, names)
        panel.tick_params(axis="y", length=0)
        panel.grid(False, axis="y")
        panel.xaxis.set_major_formatter(require("matplotlib.ticker").PercentFormatter(1.0))
        panel.set_xlabel("share of the variance over the whole space")
        text = "pale: in all; dark: by itself; lines: nine of ten draws of the model"
        write_heading(panel, "Importance", text)
        write_title(figure, shares.title, shares.text)
        write_left_out(figure, left_out, "they matter less")
    return figure


# -- slices and pairs ------------------------------------------------------------------------------


def draw_slice_figure(slices: Slices) -> Any:
    """Slices through the answer, three in a row."""
    curves, left_out = chosen_slices(slices.curves)
    columns = min(len(curves), SLICES_A_ROW)
    rows = -(-len(curves) // SLICES_A_ROW)
    turned = 0.42 if turned_words(curves, 0.75 * SLICE_WIDTH) else 0.0
    foot = 0.3 if left_out else 0.0
    width, height = (
        max(SLICE_WIDTH * columns + 0.6, 7.5),
        (SLICE_HEIGHT + turned) * rows + 1.5 + foot,
    )
    with drawing() as new_figure:
        figure = new_figure((width, height))
        grid = figure.add_gridspec(
            rows,
            columns,
            left=0.75 / width,
            right=1 - 0.25 / width,
            top=1 - 1.25 / height,
            bottom=(0.7 + turned + foot) / height,
            hspace=0.6 + 0.6 * turned,
            wspace=0.3,
        )
        panels = [figure.add_subplot(grid[i]) for i in range(len(curves))]
        draw_slices(panels, curves, slices.values)
        write_title(figure, slices.title, slices.text)
        write_left_out(figure, left_out, "the mean varies less along them")
    return figure


def draw_pairs(pairs: Pairs) -> Any:
    """A square of panels: slices on the diagonal, means below it, widths of bounds above it."""
    k = len(pairs.curves)
    foot = 0.3 if pairs.left_out else 0.0
    side = _side_of(pairs.curves)
    width, height = PAIR * k + side + 1.1, PAIR * k + 2.3 + foot
    with drawing() as new_figure:
        figure = new_figure((width, height))
        grid = figure.add_gridspec(
            k,
            k,
            left=side / width,
            right=1 - 1.25 / width,
            top=1 - 1.35 / height,
            bottom=(1.05 + foot) / height,
            hspace=0.22,
            wspace=0.22,
        )
        panels = np.array([[figure.add_subplot(grid[i, j]) for j in range(k)] for i in range(k)])
        means = _mesh_limits([shown.mean for shown in pairs.maps.values()])
        widths = _mesh_limits(list(pairs.widths.values()))
        meshes: dict[str, Any] = {}
        for i, curve in enumerate(pairs.curves):
            draw_curve(panels[i, i], curve)
            panels[i, i].set_ylim(*slice_limits(curve, pairs.values))
            panels[i, i].yaxis.tick_right()
            panels[i, i].tick_params(axis="y", labelsize=7.5)
        for (j, i), shown in pairs.maps.items():  # j across, i up; row i is below row j
            meshes["mean"] = _draw_mesh(panels[i, j], shown, shown.mean, *means, bright=True)
            turned = _turned(shown)
            meshes["width"] = _draw_mesh(
                panels[j, i], turned, pairs.widths[j, i].T, *widths, bright=False
            )
        _label_outside(panels)
        _draw_bars(figure, panels, meshes)
        text = "diagonal: mean and bounds through the answer, each on its own scale"
        text += "; below it: the mean; above it: how far bounds are from the mean"
        write_heading(panels[0, 0], "Pairs of parameters", fitted(text, width - 1.2, 8.5, 2))
        write_title(figure, pairs.title, pairs.text)
        write_left_out(figure, pairs.left_out, pairs.why)
    return figure


def _side_of(curves: Sequence[Curve]) -> float:
    """The room for words at ticks and for names at the left of a square of panels, in inches."""
    words = [word for curve in curves for word in curve.axis.words or ()]
    ticks = LETTER * min(max(map(len, words), default=6), BESIDE)
    names = max(fitted(curve.axis.name, 0.75 * PAIR).count("\n") for curve in curves) + 1
    return max(ticks + 0.17 * names + 0.4, 1.3)


def _mesh_limits(tables: list[FloatArray]) -> tuple[float, float]:
    """The least and the greatest finite number of several tables."""
    numbers = np.concatenate([table[np.isfinite(table)] for table in tables] or [np.empty(0)])
    return (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)


def _turned(shown: Map) -> Map:
    """A map with its axes exchanged."""
    from dataclasses import replace

    return replace(
        shown,
        across=shown.up,
        up=shown.across,
        x=shown.y,
        y=shown.x,
        answer=shown.answer._replace(x=shown.answer.y, y=shown.answer.x),
        dots=shown.dots[:, ::-1],
    )


def _draw_mesh(
    panel: Any, shown: Map, table: FloatArray, low: float, high: float, bright: bool
) -> Any:
    """The colours of a table (l, k) over two axes, and the answer."""
    panel.grid(False)
    panel.set_facecolor("#F4F4F4")
    mesh = panel.pcolormesh(
        shown.x,
        shown.y,
        np.ma.masked_invalid(table),
        cmap=colour_map(shown.low_is_good) if bright else "Greys",
        shading="nearest",
        vmin=low,
        vmax=high if high > low else low + 1.0,
        rasterized=True,
    )
    if bright:
        dots = {"s": 5, "color": "white", "alpha": 0.7, "linewidth": 0.3, "edgecolor": INK}
        panel.scatter(*shown.dots.T, **dots, zorder=4)
    draw_star(panel, shown.answer, 110)
    set_axis(panel, "x", shown.across)
    set_axis(panel, "y", shown.up)
    return mesh


def _label_outside(panels: Any) -> None:
    """Leave names and numbers to the panels at the left and at the bottom."""
    k = len(panels)
    for i in range(k):
        for j in range(k):
            panel = panels[i, j]
            if i < k - 1:
                panel.set_xlabel("")
                panel.tick_params(bottom=False, labelbottom=False, which="both")
            if j > 0 and i != j:
                panel.tick_params(left=False, labelleft=False, which="both")
            if j > 0:
                panel.set_ylabel("")
    name = panels[-1, 0].get_xlabel()
    panels[0, 0].set_ylabel(name)


def _draw_bars(figure: Any, panels: Any, meshes: dict[str, Any]) -> None:
    """Colour bars at the right: of the mean below, of the width above."""
    width = figure.get_size_inches()[0]
    k = len(panels)
    for name, text, row in (("width", "from mean to bounds", 0), ("mean", "mean", k - 1)):
        if name not in meshes:
            continue
        box = panels[row, -1].get_position()
        place = figure.add_axes((1 - 0.78 / width, box.y0, 0.1 / width, box.height))
        bar = figure.colorbar(meshes[name], cax=place)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7.5)
        bar.set_label(text, fontsize=8.5)


# -- time lines ------------------------------------------------------------------------------------


def lanes_of(begun: FloatArray, ended: FloatArray) -> IntArray:
    """A lane for each of n spans, in the order of their beginnings: the first that is free."""
    lanes = np.zeros(len(begun), dtype=np.int64)
    free: list[int] = []  # lanes that nothing is in, the lowest first
    busy: list[tuple[float, int]] = []  # when lanes become free
    made = 0
    for i, (start, end) in enumerate(zip(begun.tolist(), ended.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, made = made, made + 1
        lanes[i] = lane
        heapq.heappush(busy, (end, lane))
    return lanes


def draw_timeline(line: Timeline) -> Any:
    """A bar for each evaluation, and how many were under way at each moment."""
    begun, ended = line.begun[:MOST_SPANS], line.ended[:MOST_SPANS]
    lanes = lanes_of(begun, ended)
    number = int(lanes.max(initial=0)) + 1
    height = min(max(0.16 * number, 1.2), 6.0) + 3.6
    unit, name = _unit(float(ended.max(initial=0.0)))
    with drawing() as new_figure:
        figure = new_figure((9.5, height))
        grid = figure.add_gridspec(
            2,
            1,
            left=0.075,
            right=0.975,
            top=1 - 1.3 / height,
            bottom=0.55 / height,
            height_ratios=[height - 3.4, 1.0],
            hspace=1.9 / height,
        )
        panel = figure.add_subplot(grid[0])
        thick = 0.72 if number <= FEW_LANES else 1.0
        for chosen, colour in ((~line.failed, BLUE), (line.failed, RED)):
            rows = np.flatnonzero(chosen[: len(begun)])
            panel.barh(
                lanes[rows] + 1,
                (ended - begun)[rows] / unit,
                left=begun[rows] / unit,
                height=thick,
                color=colour,
                alpha=0.7,
                edgecolor=colour,
                linewidth=0.4,
            )
        ticks = require("matplotlib.ticker").MaxNLocator
        panel.set_ylim(number + 0.6, 0.4)
        panel.set_yticks(range(1, number + 1, -(-number // 8)))
        panel.set_ylabel("lane")
        panel.grid(False, axis="y")
        panel.tick_params(labelbottom=False)
        failed = "; red ones failed" if line.failed.any() else ""
        write_heading(panel, "Evaluations", "each in the first lane that is free" + failed)
        below = figure.add_subplot(grid[1], sharex=panel)
        _draw_under_way(below, begun / unit, ended / unit)
        below.yaxis.set_major_locator(ticks(3, integer=True))
        below.set_xlabel(name)
        panel.set_xlim(0, max(float(ended.max(initial=0.0)) / unit, 1e-9))
        write_title(figure, line.title, line.text)
    return figure


def _draw_under_way(panel: Any, begun: FloatArray, ended: FloatArray) -> None:
    """How many spans hold each moment."""
    moments = np.concatenate([begun, ended])
    changes = np.concatenate([np.ones(len(begun)), -np.ones(len(ended))])
    order = np.lexsort((changes, moments))
    count = np.cumsum(changes[order])
    panel.fill_between(moments[order], count, step="post", color=GREY, alpha=0.35, linewidth=0)
    panel.step(moments[order], count, where="post", color=ORANGE, linewidth=1.2)
    panel.set_ylim(*limits_of(np.empty(0), np.array([0.0, float(count.max(initial=1.0))])))
    write_heading(panel, "Under way", "evaluations at a time")


def _unit(seconds: float) -> tuple[float, str]:
    """The unit that a reader would use for a number of seconds, and its name."""
    if seconds < 0.2:
        return 1e-3, "milliseconds"
    if seconds < 300:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 3 * 3600 else (3600.0, "hours")
