"""The figures: each line carries its own name, and each policy its own colour."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._optional import require
from partita.figures.lines import Line, draw_panels, head, name_ends, plot
from partita.figures.style import COLOURS, LABEL_GAP
from partita.policies.named import PolicySpec

from . import compare
from .paper import FUNCTIONS, Plan
from .specs import ProblemSpec
from .summary import band, smooth
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

    def mean(self, values: Sequence[npt.NDArray[np.floating]], width: int = 1) -> Line:
        """Mean and interval over runs, values (runs, T), smoothed; about 500 steps are kept."""
        rows = smooth(values, width)
        n = rows.shape[1]
        kept = np.unique(np.linspace(0, n - 1, min(n, _POINTS)).round().astype(int))
        mean, half_width = band(rows[:, kept])
        x = kept + (width + 1) / 2
        return Line(self.label, self.colour, x, mean, half_width, self.dashes, self.width)

    def straight(self, horizon: int, start: float, slope: float) -> Line:
        """A straight line over all steps: what is known without a run."""
        x = np.array([0.0, horizon])
        y = start + slope * x
        return Line(self.label, self.colour, x, y, None, self.dashes, self.width)


LOOKS = {name: Look(_SHORT[name], COLOURS[name]) for name in COLOURS if name in _SHORT} | {
    _UNIFORM: Look(_SHORT[_UNIFORM], COLOURS[_UNIFORM], (0, (4, 3)), 1.2)
}


class Panel(NamedTuple):
    """What a panel shows, from the first evaluation to the last."""

    title: str
    text: str
    lines: Sequence[Line]
    horizon: int
    log: bool = False
    #: What is shown of the values, at most.
    most: float = np.inf
    #: How far names are apart, at least, as a part of the panel's height.
    gap: float = LABEL_GAP
    x_label: str = "evaluations"


def figure1(plan: Plan, traces: Mapping[str, Sequence[Trace]]) -> dict[str, bytes]:
    """Two-dimensional synthetic functions: regret, regret per evaluation, time per evaluation."""
    width = max(1, min(TOP_HAT, plan.horizon // 5))
    uniform = float(np.mean([trace.uniform_regret for trace in next(iter(traces.values()))]))
    yardstick = [] if _UNIFORM in traces else [LOOKS[_UNIFORM]]
    groups = [(LOOKS[policy], group) for policy, group in traces.items()]
    so_far = [look.straight(plan.horizon, 0.0, uniform) for look in yardstick]
    so_far += [look.mean([t.cumulative_regret for t in group]) for look, group in groups]
    of_step = [look.straight(plan.horizon, uniform, 0.0) for look in yardstick]
    of_step += [look.mean([t.regret for t in group], width) for look, group in groups]
    times = [look.mean([1e6 * t.seconds for t in group], width) for look, group in groups]
    smoothed = f"mean of {width} steps"
    panels = [
        Panel("Regret so far", "sum of (best value − value at the point)", so_far, plan.horizon),
        Panel(
            "Regret per evaluation",
            f"best value − value at the point, {smoothed}",
            of_step,
            plan.horizon,
        ),
        Panel(
            "Time per evaluation",
            f"microseconds, {smoothed}",
            [line._replace(half_width=None) for line in times],
            plan.horizon,
            log=True,
        ),
    ]
    return draw_panels(
        panels,
        _draw,
        size=(13.2, 4.7),
        columns=3,
        margins={"left": 0.05, "right": 0.885, "top": 0.71, "bottom": 0.12, "wspace": 0.72},
        title="Maximising random functions of two variables, whose norm is known",
        text=f"{_of_runs(plan)}, each on a new function (60 Matérn-3/2 bumps on a 30 × 30 grid, "
        f"noise uniform on [−1, 1]).\n{_BANDS}",
    )


def figure2(plan: Plan, traces: Mapping[tuple[str, str], Sequence[Trace]]) -> dict[str, bytes]:
    """Four functions of the literature: regret."""
    panels: list[Panel] = []
    for name, title in FUNCTIONS.items():
        groups = {p: group for (f, p), group in traces.items() if f == name}
        lines = [LOOKS[p].mean([t.cumulative_regret for t in g]) for p, g in groups.items()]
        uniform = next(iter(groups.values()))[0].uniform_regret * plan.horizon
        text = f"uniform sampling loses {uniform:,.0f}"
        x_label = "evaluations" if len(panels) >= 2 else ""
        panels.append(Panel(title, text, lines, plan.horizon, x_label=x_label))
    margins = {"left": 0.055, "right": 0.865, "top": 0.82, "bottom": 0.065}
    return draw_panels(
        panels,
        _draw,
        size=(11.6, 8.0),
        columns=2,
        margins={**margins, "wspace": 0.52, "hspace": 0.4},
        title="Regret on four functions of the literature, whose norm is not known",
        text=f"Sum of (best value − value at the point). {_of_runs(plan)} on a 30 × 30 grid, "
        f"values scaled to [−1, 1], noise uniform on [−0.1, 0.1], norm bound set to 1. {_BANDS}",
    )


def comparison(
    plan: compare.Plan, traces: Mapping[tuple[ProblemSpec, PolicySpec], Sequence[Trace]]
) -> dict[str, bytes]:
    """Regret of every policy, a panel a problem."""
    looks = _looks(plan.policies)
    columns = 1 if len(plan.problems) == 1 else 2
    tall = max(3.4, 0.21 * len(plan.policies) + 0.6)
    width = 8.4 if columns == 1 else 13.2
    height = -(-len(plan.problems) // columns) * (tall + 0.95) + 1.15
    panels: list[Panel] = []
    for problem in plan.problems:
        groups = {p: traces[problem, p] for p in plan.policies if (problem, p) in traces}
        lines = [looks[p].mean([t.regret_so_far for t in g]) for p, g in groups.items()]
        if all(p.name != _UNIFORM for p in groups):
            lines.insert(0, LOOKS[_UNIFORM].straight(plan.horizon, 0.0, 1 / plan.horizon))
        text, gap = "regret, of what uniform sampling loses in all", min(LABEL_GAP, 0.21 / tall)
        title = compare.title(problem)
        panels.append(Panel(title, text, lines, plan.horizon, most=_MOST_SHOWN, gap=gap))
    return draw_panels(
        panels,
        _draw,
        size=(width, height),
        columns=columns,
        margins={
            "left": 0.6 / width,
            "right": 1 - 2.5 / width,
            "top": 1 - 1.5 / height,
            "bottom": 0.55 / height,
            "wspace": 0.75,
            "hspace": 0.95 / tall,
        },
        title="Regret of each policy",
        text="Sum of (best value − value at the point), as a fraction of the regret of uniform "
        f"sampling. {_of_runs(plan)} each. {_BANDS}",
    )


def _looks(policies: Sequence[PolicySpec]) -> dict[PolicySpec, Look]:
    """A look for every policy of a comparison, no two alike."""
    looks: dict[PolicySpec, Look] = {}
    others = 0
    for policy in policies:
        text = _SHORT.get(policy.name) if not policy.settings else None
        text = textwrap.shorten(text or compare.label(policy), 28, placeholder="…")
        own = COLOURS.get(policy.name)
        if own is not None and all(look.colour != own for look in looks.values()):
            looks[policy] = LOOKS[_UNIFORM] if policy.name == _UNIFORM else Look(text, own)
        else:
            round_, place = divmod(others, len(_FURTHER))
            looks[policy] = Look(text, _FURTHER[place], _DASHES[round_ % len(_DASHES)])
            others += 1
    return looks


def _of_runs(plan: Plan | compare.Plan) -> str:
    return f"{runs_text(plan.runs)} of {plan.horizon:,} evaluations"


def _draw(axes: Any, panel: Panel) -> None:
    """Draw a panel's lines with their bands and names."""
    plot(axes, panel.lines)
    if panel.log:
        axes.set_yscale("log", subs=range(2, 10))
        axes.yaxis.set_major_locator(require("matplotlib.ticker").LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,g}")
    else:
        highest = _highest(panel.lines)
        axes.set_ylim(0, min(1.05 * highest, panel.most) or 1.0)
        axes.ticklabel_format(axis="y", style="plain")
        if highest >= 1000:
            axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(0, panel.horizon)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(panel.x_label)
    name_ends(axes, panel.lines, panel.gap)
    head(axes, panel.title, panel.text, 1.025)


def _highest(lines: Sequence[Line]) -> float:
    """The height of a panel; a wide band (few runs) may leave it, so that the lines fill it."""
    highest = 0.0
    for line in lines:
        highest = max(highest, float(line.y.max()))
        if line.top is not None:
            highest = max(highest, min(float(line.top.max()), 1.3 * highest))
    return highest
