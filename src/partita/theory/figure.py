"""The figure: exponent of the regret against smoothness, a panel a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.errors import InvalidInput
from partita.figures import style

from .exponents import as_dim, as_smoothness
from .registry import get

#: Panels in a row, and most panels.
_COLUMNS, MOST_PANELS = 3, 12
#: Smoothness that a figure must reach past, since most proofs need as much.
LEAST_NU_MAX = 1.0
_SHADE = "#E4E4E4"


class Line(NamedTuple):
    """How an exponent is drawn; lines are drawn in order, so the last is on top."""

    exponent: str
    label: str
    colour: str
    style: dict[str, Any]
    ink: str | None = None  # of the label, if not the line's colour


_SOLID: dict[str, Any] = {"linewidth": 1.8}
LINES = (
    # Wide and pale: it lies exactly under the lower bound, as HOO does up to ν = 1.
    Line("sup-kernel-ucb-vakili", "SupKernelUCB", "#63C7A6", {"linewidth": 6.0}, ink="#268A6A"),
    Line("hoo", "HOO", "#C79A00", {"linewidth": 2.6}, ink="#9A7700"),
    Line("lower-bound", "lower bound", "#222222", {"linewidth": 1.2}),
    Line("gp-ucb-whitehouse", "GP-UCB, 2023", "#B45A91", _SOLID),
    Line("pi-gp-ucb", "π-GP-UCB", style.COLOURS["pi-gp-ucb-paper"], {"linewidth": 2.4}),
    Line(
        "igp-ucb-printed",
        "IGP-UCB, printed",
        style.COLOURS["igp-ucb"],
        {"linewidth": 1.8, "linestyle": (0, (2.2, 1.6))},
    ),
    Line("igp-ucb", "IGP-UCB, derived", style.COLOURS["igp-ucb"], _SOLID),
)
#: Bounds of algorithms that play the highest upper confidence bound: the least is what is known.
_OPTIMISTIC = ("pi-gp-ucb", "gp-ucb-whitehouse", "igp-ucb-vakili")


def draw(dims: Sequence[int] = (1, 2, 3), nu_max: float = 5.0) -> dict[str, bytes]:
    """The figure as PNG and SVG, by their endings."""
    each = [as_dim(dim) for dim in dims]
    if not 1 <= len(each) <= MOST_PANELS:
        raise InvalidInput(f"{len(each)} dimensions: give from 1 to {MOST_PANELS}, a panel each.")
    last = float(as_smoothness(nu_max))
    if not LEAST_NU_MAX < last < math.inf:
        raise InvalidInput(
            f"nu_max={nu_max!r}: give a finite smoothness above {LEAST_NU_MAX:g}, from where most "
            "of the bounds are proven."
        )
    columns = min(_COLUMNS, len(each))
    rows = math.ceil(len(each) / columns)
    head = 1.3 if columns == _COLUMNS else 1.75  # inches; a narrow figure's caption is longer
    width, height = 4.4 * max(columns, 2), head + 3.25 * rows
    with style.drawing() as new_figure:
        figure = new_figure((width, height))
        axes = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.7 / width,
            right=1 - 1.35 / width,
            top=1 - head / height,
            bottom=0.55 / height,
            wspace=0.56,
            hspace=0.42,
        )
        for panel in axes.flat[len(each) :]:
            panel.set_axis_off()
        for panel, dim in zip(axes.flat, each, strict=False):
            _draw_panel(panel, dim, last)
        for panel in axes[:, 0]:
            panel.set_ylabel("exponent e")
        return style.saved(
            figure,
            "How fast regret may grow: what is proven for Matérn kernels",
            "Regret after T evaluations is at most of order T^e, up to logarithms; the lower bound "
            "says at least. Lines begin, at a ring, where their proofs do.\nShaded: between the "
            "lower bound, which SupKernelUCB meets, and the best bound of an algorithm that plays "
            "the highest upper confidence bound.",
        )


def _draw_panel(panel: Any, dim: int, nu_max: float) -> None:
    ends = []
    for line in LINES:
        exponent = get(line.exponent)
        nu = np.linspace(max(exponent.proven_above, 1e-3), nu_max, 240)
        values = exponent(dim, nu)
        panel.plot(nu, values, color=line.colour, solid_capstyle="butt", **line.style)
        if exponent.proven_above:
            _ring(panel, line, float(nu[0]), float(values[0]))
        ends.append(float(values[-1]))
    nu = np.linspace(min(get(name).proven_above for name in _OPTIMISTIC), nu_max, 240)
    best = np.min(
        [np.where(nu >= get(n).proven_above, get(n)(dim, nu), 1.0) for n in _OPTIMISTIC], axis=0
    )
    floor = get("lower-bound")(dim, nu)
    panel.fill_between(nu, floor, best, color=_SHADE, linewidth=0, zorder=0.5)
    panel.set_xlim(0, nu_max)
    panel.set_ylim(0.49, 1.015)
    panel.set_yticks(np.arange(0.5, 1.01, 0.1))
    panel.set_xlabel("smoothness ν")
    panel.set_title(f"d = {dim}")
    panel.locator_params(axis="x", nbins=5)
    _name_lines(panel, ends)


def _ring(panel: Any, line: Line, x: float, y: float) -> None:
    panel.plot(
        [x], [y], "o", markersize=4.5, markerfacecolor="white", markeredgecolor=line.colour,
        markeredgewidth=1.2, zorder=4,
    )  # fmt: skip


def _name_lines(panel: Any, ends: Sequence[float]) -> None:
    """Write each line's name at its end, moved apart where they would overlap."""
    to_panel = panel.transData + panel.transAxes.inverted()
    heights = [float(to_panel.transform((0, end))[1]) for end in ends]
    order = np.argsort(heights, kind="stable")
    places = style.spread([heights[i] for i in order], style.LABEL_GAP)
    for i, height in zip(order, places, strict=True):
        line = LINES[i]
        panel.text(
            1.025,
            height,
            line.label,
            transform=panel.transAxes,
            color=line.ink or line.colour,
            va="center",
            fontsize=9,
        )
