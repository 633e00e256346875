"""The figures: drawn so that each line carries its own name, and each policy its own colour."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._optional import require
from partita._types import FloatArray
from partita.figures.style import COLOURS, LABEL_GAP, drawing, saved, spread, within_panel
from partita.policies.named import PolicySpec

from . import compare
from .paper import FUNCTIONS, Plan
from .specs import ProblemSpec
from .summary import Band, band, smooth
from .table import runs_text
from .trace import Trace

#: For any other policy of a comparison, in turn, then the same dashed.
_FURTHER = ("#8B4513", "#6A3D9A", "#B8A600", "#1F3B73", "#A01C3C", "#2F6B3A")
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.5, 1.2)))
#: Width of the top hat that smooths single steps. Janz et al. 2020, figure 1.
TOP_HAT = 200
#: Points a line is drawn with.
_POINTS = 500
#: Who loses much more than uniform sampling leaves the panel to the others.
_MOST_SHOWN = 1.25
_UNIFORM = "uniform"
_BANDS = "Lines are means over the runs, bands their 95\N{NO-BREAK SPACE}% confidence."
#: Names that fit beside a panel.
_SHORT = {
    "igp-ucb": "IGP-UCB",
    "pi-gp-ucb-paper": "π-GP-UCB (paper)",
    "pi-gp-ucb": "π-GP-UCB (Partita)",
    "pi-gp-ucb-tight": "π-GP-UCB (tightened)",
    "pi-gp-ts": "Thompson (partition)",
    "uniform": "uniform sampling",
}


class Look(NamedTuple):
    """How a policy is drawn."""

    label: str
    colour: str
    dashes: Any = "solid"
    width: float = 1.8


class Line(NamedTuple):
    """What is drawn of a policy: a band over steps."""

    look: Look
    steps: FloatArray
    values: Band


LOOKS = {name: Look(_SHORT[name], COLOURS[name]) for name in COLOURS if name in _SHORT} | {
    _UNIFORM: Look(_SHORT[_UNIFORM], COLOURS[_UNIFORM], (0, (4, 3)), 1.2)
}


def figure1(plan: Plan, traces: Mapping[str, Sequence[Trace]]) -> dict[str, bytes]:
    """Two-dimensional synthetic functions: regret, regret of a step, time of a step."""
    width = max(1, min(TOP_HAT, plan.horizon // 5))
    uniform = float(np.mean([trace.uniform_regret for trace in next(iter(traces.values()))]))
    yardstick = [] if _UNIFORM in traces else [_UNIFORM]
    with drawing() as new_figure:
        figure = new_figure((13.2, 4.7))
        axes = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.05, right=0.885, top=0.71, bottom=0.12, wspace=0.72)
        so_far, of_step, time = axes
        lines = [_straight(LOOKS[name], plan.horizon, 0.0, uniform) for name in yardstick]
        lines += [_line(LOOKS[p], [t.cumulative_regret for t in g]) for p, g in traces.items()]
        _draw(so_far, lines, plan.horizon)
        _head(so_far, "Regret so far", "sum of (best value − value played)")
        lines = [_straight(LOOKS[name], plan.horizon, uniform, 0.0) for name in yardstick]
        lines += [_line(LOOKS[p], [t.regret for t in g], width) for p, g in traces.items()]
        _draw(of_step, lines, plan.horizon)
        _head(of_step, "Regret of a step", f"best value − value played, mean of {width} steps")
        lines = [_line(LOOKS[p], [1e6 * t.seconds for t in g], width) for p, g in traces.items()]
        _draw(time, [_without_band(line) for line in lines], plan.horizon, log=True)
        _head(time, "Time of a step", f"microseconds, mean of {width} steps")
        for panel in axes:
            panel.set_xlabel("evaluations")
        return saved(
            figure,
            "Maximising random functions of two variables, whose norm is known",
            f"{_of_runs(plan)}, each on a new function (60 Matérn-3/2 bumps on a 30 × 30 grid, "
            f"noise uniform on [−1, 1]).\n{_BANDS}",
        )


def figure2(plan: Plan, traces: Mapping[tuple[str, str], Sequence[Trace]]) -> dict[str, bytes]:
    """Four functions of the literature: regret."""
    with drawing() as new_figure:
        figure = new_figure((11.6, 8.0))
        axes = figure.subplots(2, 2)
        figure.subplots_adjust(left=0.055, right=0.865, top=0.82, bottom=0.065)
        figure.subplots_adjust(wspace=0.52, hspace=0.4)
        for panel, (name, title) in zip(axes.flat, FUNCTIONS.items(), strict=True):
            groups = {p: group for (f, p), group in traces.items() if f == name}
            lines = [_line(LOOKS[p], [t.cumulative_regret for t in g]) for p, g in groups.items()]
            _draw(panel, lines, plan.horizon)
            uniform = next(iter(groups.values()))[0].uniform_regret * plan.horizon
            _head(panel, title, f"uniform sampling loses {uniform:,.0f}")
        for panel in axes[1]:
            panel.set_xlabel("evaluations")
        return saved(
            figure,
            "Regret on four functions of the literature, whose norm is not known",
            f"Sum of (best value − value played). {_of_runs(plan)} on a 30 × 30 grid, values "
            f"scaled to [−1, 1], noise uniform on [−0.1, 0.1], norm bound set to 1. {_BANDS}",
        )


def comparison(
    plan: compare.Plan, traces: Mapping[tuple[ProblemSpec, PolicySpec], Sequence[Trace]]
) -> dict[str, bytes]:
    """Regret of every policy, a panel a problem."""
    looks = _looks(plan.policies)
    panels = len(plan.problems)
    columns = 1 if panels == 1 else 2
    rows = -(-panels // columns)
    tall = max(3.4, 0.21 * len(plan.policies) + 0.6)
    width, height = (8.4 if columns == 1 else 13.2), rows * (tall + 0.95) + 1.15
    with drawing() as new_figure:
        figure = new_figure((width, height))
        axes = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.6 / width,
            right=1 - 2.5 / width,
            top=1 - 1.5 / height,
            bottom=0.55 / height,
            wspace=0.75,
            hspace=0.95 / tall,
        )
        for panel in axes.flat[panels:]:
            panel.set_visible(False)
        for panel, problem in zip(axes.flat, plan.problems, strict=False):
            groups = {p: traces[problem, p] for p in plan.policies if (problem, p) in traces}
            lines = [_line(looks[p], [t.regret_so_far for t in g]) for p, g in groups.items()]
            if all(p.name != _UNIFORM for p in groups):
                lines.insert(0, _straight(LOOKS[_UNIFORM], plan.horizon, 0.0, 1 / plan.horizon))
            _draw(panel, lines, plan.horizon, gap=min(LABEL_GAP, 0.21 / tall), most=_MOST_SHOWN)
            _head(panel, compare.title(problem), "regret, of what uniform sampling loses in all")
            panel.set_xlabel("evaluations")
        return saved(
            figure,
            "Regret of each policy",
            "Sum of (best value − value played), as a fraction of what uniform sampling loses in "
            f"all evaluations. {runs_text(plan.runs)} of {plan.horizon:,} evaluations each. "
            f"{_BANDS}",
        )


def _looks(policies: Sequence[PolicySpec]) -> dict[PolicySpec, Look]:
    """A look for every policy of a comparison, no two alike."""
    looks: dict[PolicySpec, Look] = {}
    others = 0
    for policy in policies:
        text = _SHORT.get(policy.name) if not policy.settings else None
        text = textwrap.shorten(text or compare.label(policy), 28, placeholder="…")
        known = COLOURS.get(policy.name)
        if known is not None and all(look.colour != known for look in looks.values()):
            uniform = LOOKS[_UNIFORM]
            look = Look(text, known)
            looks[policy] = uniform if policy.name == _UNIFORM else look
        else:
            round_, place = divmod(others, len(_FURTHER))
            looks[policy] = Look(text, _FURTHER[place], _DASHES[round_ % len(_DASHES)])
            others += 1
    return looks


def _of_runs(plan: Plan) -> str:
    return f"{runs_text(plan.runs)} of {plan.horizon:,} evaluations"


def _line(look: Look, values: Sequence[npt.NDArray[np.floating]], width: int = 1) -> Line:
    """Mean and interval over runs, values (runs, T), smoothed; about 500 steps are kept."""
    rows = smooth(values, width)
    n = rows.shape[1]
    kept = np.unique(np.linspace(0, n - 1, min(n, _POINTS)).round().astype(int))
    return Line(look, kept + (width + 1) / 2, band(rows[:, kept]))


def _straight(look: Look, horizon: int, start: float, slope: float) -> Line:
    """What is known without a run."""
    steps = np.array([0.0, horizon])
    return _without_band(Line(look, steps, Band(start + slope * steps, steps)))


def _without_band(line: Line) -> Line:
    mean = line.values.mean
    return line._replace(values=Band(mean, np.full(len(mean), np.nan)))


def _draw(
    panel: Any,
    lines: Sequence[Line],
    horizon: int,
    log: bool = False,
    gap: float = LABEL_GAP,
    most: float = np.inf,
) -> None:
    """Draw lines with their bands and names from the first evaluation to the last."""
    highest = 0.0
    for line in lines:
        mean, half = line.values
        look, colour = line.look, line.look.colour
        panel.plot(line.steps, mean, color=colour, linestyle=look.dashes, linewidth=look.width)
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
        panel.set_ylim(0, min(1.05 * highest, most) or 1.0)
        panel.ticklabel_format(axis="y", style="plain")
        if highest >= 1000:
            panel.yaxis.set_major_formatter("{x:,.0f}")
    panel.set_xlim(0, horizon)
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    _name_lines(panel, lines, gap)


def _head(panel: Any, title: str, text: str) -> None:
    panel.set_title(title, pad=20)
    panel.text(0, 1.025, text, transform=panel.transAxes, color="#777777", va="bottom", fontsize=9)


def _name_lines(panel: Any, lines: Sequence[Line], gap: float) -> None:
    """Write each line's name at its end, moved apart where they would overlap."""
    to_panel = panel.transData + panel.transAxes.inverted()
    ends = [float(to_panel.transform((0, line.values.mean[-1]))[1]) for line in lines]
    order = np.argsort(ends, kind="stable")
    heights = within_panel(spread([ends[i] for i in order], gap), gap)
    for i, height in zip(order, heights, strict=True):
        panel.text(
            1.02,
            height,
            lines[i].look.label,
            transform=panel.transAxes,
            color=lines[i].look.colour,
            va="center",
            fontsize=9,
        )
