"""The figure: regret with either noise, and the time of a step, a line a player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.experiments.figures import LABEL_GAP, Look, drawing, saved, spread, within_panel

from .board import Board
from .roster import PLAYERS
from .runs import Run

_DASHED, _DOTTED = (0, (5, 1.5)), (0, (1.5, 1.2))
#: A colour a library (Okabe & Ito's first), dashes for its second and third player.
_LOOKS = {
    "partita": ("#009E73", "solid", 2.8),
    "partita-told": ("#009E73", _DASHED, 1.4),
    "optuna-tpe": ("#0072B2", "solid", 1.6),
    "optuna-cmaes": ("#0072B2", _DASHED, 1.6),
    "optuna-gp": ("#0072B2", _DOTTED, 1.6),
    "cmaes": ("#56B4E9", "solid", 1.6),
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


class Line(NamedTuple):
    """A player's line."""

    look: Look
    steps: np.ndarray
    values: np.ndarray


def draw(board: Board) -> bytes:
    """The figure as PNG."""
    panels = len(board.noises) + 1
    width, height = 4.9 * panels, 6.6
    with drawing() as new_figure:
        figure = new_figure((width, height))
        axes = figure.subplots(1, panels, squeeze=False)[0]
        figure.subplots_adjust(
            left=0.6 / width, right=1 - 1.9 / width, top=0.8, bottom=0.09, wspace=0.68
        )
        for panel, noise in zip(axes, board.noises, strict=False):
            lines = regret_lines(board, noise)
            _draw(panel, lines)
            highest = max((float(line.values.max()) for line in lines), default=1.0)
            panel.set_ylim(0, min(1.05 * highest, _MOST_SHOWN))
            _names(panel, lines)
            _head(panel, _NOISE[noise], "regret so far, of uniform sampling's")
        lines = time_lines(board)
        _draw(axes[-1], lines)
        axes[-1].set_yscale("log")
        _names(axes[-1], lines)
        _head(axes[-1], "Time of a step", "seconds of one core, ask and tell")
        seeds = f"{board.seeds} seed{'s' * (board.seeds > 1)}"
        return saved(
            figure,
            "Partita and its peers",
            f"Mean over {len(board.problems)} problems and {seeds}; who has not played all "
            "problems has no line of regret, who failed on some is averaged over the others. A "
            "line ends where the player's budget or its time did.",
        )["png"]


def regret_lines(board: Board, noise: str) -> list[Line]:
    """R_t/(t (f* − mean f)) by t, the mean over problems and seeds."""
    lines = []
    for player in board.players:
        curves = []
        runs = board.longest(player, noise)
        if {run.task.problem for run in runs} != set(board.problems):
            continue
        for run in runs:
            if run.status == "failed":
                continue
            so_far = np.cumsum(run.regret, dtype=float) / np.arange(1, run.steps + 1)
            curves.append(so_far / run.uniform_regret)
        line = _line(player, curves)
        if line is not None:
            lines.append(line)
    return lines


def time_lines(board: Board) -> list[Line]:
    """Seconds of a step by t, the mean over the steps from t/2 to t and over all runs."""
    lines = []
    for player in board.players:
        runs: list[Run] = [run for noise in board.noises for run in board.longest(player, noise)]
        line = _line(player, [_smoothed(r.seconds) for r in runs if r.status != "failed"])
        if line is not None:
            lines.append(line)
    return lines


def _line(player: str, curves: Sequence[np.ndarray]) -> Line | None:
    """The mean of curves as far as all go, at steps evenly spaced on a logarithmic axis."""
    reach = min(map(len, curves), default=0)
    if reach <= _FROM:
        return None
    steps = np.unique(np.geomspace(_FROM, reach, 120).round().astype(int))
    colour, dashes, width = _LOOKS[player]
    look = Look(_SHORT.get(player, PLAYERS[player].title), colour, dashes, width)
    return Line(look, steps, np.mean([curve[steps - 1] for curve in curves], axis=0))


def _smoothed(seconds: np.ndarray) -> np.ndarray:
    """Mean over the steps from t/2 to t: some players do much at few of their steps."""
    sums = np.concatenate([[0.0], np.cumsum(seconds, dtype=float)])
    t = np.arange(1, len(seconds) + 1)
    start = t // 2
    return (sums[t] - sums[start]) / (t - start)


def _draw(panel: object, lines: Sequence[Line]) -> None:
    for line in lines:
        look = line.look
        panel.plot(
            line.steps, line.values, color=look.colour, linestyle=look.dashes, linewidth=look.width
        )
    panel.set_xscale("log")
    panel.set_xlim(_FROM, max((line.steps[-1] for line in lines), default=10 * _FROM))
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.set_xlabel("evaluations")


def _names(panel: object, lines: Sequence[Line]) -> None:
    """Each line's name beside the panel, at the height where the line ends."""
    to_panel = panel.transData + panel.transAxes.inverted()
    ends = [float(to_panel.transform((1.0, line.values[-1]))[1]) for line in lines]
    order = np.argsort(ends, kind="stable")
    gap = min(LABEL_GAP, 0.04)
    heights = within_panel(spread([ends[i] for i in order], gap), gap)
    for i, height in zip(order, heights, strict=True):
        look = lines[i].look
        text = {"color": look.colour, "va": "center", "fontsize": 8.5}
        panel.text(1.02, height, look.label, transform=panel.transAxes, **text)


def _head(panel: object, title: str, text: str) -> None:
    panel.set_title(title, pad=20)
    panel.text(0, 1.02, text, transform=panel.transAxes, color="#777777", va="bottom", fontsize=9)
