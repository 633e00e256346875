"""The figure: exponent of the regret against smoothness, a panel a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.errors import InvalidInput
from partita.figures import lines, style

from .exponents import as_dim, as_smoothness
from .registry import get

#: Panels in a row, and most panels.
_COLUMNS, MOST_PANELS = 3, 12
#: Smoothness that a figure must reach past, since most proofs need as much.
LEAST_NU_MAX = 1.0
_POINTS = 240


class Look(NamedTuple):
    """How an exponent is drawn."""

    exponent: str
    label: str
    colour: str
    width: float = 1.8
    dashes: Any = "solid"
    ink: str | None = None  # of the label, if not the line's colour


#: Lines are drawn in this order, so the last is on top.
LINES = (
    # Wide and pale: it lies exactly under the lower bound, as HOO does up to ν = 1.
    Look("sup-kernel-ucb-vakili", "SupKernelUCB", "#63C7A6", 6.0, ink="#268A6A"),
    Look("hoo", "HOO", "#C79A00", 2.6, ink="#9A7700"),
    Look("lower-bound", "lower bound", "#222222", 1.2),
    Look("gp-ucb-whitehouse", "GP-UCB, 2023", "#B45A91"),
    Look("pi-gp-ucb", "π-GP-UCB", style.COLOURS["pi-gp-ucb-paper"], 2.4),
    Look(
        "igp-ucb-printed",
        "IGP-UCB, printed",
        style.COLOURS["igp-ucb"],
        dashes=(0, (2.2, 1.6)),
    ),
    Look("igp-ucb", "IGP-UCB, derived", style.COLOURS["igp-ucb"]),
)
#: Bounds of algorithms that choose the highest upper confidence bound; the smallest is the best
#: proven one.
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
    head = 1.3 if columns == _COLUMNS else 1.75  # inches; a narrow figure's caption is longer
    width, height = 4.4 * max(columns, 2), head + 3.25 * math.ceil(len(each) / columns)
    return lines.draw_panels(
        list(enumerate(each)),
        partial(_draw_panel, nu_max=last, columns=columns),
        size=(width, height),
        columns=columns,
        margins={
            "left": 0.7 / width,
            "right": 1 - 1.35 / width,
            "top": 1 - head / height,
            "bottom": 0.55 / height,
            "wspace": 0.56,
            "hspace": 0.42,
        },
        title="How fast regret may grow: what is proven for Matérn kernels",
        text="Regret after T evaluations is at most of order T^e, up to logarithms; the lower "
        "bound says at least. Lines begin, at a ring, where their proofs do.\nShaded: between the "
        "lower bound, which SupKernelUCB meets, and the best bound of an algorithm that takes the "
        "highest upper confidence bound.",
    )


def _draw_panel(panel: Any, place: tuple[int, int], nu_max: float, columns: int) -> None:
    """Draw a panel; `place` is its number and its dimension."""
    number, dim = place
    drawn = [_line(look, dim, nu_max) for look in LINES]
    lines.plot(panel, drawn, solid_capstyle="butt")
    for look, line in zip(LINES, drawn, strict=True):
        if get(look.exponent).proven_above:
            ring = {"markerfacecolor": "white", "markeredgecolor": line.colour}
            panel.plot(line.x[:1], line.y[:1], "o", ms=4.5, mew=1.2, zorder=4, **ring)
    nu = np.linspace(min(get(name).proven_above for name in _OPTIMISTIC), nu_max, _POINTS)
    best = np.min(
        [np.where(nu >= get(n).proven_above, get(n)(dim, nu), 1.0) for n in _OPTIMISTIC], axis=0
    )
    panel.fill_between(
        nu, get("lower-bound")(dim, nu), best, color="#E4E4E4", linewidth=0, zorder=0.5
    )
    panel.set_xlim(0, nu_max)
    panel.set_ylim(0.49, 1.015)
    panel.set_yticks(np.arange(0.5, 1.01, 0.1))
    panel.set_xlabel("smoothness ν")
    panel.set_title(f"d = {dim}")
    panel.locator_params(axis="x", nbins=5)
    if number % columns == 0:
        panel.set_ylabel("exponent e")
    lines.name_ends(panel, drawn, left=1.025, inside=False)


def _line(look: Look, dim: int, nu_max: float) -> lines.Line:
    """An exponent from where its proof begins."""
    exponent = get(look.exponent)
    nu = np.linspace(max(exponent.proven_above, 1e-3), nu_max, _POINTS)
    values = exponent(dim, nu)
    return lines.Line(look.label, look.colour, nu, values, None, look.dashes, look.width, look.ink)
