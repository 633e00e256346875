"""The report of benchmarks/bbob_noisy.py: tables, and the part of targets that was reached.

A table compares the players that have played all its functions, on the instances that all of them
have played.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from partita._text import aligned
from partita.figures.lines import Line

from . import bbob, figure, report
from .board import Board, Cell, Scoring
from .report import Column
from .roster import PLAYERS
from .runs import Run, Task

OURS = "partita"
#: Regrets below it, as parts of uniform sampling's, count as it.
FLOOR = 1e-4
#: How much larger than the first's a value may be to be level with it.
LEVEL = 1.1
#: Regrets to be reached, in the function's own units.
TARGETS = 10.0 ** np.linspace(-5, 1, 31)
MEASURES = {"regret_at": "mean of the evaluations", "simple_at": "answer"}


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean, small values raised to the floor."""
    return float(np.exp(np.mean(np.log(np.maximum(values, FLOOR)))))


def _level(cell: Cell, best: Cell) -> bool:
    return cell.mean <= LEVEL * best.mean


LOGARITHMIC = Scoring(geometric_mean, _level, shared=True)


def write(
    runs: Mapping[Task, Run],
    budgets: Sequence[int],
    few: Collection[str],
    folder: Path,
    docs: Path | None,
) -> list[Path]:
    """Write the report into a folder, and into the docs if they are given.

    `few` are the names of functions that slow players play as well.
    """
    columns = all_columns(runs, budgets)
    if not columns:
        raise report.nothing(folder)
    text = tables(runs, columns, all_columns(runs, budgets, few))
    return report.save("bbob_noisy", "BBOB's noisy functions", text, draw(columns), folder, docs)


def all_columns(
    runs: Mapping[Task, Run], budgets: Sequence[int], names: Collection[str] | None = None
) -> list[Column]:
    """A board for each dimension and budget; of some functions only, if they are named."""
    kept = {t: run for t, run in runs.items() if names is None or t.problem in names}
    dims = sorted({bbob.DIMS[task.problem] for task in kept})
    boards = {(dim, budget): compared(kept, dim, budget) for dim in dims for budget in budgets}
    return [
        Column(f"d = {dim}, {budget:,}", board, bbob.OWN, budget)
        for (dim, budget), board in boards.items()
        if board.players
    ]


def compared(runs: Mapping[Task, Run], dim: int, budget: int) -> Board:
    """The players that have played every function for so long, on the instances they share."""
    here = {task: run for task, run in runs.items() if bbob.DIMS[task.problem] == dim}
    board = Board(here, [budget], LOGARITHMIC)
    shared = {
        player: set.intersection(
            *(set(board.by_seed(player, name, bbob.OWN, budget)) for name in board.problems)
        )
        for player in board.players
    }
    complete = {player: seeds for player, seeds in shared.items() if seeds}
    seeds = set.intersection(*complete.values()) if complete else set()
    chosen = {t: run for t, run in here.items() if t.player in complete and t.seed in seeds}
    return Board(chosen, [budget], LOGARITHMIC)


def tables(runs: Mapping[Task, Run], columns: Sequence[Column], few: Sequence[Column]) -> str:
    """All tables; `few` are the columns of the functions that everyone plays."""
    parts = ["## In short", _counted(columns), report.summary(columns, MEASURES)]
    if any(set(column.board.players) - _players(columns) for column in few):
        parts += ["## With the slow optimisers", _counted(few), report.summary(few, MEASURES)]
    parts += ["## Targets reached", _targets(columns), "## Time of an iteration"]
    longest = _longest(columns)
    everyone = {task: run for c in [*columns, *few] for task, run in c.board.runs.items()}
    for dim in longest:
        timed = {t: run for t, run in everyone.items() if bbob.DIMS[t.problem] == dim}
        parts += [f"{dim} dimensions:", report.times(Board(timed))]
    parts.append(report.TIMED)
    for dim, column in longest.items():
        parts.append(f"## Function by function: {dim} dimensions, {column.budget:,} evaluations")
        for measure, title in MEASURES.items():
            shown = column.board, measure, bbob.OWN, column.budget
            parts += [f"{title.capitalize()}:", report.by_problem(*shown, turned=True)]
    return "\n\n".join([*parts, *report.ending(Board(runs))]) + "\n"


