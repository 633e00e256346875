"""The figure of the best choice along one context."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import Along, Choices
from .panels import set_axis
from .style import drawing, limits_of, write_heading, write_title

#: Sizes of panels, in inches.
WIDTH, HEIGHT = 7.8, 1.9
#: Colours of the lines, in their order.
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
HEADINGS = (
    ("Value", "mean and bounds at the best choice"),
    (
        "Best choice",
        "band: values around it that may be as good by the bounds, other parameters as they are",
    ),
)


def draw_along(along: Along) -> Any:
    """A panel for the value and one for each parameter, one above the other."""
    rows = len(along.panels)
    names = [line.name for line in along.panels[0].lines]
    height = HEIGHT * rows + 1.75
    with drawing() as new_figure:
        figure = new_figure((WIDTH, height))
        grid = figure.add_gridspec(
            rows,
            1,
            left=0.85 / WIDTH,
            right=1 - 0.3 / WIDTH,
            top=1 - 1.25 / height,
            bottom=0.6 / height,
            hspace=0.5,
        )
        for row, choices in enumerate(along.panels):
            panel = figure.add_subplot(grid[row])
            _draw(panel, along, choices, row == 0)
            set_axis(panel, "x", along.axis)
            if row < rows - 1:
                panel.set_xlabel("")
            if row < len(HEADINGS):
                write_heading(panel, *HEADINGS[row])
            if row == 0 and len(names) > 1:
                panel.legend(loc="best", fontsize=8.5, frameon=False, ncols=min(len(names), 4))
        write_title(figure, along.title, along.text)
    return figure


def _draw(panel: Any, along: Along, choices: Choices, value: bool) -> None:
    """The lines of a panel with their bands."""
    shift = np.linspace(-0.12, 0.12, len(choices.lines)) if len(choices.lines) > 1 else [0.0]
    for i, (name, band) in enumerate(choices.lines):
        colour = LINE_COLOURS[i % len(LINE_COLOURS)]
        if along.separate:
            at = along.at + (shift[i] if along.axis.words is not None else 0.0)
            panel.vlines(at, band.lower, band.upper, color=colour, alpha=0.3, linewidth=5)
            panel.scatter(at, band.mean, s=20, color=colour, zorder=3, label=name)
            continue
        panel.fill_between(
            along.at, band.lower, band.upper, color=colour, alpha=0.16, linewidth=0, zorder=1
        )
        panel.plot(along.at, band.mean, color=colour, linewidth=1.9, zorder=3, label=name)
    set_axis(panel, "y", choices.axis)
    if value:
        means = np.concatenate([line.band.mean for line in choices.lines])
        low, high = limits_of(np.empty(0), means)
        room = high - low
        bounds = [
            bound.clip(low - room, high + room) for line in choices.lines for bound in line.band[1:]
        ]
        panel.set_ylim(*limits_of(np.empty(0), means, *bounds))
