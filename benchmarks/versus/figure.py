"""The figure: regret with either noise, and the time of a step, a line a player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.figures.lines import Line, draw_panels, head, name_ends, plot

from .board import Board
from .roster import PLAYERS

_DASHED, _DOTTED = (0, (5, 1.5)), (0, (1.5, 1.2))
#: A colour a library (Okabe & Ito's first), dashes for its second and third player.
_LOOKS = {
    "partita": ("#009E73", "solid", 2.8),
    "partita-told": ("#009E73", _DASHED, 1.4),
    "optuna-tpe": ("#0072B2", "solid", 1.6),
    "optuna-cmaes": ("#0072B2", _DASHED, 1.6),
    "optuna-gp": ("#0072B2", _DOTTED, 1.6),
    "cmaes": ("#56B4E9", "solid", 1.6),
    "cmaes-restarts": ("#56B4E9", _DASHED, 1.6),
    "pycma": ("#D55E00", "solid", 1.6),
    "pycma-noise": ("#D55E00", _DASHED, 1.6),
    "botorch-ucb": ("#D55E00", "solid", 1.6),
    "botorch-nei": ("#D55E00", _DASHED, 1.6),
    "skopt": ("#E69F00", "solid", 1.6),
    "bayes-opt": ("#CC79A7", "solid", 1.6),
    "nevergrad-tbpsa": ("#6A3D9A", "solid", 1.6),
    "nevergrad-ngopt": ("#6A3D9A", _DASHED, 1.6),
    "pyxab-hoo": ("#8B4513", "solid", 1.6),
    "pyxab-hct": ("#8B4513", _DASHED, 1.6),
    "pyxab-stroquool": ("#8B4513", _DOTTED, 1.6),
    "uniform": ("#777777", (0, (4, 3)), 1.2),
}
#: Names that fit beside a panel, where the title does not.
_SHORT = {"partita": "Partita", "partita-told": "Partita, told norm, noise"}
_NOISE = {"tenth": "Noise of a tenth of the range", "whole": "Noise as wide as the range"}
#: Lines begin here: earlier steps are each player's first guesses.
_FROM = 10
_MOST_SHOWN = 1.3


class Panel(NamedTuple):
    """Lines of the players over evaluations."""

    title: str
    text: str
    lines: Sequence[Line]
    #: The largest value shown; None for a logarithmic axis.
    most: float | None = None
    along: str = "evaluations"


def draw(board: Board) -> bytes:
    """The figure as PNG."""
    panels = []
    for noise in board.noises:
        lines = regret_lines(board, noise)
        most = min(1.05 * max((line.y.max() for line in lines), default=1.0), _MOST_SHOWN)
        panels.append(Panel(_NOISE[noise], "regret so far, of uniform sampling's", lines, most))
    text = "seconds of one core, ask and tell"
    panels.append(Panel("Time of an iteration", text, time_lines(board)))
    seeds = f"{board.seeds} seed{'s' * (board.seeds > 1)}"
    return drawn(
        panels,
        "Partita and its peers",
        f"Mean over {len(board.problems)} problems and {seeds}; who has not played all problems "
        "has no line of regret, who failed on some is averaged over the others. A line ends where "
        "the player's budget or its time did.",
    )


def drawn(panels: Sequence[Panel], title: str, text: str) -> bytes:
    """Panels side by side, as PNG."""
    width = 4.9 * len(panels)
    return draw_panels(
        panels,
        _draw,
        size=(width, 6.6),
        columns=len(panels),
        margins={
            "left": 0.6 / width,
            "right": 1 - 1.9 / width,
            "top": 0.8,
            "bottom": 0.09,
            "wspace": 0.68,
        },
        title=title,
        text=text,
    )["png"]


def regret_lines(board: Board, noise: str) -> list[Line]:
    """R_t/(t (f* − mean f)) by t, the mean over problems and seeds."""
    curves = {}
    for player in board.players:
        runs = board.longest(player, noise)
        if {run.task.problem for run in runs} == set(board.problems):
            curves[player] = [
                np.cumsum(run.regret, dtype=float)
                / np.arange(1, run.steps + 1)
                / run.uniform_regret
                for run in runs
                if run.status != "failed"
            ]
    return mean_lines(curves)


def time_lines(board: Board) -> list[Line]:
    """Seconds of a step by t, the mean over the steps from t/2 to t and over all runs."""
    return mean_lines(
        {
            player: [
                _smoothed(run.seconds)
                for noise in board.noises
                for run in board.longest(player, noise)
                if run.status != "failed"
            ]
            for player in board.players
        }
    )


def mean_lines(curves: dict[str, list[np.ndarray]], unit: int = 1) -> list[Line]:
    """The mean of a player's curves as far as all go, evenly spaced on a logarithmic axis.

    `unit` is how many steps count as one.
    """
    lines = []
    for player, group in curves.items():
        reach = min(map(len, group), default=0)
        if reach > _FROM:
            steps = np.unique(np.geomspace(_FROM, reach, 120).round().astype(int))
            values = np.mean([curve[steps - 1] for curve in group], axis=0)
            colour, dashes, width = _LOOKS[player]
            label = _SHORT.get(player, PLAYERS[player].title)
            lines.append(Line(label, colour, steps / unit, values, None, dashes, width))
    return lines


def _smoothed(seconds: np.ndarray) -> np.ndarray:
    """Mean over the steps from t/2 to t: some players do much at few of their steps."""
    sums = np.concatenate([[0.0], np.cumsum(seconds, dtype=float)])
    t = np.arange(1, len(seconds) + 1)
    start = t // 2
    return (sums[t] - sums[start]) / (t - start)


def _draw(axes: object, panel: Panel) -> None:
    plot(axes, panel.lines)
    axes.set_xscale("log")
    axes.set_xlim(
        min((line.x[0] for line in panel.lines), default=_FROM),
        max((line.x[-1] for line in panel.lines), default=10 * _FROM),
    )
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel(panel.along)
    if panel.most is None:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, panel.most)
    name_ends(axes, panel.lines, 0.04, fontsize=8.5)
    head(axes, panel.title, panel.text)
