"""The figure of a run: progress and certificate beside what is known of the function."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from partita._optional import require
from partita.figures.drawing import BLUE, GREY, ORANGE, head, reach, some
from partita.figures.style import drawing

from .axes import axes_of
from .panels import SLICES_A_ROW, draw_arms, draw_line, draw_map, draw_slices, is_map, worth_showing
from .result import Result, number, value_text


def draw(result: Result) -> Any:
    """A figure of a run."""
    space = result.optimizer.space
    axes = axes_of(space)
    single = space.arms is not None or len(axes) == 1 or is_map(axes)
    slices = [] if single else worth_showing(result, axes)
    columns = min(max(len(slices), 1), SLICES_A_ROW)
    rows = max(-(-len(slices) // SLICES_A_ROW), 1)
    right = 5.9 if single else 2.75 * columns
    height = max(5.2, 2.5 * rows + 1.1)
    width = 5.2 + right + 0.5
    colours = 0.55 if space.dim == 2 and single else 0.0  # room for the colour bar's numbers
    with drawing() as new_figure:
        figure = new_figure((width, height))
        split = figure.add_gridspec(
            1,
            2,
            width_ratios=[5.2, right],
            left=0.75 / width,
            right=1 - (0.25 + colours) / width,
            top=1 - 1.22 / height,
            bottom=0.58 / height,
            wspace=1.6 / (5.2 + right),
        )
        _draw_run(figure, split[0], result)
        if space.arms is not None:
            draw_arms(figure, figure.add_subplot(split[1]), result, space.arms)
        elif len(axes) == 1:
            draw_line(figure.add_subplot(split[1]), result, axes[0])
        elif single:
            draw_map(figure, figure.add_subplot(split[1]), result, axes)
        else:
            inner = split[1].subgridspec(rows, columns, hspace=0.5, wspace=0.22)
            draw_slices([figure.add_subplot(inner[i]) for i in range(len(slices))], result, slices)
        _draw_title(figure, result)
    return figure


def _draw_run(figure: Any, place: Any, result: Result) -> None:
    """What was known as the run went on; no certificate if the policy gives none."""
    certified = np.isfinite(result.history.certificate).any()
    parts = place.subgridspec(
        2 if certified else 1, 1, hspace=0.4, height_ratios=[2.4, 1][: 1 + certified]
    )
    panel = figure.add_subplot(parts[0])
    _draw_progress(panel, result)
    if certified:
        panel.tick_params(labelbottom=False)
        panel = figure.add_subplot(parts[1])
        _draw_certificate(panel, result)
    panel.set_xlabel("evaluations")


def _draw_progress(panel: Any, result: Result) -> None:
    history = result.history
    values, n = history.values, len(history)
    shown = some(n)
    size = 7 if n < 300 else 3
    panel.scatter(shown + 1, values[shown], s=size, color=GREY, alpha=0.4, linewidth=0, zorder=1)
    at, lower, upper = history.evaluations, history.lower, history.upper
    panel.fill_between(
        at,
        lower,
        upper,
        where=np.isfinite(lower) & np.isfinite(upper),
        color=BLUE,
        alpha=0.2,
        linewidth=0,
        zorder=2,
    )
    panel.plot(at, history.best_mean, color=BLUE, linewidth=1.9, zorder=3)
    late = len(at) // 2
    panel.set_ylim(*reach(values, history.best_mean[late:], lower[-1:], upper[-1:]))
    _steps_axis(panel, n)
    text = "mean at the best point and its bounds" if np.isfinite(lower).any() else "the answer"
    head(panel, "Progress", f"{text}; dots are values")


def _draw_certificate(panel: Any, result: Result) -> None:
    history = result.history
    shown = np.isfinite(history.certificate)
    at, bound = history.evaluations[shown], history.certificate[shown]
    panel.plot(at, bound, color=ORANGE, linewidth=1.9)
    ticker = require("matplotlib.ticker")
    if bound.min() > 0 and bound.max() > 5 * bound.min():
        panel.set_yscale("log")
        subs = (1,) if bound.max() > 30 * bound.min() else (1, 2, 5)
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=6))
        panel.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        panel.yaxis.set_major_locator(ticker.MaxNLocator(4))
    panel.yaxis.set_major_formatter("{x:g}")
    _steps_axis(panel, len(history))
    head(panel, "Certificate", "no other point is better by more")


def _steps_axis(panel: Any, n: int) -> None:
    """Evaluations from the first to the last; by ratios if there are many."""
    if n > 100:
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_xlim(1, n)
    else:
        panel.set_xlim(0.5, n + 0.5)
        panel.xaxis.set_major_locator(require("matplotlib.ticker").MaxNLocator(5, integer=True))


def _draw_title(figure: Any, result: Result) -> None:
    width, height = figure.get_size_inches()
    what = "Minimum" if result.direction == "minimize" else "Maximum"
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    bounds = "" if result.guarantee == "none" else f", bounds {result.guarantee}"
    text = f"at {_answer(result)}   ({result.nfev:,} evaluations{failed}{bounds})"
    lines = textwrap.wrap(text, int(13.5 * width) - 8)
    if len(lines) > 2:
        lines = [lines[0], lines[1] + " …"]
    title = f"{what} {_value(result)}"
    figure.text(0.25 / width, 1 - 0.16 / height, title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.25 / width, 1 - 0.46 / height, "\n".join(lines), color="#555555", va="top")


def _value(result: Result) -> str:
    """The value and its bounds, to the digits that they know."""
    span = result.upper - result.lower
    if not math.isfinite(span):
        return _minus(number(result.fun))
    digits = 6
    if span > 0.0:
        largest = max(abs(result.lower), abs(result.upper))
        digits = min(max(math.ceil(math.log10(largest / span)) + 2, 2), 10)
    fun, lower, upper = (f"{v:.{digits}g}" for v in (result.fun, result.lower, result.upper))
    return _minus(f"{fun}, between {lower} and {upper}")


def _answer(result: Result) -> str:
    if isinstance(result.params, dict):
        return ", ".join(f"{name} = {value_text(v)}" for name, v in result.params.items())
    return f"x = [{', '.join(number(float(v)) for v in result.params)}]"


def _minus(text: str) -> str:
    return text.replace("-", "−")
