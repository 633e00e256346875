"""The figure of a run: progress and certificate beside the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita._optional import require

from .data import ArmBars, ArmMap, Curve, Map, Progress, RunFigure
from .panels import (
    SLICES_A_ROW,
    chosen_slices,
    draw_arm_bars,
    draw_arm_map,
    draw_line,
    draw_map,
    draw_slices,
    turned_words,
)
from .style import BLUE, GREY, ORANGE, RED, drawing, evenly, limits_of, write_heading, write_title
from .ticks import STEPS, write_left_out

#: Width of the left side, of a single panel on the right and of a slice there, in inches.
LEFT, SINGLE, SLICE = 5.2, 5.9, 2.75


def draw(run: RunFigure) -> Any:
    """The Matplotlib figure of a run."""
    slices, left_out = chosen_slices(run.view if isinstance(run.view, tuple) else ())
    columns = min(max(len(slices), 1), SLICES_A_ROW)
    rows = max(-(-len(slices) // SLICES_A_ROW), 1)
    right = SLICE * columns if slices else SINGLE
    turned = 0.42 if turned_words(slices, 0.75 * SLICE) else 0.0
    foot = 0.3 if left_out else 0.0  # for their names
    width, height = LEFT + right + 0.5, max(5.2, (2.6 + turned) * rows + 1.1) + foot
    numbers = 0.55 if isinstance(run.view, Map | ArmMap) else 0.0  # of the colour bar
    with drawing() as new_figure:
        figure = new_figure((width, height))
        split = figure.add_gridspec(
            1,
            2,
            width_ratios=[LEFT, right],
            left=0.75 / width,
            right=1 - (0.25 + numbers) / width,
            top=1 - 1.22 / height,
            bottom=(0.68 + turned + foot) / height,
            wspace=1.6 / (LEFT + right),
        )
        _draw_left(figure, split[0], run.progress)
        if isinstance(run.view, tuple):
            grid = split[1].subgridspec(rows, columns, hspace=0.62 + 0.6 * turned, wspace=0.32)
            panels = [figure.add_subplot(grid[i]) for i in range(len(slices))]
            draw_slices(panels, slices, run.progress.values)
            write_left_out(figure, left_out, "the mean varies less along them")
        else:
            _draw_single(figure, figure.add_subplot(split[1]), run.view)
        write_title(figure, run.title, run.text)
    return figure


def _draw_single(figure: Any, panel: Any, view: Curve | Map | ArmMap | ArmBars) -> None:
    match view:
        case Curve():
            draw_line(panel, view)
        case Map():
            draw_map(figure, panel, view)
        case ArmMap():
            draw_arm_map(figure, panel, view)
        case _:
            draw_arm_bars(panel, view)


def _draw_left(figure: Any, place: Any, progress: Progress) -> None:
    """Progress, and the certificate under it if there is one."""
    certified = np.isfinite(progress.certificate).any()
    parts = place.subgridspec(
        2 if certified else 1, 1, hspace=0.4, height_ratios=[2.4, 1][: 1 + certified]
    )
    panel = figure.add_subplot(parts[0])
    _draw_progress(panel, progress)
    if certified:
        panel.tick_params(labelbottom=False)
        panel = figure.add_subplot(parts[1])
        _draw_certificate(panel, progress)
    panel.set_xlabel("evaluations")


def _draw_progress(panel: Any, progress: Progress) -> None:
    values, n = progress.values, len(progress.values)
    shown = evenly(n)
    size = 7 if n < 300 else 3
    look = {"s": size, "alpha": 0.4, "linewidth": 0, "zorder": 1}
    broken = np.zeros(n, bool) if progress.broken is None else progress.broken
    panel.scatter(shown + 1, values[shown], color=np.where(broken[shown], RED, GREY), **look)
    at, (mean, lower, upper) = progress.evaluations, progress.band
    bounds = np.isfinite(lower) & np.isfinite(upper)
    panel.fill_between(at, lower, upper, where=bounds, color=BLUE, alpha=0.2, linewidth=0, zorder=2)
    panel.plot(at, mean, color=BLUE, linewidth=1.9, zorder=3)
    late = len(at) // 2
    panel.set_ylim(*limits_of(values, mean[late:], lower[-1:], upper[-1:]))
    _set_evaluations(panel, n)
    bounded = bool(np.isfinite(lower).any())
    text = "the answer of each moment: mean and bounds" if bounded else "the answer"
    if broken.any():  # a longer line would not fit
        text = "the answer: mean and bounds" if bounded else text
    dots = "red values break a constraint" if broken.any() else "dots are values"
    write_heading(panel, "Progress", f"{text}; {dots}")


def _draw_certificate(panel: Any, progress: Progress) -> None:
    shown = np.isfinite(progress.certificate)
    at, bound = progress.evaluations[shown], progress.certificate[shown]
    panel.plot(at, bound, color=ORANGE, linewidth=1.9, marker="o" if len(at) == 1 else None)
    ticker = require("matplotlib.ticker")
    if bound.min() > 0 and bound.max() > 5 * bound.min():
        panel.set_yscale("log")
        subs = (1,) if bound.max() > 30 * bound.min() else (1, 2, 5)
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=6))
        panel.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        panel.yaxis.set_major_locator(ticker.MaxNLocator(4, steps=STEPS))
    panel.yaxis.set_major_formatter("{x:g}")
    _set_evaluations(panel, len(progress.values))
    write_heading(panel, "Certificate", progress.says)


def _set_evaluations(panel: Any, n: int) -> None:
    """Let the x axis go from the first of n evaluations to the last, by ratios if n is large."""
    if n > 100:
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_xlim(1, n)
    else:
        panel.set_xlim(0.5, n + 0.5)
        panel.xaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(5, integer=True))