def _players(columns: Sequence[Column]) -> set[str]:
    return {player for column in columns for player in column.board.players}


def _counted(columns: Sequence[Column]) -> str:
    """Functions and instances of the columns, in words; those that have the same together."""
    titles: dict[str, list[str]] = {}
    for column in columns:
        functions, instances = len(column.board.problems), column.board.seeds
        words = f"{functions} functions, {instances} instance{'s' * (instances > 1)}"
        titles.setdefault(words, []).append(column.title)
    if len(titles) == 1:
        return f"{next(iter(titles))}."
    return "; ".join(f"{words}: {' and '.join(which)}" for words, which in titles.items()) + "."


def _longest(columns: Sequence[Column]) -> dict[int, Column]:
    """The column of the largest budget that Partita has played, or of all, by dimension."""
    longest: dict[int, Column] = {}
    for column in columns:
        dim = bbob.DIMS[column.board.problems[0]]
        if OURS in column.board.players or dim not in longest:
            longest[dim] = column
    return longest


# -- targets --------------------------------------------------------------------------------------


def reached(regret: np.ndarray) -> np.ndarray:
    """The part of the targets that the best play so far has reached, (n,), of regrets (n,)."""
    best = np.minimum.accumulate(np.asarray(regret, dtype=float))
    return 1.0 - np.searchsorted(TARGETS, best, side="left") / len(TARGETS)


def _made(column: Column, player: str) -> list[Run]:
    """The runs of a player that answer for the column."""
    board = column.board
    return [
        run
        for name in board.problems
        for run in board.by_seed(player, name, column.noise, column.budget).values()
    ]


def _targets(columns: Sequence[Column]) -> str:
    playing = _players(columns)
    rows = [["", *(column.title for column in columns)]]
    for player in (name for name in PLAYERS if name in playing):
        cells = []
        for column in columns:
            parts = [reached(run.regret[: column.budget]) for run in _made(column, player)]
            share = np.mean([part[-1] for part in parts if len(part)]) if parts else math.nan
            cells.append("–" if math.isnan(share) else f"{100 * share:.0f} %")
        rows.append([PLAYERS[player].title, *cells])
    return "\n".join(aligned(rows)) + (
        "\n\nThe fraction of all pairs of a run and a target in which some evaluation reached the "
        "target: f − f* without noise is at most the target. There are "
        f"{len(TARGETS)} targets from {TARGETS[-1]:g} to {TARGETS[0]:g}, evenly spaced on a "
        "logarithmic scale."
    )


def draw(columns: Sequence[Column]) -> bytes:
    """The part of targets reached by evaluations, a panel a dimension, as PNG."""
    panels = [
        figure.Panel(
            f"{dim} dimensions",
            "part of the targets reached",
            target_lines(column, dim),
            1.0,
            "evaluations / dimension",
        )
        for dim, column in _longest(columns).items()
    ]
    counts = {len(column.board.problems) for column in columns}
    return figure.drawn(
        panels,
        "BBOB's noisy functions",
        f"{max(counts)} functions; targets are f − f* without noise from {TARGETS[-1]:g} to "
        f"{TARGETS[0]:g}, and one is reached once an evaluation is that close. Higher is better.",
    )


def target_lines(column: Column, dim: int) -> list[Line]:
    """The mean of `reached` over functions and instances, a line a player."""
    curves = {
        player: [
            reached(run.regret[: column.budget])
            for run in _made(column, player)
            if run.status != "failed"
        ]
        for player in column.board.players
    }
    return figure.mean_lines(curves, unit=dim)
