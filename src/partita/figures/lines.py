"""Panels of named lines: each line has a band if one is given, and its name at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from partita._types import FloatArray

from .style import LABEL_GAP, drawing, saved, spread, within_panel

T = TypeVar("T")


class Line(NamedTuple):
    """A line through n points, with a band of y ± half_width if that is given and finite."""

    label: str
    colour: str
    x: FloatArray
    y: FloatArray
    half_width: FloatArray | None = None
    dashes: Any = "solid"
    width: float = 1.8
    #: Colour of the label, if not the line's.
    ink: str | None = None

    @property
    def top(self) -> FloatArray | None:
        """The upper end of the band, (n,), or None without a band."""
        if self.half_width is None or not np.isfinite(self.half_width).all():
            return None
        return self.y + self.half_width


def draw_panels(
    contents: Sequence[T],
    draw: Callable[[Any, T], None],
    *,
    size: tuple[float, float],
    columns: int,
    margins: Mapping[str, float],
    title: str,
    text: str,
) -> dict[str, bytes]:
    """A figure as PNG and SVG, by their endings: a panel for each of the contents, in rows.

    Parameters
    ----------
    contents : what the panels show, one each
    draw : draws one of them into Matplotlib's axes
    size : width and height in inches
    columns : panels in a row
    margins : of Matplotlib's `subplots_adjust`
    title, text : above the panels
    """
    with drawing() as new_figure:
        figure = new_figure(size)
        axes = figure.subplots(-(-len(contents) // columns), columns, squeeze=False)
        figure.subplots_adjust(**margins)
        for panel in axes.flat[len(contents) :]:
            panel.set_axis_off()
        for panel, content in zip(axes.flat, contents, strict=False):
            draw(panel, content)
        return saved(figure, title, text)


def plot(panel: Any, lines: Sequence[Line], **style: Any) -> None:
    """Draw lines and their bands, the last on top; `style` is for all lines."""
    for line in lines:
        look = {"color": line.colour, "linestyle": line.dashes, "linewidth": line.width}
        panel.plot(line.x, line.y, **look, **style)
        if line.half_width is not None and line.top is not None:
            low = line.y - line.half_width
            panel.fill_between(line.x, low, line.top, color=line.colour, alpha=0.16, linewidth=0)


def name_ends(
    panel: Any,
    lines: Sequence[Line],
    gap: float = LABEL_GAP,
    *,
    left: float = 1.02,
    fontsize: float = 9.0,
    inside: bool = True,
) -> None:
    """Write each line's name beside the panel where the line ends, at least `gap` apart.

    Names keep to the panel's height if they are to stay `inside`. The panel's limits and scales
    must be set before.
    """
    to_panel = panel.transData + panel.transAxes.inverted()
    ends = [float(to_panel.transform((1.0, line.y[-1]))[1]) for line in lines]
    order = np.argsort(ends, kind="stable")
    heights = spread([ends[i] for i in order], gap)
    if inside:
        heights = within_panel(heights, gap)
    for i, height in zip(order, heights, strict=True):
        ink = lines[i].ink or lines[i].colour
        look = {"color": ink, "va": "center", "fontsize": fontsize}
        panel.text(left, height, lines[i].label, transform=panel.transAxes, **look)


def head(panel: Any, title: str, text: str, height: float = 1.02) -> None:
    """A title, and under it a line that says what is drawn."""
    panel.set_title(title, pad=20)
    look = {"color": "#777777", "va": "bottom", "fontsize": 9}
    panel.text(0, height, text, transform=panel.transAxes, **look)
