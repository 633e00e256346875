"""The figures: drawn so that each line carries its own name, and each policy its own colour."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .optional import require
from .paper import FUNCTIONS, Plan
from .summary import Band, band, smooth
from .trace import Trace

FloatArray = npt.NDArray[np.float64]

#: Okabe & Ito's colours, which colour-blind readers can tell apart; the same in every figure.
COLOURS = {
    "igp-ucb": "#D55E00",
    "pi-gp-ucb-paper": "#0072B2",
    "pi-gp-ucb": "#009E73",
    "uniform": "#777777",
}
#: Width of the top hat that smooths single steps. Janz et al. 2020, figure 1.
TOP_HAT = 200
#: Points a line is drawn with.
_POINTS = 500
#: Labels are at least this far apart, as a part of the panel's height.
_LABEL_GAP = 0.062
_UNIFORM = "uniform"
_BANDS = "Lines are means over the runs, bands their 95\N{NO-BREAK SPACE}% confidence."
#: Names that fit beside a panel.
_SHORT = {
    "igp-ucb": "IGP-UCB",
    "pi-gp-ucb-paper": "π-GP-UCB (paper)",
    "pi-gp-ucb": "π-GP-UCB (Partita)",
    "uniform": "uniform sampling",
}
_STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": "#333333",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ECECEC",
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "xtick.labelcolor": "#333333",
    "ytick.labelcolor": "#333333",
    "svg.hashsalt": "partita",
}


class Line(NamedTuple):
    """What is drawn of a policy: a band over steps."""

    policy: str
    steps: FloatArray
    values: Band


def figure1(plan: Plan, traces: Mapping[str, Sequence[Trace]]) -> dict[str, bytes]:
    """Two-dimensional synthetic functions: regret, regret of a step, time of a step."""
    width = max(1, min(TOP_HAT, plan.horizon // 5))
    uniform = float(np.mean([trace.uniform_regret for trace in next(iter(traces.values()))]))
    yardstick = [] if _UNIFORM in traces else [_UNIFORM]
    with _drawing() as new_figure:
        figure = new_figure((13.2, 4.7))
        axes = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.05, right=0.885, top=0.71, bottom=0.12, wspace=0.72)
        so_far, of_step, time = axes
        lines = [_straight(name, plan.horizon, 0.0, uniform) for name in yardstick]
        lines += [_line(p, [t.cumulative_regret for t in g]) for p, g in traces.items()]
        _draw(so_far, lines, plan.horizon)
        _head(so_far, "Regret so far", "sum of (best value − value played)")
        lines = [_straight(name, plan.horizon, uniform, 0.0) for name in yardstick]
        lines += [_line(p, [t.regret for t in g], width) for p, g in traces.items()]
        _draw(of_step, lines, plan.horizon)
        _head(of_step, "Regret of a step", f"best value − value played, mean of {width} steps")
        lines = [_line(p, [1e6 * t.seconds for t in g], width) for p, g in traces.items()]
        _draw(time, [_without_band(line) for line in lines], plan.horizon, log=True)
        _head(time, "Time of a step", f"microseconds, mean of {width} steps")
        for panel in axes:
            panel.set_xlabel("evaluations")
        return _saved(
            figure,
            "Maximising random functions of two variables, whose norm is known",
            f"{_of_runs(plan)}, each on a new function (60 Matérn-3/2 bumps on a 30 × 30 grid, "
            f"noise uniform on [−1, 1]).\n{_BANDS}",
        )


def figure2(plan: Plan, traces: Mapping[tuple[str, str], Sequence[Trace]]) -> dict[str, bytes]:
    """Four functions of the literature: regret."""
    with _drawing() as new_figure:
        figure = new_figure((11.6, 8.0))
        axes = figure.subplots(2, 2)
        figure.subplots_adjust(left=0.055, right=0.865, top=0.82, bottom=0.065)
        figure.subplots_adjust(wspace=0.52, hspace=0.4)
        for panel, (name, title) in zip(axes.flat, FUNCTIONS.items(), strict=True):
            groups = {p: group for (f, p), group in traces.items() if f == name}
            lines = [_line(p, [t.cumulative_regret for t in g]) for p, g in groups.items()]
            _draw(panel, lines, plan.horizon)
            uniform = next(iter(groups.values()))[0].uniform_regret * plan.horizon
            _head(panel, title, f"uniform sampling loses {uniform:,.0f}")
        for panel in axes[1]:
            panel.set_xlabel("evaluations")
        return _saved(
            figure,
            "Regret on four functions of the literature, whose norm is not known",
            f"Sum of (best value − value played). {_of_runs(plan)} on a 30 × 30 grid, values "
            f"scaled to [−1, 1], noise uniform on [−0.1, 0.1], norm bound set to 1. {_BANDS}",
        )


def _of_runs(plan: Plan) -> str:
    return f"{plan.runs} run{'s' * (plan.runs > 1)} of {plan.horizon:,} evaluations"


def _line(policy: str, values: Sequence[npt.NDArray[np.floating]], width: int = 1) -> Line:
    """Mean and interval over runs, values (runs, T), smoothed; about 500 steps are kept."""
    rows = smooth(values, width)
    n = rows.shape[1]
    kept = np.unique(np.linspace(0, n - 1, min(n, _POINTS)).round().astype(int))
    return Line(policy, kept + (width + 1) / 2, band(rows[:, kept]))


def _straight(policy: str, horizon: int, start: float, slope: float) -> Line:
    """What is known without a run."""
    steps = np.array([0.0, horizon])
    return _without_band(Line(policy, steps, Band(start + slope * steps, steps)))


def _without_band(line: Line) -> Line:
    mean = line.values.mean
    return line._replace(values=Band(mean, np.full(len(mean), np.nan)))


def _draw(panel: Any, lines: Sequence[Line], horizon: int, log: bool = False) -> None:
    """Draw lines with their bands and names from the first evaluation to the last."""
    highest = 0.0
    for line in lines:
        mean, half = line.values
        colour, dashed = COLOURS[line.policy], line.policy == _UNIFORM
        style = {"linewidth": 1.2, "linestyle": (0, (4, 3))} if dashed else {"linewidth": 1.8}
        panel.plot(line.steps, mean, color=colour, **style)
        highest = max(highest, float(mean.max()))
        if np.isfinite(half).all():
            low, high = mean - half, mean + half
            panel.fill_between(line.steps, low, high, color=colour, alpha=0.16, linewidth=0)
            # A wide band (few runs) may leave the panel, so that the lines fill it.
            highest = max(highest, min(float(high.max()), 1.3 * highest))
    if log:
        panel.set_yscale("log", subs=range(2, 10))
        panel.yaxis.set_major_locator(require("matplotlib.ticker").LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter("{x:,g}")
    else:
        panel.set_ylim(0, 1.05 * highest or 1.0)
        panel.ticklabel_format(axis="y", style="plain")
        if highest >= 1000:
            panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_xlim(0, horizon)
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    _name_lines(panel, lines)


def _head(panel: Any, title: str, text: str) -> None:
    panel.set_title(title, pad=20)
    panel.text(0, 1.025, text, transform=panel.transAxes, color="#777777", va="bottom", fontsize=9)


def _name_lines(panel: Any, lines: Sequence[Line]) -> None:
    """Write each line's name at its end, moved apart where they would overlap."""
    to_panel = panel.transData + panel.transAxes.inverted()
    ends = [float(to_panel.transform((0, line.values.mean[-1]))[1]) for line in lines]
    order = np.argsort(ends, kind="stable")
    for i, height in zip(order, spread([ends[i] for i in order], _LABEL_GAP), strict=True):
        line = lines[i]
        panel.text(
            1.02,
            height,
            _SHORT[line.policy],
            transform=panel.transAxes,
            color=COLOURS[line.policy],
            va="center",
            fontsize=9,
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights moved as little as needed to be `gap` apart: clusters keep their centre."""
    clusters: list[tuple[float, int]] = []  # centre and size
    for height in heights:
        centre, size = height, 1
        while clusters:
            below, count = clusters[-1]
            if (centre - (size - 1) * gap / 2) - (below + (count - 1) * gap / 2) >= gap:
                break
            clusters.pop()
            centre = (centre * size + below * count) / (size + count)
            size += count
        clusters.append((centre, size))
    return [centre + (i - (size - 1) / 2) * gap for centre, size in clusters for i in range(size)]


@contextmanager
def _drawing() -> Iterator[Any]:
    """A function that makes a new figure, in our style whatever the user's is."""
    matplotlib = require("matplotlib")
    module = require("matplotlib.figure")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield lambda size: module.Figure(figsize=size)


def _saved(figure: Any, title: str, text: str) -> dict[str, bytes]:
    """The figure as PNG and SVG, by their endings."""
    width, height = figure.get_size_inches()
    figure.text(0.3 / width, 1 - 0.18 / height, title, fontsize=13, fontweight="bold", va="top")
    lines = "\n".join(textwrap.fill(part, int(13.2 * width) - 8) for part in text.split("\n"))
    figure.text(0.3 / width, 1 - 0.5 / height, lines, color="#555555", va="top", linespacing=1.4)
    files = {}
    for kind, metadata in (("png", {"Software": "Partita"}), ("svg", {"Date": None})):
        file = io.BytesIO()
        figure.savefig(file, format=kind, dpi=160, metadata=metadata, facecolor="white")
        files[kind] = file.getvalue()
    return files
